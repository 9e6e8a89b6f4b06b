"""What the parts of a bundle whose bytes are right say of each other: records, summary, manifests and names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from aclnn_cts.bundle.reading import Reading
from aclnn_cts.bundle.recount import REPORT, RUN_MANIFEST, RUN_SUMMARY, Recount
from aclnn_cts.bundle.statement import BLOBS, MANIFEST_NAME, Contents, Problem, Statement
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import shown
from aclnn_cts.core.strict_json import FEW_CONTAINERS, strict_json
from aclnn_cts.core.trial import Trial, trial_from_json
from aclnn_cts.core.verdict import OutOfScope, Skip
from aclnn_cts.execution.measuring import chosen_tolerances
from aclnn_cts.store.counts import Counts, OperatorSummary, Tried
from aclnn_cts.store.manifest import Manifest, product_of, ran_on
from aclnn_cts.store.summary import Summary, summary_from_json, summary_to_json

_WITHOUT_RECORDS = (Skip.UNSUPPORTED, Skip.NOT_CHOSEN, Skip.SENTINEL)
"""Reasons of skips that no record tells of."""
_CASES = "cases/"
_PAGE_HEAD = 1 << 14
_PAGE_MARKS = (b"<!DOCTYPE html>", b'<meta name="generator" content="aclnn-cts">')
_KNOWN = frozenset(("blobs", "cases", "records", "report.html", "repro", "run", "schemas", "specs", "waivers"))


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the parts of a bundle whose bytes are right say of each other."""

    records: Recount
    statement: Statement
    reading: Reading

    def problems(self) -> Iterator[Problem]:
        """Everything that does not fit."""
        manifest, summary = self._run()
        yield from self._names()
        if manifest is None or summary is None:
            yield Problem("run", f"{RUN_MANIFEST} or {RUN_SUMMARY} is missing, or is none")
            return
        yield from self._totals(summary, whole=not manifest.is_campaign)
        yield from self._predicate(manifest, summary)
        try:
            chosen_tolerances(manifest.tolerances)
        except UsageError as error:
            yield Problem(RUN_MANIFEST, f"names an acceptance criterion that this version does not know: {error}")
        for name, digest in manifest.specs.items():
            content = self.records.files.get(f"specs/{name}")
            if content is None or hashlib.sha256(content).hexdigest() != digest:
                yield Problem(f"specs/{name}", "is not the spec that the run used, by its manifest")

    def _run(self) -> tuple[Manifest | None, Summary | None]:
        try:
            summary = strict_json(
                self.records.files[RUN_SUMMARY], where=RUN_SUMMARY, error=HarnessError, containers=FEW_CONTAINERS
            )
            return self.records.manifest(), summary_from_json(summary, where=RUN_SUMMARY)
        except (HarnessError, KeyError):
            return None, None

    def _names(self) -> Iterator[Problem]:
        """Entries that something speaks of, and no others."""
        expected = set(self.records.findings)
        found = {name.removeprefix(_CASES) for name in self.records.files if name.startswith(_CASES)}
        for name in sorted(expected - found):
            yield Problem(f"cases/{name}", "is missing: records fail with its fingerprint")
        for name in sorted(found - expected):
            yield Problem(f"cases/{name}", "no record fails with its fingerprint")
        for name in sorted(found & expected):
            yield from self._trial(name)
        page = self.records.files.get(REPORT)
        if page is not None and not all(mark in page[:_PAGE_HEAD] for mark in _PAGE_MARKS):
            yield Problem(REPORT, "is no page that `aclnn-cts report` wrote")
        for digest in sorted(self.records.sample.blobs - self.records.digests):
            yield Problem(f"blobs/{digest}", "no record tells of it")
        for subject in self.statement.subject:
            name = subject.name
            if name.startswith(BLOBS) and subject.digest.sha256 != name.removeprefix(BLOBS):
                yield Problem(name, "its SHA-256 is not its name")
            if name.partition("/")[0] not in _KNOWN:
                yield Problem(name, "no bundle has such an entry")

    def _trial(self, name: str) -> Iterator[Problem]:
        """Whether a trial file holds a trial of the operator that its finding is of."""
        where = f"{_CASES}{name}"
        try:
            trial = trial_from_json(strict_json(self.records.files[where], where=where), where=where)
        except UsageError as error:
            yield Problem(where, str(error).removeprefix(f"{where}: "))
            return
        operator = trial.case.operator if isinstance(trial, Trial) else None
        if operator != self.records.findings[name]:
            yield Problem(where, f"holds no trial of {self.records.findings[name]}, which its finding is of")

    def _totals(self, summary: Summary, *, whole: bool) -> Iterator[Problem]:
        """What is stated is what the records have; of a campaign, which keeps few of them (not `whole`), at least."""
        for name in sorted({*summary.operators, *self.records.operators}):
            stated = summary.operator(name).kinds
            found = self.records.operators.get(name, OperatorSummary())
            counted = found.kinds
            if whole and not _same_evidence(summary.operator(name), found):
                text = f"{name}: what is stated of dtypes, rules and aims is not what the records have"
                yield Problem(RUN_SUMMARY, text)
            for kind in sorted({*stated, *counted}):
                where = f"{RUN_SUMMARY}, {name}, {kind or 'no kind'}"
                for message in _differences(stated.get(kind, Counts()), counted.get(kind, Counts()), whole=whole):
                    yield Problem(where, message)
        document = msgspec.json.decode(self.records.files[RUN_SUMMARY])
        for key, value in summary_to_json(summary).items():
            # A key that an earlier version did not write says nothing.
            if key in document and document[key] != msgspec.json.decode(msgspec.json.encode(value)):
                yield Problem(RUN_SUMMARY, f"$.{key} does not follow from the counts by kind")
        if whole and summary.waivers != self.records.waivers:
            yield Problem(RUN_SUMMARY, f"waivers {summary.waivers} are stated; the records have {self.records.waivers}")

    def _predicate(self, manifest: Manifest, summary: Summary) -> Iterator[Problem]:
        predicate = self.statement.predicate
        said = (predicate.verdict, predicate.adapter, predicate.started, predicate.harness, predicate.operators)
        run = (summary.verdict.value, manifest.adapter, manifest.started, manifest.harness, manifest.operators)
        no_report = predicate.report.startswith("none: ")
        mistakes = {
            "its totals are not those of the summary and the records": (
                predicate.totals != Contents.of(summary.total, records=self.records.number)
            ),
            "says another verdict, adapter, time, version or operators than the run": said != run,
            "says otherwise than the run's environment what it ran on": (
                (predicate.product, predicate.ran_on) != (product_of(manifest), ran_on(manifest))
            ),
            "says otherwise than the records whether there are statuses": predicate.statuses != self.records.statuses,
            f"says of the report {shown(predicate.report)}, which is not so": (
                (predicate.report in self.reading.offsets) == no_report
            ),
        }
        yield from (Problem(MANIFEST_NAME, text) for text, is_made in mistakes.items() if is_made)


