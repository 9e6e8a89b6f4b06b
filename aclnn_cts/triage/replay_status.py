"""What became of findings that were run again: fixed, failing the same way, failing another way, or not to be run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.dedup_key import same_finding
from aclnn_cts.findings.finding import FINDING_STATE, Confirmed, Finding
from aclnn_cts.findings.fingerprint import distinct, findings_of, indexed
from aclnn_cts.store.run_directory import RunDirectory, failure_name
from aclnn_cts.store.store_reader import Query, ResultReader

RUNS = 20
"""How often a finding is run that did not always fail: of one that fails every third time, one in 3,000 goes unseen."""


class Answer:
    """The answers (values of `Answered.answer`)."""

    FIXED = "fixed"
    SAME = "same"
    OTHER = "different"
    FAILS = "fails"
    """And how it failed before is not known."""
    UNSEEN = "did not fail this time"
    """And did not always fail before, so that nothing follows from it."""
    CANNOT = "cannot be run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A finding as the run tells of it that it comes from."""

    key: Fingerprint
    campaign: bool = False
    """Whether it was put together as a campaign does."""
    confirmed: str = Confirmed.WAITING
    """What became of it alone, where that is known (`Confirmed`)."""
    alone: tuple[int, int] = (0, 0)
    """Failures, and executions alone in a fresh process."""
    where: str = ""
    """The device or worker that met it first."""
    finding: int | None = None
    """Its place among the findings that the run has stored."""

    def steady(self, trial: Trial) -> bool:
        """Whether the finding's trial showed it each time that it was made by itself."""
        if trial.after:
            return True
        failures, executions = self.alone
        return failures == executions and self.confirmed in (Confirmed.WAITING, Confirmed.ALWAYS, Confirmed.UNKNOWN)

    @property
    def reliability(self) -> str:
        """In words, of one that did not always fail."""
        failures, executions = self.alone
        alone = f" ({failures} of {executions} times alone)" if executions else ""
        if self.confirmed == Confirmed.DEVICE:
            return f"failed on {self.where or 'one device'} alone: run it there"
        if self.confirmed == Confirmed.ORDER:
            return f"was order-dependent, and which calls it needs is not known{alone}"
        return f"was flaky{alone}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One finding and what became of it."""

    file: Path
    answer: str
    before: Recorded | None
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
        if self.answer == Answer.UNSEEN and self.before is not None:
            return f"it did not fail {times}; before it {self.before.reliability}"
        often = f" (failed in {self.failures} of {self.runs} runs)" if self.failures and self.runs > 1 else ""
        return f"{self.record.verdict.message}{often}"


def failures_in(source: Path) -> tuple[Path, ...]:
    """The trial files of a run, or of a folder that holds some."""
    if (source / "manifest.json").is_file():
        return RunDirectory(source).failures()
    return tuple(sorted(source.glob("*.json")))


def stood_for(source: Path) -> frozenset[str]:
    """Names of the trial files that show nothing by themselves, since other findings of a campaign stand for theirs.

    They conform alone, and which calls they need is not known.
    """
    if not (source / "manifest.json").is_file() or not RunDirectory(source).manifest.is_campaign:
        return frozenset()
    with RunDirectory(source).results() as results:
        findings = [msgspec.convert(value, Finding) for _, value in results.states(FINDING_STATE)]
    shown = {item.key for item in distinct(findings)}
    return frozenset(
        failure_name(item.key)
        for item in findings
        if item.confirmed == Confirmed.ORDER and item.key not in shown
        if item.trial is None or not item.trial.after
    )


def recorded_findings(source: Path, trials: Mapping[str, Trial]) -> Mapping[str, Recorded]:
    """How findings failed, by the name of their trial file; of a run or its `failures` folder, nothing of another.

    `trials`: those that the files hold, by the same name.
    """
    path = source if (source / "manifest.json").is_file() else source.parent
    if not (path / "manifest.json").is_file():
        return {}
    run = RunDirectory(path)
    campaign = run.manifest.is_campaign
    with run.results() as results:
        campaign_findings = (
            [msgspec.convert(value, Finding) for _, value in results.states(FINDING_STATE)] if campaign else []
        )
        places = _places(results, {item.key: item.waiver for item in campaign_findings})
        found = {
            name: _of_records(results, item.key, trials.get(name), campaign=campaign)
            for item in results.findings()
            for name in (failure_name(item.key),)
        }
    for known in campaign_findings:
        found[failure_name(known.key)] = Recorded(
            key=known.key, campaign=True, confirmed=known.confirmed, alone=known.alone, where=known.slot
        )
    return {name: replace(item, finding=places.get(item.key)) for name, item in found.items()}


