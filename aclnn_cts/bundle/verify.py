"""A bundle checked without a device: bytes, signature, and whether its parts agree."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import BinaryIO
from zipfile import ZipFile

import msgspec

from aclnn_cts.bundle.archive import (
    ABOUT,
    REPORT,
    BoundedReader,
    BundleHeader,
    BundleProblem,
    InvalidBundleError,
    open_archive,
    read_chunks,
    read_entries,
)
from aclnn_cts.bundle.recount import RUN_MANIFEST, RUN_SUMMARY, RecordSample, Recount, judge_sample_again
from aclnn_cts.bundle.signature import SIGNATURE_SIZE, Verifier, signature_path
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outside import FEW_CONTAINERS, open_outside, read_outside, strict_json
from aclnn_cts.core.trial import Trial, trial_from_json
from aclnn_cts.core.verdict import OutOfScope, SkipReason
from aclnn_cts.execution.judging import Judges
from aclnn_cts.execution.measuring import Measuring, chosen_tolerances
from aclnn_cts.execution.tolerances import recomputable_tolerances
from aclnn_cts.store.counts import CornerCount, Counts, OperatorSummary, TriedCount
from aclnn_cts.store.manifest import Manifest, product_of, ran_on
from aclnn_cts.store.summary import Summary, summary_from_json, summary_to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledRun:
    """What a bundle says of its run."""

    format: str
    harness: str
    """The version that judged."""
    adapter: str
    product: str
    """With the words `software device` where one stood in for it: never the product's name alone."""
    ran_on: str
    """What the implementation said of itself in a line; empty where it said nothing."""
    operators: tuple[str, ...]
    started: str
    verdict: str
    totals: Mapping[str, int]
    statuses: bool
    """Whether the implementation returns statuses."""
    report: str
    """The entry that holds the report; where there is none, why: `none: ...`."""
    left_out: Mapping[str, str]
    """What one might look for and does not find, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked, and what is wrong."""

    path: str
    size: int
    entries: int
    problems: tuple[BundleProblem, ...]
    says: BundledRun | None
    """What the bundle says of its run; None where that cannot be read."""
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

    - `key`: whose signature is demanded; without one a signature beside the bundle is not checked.
    - `recompute`: how many cases to judge again, of those whose outputs the bundle holds; `seed` chooses which.
    - `spec_folders`: where the oracles of operators of the user's own lie. They are Python, and run.
    """
    seed = secrets.randbits(32) if seed is None else seed
    records = Recount(RecordSample(recompute, Random(seed)))  # noqa: S311 - a sample, and no secret
    judged: list[BundleProblem | None] = []
    says: BundledRun | None = None
    names: list[str] = []
    with open_outside(path, expected="a file that `bundle` wrote", regular=True) as outside:
        file = BoundedReader(outside)
        try:
            archive, about = open_archive(file)
        except InvalidBundleError as error:
            problems = [error.problem]
        else:
            names = archive.namelist()
            records.begin(names)
            problems = [*read_entries(archive, file, records.take), *records.problems]
            agreement = BundleConsistency(records, names)
            if not problems:
                problems = list(agreement.problems())
                judged = list(_recomputed(archive, records, spec_folders))
            says = agreement.run_of(about)
        size = file.seek(0, 2)
        signature, wrong = _signature(path, file, key)
    problems += [*wrong, *(problem for problem in judged if problem is not None)]
    return Verification(
        path=str(path),
        size=size,
        entries=len(names),
        problems=tuple(problems),
        says=says,
        signature=signature,
        recomputed=len(judged),
        eligible=records.sample.eligible,
        seed=seed,
        unproved=_unproved(names) if key is None or wrong else (),
    )


_DETERMINED = frozenset(("blobs", "records", "specs"))
"""Entries that are held to other entries, byte by byte or in all that they say."""


def _unproved(names: Sequence[str]) -> tuple[str, ...]:
    """Entries by the first word of their name whose contents nothing else in the bundle tells."""
    words = dict.fromkeys(name.partition("/")[0] for name in names)
    return tuple(word for word in words if word not in _DETERMINED)


def _signature(path: Path, file: BinaryIO, key: Verifier | None) -> tuple[str, list[BundleProblem]]:
    """What can be said of the signature beside a bundle, and what is wrong with it."""
    place = signature_path(path)
    if key is None:
        return f"{place.name} was not checked: no public key was given" if place.exists() else "nobody signed it", []
    try:
        signature = read_outside(place, limit=SIGNATURE_SIZE, expected="the signature that `bundle --sign` wrote")
    except UsageError as error:
        return "none", [BundleProblem("signature", str(error))]
    digest = hashlib.sha256()
    file.seek(0)
    for piece in read_chunks(file):
        digest.update(piece)
    if key.accepts(signature, digest.digest()):
        return f"good, by the key {key.key_id}", []
    return "wrong", [BundleProblem("signature", f"{place} is not that of the key given ({key.key_id}) on this file")]


def _recomputed(archive: ZipFile, records: Recount, folders: Sequence[Path]) -> Iterator[BundleProblem | None]:
    """For each sampled case what is wrong with its verdict, or None."""
    if not records.sample.chosen:
        return
    try:
        specs = records.specs()
        judges = Judges(
            has_statuses=records.statuses,
            spec_folders=folders,
            measuring=Measuring(
                gate=recomputable_tolerances(records.manifest().tolerances, records.manifest().settings)
            ),
        )
    except (HarnessError, UsageError) as error:
        yield BundleProblem("specs", str(error).splitlines()[0])
        return
    yield from judge_sample_again(archive, records.sample, specs=specs, judges=judges)


_WITHOUT_RECORDS = (SkipReason.UNSUPPORTED, SkipReason.NOT_CHOSEN, SkipReason.SENTINEL, SkipReason.STOPPED)
"""Reasons of skips that no record tells of."""
_CASES = "cases/"
_NUMBER = re.compile(r"-\d+\.json$")
"""Ends the names of further findings with one key."""
_PAGE_HEAD = 1 << 14
_PAGE_MARKS = (b"<!DOCTYPE html>", b'<meta name="generator" content="aclnn-cts">')
_KNOWN = frozenset((ABOUT, "blobs", "cases", "records", REPORT, "repro", "run", "schemas", "specs", "waivers"))


@dataclass(frozen=True, slots=True)
class BundleConsistency:
    """What the parts of a bundle whose bytes are right say of each other."""

    records: Recount
    names: Collection[str]
    """Of all entries."""

    def problems(self) -> Iterator[BundleProblem]:
        """Everything that does not fit."""
        manifest, summary = self._run()
        yield from self._names()
        if manifest is None or summary is None:
            yield BundleProblem("run", f"{RUN_MANIFEST} or {RUN_SUMMARY} is missing, or is none")
            return
        yield from self._totals(summary, whole=not manifest.is_campaign)
        try:
            chosen_tolerances(manifest.tolerances)
        except UsageError as error:
            yield BundleProblem(RUN_MANIFEST, f"names an acceptance criterion that this version does not know: {error}")
        for name, digest in manifest.specs.items():
            content = self.records.files.get(f"specs/{name}")
            if content is None or hashlib.sha256(content).hexdigest() != digest:
                yield BundleProblem(f"specs/{name}", "is not the spec that the run used, by its manifest")

    def run_of(self, about: BundleHeader) -> BundledRun | None:
        """What the bundle says of its run."""
        manifest, summary = self._run()
        if manifest is None or summary is None:
            return None
        total = summary.total
        words = ("cases", "passed", "failed", "waived", "errors", "skipped", "out_of_scope")
        return BundledRun(
            format=about.format,
            harness=manifest.harness,
            adapter=manifest.adapter,
            product=product_of(manifest),
            ran_on=ran_on(manifest),
            operators=manifest.operators,
            started=manifest.started,
            verdict=summary.verdict.value,
            totals={"records": self.records.number, **{word: getattr(total, word) for word in words}},
            statuses=self.records.statuses,
            report=REPORT if REPORT in self.names else f"none: {about.left_out.get(REPORT, 'nothing says why')}",
            left_out=about.left_out,
        )

    def _run(self) -> tuple[Manifest | None, Summary | None]:
        try:
            summary = strict_json(
                self.records.files[RUN_SUMMARY], where=RUN_SUMMARY, error=HarnessError, containers=FEW_CONTAINERS
            )
            return self.records.manifest(), summary_from_json(summary, where=RUN_SUMMARY)
        except (HarnessError, KeyError):
            return None, None

    def _names(self) -> Iterator[BundleProblem]:
        """Entries that something speaks of, and no others."""
        yield from self._cases()
        page = self.records.files.get(REPORT)
        if page is not None and not all(mark in page[:_PAGE_HEAD] for mark in _PAGE_MARKS):
            yield BundleProblem(REPORT, "is no page that `aclnn-cts report` wrote")
        for digest in sorted(self.records.sample.blobs - self.records.digests):
            yield BundleProblem(f"blobs/{digest}", "no record tells of it")
        for name in self.names:
            if name.partition("/")[0] not in _KNOWN:
                yield BundleProblem(name, "no bundle has such an entry")

    def _cases(self) -> Iterator[BundleProblem]:
        """A trial of each finding, and no others; of a campaign, which keeps few records, of their operators."""
        expected = {item.file: item.key.operator for item in self.records.failures.findings}
        found = {name.removeprefix(_CASES) for name in self.records.files if name.startswith(_CASES)}
        if self._is_campaign():
            expected = {name: operator for name in found for operator in expected.values() if name.startswith(operator)}
        for name in sorted(set(expected) - found):
            yield BundleProblem(f"cases/{name}", "is missing: records fail with its fingerprint")
        for name in sorted(found):
            operator = expected.get(_NUMBER.sub(".json", name))
            if operator is None:
                yield BundleProblem(f"cases/{name}", "no record fails with its fingerprint")
            else:
                yield from self._trial(name, operator)

    def _is_campaign(self) -> bool:
        manifest, _ = self._run()
        return manifest is not None and manifest.is_campaign

    def _trial(self, name: str, expected: str) -> Iterator[BundleProblem]:
        """Whether a trial file holds a trial of the operator that its finding is of."""
        where = f"{_CASES}{name}"
        try:
            trial = trial_from_json(strict_json(self.records.files[where], where=where), where=where)
        except UsageError as error:
            yield BundleProblem(where, str(error).removeprefix(f"{where}: "))
            return
        operator = trial.case.operator if isinstance(trial, Trial) else None
        if operator != expected:
            yield BundleProblem(where, f"holds no trial of {expected}, which its finding is of")

    def _totals(self, summary: Summary, *, whole: bool) -> Iterator[BundleProblem]:
        """What is stated is what the records have; of a campaign, which keeps few of them (not `whole`), at least."""
        for name in sorted({*summary.operators, *self.records.operators}):
            stated = summary.operator(name).kinds
            found = self.records.operators.get(name, OperatorSummary())
            counted = found.kinds
            if whole and not _same_evidence(summary.operator(name), found):
                text = f"{name}: what is stated of dtypes, rules, corners and aims is not what the records have"
                yield BundleProblem(RUN_SUMMARY, text)
            for kind in sorted({*stated, *counted}):
                where = f"{RUN_SUMMARY}, {name}, {kind or 'no kind'}"
                for message in _differences(stated.get(kind, Counts()), counted.get(kind, Counts()), whole=whole):
                    yield BundleProblem(where, message)
        document = msgspec.json.decode(self.records.files[RUN_SUMMARY])
        for key, value in summary_to_json(summary).items():
            # A key that an earlier version did not write says nothing.
            if key in document and document[key] != msgspec.json.decode(msgspec.json.encode(value)):
                yield BundleProblem(RUN_SUMMARY, f"$.{key} does not follow from the counts by kind")
        if whole and summary.waivers != self.records.waivers:
            yield BundleProblem(
                RUN_SUMMARY, f"waivers {summary.waivers} are stated; the records have {self.records.waivers}"
            )


def _same_evidence(said: OperatorSummary, found: OperatorSummary) -> bool:
    """Whether the counts that a verdict is measured by are those of the records."""
    of_dtypes_and_rules = all(
        tried == counted.get(name, TriedCount())
        for stated, counted in ((said.dtypes, found.dtypes), (said.rules, found.rules))
        for name, tried in stated.items()
    )
    of_corners = all(count == found.corners.get(name, CornerCount()) for name, count in said.corners.items())
    return said.aims == found.aims and of_dtypes_and_rules and of_corners


def _differences(said: Counts, found: Counts, *, whole: bool) -> Iterator[str]:
    """How the counts of one kind differ from those of its records."""
    for word in ("passed", "failed", "waived", "twin_failed", "twin_waived", "errors"):
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
