"""What a program needs to show one call: its descriptors, its memory, and what of its end conforms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, Case, Tensor, contiguous_strides
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.dtypes import DTYPES, itemsize
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.formats import FORMATS
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.statuses import ANY_ERROR, STATUSES
from aclnn_cts.engine.judging import Judge
from aclnn_cts.engine.perform import Performed
from aclnn_cts.generate.buffers import prepare
from aclnn_cts.generate.contents import case_arrays
from aclnn_cts.judge.bound import bound
from aclnn_cts.spec.evaluate import evaluate
from aclnn_cts.spec.model import Parameter, Spec

__all__ = ["MAX_ELEMENTS", "CallsOfTrial", "OutputFacts", "Reproduction", "TensorFacts", "reproduction"]

MAX_ELEMENTS = 1 << 16
"""Most elements of all storages together: a program that one reads holds its data in its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFacts:
    """What conforms of an output, element by element in row-major order: values from `lower` to `upper`."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    judged: NDArray[np.bool_]
    """False where the document leaves the element open, or where inf and nan conform too."""


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
    """The contents of an input, gaps included; None for an output, or a descriptor without memory."""
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
    operator: str
    header: str
    parameters: tuple[Parameter, ...]
    arguments: Mapping[str, Argument]
    tensors: Mapping[str, TensorFacts]
    statuses: tuple[tuple[str, int], ...]
    """Names and values that conform."""
    any_error: bool
    """Whether every status but success conforms too."""
    phases: int
    sentence: str
    """What is to be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsOfTrial:
    """The calls of a trial that a program makes one after another, each judged by itself."""

    made: tuple[Reproduction, ...]
    """Those that are unlike one another."""
    order: tuple[int, ...]
    """Which of them is made first, second, ..."""
    about: tuple[str, ...] = ()
    """What the trial is, where it is more than its one call."""
    beyond: str = ""
    """What the trial asks beyond its calls, and how that is judged."""

    @property
    def number(self) -> int:
        """How many calls the program makes."""
        return len(self.order)

    @staticmethod
    def one(facts: Reproduction) -> CallsOfTrial:
        """A single call that says everything."""
        return CallsOfTrial(made=(facts,), order=(0,))


def reproduction(case: Case, spec: Spec, judge: Judge, *, sentence: str) -> Reproduction:
    """Collect the facts of a call; UsageError for one too large to be written into a program."""
    total = sum(tensor.storage_numel for _, tensor in case.tensors())
    if case.call.phases == 2 and total > MAX_ELEMENTS:
        raise UsageError(f"the case has {total} elements; a program holds at most {MAX_ELEMENTS}: shrink it first")
    evaluation = evaluate(spec, case)
    phases = case.call.phases
    performed, storages = (None, {}) if phases == 1 else _memory(case, spec)
    expected = _expected(performed, judge, case) if performed is not None and not evaluation.broken else {}
    names = [name for name in evaluation.statuses if name != ANY_ERROR]
    return Reproduction(
        case=case,
        case_id=case_id(case),
        operator=case.operator,
        header=spec.header or "",
        parameters=spec.parameters,
        arguments=case.arguments,
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
        sentence=sentence,
    )


def _storage_shape(tensor: Tensor) -> tuple[int, ...]:
    if tensor.storage_shape is not None:
        return tensor.storage_shape
    return tensor.shape if tensor.strides is None and not tensor.offset else (tensor.storage_numel,)


def _memory(case: Case, spec: Spec) -> tuple[Performed, dict[str, NDArray[Any]]]:
    present = [name for name in spec.inputs if case.arguments[name] is not None]
    arrays = case_arrays(case, present)
    buffers = prepare(case, outputs=frozenset(spec.outputs), arrays=arrays)
    storages = {name: buffer.storage.copy() for name, buffer in buffers.inputs.items()}
    got = {name: buffer.view for name, buffer in buffers.outputs.items()}
    return Performed(case=case, outcome=Outcome(), arrays=arrays, got=got), storages


def _expected(performed: Performed, judge: Judge, case: Case) -> dict[str, OutputFacts]:
    facts: dict[str, OutputFacts] = {}
    for name, limits in judge.limits(performed).items():
        tensor = case.arguments[name]
        if not isinstance(tensor, Tensor):
            continue
        with np.errstate(all="ignore"):
            ends = bound(limits.expected, limits.model, operands=limits.operands)
        shape = tensor.shape
        lower, upper = (np.broadcast_to(end, shape).reshape(-1) for end in (ends.lower, ends.upper))
        value = np.broadcast_to(limits.expected.value, shape).reshape(-1)
        # As `judge.elements` has it: an infinity or nan that every order of evaluation gives is required, and where an
        # intermediate may overflow anything conforms.
        required = ~np.isfinite(value)
        overflow = np.broadcast_to(ends.overflow, shape).reshape(-1)
        judged = ~required & ~overflow
        if not limits.model.saturates:
            partial = limits.expected.partial
            finite = np.isfinite(np.broadcast_to(partial, shape).reshape(-1)) if partial is not None else overflow
            judged |= required & ~(overflow & np.isinf(value) & finite & (partial is not None))
            lower, upper = np.where(required, value, lower), np.where(required, value, upper)
        if limits.expected.open is not None:
            judged = judged & ~np.broadcast_to(limits.expected.open, shape).reshape(-1)
        facts[name] = OutputFacts(lower=lower, upper=upper, judged=judged)
    return facts
