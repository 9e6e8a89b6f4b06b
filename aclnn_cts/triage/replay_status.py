"""What became of findings that were run again: fixed, failing the same way, failing another way, or not to be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.core.finding import Confirmation, Finding
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.findings import findings_of
from aclnn_cts.store.run_directory import RunDirectory

RUNS = 20
"""How often a finding is run that did not always fail: of one that fails every third time, one in 3,000 goes unseen."""


class ReplayStatus:
    """The answers (values of `FindingReplay.answer`)."""

    FIXED = "fixed"
    SAME = "same"
    OTHER = "different"
    FAILS = "fails"
    """And how it failed before is not known."""
    UNSEEN = "did not fail this time"
    """And did not always fail before, so that nothing follows from it."""
    CANNOT = "cannot be run"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingReplay:
    """One finding and what became of it."""

    file: Path
    answer: str
    before: Finding | None
    record: Record | None
    """Of the execution that the answer rests on."""
    runs: int = 0
    failures: int = 0

    @property
    def message(self) -> str:
        """The new verdict's sentence, and how often it came where there were several executions."""
        if self.record is None:
            return ""
        times = "once" if self.runs == 1 else f"in {self.runs} runs"
        if self.answer == ReplayStatus.UNSEEN and self.before is not None:
            return f"it did not fail {times}; before it {_reliability(self.before)}"
        often = f" (failed in {self.failures} of {self.runs} runs)" if self.failures and self.runs > 1 else ""
        return f"{self.record.verdict.message}{often}"


def failures_in(source: Path) -> tuple[Path, ...]:
    """The trial files of a run, or of a folder that holds some."""
    if (source / "manifest.json").is_file():
        return RunDirectory(source).failures()
    return tuple(sorted(source.glob("*.json")))


def recorded_findings(source: Path) -> Mapping[str, Finding]:
    """How findings failed, by the name of their trial file; of a run or its `failures` folder, nothing of another."""
    path = source if (source / "manifest.json").is_file() else source.parent
    if not (path / "manifest.json").is_file():
        return {}
    with RunDirectory(path).results() as results:
        return {finding.file: finding for finding in findings_of(results)}


def _is_steady(finding: Finding, trial: Trial) -> bool:
    """Whether the finding's trial showed it each time that it was made by itself."""
    if trial.after:
        return True
    failures, executions = finding.alone
    return failures == executions and finding.confirmed in (
        Confirmation.WAITING,
        Confirmation.ALWAYS,
        Confirmation.UNKNOWN,
    )


def _reliability(finding: Finding) -> str:
    """In words, of one that did not always fail."""
    failures, executions = finding.alone
    alone = f" ({failures} of {executions} times alone)" if executions else ""
    if finding.confirmed == Confirmation.DEVICE:
        return f"failed on {finding.slot or 'one device'} alone: run it there"
    if finding.confirmed == Confirmation.ORDER:
        return f"was order-dependent, and which calls it needs is not known{alone}"
    return f"was flaky{alone}"


def repeat_rounds(files: Sequence[tuple[Path, Trial]], recorded: Mapping[str, Finding]) -> tuple[Trial, ...]:
    """What is to be made again after all trials were made once: those that did not always fail, round by round."""
    unsteady = [
        trial
        for file, trial in files
        if (before := recorded.get(file.name)) is not None and not _is_steady(before, trial)
    ]
    return tuple(unsteady) * (RUNS - 1)


def replay_findings(
    files: Sequence[tuple[Path, Trial]], recorded: Mapping[str, Finding], records: Mapping[str, Sequence[Record]]
) -> list[FindingReplay]:
    """The answer for each file; `records` are the new ones, by the trial's id."""
    return [_compare_finding(file, trial, recorded.get(file.name), records.get(trial.id, ())) for file, trial in files]


_ORDER = (
    ReplayStatus.SAME,
    ReplayStatus.OTHER,
    ReplayStatus.FAILS,
    ReplayStatus.UNSEEN,
    ReplayStatus.FIXED,
    ReplayStatus.CANNOT,
)
"""Of several executions, the answer that comes first here stands for all."""


def _compare_finding(file: Path, trial: Trial, before: Finding | None, records: Sequence[Record]) -> FindingReplay:
    steady = before is None or _is_steady(before, trial)
    words = [_word(before, record, steady=steady) for record in records]
    chosen = min(words, key=_ORDER.index, default=ReplayStatus.CANNOT)
    return FindingReplay(
        file=file,
        answer=chosen,
        before=before,
        record=records[words.index(chosen)] if records else None,
        runs=len(records),
        failures=sum(record.verdict.result == Result.FAILED for record in records),
    )


def _word(before: Finding | None, record: Record, *, steady: bool) -> str:
    result = record.verdict.result
    # A call that was made, and of which the document says nothing, fails no more.
    if not record.was_called:
        return ReplayStatus.CANNOT
    if result != Result.FAILED:
        return ReplayStatus.FIXED if steady else ReplayStatus.UNSEEN
    if before is None:
        return ReplayStatus.FAILS
    same = record.key in {before.key, *(item.key for item in before.fingerprints)}
    return ReplayStatus.SAME if same else ReplayStatus.OTHER
