"""What a program needs: descriptors and memory of its calls, their steps in order, and what of their end conforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Tensor, contiguous_strides, owner, real_view
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.dtypes import DTYPES, FORMATS, itemsize
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import ANY_ERROR, STATUSES, Outcome
from aclnn_cts.core.trial import EarlierCall
from aclnn_cts.execution.executor import CallRequest, PerformedCall
from aclnn_cts.execution.judging import Judge
from aclnn_cts.generate.buffers import UnsafeViewError, prepare
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.judgement.bound import bound, left_open
from aclnn_cts.sandbox.batch import end_of_group
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.model import Parameter, Spec

VERBS: Mapping[str, str] = {
    "prepare": "bring the data to the device and make the descriptors",
    "phase_one": "ask for the workspace's size and the executor",
    "workspace": "allocate it, as `way` says: `guarded` (what was asked for, between guards), `exact` or `larger`",
    "repeatable": "let the executor be run more than once",
    "phase_two": "queue the work on the stream of that number",
    "wait": "wait for the stream",
    "judge": "compare status, outputs and memory with what conforms",
    "refill": "make the memory what it was before the call",
    "destroy": "give back an executor that no phase two has used up",
    "release": "give back memory and descriptors",
    "loop": "take the steps up to `end` `times` times",
    "end": "go on after the loop",
    "refused": "make phase one `times` times in a row, whose status and memory must stay as they are",
}
"""What a step does, by its verb. All but `prepare`, `phase_one` and `release` pass over a call that phase one refused;
`judge` looks at that status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a program."""

    verb: str
    """One of `VERBS`."""
    call: int = 0
    """Which of the program's unlike calls it is about."""
    number: int = 1
    """Which call of the trial that is, from 1 on; 0: one that is made before the trial's own."""
    stream: int = 0
    way: str = ""
    times: int = 0


def steps_of(asked: Sequence[CallRequest], places: Sequence[int]) -> tuple[Step, ...]:
    """The steps of calls in their call modes; `places` tells which of the unlike calls each one is.

    A program is a fresh process: a call that must meet the operator cache cold comes before its like.
    """
    order = sorted(range(len(asked)), key=lambda number: asked[number].call_mode.get("cache") != "cold")
    arranged = [asked[number] for number in order]
    steps: list[Step] = []
    start = 0
    while start < len(arranged):
        end = end_of_group(arranged, start)
        steps += _together([_Made(places[number], number + 1, asked[number]) for number in order[start:end]])
        start = end
    return tuple(steps)


def steps_before(after: Sequence[EarlierCall], places: Sequence[int]) -> Iterator[Step]:
    """The steps of the calls before a trial's own, which nobody judges; `places` as in `steps_of`."""
    for item, place in zip(after, places, strict=True):
        made = _Made(place, 0, CallRequest(item.case))
        if item.times > 1:
            yield made.step("loop", times=item.times)
        yield from (step for step in _together([made]) if step.verb != "judge")
        if item.times > 1:
            yield made.step("end")


@dataclass(frozen=True, slots=True)
class _Made:
    call: int
    number: int
    asked: CallRequest

    @property
    def goes_on(self) -> bool:
        return self.asked.case.call.phases != 1

    @property
    def stream(self) -> int:
        return self.count("stream", 0)

    @property
    def repeat(self) -> int:
        return self.count("repeat", 1)

    def count(self, word: str, default: int) -> int:
        value = self.asked.call_mode.get(word, default)
        return value if isinstance(value, int) else default

    def step(self, verb: str, *, way: str = "", times: int = 0) -> Step:
        return Step(verb=verb, call=self.call, number=self.number, stream=self.stream, way=way, times=times)


def _together(made: Sequence[_Made]) -> Iterator[Step]:
    """The steps of one group, which are those of `adapters.cann.session`."""
    if len(made) == 1 and (times := made[0].count("times", 1)) > 1:
        yield made[0].step("refused", times=times)
        return
    for call in made:
        yield call.step("prepare")
    for call in made:
        yield call.step("phase_one")
        if call.goes_on:
            yield call.step("workspace", way=str(call.asked.call_mode.get("workspace", "guarded")))
    yield from _second_phases([call for call in made if call.goes_on])
    for call in made:
        yield call.step("judge")
    for call in made:
        if not call.goes_on or call.repeat > 1:
            yield call.step("destroy")
        yield call.step("release")


