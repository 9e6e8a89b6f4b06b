"""The life cycle of a call as checks: executors, streams, workspaces, the operator cache; for any operator.

They are the checks of `specs/interface.yaml`. An implementation takes part where it can be called in the call modes
that they need (`Capabilities.call_modes`); elsewhere they are counted as inexpressible.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from aclnn_cts.adapters.protocol import CallMode
from aclnn_cts.core.case import Case, Origin, first_phase
from aclnn_cts.core.case_json import case_from_json, case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import GROWN_BYTES, CallEnd
from aclnn_cts.core.printable import quote
from aclnn_cts.core.trial import OTHER_CASE, Trial
from aclnn_cts.core.verdict import Result, Verdict
from aclnn_cts.execution.executor import CallRequest, PerformedCall
from aclnn_cts.execution.judging import Judge
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds import Strength, tensor_of
from aclnn_cts.speclang.model import Modes, Spec
from aclnn_cts.trials.checks.call_verdicts import decided_by_calls, demand_broken, demand_valid, repeats_of
from aclnn_cts.trials.plan import LIFE_CYCLE, LIFE_CYCLE_KIND, Part

_NUMBER_OF_CALLS = 4000
ALLOWED_GROWTH = 1 << 18
"""Bytes over half of them: pages that an allocator happens to touch, less than any descriptor that was not freed."""

_MODEST = 256
"""Most elements of a tensor: what is tried here does not depend on sizes."""

_CONTENTS = ("elements", "finite")
"""Kinds of constraint that only the contents of a tensor break."""

_NONE: CallMode = MappingProxyType({})
_ATTEMPTS = 24
"""Pairs of drawings that are tried for a call with other attributes."""


class SecondCall(enum.Enum):
    """What the second call of a trial is to the first."""

    SAME = "same"
    ANOTHER = "another"
    """Another one of the same operator."""
    ATTRIBUTES = "attributes"
    """The same but for one attribute, which every key of an operator cache has to tell apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidCallsCheck:
    """A check about one valid call, or about two calls together: all of them succeed with right values."""

    id: str
    sentence: str
    call_modes: tuple[CallMode, ...]
    """One a call."""
    together: bool = False
    second: SecondCall = SecondCall.SAME
    first_phase: bool = False
    """The first call goes no further than phase one."""

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Valid cases of a stream of their own; fewer where no attribute can be another one."""
        stream = f"{sampler.spec.operator}/{sampler.target.product}/{self.id}"
        for number in range(part.first, part.first + part.count):
            if self.second == SecondCall.ATTRIBUTES:
                if (pair := _attribute_pair(sampler, stream, number, seed=seed)) is None:
                    continue
            else:
                pair = _pair(sampler, stream, number, seed=seed)
            case, other = pair
            alone = self.second == SecondCall.SAME
            yield Trial(self.id, case, {} if alone else {OTHER_CASE: case_to_json(other, origin=False)})

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """As many as there are call modes."""
        if self.second == SecondCall.SAME:
            first = first_phase(trial.case) if self.first_phase else trial.case
            return (first, *(trial.case,) * (len(self.call_modes) - 1))
        document = trial.parameters.get(OTHER_CASE)
        other = case_from_json(document, where=f"trial: $.parameters.{OTHER_CASE}")
        if other.operator != trial.case.operator:
            raise UsageError(
                f"trial: $.parameters.{OTHER_CASE}: {other.operator}; expected another call of {trial.case.operator}"
            )
        return (trial.case, other)

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """The first call that does not pass decides."""
        demand_valid(trial, evaluation)
        # An implementation that cannot be called so says it of one call, and the others show nothing.
        verdicts = [judge.values(item) for item in performed if item.outcome.ended == CallEnd.INEXPRESSIBLE]
        verdicts = verdicts or [judge.values(item) for item in performed]
        return decided_by_calls(verdicts)


@dataclass(frozen=True, slots=True)
class RepeatedFailureCheck:
    """Many refused calls in a row leave nothing behind."""

    id: str = "life-cycle/repeated-failure"
    sentence: str = "many failing first phases in a row return the same status and do not make the process grow"

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Cases that break one listed constraint each, one after the other."""
        from aclnn_cts.generate.negative import invalid_cases  # noqa: PLC0415 - runs of given cases have none

        constraints = [
            item
            for item in sampler.spec.constraints_for(sampler.target.product)
            if item.strength == Strength.LISTED and item.unsafe is None
        ]
        for number in range(part.first, part.first + part.count if constraints else 0):
            # A step that shares no factor with most lengths walks through constraints of all kinds.
            constraint = constraints[number * 7 % len(constraints)]
            for derived in invalid_cases(sampler, constraint, seed=seed, first=number, count=1):
                origin = msgspec.structs.replace(derived.case.origin, kind=LIFE_CYCLE_KIND)
                case = first_phase(msgspec.structs.replace(derived.case, origin=origin))
                yield Trial(self.id, case, {"times": _NUMBER_OF_CALLS})

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """One, which its call mode multiplies."""
        return (trial.case,)

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """The promised status every time, and no growth."""
        demand_broken(trial, evaluation)
        constraint = trial.case.origin.constraint or evaluation.broken[0].id
        verdict = judge.status(performed[0], constraint=constraint, evaluation=evaluation)
        grown = performed[0].outcome.facts.get(GROWN_BYTES)
        if verdict.result != Result.PASSED or not isinstance(grown, int):
            return verdict
        facts: dict[str, Any] = {**verdict.facts, GROWN_BYTES: grown}
        if grown <= ALLOWED_GROWTH:
            return msgspec.structs.replace(verdict, facts=facts)
        times = _times(trial)
        message = (
            f"the process grew by {grown} bytes over the last {times - times // 2} of {times} failing calls in a row; "
            f"at most {ALLOWED_GROWTH} are allowed for"
        )
        return Verdict(result=Result.FAILED, kind=Fault.LEAK, message=message, facts=facts)


