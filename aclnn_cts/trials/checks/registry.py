"""The checks: how a trial is made, run and judged, and whether a trial from outside fits one.

A check is registered here and named in records, reports and trial files. Adding one is one class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from aclnn_cts.core.case import Case, Origin, first_phase
from aclnn_cts.core.case_json import case_from_json, case_to_json
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import SUCCESS, CallEnd, status_name
from aclnn_cts.core.printable import quote
from aclnn_cts.core.registry import items_by_name
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import TWIN_FAILED, UNJUDGED_VALUES, Judged, Result, SkipReason, Verdict, is_valid_call
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge
from aclnn_cts.generate.recipes import check_data
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.verdict import ended_badly
from aclnn_cts.speclang.binding import bind_case
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.call_verdicts import as_value_failure, demand_broken, demand_valid
from aclnn_cts.trials.checks.equal_calls import EQUAL_CALLS
from aclnn_cts.trials.checks.life_cycle import LIFE_CYCLES
from aclnn_cts.trials.checks.precision_probe import PrecisionCheck
from aclnn_cts.trials.checks.sources import random_cases, valid_cases
from aclnn_cts.trials.plan import Part

if TYPE_CHECKING:
    from aclnn_cts.generate.negative import DerivedCase


class Check(Protocol):
    """One thing that an implementation is held to."""

    @property
    def id(self) -> str: ...
    @property
    def sentence(self) -> str:
        """What is promised, in one sentence."""
        ...

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """The trials of a part of a plan."""
        ...

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """The calls that a trial takes, in order. Raises UsageError for parameters that do not fit."""
        ...

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """The verdict on the calls together; `evaluation` is that of the trial's own case."""
        ...


def _demand_valid(trial: Trial, evaluation: Evaluation) -> None:
    if evaluation.strength != Strength.OPEN:
        demand_valid(trial, evaluation)


class _OneCall:
    """A check of the case alone."""

    __slots__ = ()

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """The case alone."""
        return (trial.case,)


class _WithTwin:
    """A check of a case that breaks something, beside a twin that differs in that alone."""

    __slots__ = ()

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """The valid twin's first phase, where there is a twin, and the case."""
        twin = trial.parameters.get("twin")
        if twin is None:
            return (trial.case,)
        return first_phase(case_from_json(twin, where="trial: $.parameters.twin")), trial.case


@dataclass(frozen=True, slots=True)
class ValuesCheck(_OneCall):
    """A supported call succeeds, and its outputs lie within the bound."""

    id: str = "values"
    sentence: str = "a call that the document supports succeeds, and every output element is right"

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Valid cases of the part's source."""
        for case in valid_cases(part, sampler, seed=seed):
            yield Trial(self.id, case)

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """Statuses that the document leaves open for a case that it contradicts conform too."""
        _demand_valid(trial, evaluation)
        if evaluation.broken:
            return judge.attempted(performed[0], allowed=evaluation.statuses)
        return judge.values(performed[0], allowed=evaluation.statuses)


@dataclass(frozen=True, slots=True)
class ExampleCheck(_OneCall):
    """A worked example of the document behaves as the document says."""

    id: str = "example"
    sentence: str = (
        "the document's own example succeeds with right values, or fails only where the document contradicts it"
    )

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """The examples that apply to the target's product."""
        for example in sampler.spec.examples:
            if example.product in (None, sampler.target.product):
                origin = Origin(kind="example", source=f"{sampler.spec.document}, {example.at}")
                yield Trial(self.id, Case(sampler.spec.operator, example.arguments, sampler.target, origin=origin))

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """An example that breaks a rule of the same document may succeed or fail."""
        return judge.values(performed[0], allowed=evaluation.statuses)


EXAMPLE = ExampleCheck()


def derived_trial(check: str, derived: DerivedCase) -> Trial:
    """The trial of a derived case, its valid twin among the parameters where it breaks something."""
    parameters = {"twin": case_to_json(derived.twin, origin=False)} if derived.broken else {}
    return Trial(check, derived.case, parameters)


def _judge_broken(
    performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation, constraint: str | None
) -> Verdict:
    named = constraint or ", ".join(item.id for item in evaluation.broken)
    if len(performed) > 1 and (judge.has_statuses or performed[-1].outcome.rejected):
        outcome = performed[0].outcome
        if outcome.ended != CallEnd.RETURNED or outcome.status:
            got = outcome.ended if outcome.ended != CallEnd.RETURNED else status_name(outcome.status or 0)
            message = f"the valid twin ended with {got}, expected {SUCCESS}; so {named} is not judged"
            failed = ended_badly(outcome) or Verdict(result=Result.FAILED, kind=Fault.REJECTED, message=message)
            return msgspec.structs.replace(failed, facts={**failed.facts, TWIN_FAILED: True})
    return judge.status(performed[-1], constraint=named, evaluation=evaluation)


@dataclass(frozen=True, slots=True)
class StatusCheck(_WithTwin):
    """A call that breaks one documented constraint returns what the document promises, and its valid twin succeeds."""

    id: str = "status"
    sentence: str = (
        "a call that breaks a documented constraint returns the promised status, and its valid twin succeeds"
    )

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Cases that break the part's constraint, each beside its twin."""
        from aclnn_cts.generate.negative import invalid_cases  # noqa: PLC0415 - runs of given cases have none

        constraint = sampler.spec.constraint(part.constraint)
        for derived in invalid_cases(sampler, constraint, seed=seed, first=part.first, count=part.count):
            yield derived_trial(self.id, derived)

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """The status of the case; a twin that does not succeed is a fault of its own."""
        demand_broken(trial, evaluation)
        return _judge_broken(performed, judge, evaluation, trial.case.origin.constraint)