def _places(results: ResultReader, waivers: Mapping[Fingerprint, str]) -> dict[Fingerprint, int]:
    """The finding of each key's failures, or of most of them; `waivers` are those of a campaign's keys."""
    place = indexed(findings_of(results))
    numbers: dict[Fingerprint, Counter[int]] = {}
    for record in results.records(Query(result=Result.FAILED)):
        waiver = waivers.get(record.key, record.waiver)
        numbers.setdefault(record.key, Counter())[place(waiver, record.fingerprint)] += 1
    return {key: counts.most_common(1)[0][0] for key, counts in numbers.items()}


def _of_records(results: ResultReader, key: Fingerprint, trial: Trial | None, *, campaign: bool) -> Recorded:
    """A run says of a failure's own record whether it failed when it was made alone."""
    if trial is not None and not campaign:
        for record in results.records(Query(fingerprint=key, trial_id=trial.id), limit=1):
            if (rate := record.flaky_rate) is not None:
                return Recorded(key=key, confirmed=Confirmed.FLAKY, alone=rate)
            if record.conforms_alone:
                return Recorded(key=key, confirmed=Confirmed.ORDER, alone=(0, 1))
    return Recorded(key=key, campaign=campaign)


def repeats(files: Sequence[tuple[Path, Trial]], recorded: Mapping[str, Recorded]) -> tuple[Trial, ...]:
    """What is to be made again after all trials were made once: those that did not always fail, round by round."""
    unsteady = [
        trial for file, trial in files if (before := recorded.get(file.name)) is not None and not before.steady(trial)
    ]
    return tuple(unsteady) * (RUNS - 1)


def answer(
    files: Sequence[tuple[Path, Trial]], recorded: Mapping[str, Recorded], records: Mapping[str, Sequence[Record]]
) -> list[Answered]:
    """The answer for each file; `records` are the new ones, by the trial's id."""
    return [_answered(file, trial, recorded.get(file.name), records.get(trial.id, ())) for file, trial in files]


_ORDER = (Answer.SAME, Answer.OTHER, Answer.FAILS, Answer.UNSEEN, Answer.FIXED, Answer.CANNOT)
"""Of several executions, the answer that comes first here stands for all."""


def by_finding(answers: Iterable[Answered]) -> Counter[str]:
    """How many findings came to each answer: one with several trial files to what comes first of theirs.

    A trial file that is of no run is a finding by itself.
    """
    found: dict[int | Path, list[str]] = {}
    for item in answers:
        place = item.before.finding if item.before is not None else None
        found.setdefault(item.file if place is None else place, []).append(item.answer)
    return Counter(min(words, key=_ORDER.index) for words in found.values())


def _answered(file: Path, trial: Trial, before: Recorded | None, records: Sequence[Record]) -> Answered:
    steady = before is None or before.steady(trial)
    words = [_word(before, record, steady=steady) for record in records]
    chosen = min(words, key=_ORDER.index, default=Answer.CANNOT)
    return Answered(
        file=file,
        answer=chosen,
        before=before,
        record=records[words.index(chosen)] if records else None,
        runs=len(records),
        failures=sum(record.verdict.result == Result.FAILED for record in records),
    )


def _word(before: Recorded | None, record: Record, *, steady: bool) -> str:
    result = record.verdict.result
    # A call that was made, and of which the document says nothing, fails no more.
    if not record.was_called:
        return Answer.CANNOT
    if result != Result.FAILED:
        return Answer.FIXED if steady else Answer.UNSEEN
    if before is None:
        return Answer.FAILS
    same = before.key == record.key
    if before.campaign:
        # A campaign puts failures together more widely than a run does.
        same = same or same_finding(before.key, record)
    return Answer.SAME if same else Answer.OTHER