def asked_calls(trial: Trial, spec: Spec, cases: Sequence[Case], *, known: frozenset[str]) -> list[CallRequest]:
    """The calls of a trial of any check, each in its call mode; calls to be made together carry the group 0.

    `known` are the call modes that the implementation has. What stands in the operator cache is checked no more, and
    contents are no part of what it knows a call by: a call that is broken in its contents alone must meet a library
    that has not accepted its like before. Every other broken call differs from all that were accepted by itself.
    """
    entry = LIFE_CYCLES.get(trial.check)
    if isinstance(entry, ValidCallsCheck):
        group = 0 if entry.together else None
        return [CallRequest(case, call_mode, group) for case, call_mode in zip(cases, entry.call_modes, strict=True)]
    if isinstance(entry, RepeatedFailureCheck):
        return [CallRequest(cases[0], {"times": _times(trial)})]
    if trial.check == "determinism" and (repeats := repeats_of(trial)):
        return [CallRequest(cases[0]), CallRequest(cases[1], repeats=repeats - 1)]
    broken = trial.case.origin.constraint
    if broken and "cache" in known and any(item.id == broken and item.kind in _CONTENTS for item in spec.constraints):
        return [*(CallRequest(case) for case in cases[:-1]), CallRequest(cases[-1], {"cache": "cold"})]
    return [CallRequest(case) for case in cases]


def _pair(sampler: Sampler, stream: str, number: int, *, seed: int, data_kind: str | None = None) -> tuple[Case, Case]:
    """Two valid cases that know nothing of each other."""
    origin = Origin(kind=LIFE_CYCLE_KIND)
    draws = (StreamChoices(seed, stream, 2 * number + place) for place in range(2))
    first, second = (
        sampler.case(sampler.draw(choices, budget=_MODEST, data_kind=data_kind), origin=origin) for choices in draws
    )
    return first, second


