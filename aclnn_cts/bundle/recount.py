"""The records of a bundle, counted again while it is read, and judged again from their recorded outputs.

A sample of the cases whose outputs the bundle holds is kept, to be judged again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any
from zipfile import ZipFile

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.bundle.archive import BLOBS, BundleProblem, read_chunks
from aclnn_cts.bundle.records import RECORD_FORMAT, record_from_json
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.case_json import canonical_json, case_from_json
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Fault, fault_name
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.outside import MESSAGE_LIMIT, check_json_size, strict_json
from aclnn_cts.core.printable import quote
from aclnn_cts.core.verdict import TOLERANCE_FACT, TWIN_FAILED, Record, Result, Verdict, aim
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judges
from aclnn_cts.execution.measuring import chosen_tolerances
from aclnn_cts.findings.findings import BROKEN_CALL, Failures
from aclnn_cts.findings.fingerprint import with_whole_fingerprint
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import Specs, specs_from_texts
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import OperatorSummary
from aclnn_cts.store.manifest import Manifest, manifest_from_json
from aclnn_cts.trials.checks.life_cycle import asked_calls
from aclnn_cts.trials.checks.registry import check_by_id

RECOMPUTE_BYTES = 64 * 1024 * 1024
"""Bytes of a case's arguments beyond which it is not judged again: an oracle's time grows faster than they do."""


@dataclass(slots=True)
class RecordSample:
    """A sample without preference of the records whose outputs the bundle holds, in one pass (Vitter's algorithm R)."""

    size: int
    random: Random
    blobs: frozenset[str] = frozenset()
    """SHA-256 of the outputs that the bundle holds."""
    eligible: int = 0
    chosen: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def offer(self, record: Mapping[str, Any], where: str) -> None:
        """Count a record (as JSON) if it can be judged again, and choose it or not."""
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


def judge_sample_again(
    archive: ZipFile, sample: RecordSample, *, specs: Specs, judges: Judges
) -> Iterator[BundleProblem | None]:
    """For each sampled case of a bundle what is wrong with its verdict, or None."""

    def blob(digest: str) -> bytes:
        entry = archive.getinfo(f"{BLOBS}{digest}")
        if entry.file_size > RECOMPUTE_BYTES:
            raise HarnessError(f"{entry.filename} has {entry.file_size} bytes; expected at most {RECOMPUTE_BYTES}")
        with archive.open(entry) as file:
            return b"".join(read_chunks(file))

    for where, document in sample.chosen:
        try:
            wrong = verdict_difference(record_from_json(document, where=where), blob, specs=specs, judges=judges)
        except (HarnessError, UsageError, KeyError, ValueError, ArithmeticError) as error:
            wrong = f"cannot be judged again: {error!s:.300}"
        yield BundleProblem(where, wrong) if wrong else None


RUN_MANIFEST, RUN_SUMMARY = "run/manifest.json", "run/summary.json"

KEPT_LIMIT = 128 * 1024 * 1024
"""Bytes of specs, trial files and the run's own files together."""

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


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise HarnessError(f"{quote(value)} where a word is expected")
    return value


def _dtypes(arguments: Mapping[str, Any]) -> Iterator[str]:
    """The tensors of a case in JSON with their dtypes, as `grad FLOAT`."""
    for name, value in arguments.items():
        if isinstance(value, Mapping) and "tensor" in value:
            yield f"{name} {value['tensor']['dtype']}"


def _lines(content: bytes) -> Iterator[bytes]:
    """Lines without their ends, one at a time; what follows the last end is none."""
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        yield content[start:end]
        start = end + 1


@dataclass(slots=True)
class Recount:
    """Counts records again while the bundle is read, and keeps the small files that they are held to."""

    sample: RecordSample
    problems: list[BundleProblem] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    operators: dict[str, OperatorSummary] = field(default_factory=dict)
    waivers: dict[str, int] = field(default_factory=dict)
    failures: Failures = field(default_factory=Failures)
    digests: set[str] = field(default_factory=set)
    """Of every recorded output."""
    number: int = 0
    kept: int = 0
    statuses: bool = False

    def begin(self, names: Iterable[str]) -> None:
        """Learn from the names of its entries which outputs the bundle holds."""
        self.sample.blobs = frozenset(name.removeprefix(BLOBS) for name in names if name.startswith(BLOBS))

    def take(self, name: str, content: bytes) -> None:
        """Count the records of an entry, or keep the file that they are held to."""
        if not name.startswith("records/"):
            self.kept += len(content)
            if self.kept > KEPT_LIMIT:
                self.problems.append(
                    BundleProblem(name, f"comes after {KEPT_LIMIT} bytes of files that are no records")
                )
                return
            self.files[name] = content
            return
        for number, line in enumerate(_lines(content), start=1):
            where = f"{name}, line {number}"
            try:
                check_json_size(line, where=where, expected="a record", error=HarnessError)
                document = msgspec.json.decode(line)
                if msgspec.json.encode(document) != line:
                    # Spelled by another program or version, and perhaps with a key twice.
                    document = strict_json(line, where=where, error=HarnessError)
                self._record(document, where)
            except _NO_RECORD as error:
                self.problems.append(
                    BundleProblem(where, f"is no record of the format {quote(RECORD_FORMAT)}: {quote(error)}")
                )
                if len(self.problems) >= MESSAGE_LIMIT:
                    self.problems.append(BundleProblem(name, f"is not read on: {MESSAGE_LIMIT} mistakes"))
                    return

    def manifest(self) -> Manifest:
        """That of the run. Raises HarnessError where it is missing, or is none."""
        return manifest_from_json(self.files.get(RUN_MANIFEST, b""), where=RUN_MANIFEST)

    def specs(self) -> Specs:
        """Those of the run. Raises UsageError or HarnessError, as reading any does."""
        return specs_from_texts(
            {
                name.removeprefix("specs/").removesuffix(".yaml"): content.decode("utf-8", errors="replace")
                for name, content in self.files.items()
                if name.startswith("specs/") and name.endswith(".yaml")
            }
        )

    def _record(self, record: Any, where: str) -> None:  # noqa: ANN401 - any JSON
        if record["format"] != RECORD_FORMAT:
            raise HarnessError(f"format {quote(record['format'])}")
        self.number += 1
        trial, verdict = record["trial"], record["verdict"]
        check_by_id(trial["check"], where="trial.check")
        chosen_tolerances(tuple(verdict.get("tolerances", ())))
        case = trial["case"]
        self.operators.setdefault(_word(case["operator"]), OperatorSummary()).count(
            _word(case.get("origin", {}).get("kind", "")),
            aim(trial["check"], trial.get("parameters", {})),
            Verdict(
                result=_word(verdict["result"]),
                kind=_word(verdict.get("kind", "")),
                judged=_word(verdict.get("judged", "")),
                facts={TWIN_FAILED: True} if TWIN_FAILED in verdict.get("facts", {}) else {},
            ),
            waived=bool(_word(record["waiver"])),
            dtypes=_dtypes(case["arguments"]),
            rule=_word(record["fingerprint"].get("clause", "")),
            corners=map(_word, case.get("origin", {}).get("corners", ())),
            every=True,
        )
        if verdict["result"] == Result.FAILED:
            self._failure(record, where)
        elif verdict["result"] == Result.PASSED and case["origin"]["kind"] == BROKEN_CALL:
            self.failures.enforced.add(_word(case["operator"]))
        for outcome in record["attempts"][0] if record["attempts"] else ():
            self.statuses = self.statuses or outcome.get("phase_one") is not None
            self.digests.update(state.get("sha256", "") for state in outcome.get("buffers", {}).values())
        identity = {**trial, "case": {key: value for key, value in case.items() if key != "origin"}}
        if hashlib.sha256(canonical_json(identity)).hexdigest() != record["trial_id"]:
            self.problems.append(BundleProblem(where, "its trial is not the one that its id names"))
        self.sample.offer(record, where)

    def _failure(self, record: Mapping[str, Any], where: str) -> None:
        fingerprint = msgspec.convert(record["fingerprint"], Fingerprint)
        if record["waiver"]:
            self.waivers[record["waiver"]] = self.waivers.get(record["waiver"], 0) + 1
        operator = record["trial"]["case"]["operator"]
        whole = record_from_json(record, where=where)
        if (fingerprint.fault, fingerprint.operator) != (record["verdict"]["kind"], operator):
            self.problems.append(BundleProblem(where, "its fingerprint is that of another fault or operator"))
        elif with_whole_fingerprint(whole).fingerprint != fingerprint:
            self.problems.append(BundleProblem(where, "its fingerprint does not follow from its verdict and its calls"))
        else:
            self.failures.add(whole)


_TOLERANCE = 1e-6
"""Relative difference of error ratios that another release of NumPy may make in a sum in float64."""

Blob = Callable[[str], bytes]


def recorded_outputs(record: Mapping[str, Any]) -> tuple[str, ...]:
    """SHA-256 of every output that judging a record (as JSON) again takes; none where there is nothing to judge."""
    if record["verdict"]["result"] == Result.ERROR:
        return ()
    outcomes = record["attempts"][0] if record["attempts"] else ()
    return tuple(
        state["sha256"]
        for outcome in outcomes
        if _succeeded(msgspec.convert(outcome, Outcome, strict=False))
        for state in outcome.get("buffers", {}).values()
        if state.get("sha256")
    )


def _succeeded(outcome: Outcome) -> bool:
    return outcome.ended == CallEnd.RETURNED and not outcome.status


def verdict_difference(record: Record, blob: Blob, *, specs: Specs, judges: Judges) -> str:
    """Why the verdict is not the recorded one; empty where it is. Oracles, models and tolerances are this program's.

    `blob` gives the bytes of a recorded output by its SHA-256. Raises HarnessError where no oracle is known, or a blob
    has another size than its output.
    """
    trial, recorded = record.trial, record.verdict
    if recorded.kind == Fault.TOLERANCE and recorded.facts.get(TOLERANCE_FACT) not in judges.measuring.gate:
        return ""  # it compared with an implementation that a bundle does not hold
    spec = specs[trial.case.operator]
    entry = check_by_id(trial.check, where="trial")
    asked = [call.case for call in asked_calls(trial, spec, entry.calls(trial, spec), known=frozenset())]
    outcomes = record.attempts[0]
    if len(asked) != len(outcomes):
        return f"{len(outcomes)} calls are recorded; the trial takes {len(asked)}"
    performed = [_performed(spec, case, outcome, blob) for case, outcome in zip(asked, outcomes, strict=True)]
    verdict = entry.judge(trial, performed, judges.of(spec), evaluate(spec, trial.case))
    return _difference(record.verdict, verdict)


def _performed(spec: Spec, case: Case, outcome: Outcome, blob: Blob) -> PerformedCall:
    if not _succeeded(outcome) or not any(state.sha256 for state in outcome.buffers.values()):
        return PerformedCall(case=case, outcome=outcome)
    outputs = spec.output_tensors(case)
    got = {
        name: _output(name, tensor, outcome.buffers[name].sha256, blob)
        for name, tensor in case.tensors()
        if name in outputs and name in outcome.buffers and outcome.buffers[name].sha256
    }
    return PerformedCall(case=case, outcome=outcome, arrays=case_arrays(case, spec.given_inputs(case)), got=got)


def _output(name: str, tensor: Tensor, digest: str, blob: Blob) -> NDArray[Any]:
    content = blob(digest)
    dtype = numpy_dtype(tensor.dtype)
    if len(content) != tensor.numel * dtype.itemsize:
        raise HarnessError(f"{name}: {len(content)} bytes are recorded; expected {tensor.numel * dtype.itemsize}")
    return np.frombuffer(content, dtype=dtype).reshape(tensor.shape)


def _difference(recorded: Verdict, found: Verdict) -> str:
    was, now = (" ".join(part for part in (item.result, fault_name(item.kind)) if part) for item in (recorded, found))
    if was != now:
        return f"it is recorded as {was}, and judged again it is {now} ({found.message})"
    worst = {item.output: item for item in found.deviations}
    outputs = [item.output for item in recorded.deviations]
    if outputs != list(worst):
        return (
            f"deviations of {', '.join(outputs)} are recorded, and judged again those of {', '.join(worst)} are found"
        )
    for item in recorded.deviations:
        again = worst[item.output]
        if item.beyond != again.beyond:
            said = f"{item.output}: {item.beyond} elements beyond their bound are recorded, and judged again"
            return f"{said} {again.beyond}"
        if not _close(item.error_ratio, again.error_ratio):
            return (
                f"{item.output}: an error of {item.error_ratio!r} of its bound is recorded, and judged again it is"
                f" {again.error_ratio!r}"
            )
    return ""


def _close(recorded: float, found: float) -> bool:
    if math.isfinite(recorded) and math.isfinite(found):
        return abs(recorded - found) <= _TOLERANCE * max(abs(recorded), abs(found))
    return repr(recorded) == repr(found)