def _same_evidence(said: OperatorSummary, found: OperatorSummary) -> bool:
    """Whether the counts that a verdict is measured by are those of the records."""
    return said.aims == found.aims and all(
        tried == counted.get(name, Tried())
        for stated, counted in ((said.dtypes, found.dtypes), (said.rules, found.rules))
        for name, tried in stated.items()
    )


def _differences(said: Counts, found: Counts, *, whole: bool) -> Iterator[str]:
    """How the counts of one kind differ from those of its records."""
    for word in ("passed", "failed", "waived", "errors"):
        stated, number = getattr(said, word), getattr(found, word)
        if stated != number and (whole or stated < number):
            yield f"{stated} {word} are stated; the records have {number}"
    if whole and _with_records(said) != found.skipped_by_reason:
        yield f"skips {_with_records(said)} are stated; the records have {found.reasons}"
    if whole and _outside(said) != _outside(found):
        yield f"out of scope {_outside(said)} are stated; the records have {_outside(found)}"
    if said.cases != said.ended or said.skipped != sum(said.skipped_by_reason.values()):
        yield f"{said.cases} are planned, {said.ended} ended"


def _with_records(counts: Counts) -> dict[str, int]:
    return {reason: number for reason, number in counts.skipped_by_reason.items() if reason not in _WITHOUT_RECORDS}


def _outside(counts: Counts) -> dict[str, int]:
    """What is out of scope, without whole operators, of which no record tells."""
    found = counts.out_of_scope_by_reason
    return {reason: number for reason, number in sorted(found.items()) if not reason.startswith(OutOfScope.OPERATOR)}
