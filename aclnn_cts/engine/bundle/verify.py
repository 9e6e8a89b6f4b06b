"""A bundle checked without a device: bytes, sums, signature, totals that add up, and sampled cases judged again."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from aclnn_cts.core.case_json import canonical_json, case_from_json
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.verdict import Fault, Result, Signature, Skip
from aclnn_cts.engine.bundle.keys import Verifier
from aclnn_cts.engine.bundle.reading import Problem, Reading, read_bundle
from aclnn_cts.engine.bundle.recompute import Recomputer, recorded_outputs
from aclnn_cts.engine.bundle.record_json import RECORD_FORMAT, record_from_json
from aclnn_cts.engine.bundle.statement import (
    MANIFEST_NAME,
    SIGNATURE_NAME,
    Contents,
    Predicate,
    Statement,
    signed_bytes,
)
from aclnn_cts.engine.manifest import Manifest, manifest_from_json
from aclnn_cts.engine.run_directory import failure_name
from aclnn_cts.engine.summary import Counts, Summary, summary_from_json, summary_to_json
from aclnn_cts.spec.load import Specs, specs_from_texts

__all__ = ["RECOMPUTE_BYTES", "Problem", "Verification", "verify_bundle"]

RECOMPUTE_BYTES = 64 * 1024 * 1024
"""Bytes of a case's arguments beyond which it is not judged again: an oracle's time grows faster than they do."""

KEPT_LIMIT = 1024 * 1024 * 1024
"""Bytes of specs, trial files and the run's own files together."""

_MANIFEST, _SUMMARY = "run/manifest.json", "run/summary.json"
_WITHOUT_RECORDS = (Skip.UNSUPPORTED, Skip.NOT_CHOSEN)
"""Reasons of skips that no record tells of."""
_CAMPAIGN = "fuzz"
"""The command whose runs keep the counts of all trials and the records of a few."""
_BLOBS, _CASES = "blobs/", "cases/"
_KNOWN = frozenset(("blobs", "cases", "records", "report.html", "repro", "run", "schemas", "specs", "waivers"))
_NO_RECORD = (
    msgspec.MsgspecError,
    HarnessError,
    UsageError,
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
    RecursionError,
)


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

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(slots=True)
class _Sample:
    """A sample without preference of the records whose outputs the bundle holds, in one pass (Vitter's algorithm R)."""

    size: int
    random: Random
    blobs: frozenset[str] = frozenset()
    eligible: int = 0
    chosen: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def offer(self, record: Mapping[str, Any], where: str) -> None:
        needed = recorded_outputs(record)
        if not needed or not self.blobs.issuperset(needed):
            return
        if case_from_json(record["trial"]["case"], where=where).nbytes > RECOMPUTE_BYTES:
            return
        self.eligible += 1
        if len(self.chosen) < self.size:
            self.chosen.append((where, record))
        elif (place := self.random.randrange(self.eligible)) < self.size:
            self.chosen[place] = (where, record)


