"""What a program needs to show one call: its descriptors, its memory, and what of its end conforms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Tensor, contiguous_strides, owner, real_view
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.dtypes import DTYPES, FORMATS, itemsize
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.statuses import ANY_ERROR, STATUSES
from aclnn_cts.execution.executor import Performed
from aclnn_cts.execution.judging import Judge
from aclnn_cts.generate.buffers import UnsafeViewError, prepare
from aclnn_cts.generate.contents import case_arrays
from aclnn_cts.judgement.bound import bound
from aclnn_cts.judgement.elements import left_open
from aclnn_cts.repro.relations import Relation, Slot
from aclnn_cts.repro.steps import Step
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.model import Parameter, Spec

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
class TensorFacts:
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
    tensors: Mapping[str, TensorFacts]
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
class Program:
    """The calls of a trial, the steps in which they are made, and what their outputs have to do with one another."""

    calls: tuple[Reproduction, ...]
    """Those that are unlike one another."""
    steps: tuple[Step, ...]
    relations: tuple[Relation, ...] = ()
    about: tuple[str, ...] = ()
    """What the trial is, where it is more than its one call."""
    outputs: tuple[str, ...] = ()
    """The operator's, in the order of its prototype."""
    beyond: str = ""
    """What the trial asks beyond its program, and how that is judged."""

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

    @property
    def kept(self) -> tuple[Slot, ...]:
        """The outputs that relations are about, call by call."""
        if not self.relations:
            return ()
        judged = sorted((step.number - 1, step.call) for step in self.steps if step.verb == "judge")
        return tuple((number, name) for number, call in judged for name in self.calls[call].outputs)


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
            name: TensorFacts(
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


def _memory(case: Case, spec: Spec) -> tuple[Performed, dict[str, NDArray[Any]]]:
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
    return Performed(case=case, outcome=Outcome(), arrays=arrays, got=got), storages


def _expected_of(performed: Performed, judge: Judge, evaluation: Evaluation, *, valued: bool) -> dict[str, OutputFacts]:
    """As checks judge: of a broken call that succeeds beyond a limit, or that is asked for values although open."""
    if not evaluation.broken:
        for name, tensor in performed.case.tensors():
            if owner(name) in judge.spec.inputs and name not in performed.arrays:
                raise UsageError(
                    f"arguments.{name}.tensor.data: missing for the shape {list(tensor.shape)}; expected `values` or a"
                    " `recipe`, as the call reads it"
                )
        return _expected(performed, judge, performed.case)
    if evaluation.strength != Strength.LIMIT and not (valued and evaluation.strength == Strength.OPEN):
        return {}
    try:
        return _expected(performed, judge, performed.case)
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
        return {}


def _expected(performed: Performed, judge: Judge, case: Case) -> dict[str, OutputFacts]:
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