def _second_phases(going: Sequence[_Made]) -> Iterator[Step]:
    interleaved = any(call.asked.call_mode.get("order") == "interleaved" for call in going)
    for call in reversed(going) if interleaved else going:
        if call.repeat > 1:
            yield call.step("repeatable")
        yield call.step("phase_two")
        for _ in range(call.repeat - 1):
            yield from (call.step(verb) for verb in ("wait", "judge", "refill", "phase_two"))
    for call in {call.stream: call for call in going}.values():
        yield call.step("wait")


MAX_ELEMENTS = 1 << 16
"""Most elements of all storages together: a program that one reads holds its data in its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFacts:
    """What conforms of an output, in row-major order: values from `lower` to `upper`, of complex elements re and im."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    judged: NDArray[np.bool_]
    """False where the element is open whatever came back."""
    finite_alone: NDArray[np.bool_]
    """Where inf and nan conform too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorFacts:
    """One descriptor as aclCreateTensor takes it, and its memory."""

    name: str
    tensor: Tensor
    dtype: int
    format: int
    strides: tuple[int, ...]
    storage_shape: tuple[int, ...]
    storage: NDArray[Any] | None
    """What it holds before the call, gaps included; None for an output alone, or a descriptor without memory."""
    expected: OutputFacts | None
    """Of an output; None where values are not looked at."""

    @property
    def nbytes(self) -> int:
        """Bytes of the storage."""
        return self.tensor.storage_numel * itemsize(self.tensor.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """One call, ready to be written down as a program."""

    case: Case
    case_id: str
    header: str
    parameters: tuple[Parameter, ...]
    tensors: Mapping[str, DescriptorFacts]
    statuses: tuple[tuple[str, int], ...]
    """Names and values that conform."""
    any_error: bool
    """Whether every status but success conforms too."""
    phases: int
    refused_in_phase_one: bool
    """Whether a refusal must come from phase one, which checks the arguments."""
    sentence: str
    """What is to be seen."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs whose elements are compared."""
        return tuple(name for name, tensor in self.tensors.items() if tensor.expected is not None)

    @property
    def written(self) -> frozenset[str]:
        """The parameters that the call writes."""
        return frozenset(item.name for item in self.parameters if item.is_output)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSequence:
    """The calls of a trial, the steps in which they are made, and whether their outputs must be equal."""

    calls: tuple[Reproduction, ...]
    """Those that are unlike one another."""
    steps: tuple[Step, ...]
    equal: tuple[str, ...] = ()
    """The outputs of each call where all calls must give the same bits."""
    about: tuple[str, ...] = ()
    """What the trial is, where it is more than its one call."""
    outputs: tuple[str, ...] = ()
    """The operator's, in the order of its prototype."""
    beyond: str = ""
    """What the trial asks beyond its program, and how that is judged."""
    fails: str = ""
    """What a run found at fault, where one did."""

    @property
    def title(self) -> str:
        """What fails, where that is known, and what the document says of the first call."""
        return "; ".join(filter(None, (self.fails, self.calls[0].sentence)))

    @property
    def number(self) -> int:
        """How many calls the program makes."""
        return len({step.number for step in self.steps if step.number})

    @property
    def needs_runtime(self) -> bool:
        """Whether any call is of both phases; the first alone takes neither memory nor a stream."""
        return any(facts.phases == 2 for facts in self.calls)

    @property
    def streams(self) -> int:
        """How many streams they need."""
        if not self.needs_runtime:
            return 0
        return 1 + max(step.stream for step in self.steps)


class TooManyElementsError(UsageError):
    """The cases of a program have more elements, `elements`, than `MAX_ELEMENTS`."""

    def __init__(self, message: str, elements: int) -> None:
        super().__init__(message)
        self.elements = elements