@dataclass(slots=True)
class _Records:
    """Counts records again while the bundle is read, and keeps the small files that they are held to."""

    sample: _Sample
    problems: list[Problem] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    operators: dict[str, dict[str, Counts]] = field(default_factory=dict)
    waivers: dict[str, int] = field(default_factory=dict)
    findings: set[str] = field(default_factory=set)
    """Names of the trial files of the failures."""
    digests: set[str] = field(default_factory=set)
    """Of every recorded output."""
    number: int = 0
    kept: int = 0
    statuses: bool = False

    def begin(self, statement: Statement) -> None:
        """Learn which outputs the bundle holds."""
        names = (subject.name for subject in statement.subject)
        self.sample.blobs = frozenset(name.removeprefix(_BLOBS) for name in names if name.startswith(_BLOBS))

    def wants(self, name: str) -> bool:
        """Records, and the files that records are held to."""
        return name.partition("/")[0] in ("records", "run", "specs", "cases")

    def take(self, name: str, content: bytes) -> None:
        """One entry whose sum is right."""
        if not name.startswith("records/"):
            self.kept += len(content)
            if self.kept > KEPT_LIMIT:
                self.problems.append(Problem(name, f"comes after {KEPT_LIMIT} bytes of files that are no records"))
                return
            self.files[name] = content
            return
        for number, line in enumerate(content.split(b"\n")[:-1], start=1):
            where = f"{name}, line {number}"
            try:
                self._record(msgspec.json.decode(line), where)
            except _NO_RECORD as error:
                self.problems.append(Problem(where, f"is no record of the format {RECORD_FORMAT!r}: {error!r:.200}"))

    def _record(self, record: Any, where: str) -> None:  # noqa: ANN401 - any JSON
        if record["format"] != RECORD_FORMAT:
            raise HarnessError(f"format {record['format']!r}")
        self.number += 1
        trial, verdict = record["trial"], record["verdict"]
        case = trial["case"]
        kinds = self.operators.setdefault(case["operator"], {})
        counts = kinds.setdefault(case.get("origin", {}).get("kind", ""), Counts())
        counts.count(verdict["result"], reason=verdict.get("kind", ""), waived=bool(record["waiver"]))
        if verdict["result"] == Result.FAILED:
            self._failure(record, where)
        for outcome in record["attempts"][0] if record["attempts"] else ():
            self.statuses = self.statuses or outcome.get("phase_one") is not None
            self.digests.update(state.get("sha256", "") for state in outcome.get("buffers", {}).values())
        identity = {**trial, "case": {key: value for key, value in case.items() if key != "origin"}}
        if hashlib.sha256(canonical_json(identity)).hexdigest() != record["trial_id"]:
            self.problems.append(Problem(where, "its trial is not the one that its id names"))
        self.sample.offer(record, where)

    def _failure(self, record: Mapping[str, Any], where: str) -> None:
        signature = msgspec.convert(record["signature"], Signature)
        self.findings.add(failure_name(signature))
        if record["waiver"]:
            self.waivers[record["waiver"]] = self.waivers.get(record["waiver"], 0) + 1
        # A campaign counts a law that is not kept since one of its calls is wrong with that call.
        kind = signature.kind if record["verdict"]["kind"] == Fault.LAW else record["verdict"]["kind"]
        if (signature.kind, signature.operator) != (kind, record["trial"]["case"]["operator"]):
            self.problems.append(Problem(where, "its signature is that of another fault or operator"))


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
    records = _Records(_Sample(recompute, Random(seed)))  # noqa: S311 - a sample, and no secret
    reading = read_bundle(path, records)
    problems = [*reading.problems, *records.problems]
    statement = reading.statement
    signature = "not read"
    recomputed = 0
    if statement is not None:
        signature, wrong = _signature(reading, statement.predicate, key)
        problems += wrong
    if statement is not None and not reading.problems:
        problems += _Held(records, statement, reading).problems()
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
    )


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


