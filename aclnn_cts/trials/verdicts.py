"""The verdicts on trials that were made, the records that keep them, and of which failures everything is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from aclnn_cts.core.case import Case, tensors_in
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import (
    VALUE_CHECK,
    Observation,
    Record,
    Result,
    Verdict,
    failed_on_values,
    with_executor,
    with_observation,
    with_strict_limits,
)
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge, Judges
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.fingerprint import fingerprint_of_rejected_twin, with_whole_fingerprint
from aclnn_cts.judgement.verdict import OUTPUT_FACT, fingerprint
from aclnn_cts.speclang.evaluate import Evaluation
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.batches import TrialBatch
from aclnn_cts.trials.checks.registry import check_by_id, judges_values

SAMPLE = 64
"""Of so many trials of a run, one is put to all tolerances although it passes."""

FIRST = 4
"""Known failures of each key that are measured, whatever their ids."""


@dataclass(slots=True)
class _Met:
    number: int
    smallest: int
    """Bytes of its case, as reports choose the failure that they show."""


@dataclass(slots=True)
class KnownFailureSampler:
    """Chooses among the known failures that one process meets."""

    _met: dict[str, _Met] = field(default_factory=dict)
    """By key."""

    def should_measure(self, record: Record) -> bool:
        """Whether a known failure is measured: the first of a key, those smaller than all before, a sample."""
        size = record.trial.case.nbytes
        met = self._met.setdefault(record.key.text(), _Met(0, size + 1))
        met.number += 1
        smaller = size < met.smallest
        if smaller:
            met.smallest = size
        return met.number <= FIRST or smaller or is_measured(record.trial_id)


def is_sampled(trial_id: str, *, every: int = SAMPLE) -> bool:
    """One trial in `every`, a power of two up to 256: the same ones for the same plan, the fewer among the more."""
    return int(trial_id[:2], 16) % every == 0


def is_measured(trial_id: str) -> bool:
    """One failure in 16, the same ones for the same plan; those of `is_sampled` are among them."""
    return int(trial_id[:2], 16) % 16 == 0


@dataclass(slots=True, kw_only=True)
class TrialJudge:
    """Judges trials by their checks."""

    specs: Specs
    judges: Judges
    settings: RunnerSettings
    is_waived: Callable[[Record], bool]
    """True if a waiver covers the failure."""
    sample_waived: bool
    """Whether a sample of the waived failures is put to the tolerances, and not every one."""
    _evidence: KnownFailureSampler = field(default_factory=KnownFailureSampler)

    def judge(self, trial: Trial) -> Judge:
        """The judge of a trial's operator."""
        return self.judges.of(self.specs[trial.case.operator])

    def judges_for_batch(self, batch: TrialBatch, trial_ids: Sequence[str], known: set[str]) -> dict[str, Judge]:
        """The judge of each operator, which has looked at the values of the batch's calls together.

        `known` is filled while it judges, with the ids of trials whose failure turns out to be waived.
        """
        valued: dict[str, list[PerformedCall]] = {trial.case.operator: [] for trial in batch.trials}
        places: dict[int, int] = {}
        for place, (trial, (first, last)) in enumerate(zip(batch.trials, batch.spans, strict=True)):
            if first < last and judges_values(trial):
                valued[trial.case.operator].extend(batch.performed[first:last])
                if self.sample_waived and first + 1 == last and not batch.evaluations[place].broken:
                    places[id(batch.performed[first])] = place

        def is_sampled_out(performed: PerformedCall, verdict: Verdict) -> bool:
            place = places.get(id(performed))
            if place is None:
                return False
            trial, evaluation = batch.trials[place], batch.evaluations[place]
            record = self.record(trial, trial_ids[place], (performed,), evaluation, verdict)
            if not self.is_waived(record):
                return False
            known.add(record.trial_id)
            return not self._evidence.should_measure(record)

        return {
            name: self.judges.of(self.specs[name]).with_batch(calls, is_sampled_out=is_sampled_out)
            for name, calls in valued.items()
        }

    def verdict(
        self,
        trial: Trial,
        attempt: Sequence[PerformedCall],
        evaluation: Evaluation,
        judge: Judge,
        *,
        sampled: bool = False,
    ) -> Verdict:
        """The verdict on the calls of a trial; `sampled`: they are put to all tolerances although they pass."""
        if sampled:
            judge = judge.thorough
        try:
            verdict = check_by_id(trial.check, where="trial").judge(trial, attempt, judge, evaluation)
        except (UsageError, HarnessError):
            raise
        except Exception as error:  # noqa: BLE001 - a mistake of ours costs one trial its verdict and is an error there
            return Verdict(result=Result.ERROR, message=f"the harness failed: {type(error).__name__}: {error}")
        if any(item.outcome.ended == CallEnd.NOT_RUN for item in attempt):
            return Verdict(result=Result.ERROR, message="; ".join(item.outcome.message for item in attempt))
        verdict = with_executor(verdict, (item.outcome for item in attempt))
        verdict = with_observation(verdict, Observation.OPEN_CALL, said=_is_open_success(attempt, evaluation))
        excluded = dict.fromkeys(name for item in attempt for name in self._excluded(item))
        verdict = with_observation(verdict, Observation.EXCLUDED, said=", ".join(excluded))
        if not self.settings.strict_limits or (failed := with_strict_limits(verdict)) is verdict:
            return verdict
        output = next(iter(excluded), "")
        return msgspec.structs.replace(failed, facts={OUTPUT_FACT: output, **failed.facts}) if output else failed

    def _excluded(self, performed: PerformedCall) -> list[str]:
        """The outputs that a successful call wrote although its arguments exclude them."""
        outcome = performed.outcome
        if outcome.ended != CallEnd.RETURNED or outcome.status:
            return []
        spec = self.specs[performed.case.operator]
        asked = {*spec.computed_outputs(performed.case), *spec.updated_tensors(performed.case)}
        return [
            name
            for name, array in performed.got.items()
            if name not in asked and outcome.buffers[name].unwritten < array.size
        ]

    def record(
        self,
        trial: Trial,
        trial_id: str,
        attempt: Sequence[PerformedCall],
        evaluation: Evaluation,
        verdict: Verdict,
        seconds: float = 0.0,
    ) -> Record:
        """What is kept of a trial and its verdict."""
        spec = self.specs[trial.case.operator]
        constraint = trial.case.origin.constraint or ""
        if evaluation.broken and not constraint:
            constraint = evaluation.broken[0].id
        outcomes = tuple(item.outcome for item in attempt)
        return with_whole_fingerprint(
            Record(
                trial_id=trial_id,
                trial=trial,
                attempts=(outcomes,),
                verdict=verdict,
                fingerprint=fingerprint_of_rejected_twin(trial, verdict)
                or fingerprint(
                    verdict,
                    operator=trial.case.operator,
                    check=VALUE_CHECK if failed_on_values(verdict) else trial.check,
                    clause=constraint if evaluation.broken else "",
                    dtype=_dtype_class(spec, trial.case),
                ),
                clauses=spec.clauses_of(constraint) if constraint else (),
                seconds=seconds,
                where={"adapter": self.settings.adapter},
            )
        )


def _is_open_success(attempt: Sequence[PerformedCall], evaluation: Evaluation) -> bool:
    """Whether a call succeeded that the document leaves open."""
    if evaluation.strength != Strength.OPEN or not attempt:
        return False
    outcome = attempt[-1].outcome
    return outcome.ended == CallEnd.RETURNED and not outcome.status


def _dtype_class(spec: Spec, case: Case) -> str:
    """The dtype that findings are told apart by: that of the first output."""
    tensors = (tensor for name in spec.outputs for tensor in tensors_in(case.arguments.get(name)))
    return next((tensor.dtype for tensor in tensors), "")