def _attribute_pair(sampler: Sampler, stream: str, number: int, *, seed: int) -> tuple[Case, Case] | None:
    """A valid case, and the same with one attribute of another; None where none of `_ATTEMPTS` can be had.

    Their data are realistic: small integers come out the same in every precision mode, and zeros whatever is asked.
    """
    if all(item.kind == "tensor" for item in sampler.spec.parameters):
        return None
    for attempt in range(number * _ATTEMPTS, (number + 1) * _ATTEMPTS):
        case, other = _pair(sampler, stream, attempt, seed=seed, data_kind="realistic")
        names = list(_other_attributes(sampler.spec, case, other))
        turn = number % max(len(names), 1)
        for name in (*names[turn:], *names[:turn]):
            changed = msgspec.structs.replace(case, arguments={**case.arguments, name: other.arguments[name]})
            if not evaluate(sampler.spec, changed).broken:
                return case, changed
    return None


def _other_attributes(spec: Spec, case: Case, other: Case) -> Iterator[str]:
    """The attributes that differ in two cases and may give other results."""
    for item in spec.parameters:
        ours, theirs = case.arguments[item.name], other.arguments[item.name]
        if item.kind == "tensor" or ours == theirs:
            continue
        if spec.modes is None or item.name != spec.modes.attribute or not _round_alike(spec.modes, case, other):
            yield item.name


def _round_alike(modes: Modes, case: Case, other: Case) -> bool:
    """Whether the modes of two calls round operands of the first one's dtype to the same format."""
    dtype = modes.dtype_of({name: tensor_of(case, name).dtype for name in modes.sources})
    formats = modes.operand[case.target.product][dtype]
    first, second = (item.arguments[modes.attribute] for item in (case, other))
    return isinstance(first, int) and isinstance(second, int) and formats[first] == formats[second]


def _times(trial: Trial) -> int:
    times = trial.parameters.get("times", _NUMBER_OF_CALLS)
    if not isinstance(times, int) or isinstance(times, bool) or times < 2:
        raise UsageError(f"trial: $.parameters.times: {quote(times)}; expected a whole number from 2 on")
    return times


_ALL = (
    ValidCallsCheck(
        id="life-cycle/repeatable",
        sentence="an executor that was made repeatable gives right results each time that it is run",
        call_modes=({"repeat": 3},),
    ),
    ValidCallsCheck(
        id="life-cycle/two-streams",
        sentence="two calls on two streams at once give what each gives alone",
        call_modes=({"stream": 0}, {"stream": 1}),
        together=True,
        second=SecondCall.ANOTHER,
    ),
    ValidCallsCheck(
        id="life-cycle/interleaved",
        sentence="two calls whose phases alternate give what each gives alone",
        call_modes=({"order": "interleaved"}, {"order": "interleaved"}),
        together=True,
        second=SecondCall.ANOTHER,
    ),
    ValidCallsCheck(
        id="life-cycle/phase-one-alone",
        sentence="a phase one that no phase two follows leaves the next call as it is",
        call_modes=(_NONE, _NONE),
        first_phase=True,
    ),
    ValidCallsCheck(
        id="life-cycle/exact-workspace",
        sentence="a workspace of exactly the size asked for is enough",
        call_modes=({"workspace": "exact"},),
    ),
    ValidCallsCheck(
        id="life-cycle/larger-workspace",
        sentence="a workspace that is larger than asked for does as well",
        call_modes=({"workspace": "larger"},),
    ),
    ValidCallsCheck(
        id="life-cycle/cold-warm",
        sentence="a call that the operator cache has seen before gives right results as it did the first time",
        call_modes=({"cache": "cold"}, _NONE),
    ),
    ValidCallsCheck(
        id="life-cycle/other-attributes",
        sentence="a call that differs from the one before in one attribute has right results",
        call_modes=(_NONE, _NONE),
        second=SecondCall.ATTRIBUTES,
    ),
    RepeatedFailureCheck(),
)

LIFE_CYCLES: Mapping[str, ValidCallsCheck | RepeatedFailureCheck] = MappingProxyType(
    {entry.id: entry for entry in _ALL}
)
"""By id, in the order of `plan.LIFE_CYCLE`."""

if tuple(LIFE_CYCLES) != LIFE_CYCLE:
    raise ValueError(f"the plan names {LIFE_CYCLE}; expected the checks {tuple(LIFE_CYCLES)}")
