"""Findings of an earlier run, whose failures a gate does not count again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outside import read_json
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.findings import FindingIndex, findings_of, meets_condition
from aclnn_cts.store.output_file import begins_with, write_atomically
from aclnn_cts.store.run_directory import MANIFEST, RunDirectory
from aclnn_cts.store.store_reader import Query

_SUFFIX = ".finding"
"""Of what a gate writes beside a trial file. Not `.json`: the trial files of its folder stay the only ones."""
_MARK = "gate.baseline"
"""What a gate that has ended leaves in its folder, so that one without findings is a baseline too."""
_EXPECTED = "the directory of a run, or the --aclnn-failures folder of a gate that has ended"


class Baseline:
    """Which failures are known: those of a finding's key and dtype whose call meets its condition."""

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        self._findings: dict[tuple[Fingerprint, str], dict[str, list[Finding]]] = {}
        for item in findings:
            for each in () if item.waiver else item.fingerprints:
                self._findings.setdefault((each.key, each.dtype), {}).setdefault(item.file, []).append(item)

    def finding_of(self, record: Record) -> str:
        """The file of the known finding that a record is of; empty for a new failure, and where nothing failed."""
        if record.verdict.result != Result.FAILED:
            return ""
        found = self._findings.get((record.key, record.fingerprint.dtype), {})
        case = record.trial.case
        return next((file for file, items in found.items() if any(meets_condition(item, case) for item in items)), "")


def read_baseline(path: Path) -> Baseline:
    """The findings of a run, or of the folder that a gate wrote them to. Raises UsageError where it is neither."""
    if (path / MANIFEST).is_file():
        with RunDirectory(path).results() as results:
            return Baseline(without_exceptions(findings_of(results), results.records(Query(result=Result.FAILED))))
    files = sorted(path.glob(f"*{_SUFFIX}"))
    if not files and not (path / _MARK).is_file():
        raise UsageError(f"--baseline {path}: holds neither a finding nor {_MARK}; expected {_EXPECTED}")
    return Baseline(map(_read, files))


def _read(file: Path) -> Finding:
    return read_json(file, Finding, expected="a finding as a gate writes it")


_is_manifest = begins_with(rb'\{\s*"format": "aclnn-cts/manifest/')


def is_baseline(folder: Path) -> bool:
    """Whether a run or a gate that has ended wrote this folder."""
    manifest = folder / MANIFEST
    if (folder / _MARK).is_file():
        return True
    if not manifest.is_file():
        return False
    with manifest.open("rb") as file:
        return _is_manifest(file)


def write_finding(finding: Finding, trial_file: Path, *, check: str) -> None:
    """Write beside a trial file what `read_baseline` reads, one file a check."""
    place = trial_file.with_suffix("." + re.sub(r"\W+", "-", check) + _SUFFIX)
    write_atomically(place, msgspec.json.encode(msgspec.structs.replace(finding, trial=None, record=None)))


def write_mark(folder: Path, *, findings: int) -> None:
    """Say in the folder of a gate that it has ended, and how many findings it left there."""
    write_atomically(folder / _MARK, msgspec.json.encode({"format": "aclnn-cts/baseline/1", "findings": findings}))


def without_exceptions(findings: Sequence[Finding], failures: Iterable[Record]) -> Iterator[Finding]:
    """The findings; those with a failure that misses the condition have none, since all their failures are known."""
    index = FindingIndex(findings)
    missed = {
        number
        for record in failures
        if not meets_condition(findings[number := index.number_of(record)], record.trial.case)
    }
    for number, item in enumerate(findings):
        yield msgspec.structs.replace(item, condition=None) if number in missed else item