def reproduction(
    case: Case, spec: Spec, judge: Judge, *, sentence: str, valued: bool = False, judged: bool = True
) -> Reproduction:
    """Collect the facts of a call; TooManyElementsError for one too large to be written into a program.

    - `valued`: its check asks for values, also of what the document leaves open.
    - `judged`: what comes of it is looked at.
    """
    total = sum(tensor.storage_numel for _, tensor in case.tensors())
    if case.call.phases == 2 and total > MAX_ELEMENTS:
        raise TooManyElementsError(
            f"the case has {total} elements; a program holds at most {MAX_ELEMENTS}: shrink it first", total
        )
    evaluation = evaluate(spec, case)
    phases = case.call.phases
    performed, storages = (None, {}) if phases == 1 else _memory(case, spec)
    expected = {} if performed is None or not judged else _expected_of(performed, judge, evaluation, valued=valued)
    names = [name for name in evaluation.statuses if name != ANY_ERROR]
    return Reproduction(
        case=case,
        case_id=case_id(case),
        header=spec.header or "",
        parameters=spec.parameters,
        tensors={
            name: DescriptorFacts(
                name=name,
                tensor=tensor,
                dtype=DTYPES[tensor.dtype].value,
                format=FORMATS[tensor.format],
                strides=tensor.strides if tensor.strides is not None else contiguous_strides(tensor.shape),
                storage_shape=_storage_shape(tensor),
                storage=storages.get(name),
                expected=expected.get(name),
            )
            for name, tensor in case.tensors()
        },
        statuses=tuple((name, STATUSES[name]) for name in names),
        any_error=ANY_ERROR in evaluation.statuses,
        phases=phases,
        refused_in_phase_one=bool(evaluation.broken) and evaluation.strength == Strength.LISTED,
        sentence=sentence,
    )


def _storage_shape(tensor: Tensor) -> tuple[int, ...]:
    if tensor.storage_shape is not None:
        return tensor.storage_shape
    return tensor.shape if tensor.strides is None and not tensor.offset else (tensor.storage_numel,)


def _memory(case: Case, spec: Spec) -> tuple[PerformedCall, dict[str, NDArray[Any]]]:
    present = list(spec.given_inputs(case))
    arrays = case_arrays(case, present)
    try:
        buffers = prepare(case, outputs=spec.output_tensors(case), arrays=arrays)
    except UnsafeViewError as error:
        raise UsageError(
            f"{error}: a program would reach outside of its memory; show the first phase alone (call.phases: 1)"
        ) from None
    storages = {name: buffer.storage.copy() for name, buffer in buffers.inputs.items()}
    got = {name: buffer.view for name, buffer in buffers.outputs.items()}
    return PerformedCall(case=case, outcome=Outcome(), arrays=arrays, got=got), storages


def _expected_of(
    performed: PerformedCall, judge: Judge, evaluation: Evaluation, *, valued: bool
) -> dict[str, OutputFacts]:
    """As checks judge: of a broken call that succeeds beyond a limit, or that is asked for values although open."""
    if not evaluation.broken:
        for name, tensor in performed.case.tensors():
            if owner(name) in judge.spec.inputs and name not in performed.arrays:
                raise UsageError(
                    f"arguments.{name}.tensor.data: missing for the shape {list(tensor.shape)}; expected `values` or a"
                    " `recipe`, as the call reads it"
                )
        return _expected(performed, judge, performed.case)
    if not evaluation.has_values and not (valued and evaluation.strength == Strength.OPEN):
        return {}
    try:
        return _expected(performed, judge, performed.case)
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
        return {}


def _expected(performed: PerformedCall, judge: Judge, case: Case) -> dict[str, OutputFacts]:
    facts: dict[str, OutputFacts] = {}
    for name, limits in judge.limits(performed).items():
        tensor = case.tensor(name)
        if tensor is None:
            continue
        with np.errstate(all="ignore"):
            bounded = bound(limits.expected, limits.model, operands=limits.operands)
        shape = real_view(tensor).shape
        value = np.broadcast_to(limits.expected.value, shape)
        with np.errstate(all="ignore"):
            unsaid, may_overflow = left_open(value, limits.expected, limits.model, bounded)
        # An infinity or nan that every order of evaluation gives is required.
        required = ~np.isfinite(value)
        lower, upper = (np.where(required, value, end).reshape(-1) for end in (bounded.ends.lower, bounded.ends.upper))
        facts[name] = OutputFacts(
            lower=lower, upper=upper, judged=~unsaid.reshape(-1), finite_alone=may_overflow.reshape(-1)
        )
    return facts
