"""What became of findings that were run again: fixed, failing the same way, failing another way, or not to be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Signature, Skip
from aclnn_cts.engine.campaign.finding import bucketed
from aclnn_cts.engine.run_directory import RunDirectory, failure_name

__all__ = ["Answer", "Answered", "answer", "failures_in", "recorded_signatures"]


class Answer:
    """The answers (values of `Answered.answer`)."""

    FIXED = "fixed"
    SAME = "still fails the same way"
    OTHER = "fails another way"
    FAILS = "fails"
    """And how it failed before is not known."""
    CANNOT = "cannot be run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One finding and what became of it."""

    file: Path
    answer: str
    before: Signature | None
    record: Record | None
    """Of the new execution."""

    @property
    def message(self) -> str:
        """The new verdict's sentence."""
        return "" if self.record is None else self.record.verdict.message


def failures_in(source: Path) -> tuple[Path, ...]:
    """The trial files of a run, or of a folder that holds some."""
    if (source / "manifest.json").is_file():
        return RunDirectory(source).failures()
    return tuple(sorted(source.glob("*.json")))


def recorded_signatures(source: Path) -> Mapping[str, Signature]:
    """How findings failed, by the name of their trial file; of a run or its `failures` folder, nothing of another."""
    run = source if (source / "manifest.json").is_file() else source.parent
    if not (run / "manifest.json").is_file():
        return {}
    with RunDirectory(run).results() as results:
        return {failure_name(finding.signature): finding.signature for finding in results.findings()}


def answer(
    files: Sequence[tuple[Path, Trial]], signatures: Mapping[str, Signature], records: Mapping[str, Record]
) -> list[Answered]:
    """The answer for each file; `records` are the new ones, by the trial's id."""
    return [_answered(file, signatures.get(file.name), records.get(trial.id)) for file, trial in files]


def _answered(file: Path, before: Signature | None, record: Record | None) -> Answered:
    result = Result.ERROR if record is None else record.verdict.result
    # A call that was made, and of which the document says nothing, fails no more.
    made = record is not None and record.verdict.kind in (Skip.OPEN, Skip.DISPUTE, Skip.NOT_JUDGED)
    if record is None or (result in (Result.ERROR, Result.SKIPPED) and not made):
        word = Answer.CANNOT
    elif result != Result.FAILED:
        word = Answer.FIXED
    elif before is None:
        word = Answer.FAILS
    else:
        # A campaign puts failures together more widely than a run does.
        word = Answer.SAME if before in (record.signature, bucketed(record).signature) else Answer.OTHER
    return Answered(file=file, answer=word, before=before, record=record)