@dataclass(frozen=True, slots=True)
class _Held:
    """What the parts of a bundle whose bytes are right say of each other."""

    records: _Records
    statement: Statement
    reading: Reading

    def problems(self) -> Iterator[Problem]:
        """Everything that does not fit."""
        manifest, summary = self._run()
        yield from self._names()
        if manifest is None or summary is None:
            yield Problem("run", f"{_MANIFEST} or {_SUMMARY} is missing, or is none")
            return
        yield from self._totals(summary, whole=manifest.command != _CAMPAIGN)
        yield from self._predicate(manifest, summary)
        for name, digest in manifest.specs.items():
            content = self.records.files.get(f"specs/{name}")
            if content is None or hashlib.sha256(content).hexdigest() != digest:
                yield Problem(f"specs/{name}", "is not the spec that the run used, by its manifest")

    def _run(self) -> tuple[Manifest | None, Summary | None]:
        files = self.records.files
        try:
            manifest = manifest_from_json(files[_MANIFEST], where=_MANIFEST)
            return manifest, summary_from_json(msgspec.json.decode(files[_SUMMARY]), where=_SUMMARY)
        except (HarnessError, KeyError, msgspec.MsgspecError):
            return None, None

    def _names(self) -> Iterator[Problem]:
        """Entries that something speaks of, and no others."""
        expected = self.records.findings
        found = {name.removeprefix(_CASES) for name in self.records.files if name.startswith(_CASES)}
        for name in sorted(expected - found):
            yield Problem(f"cases/{name}", "is missing: records fail with its signature")
        for name in sorted(found - expected):
            yield Problem(f"cases/{name}", "no record fails with its signature")
        for digest in sorted(self.records.sample.blobs - self.records.digests):
            yield Problem(f"blobs/{digest}", "no record tells of it")
        for subject in self.statement.subject:
            name = subject.name
            if name.startswith(_BLOBS) and subject.digest.sha256 != name.removeprefix(_BLOBS):
                yield Problem(name, "its SHA-256 is not its name")
            if name.partition("/")[0] not in _KNOWN:
                yield Problem(name, "no bundle has such an entry")

    def _totals(self, summary: Summary, *, whole: bool) -> Iterator[Problem]:
        """What is stated is what the records have; of a campaign, which keeps few of them (not `whole`), at least."""
        for name in sorted({*summary.operators, *self.records.operators}):
            stated = summary.operator(name).kinds
            counted = self.records.operators.get(name, {})
            for kind in sorted({*stated, *counted}):
                said, found = stated.get(kind, Counts()), counted.get(kind, Counts())
                where = f"{_SUMMARY}, {name}, {kind or 'no kind'}"
                for word in ("passed", "failed", "waived", "errors"):
                    stated_number, number = getattr(said, word), getattr(found, word)
                    if stated_number != number and (whole or stated_number < number):
                        yield Problem(where, f"{stated_number} {word} are stated; the records have {number}")
                if whole and _with_records(said) != found.skipped_by_reason:
                    yield Problem(where, f"skips {_with_records(said)} are stated; the records have {_skips(found)}")
                if said.cases != said.ended or said.skipped != sum(said.skipped_by_reason.values()):
                    yield Problem(where, f"{said.cases} are planned, {said.ended} ended")
        document = msgspec.json.decode(self.records.files[_SUMMARY])
        for key, value in summary_to_json(summary).items():
            # A key that an earlier version did not write says nothing.
            if key in document and document[key] != msgspec.to_builtins(value):
                yield Problem(_SUMMARY, f"$.{key} does not follow from the counts by kind")
        if whole and summary.waivers != self.records.waivers:
            yield Problem(_SUMMARY, f"waivers {summary.waivers} are stated; the records have {self.records.waivers}")

    def _predicate(self, manifest: Manifest, summary: Summary) -> Iterator[Problem]:
        total, predicate = summary.total, self.statement.predicate
        contents = Contents(
            records=self.records.number,
            cases=total.cases,
            passed=total.passed,
            failed=total.failed,
            waived=total.waived,
            errors=total.errors,
            skipped=total.skipped,
        )
        if predicate.totals != contents:
            yield Problem(MANIFEST_NAME, "its totals are not those of the summary and the records")
        said = (predicate.verdict, predicate.adapter, predicate.started, predicate.harness, predicate.operators)
        run = (summary.verdict, manifest.adapter, manifest.started, manifest.harness, manifest.operators)
        if said != run:
            yield Problem(MANIFEST_NAME, "says another verdict, adapter, time, version or operators than the run")
        if predicate.statuses != self.records.statuses:
            yield Problem(MANIFEST_NAME, "says otherwise than the records whether there are statuses")
        if (predicate.report in self.reading.offsets) == predicate.report.startswith("none: "):
            yield Problem(MANIFEST_NAME, f"says of the report {predicate.report!r}, which is not so")


def _with_records(counts: Counts) -> dict[str, int]:
    return {reason: number for reason, number in counts.skipped_by_reason.items() if reason not in _WITHOUT_RECORDS}


def _skips(counts: Counts) -> dict[str, int]:
    return dict(sorted(counts.skipped_by_reason.items()))


def _recomputed(
    path: Path, records: _Records, statement: Statement, offsets: Mapping[str, int], folders: Sequence[Path]
) -> Iterator[Problem | None]:
    """For each sampled case what is wrong with its verdict, or None."""
    if not records.sample.chosen:
        return
    try:
        settings = manifest_from_json(records.files.get(_MANIFEST, b""), where=_MANIFEST).settings
        specs = _specs(records)
        recomputer = Recomputer(
            specs=specs,
            statuses=statement.predicate.statuses,
            rulers=tuple(settings.get("rulers", ())),
            spec_folders=folders,
        )
    except (HarnessError, UsageError) as error:
        yield Problem("specs", str(error).splitlines()[0])
        return
    sizes = {subject.name: subject.annotations.size for subject in statement.subject}
    with path.open("rb") as file:

        def blob(digest: str) -> bytes:
            file.seek(offsets[f"{_BLOBS}{digest}"])
            return file.read(sizes[f"{_BLOBS}{digest}"])

        for where, document in records.sample.chosen:
            try:
                difference = recomputer.difference(record_from_json(document, where=where), blob)
            except (HarnessError, UsageError, KeyError, ValueError, ArithmeticError) as error:
                difference = f"cannot be judged again: {error!s:.300}"
            yield Problem(where, difference) if difference else None


def _specs(records: _Records) -> Specs:
    """The specs of the bundle."""
    return specs_from_texts(
        {
            name.removeprefix("specs/").removesuffix(".yaml"): content.decode("utf-8", errors="replace")
            for name, content in records.files.items()
            if name.startswith("specs/") and name.endswith(".yaml")
        }
    )
