"""A bundle checked without a device: bytes, sums, signature, and whether its parts agree."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from aclnn_cts.bundle.archive import Reading, read_bundle
from aclnn_cts.bundle.recount import REPORT, RUN_MANIFEST, RUN_SUMMARY, Recount, Sample, judged_again
from aclnn_cts.bundle.statement import (
    BLOBS,
    BUNDLE_FORMAT,
    MANIFEST_NAME,
    SIGNATURE_NAME,
    Contents,
    Predicate,
    Problem,
    Statement,
    Verifier,
    signed_bytes,
)
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outside import FEW_CONTAINERS, strict_json
from aclnn_cts.core.printable import shown
from aclnn_cts.core.trial import Trial, trial_from_json
from aclnn_cts.core.verdict import OutOfScope, Skip
from aclnn_cts.execution.judging import Judges
from aclnn_cts.execution.measuring import Measuring, chosen_tolerances
from aclnn_cts.store.counts import Counts, OperatorSummary, Tried
from aclnn_cts.store.manifest import Manifest, older_format, product_of, ran_on
from aclnn_cts.store.summary import Summary, summary_from_json, summary_to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked, and what is wrong."""

    path: str
    size: int
    entries: int
    problems: tuple[Problem, ...]
    predicate: Predicate | None
    """What the bundle says of itself; None where its manifest cannot be read."""
    signature: str
    """In words: by which key, and whether it was checked."""
    recomputed: int
    """Cases judged again."""
    eligible: int
    """Cases whose outputs the bundle holds."""
    seed: int
    """Of the sample."""
    unproved: tuple[str, ...] = ()
    """What of the bundle could have been written by anybody, and contradicts nothing; empty where a key proves it."""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify_bundle(
    path: Path,
    *,
    key: Verifier | None = None,
    recompute: int = 0,
    seed: int | None = None,
    spec_folders: Sequence[Path] = (),
) -> Verification:
    """Check a bundle; whatever is wrong with it is a problem of the result, and nothing in it is run.

    - `key`: whose signature is demanded; without one a signature is held to the manifest and not checked.
    - `recompute`: how many cases to judge again, of those whose outputs the bundle holds; `seed` chooses which.
    - `spec_folders`: where the oracles of operators of the user's own lie. They are Python, and run.
    """
    seed = secrets.randbits(32) if seed is None else seed
    records = Recount(Sample(recompute, Random(seed)))  # noqa: S311 - a sample, and no secret
    reading = read_bundle(path, records)
    problems = [*reading.problems, *records.problems]
    statement = reading.statement
    signature, proved = "not read", False
    recomputed = 0
    if statement is not None:
        signature, wrong = _signature(reading, statement.predicate, key)
        problems += wrong
        proved = key is not None and not wrong
    if statement is not None and statement.is_older:
        older = older_format("its records", statement.predicate.format, BUNDLE_FORMAT)
        problems.append(Problem("file", f"{older}. Here only its bytes and its signature were checked"))
    elif statement is not None and not reading.problems:
        problems += Agreement(records, statement, reading).problems()
        judged = list(_recomputed(path, records, statement, reading.offsets, spec_folders))
        recomputed = len(judged)
        problems += [problem for problem in judged if problem is not None]
    return Verification(
        path=str(path),
        size=reading.size,
        entries=len(reading.offsets),
        problems=tuple(problems),
        predicate=statement.predicate if statement is not None else None,
        signature=signature,
        recomputed=recomputed,
        eligible=records.sample.eligible,
        seed=seed,
        unproved=_unproved(statement) if statement is not None and not proved else (),
    )


_DETERMINED = frozenset(("blobs", "records", "specs"))
"""Entries that are held to other entries, byte by byte or in all that they say."""


def _unproved(statement: Statement) -> tuple[str, ...]:
    """Entries by the first word of their name whose contents nothing else in the bundle tells."""
    names = dict.fromkeys(subject.name.partition("/")[0] for subject in statement.subject)
    return tuple(name for name in names if name not in _DETERMINED)


def _signature(reading: Reading, predicate: Predicate, key: Verifier | None) -> tuple[str, list[Problem]]:
    """What can be said of the signature, and what is wrong with it."""
    if not predicate.signer:
        wrong = [Problem(SIGNATURE_NAME, "the bundle is not signed; the key that was given says nothing of it")]
        return "nobody signed it", wrong if key is not None else []
    if key is None:
        return f"signed by the key {predicate.signer}, not checked: no public key was given", []
    if key.key_id != predicate.signer:
        return "not by the key given", [
            Problem(SIGNATURE_NAME, f"signed by the key {predicate.signer}, and not by the one given ({key.key_id})")
        ]
    if reading.signature is None or not key.accepts(reading.signature, signed_bytes(reading.manifest)):
        return "wrong", [Problem(SIGNATURE_NAME, "the signature is not that of the key given on this manifest")]
    return f"good, by the key {predicate.signer}", []


def _recomputed(
    path: Path, records: Recount, statement: Statement, offsets: Mapping[str, int], folders: Sequence[Path]
) -> Iterator[Problem | None]:
    """For each sampled case what is wrong with its verdict, or None."""
    if not records.sample.chosen:
        return
    try:
        specs = records.specs()
        judges = Judges(
            has_statuses=statement.predicate.statuses,
            spec_folders=folders,
            measuring=Measuring(gate=records.manifest().tolerances),
        )
    except (HarnessError, UsageError) as error:
        yield Problem("specs", str(error).splitlines()[0])
        return
    yield from judged_again(path, records.sample, statement, offsets, specs=specs, judges=judges)


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