@dataclass(frozen=True, slots=True)
class BoundaryCheck(_WithTwin):
    """On each limit and one step to both sides, what the document promises for that side holds."""

    id: str = "boundary"
    sentence: str = "a call on a limit succeeds, and one step beyond it the promised status is returned"

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """The limits of the part's constraint."""
        from aclnn_cts.generate.negative import boundary_cases  # noqa: PLC0415 - as above

        for derived in boundary_cases(sampler, sampler.spec.constraint(part.constraint), seed=seed):
            yield derived_trial(self.id, derived)

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """Values inside the limit, the status beyond it."""
        if not evaluation.broken:
            return judge.values(performed[-1])
        return _judge_broken(performed, judge, evaluation, trial.case.origin.constraint)


@dataclass(frozen=True, slots=True)
class MemoryCheck(_OneCall):
    """A call writes its outputs and nothing else; what it writes is right too."""

    id: str = "memory"
    sentence: str = "a call writes all of its outputs' elements and nothing else: no guard, no gap of a view, no input"

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Random valid cases of a stream of their own."""
        for case in random_cases(part, sampler, seed, "memory"):
            yield Trial(self.id, case)

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """What became of the memory, then the values."""
        memory = judge.memory(performed[0])
        if memory.judged != Judged.MEMORY:
            return memory
        values = judge.values(performed[0])
        if values.result in (Result.PASSED, Result.ERROR) or values.kind == SkipReason.DISPUTE:
            return values
        if values.result == Result.FAILED:
            return as_value_failure(values)
        return msgspec.structs.replace(memory, facts={**memory.facts, UNJUDGED_VALUES: values.kind})


CHECKS: Mapping[str, Check] = items_by_name(
    "check",
    (
        EXAMPLE,
        BoundaryCheck(),
        StatusCheck(),
        MemoryCheck(),
        PrecisionCheck(),
        ValuesCheck(),
        *LIFE_CYCLES.values(),
        *EQUAL_CALLS.values(),
    ),
    lambda check: check.id,
)
"""All checks by id. Any operator can be held to each."""


VALUED: frozenset[str] = frozenset({"values", "example", "precision"})
"""Those that ask for the values of their trial's call, whatever the document says of it."""


def judges_values(trial: Trial) -> bool:
    """Whether the values of every call of a trial are judged, so that a batch of them can be looked at together."""
    return trial.check in VALUED or (is_valid_call(trial) and trial.case.call.phases != 1)


def check_by_id(identifier: str, *, where: str) -> Check:
    """A check by its id; UsageError for an unknown one."""
    if identifier not in CHECKS:
        raise UsageError(
            f"{where}: check {quote(identifier)}: expected one of {', '.join(CHECKS)}{did_you_mean(identifier, CHECKS)}"
        )
    return CHECKS[identifier]


_DEMANDS: Mapping[str, Callable[[Trial, Evaluation], None]] = {
    "values": _demand_valid,
    "memory": _demand_valid,
    "status": demand_broken,
}
"""What some checks ask of a trial's case."""


def check_trial(trial: Trial, spec: Spec, *, where: str) -> None:
    """UsageError, opened by `where`, for a trial that its check cannot judge: known before anything is run."""
    try:
        check_by_id(trial.check, where="$.check").calls(trial, spec)
        if (demand := _DEMANDS.get(trial.check)) is not None:
            demand(trial, evaluate(spec, trial.case))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def as_trial(spec: Spec, item: Trial | Case) -> Trial:
    """The trial of a file: a bare case stands for one."""
    if isinstance(item, Trial):
        return item
    return Trial("status" if evaluate(spec, item).broken else "values", item)


def _fitted_case(specs: Specs, case: Case, *, where: str) -> Spec:
    """The spec of a case's operator; UsageError where arguments do not fit the prototype, or data mean nothing."""
    spec = bind_case(specs, case, where=where)
    for name, tensor in case.tensors():
        if tensor.data is not None:
            try:
                check_data(tensor.data, name=name)
            except UsageError as error:
                raise UsageError(f"{where}: $.{error}") from None
    return spec


def fitted_trial(specs: Specs, item: Trial | Case, *, where: str) -> Spec:
    """The spec of a trial's operator.

    UsageError, opened by `where`, where arguments of any of its calls do not fit the prototype, the calls before it are
    made for another target, or its check is unknown or cannot judge the case.
    """
    if isinstance(item, Case):
        return _fitted_case(specs, item, where=where)
    spec = _fitted_case(specs, item.case, where=where)
    for number, earlier in enumerate(item.after):
        _fitted_case(specs, earlier.case, where=f"{where} ($.after[{number}].case)")
        if earlier.case.target != item.case.target:
            raise UsageError(
                f"{where}: $.after[{number}].case: made for another target than the trial's own case; expected the same"
                " product, soc and settings"
            )
    if item.case.product in spec.products:
        check_trial(item, spec, where=where)
    else:
        check_by_id(item.check, where=f"{where}: $.check")
    return spec
