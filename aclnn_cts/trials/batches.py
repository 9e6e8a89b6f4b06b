"""Which calls a trial takes, and trials that are made together: few enough for their data to lie side by side."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result, SkipReason, Verdict
from aclnn_cts.execution.executor import CallRequest, PerformedCall, PreparedBatch
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.buffers import InputGuards
from aclnn_cts.generate.hazard import hazard_of
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.life_cycle import asked_calls
from aclnn_cts.trials.checks.registry import check_by_id
from aclnn_cts.trials.plan import STATUS_CHECKS

BATCH_TRIALS = 128
"""Enough for what is done with all of a batch at once to cost each trial little, and few enough for what they leave to
stay in a processor's cache."""
BATCH_BYTES = 1 << 24
"""Of arguments of all calls; a trial with more has a batch of its own."""
_MANY_BYTES = 1 << 20
"""Of arguments of a case from which on the calls of its trial are counted: of small ones a batch has few enough."""
_OVERLAPPED = 64
"""Trials of a batch that is at work while another is judged: nobody is while the first one of a chunk is."""


@dataclass(slots=True, kw_only=True)
class TrialBatch:
    """Trials on their way to their records."""

    trials: Sequence[Trial]
    evaluations: Sequence[Evaluation]
    skipped: Sequence[Verdict | None]
    """The verdict on what is not to be run."""
    spans: Sequence[tuple[int, int]]
    """Of each trial, the first of its calls and the first that is not its own."""
    prepared: PreparedBatch
    seconds: float
    """Spent on it."""
    performed: Sequence[PerformedCall] = ()
    finished: bool = False

    def finish(self) -> None:
        """Wait until the calls are made, unless that was done; afterwards nothing of it is under way."""
        if not self.finished:
            began = time.perf_counter()
            self.performed, self.finished = self.prepared.performed(), True
            self.seconds += time.perf_counter() - began


def batches(
    trials: Iterable[Trial], specs: Mapping[str, Spec], *, max_bytes: int, overlapped: bool = False
) -> Iterator[Sequence[Trial]]:
    """Cut trials into batches; of a case beyond `max_bytes`, which is not run, no more than that is reckoned.

    `overlapped`: one is made while another is judged.
    """
    most = _OVERLAPPED if overlapped else BATCH_TRIALS
    batch: list[Trial] = []
    size = 0
    for trial in trials:
        own = min(trial.nbytes, max_bytes)
        if own >= _MANY_BYTES:
            own *= len(check_by_id(trial.check, where="trial").calls(trial, specs[trial.case.operator]))
        if batch and (len(batch) >= most or size + own > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(trial)
        size += own
    if batch:
        yield batch


def calls_before(trial: Trial) -> list[CallRequest]:
    """The calls that a trial makes first, in the ordinary call mode."""
    return [CallRequest(item.case) for item in trial.after for _ in range(item.times)]


def calls_of(
    trial: Trial, specs: Mapping[str, Spec], *, capabilities: Capabilities, group: int = 0
) -> list[CallRequest]:
    """The trial's own calls; `group` tells those that are made together from another trial's.

    The valid twin of a broken call goes no further than phase one. An implementation without phases whose rejections
    count makes the whole call instead.
    """
    spec = specs[trial.case.operator]
    cases = check_by_id(trial.check, where="trial").calls(trial, spec)
    if "twin" in trial.parameters and capabilities.rejections and not capabilities.phases:
        cases = (*map(_whole, cases[:-1]), cases[-1])
    calls = asked_calls(trial, spec, cases, known=capabilities.call_modes)
    return [call if call.group is None else msgspec.structs.replace(call, group=group) for call in calls]


def with_input_guards(calls: Sequence[CallRequest], trial: Trial, *, broken: bool) -> list[CallRequest]:
    """The calls of a trial with the end of their inputs chosen that a guard page touches: the same for all of them.

    It alternates with the bits of the case's id. Shapes that do not fit together are where kernels read too far, by an
    element or two: the inputs of a call that breaks a rule end at the page.
    """
    guards = InputGuards.END if broken or int(case_id(trial.case)[-1], 16) & 1 else InputGuards.START
    return [msgspec.structs.replace(call, guards=guards) for call in calls]


def _whole(case: Case) -> Case:
    return msgspec.structs.replace(case, call=msgspec.structs.replace(case.call, phases=2))


def needs_no_second_phase(trial: Trial) -> bool:
    """Whether first phases alone say anything of a trial's check."""
    return trial.check in STATUS_CHECKS or trial.case.call.phases == 1


def verdict_without_call(
    trial: Trial, evaluation: Evaluation, *, specs: Mapping[str, Spec], settings: RunnerSettings
) -> Verdict | None:
    """The verdict on a trial that is not made, for its size, harm that it may do, or its phases; None where it is."""
    if settings.phases == 1 and not needs_no_second_phase(trial):
        message = f"{trial.check}: the first phase alone says nothing of it (--phases one)"
        return Verdict(result=Result.SKIPPED, kind=SkipReason.NOT_JUDGED, message=message)
    if trial.after:
        if (size := trial.nbytes) > max(settings.max_bytes, trial.case.nbytes):
            message = f"{size} bytes of arguments with the calls before it; --max-bytes allows {settings.max_bytes}"
            return Verdict(result=Result.SKIPPED, kind=SkipReason.TOO_LARGE, message=message)
        for item in trial.after:
            found = _unsafe(item.case, evaluate(specs[item.case.operator], item.case), specs=specs, settings=settings)
            if found is not None:
                return found
    return _unsafe(trial.case, evaluation, specs=specs, settings=settings)


def _unsafe(
    case: Case, evaluation: Evaluation, *, specs: Mapping[str, Spec], settings: RunnerSettings
) -> Verdict | None:
    if settings.unsafe:
        return None
    both_phases = settings.phases != 1 and case.call.phases != 1
    reason = hazard_of(specs[case.operator], case, both_phases=both_phases, evaluation=evaluation)
    return Verdict(result=Result.SKIPPED, kind=SkipReason.UNSAFE, message=reason) if reason else None
