"""Laws: what the outputs of a few related calls must have to do with one another, whatever their values are.

A law needs no expected values. It makes calls out of one base call, and says which combination of their outputs must
agree, and how closely: its bound is put together from what each call's own arithmetic may do to its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Data, Number, Tensor, real_view, replaced
from aclnn_cts.core.dtypes import COMPONENTS, INEXACT, component
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.outside import spelled
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, round_to

MAX_BASE_ELEMENTS = 256
"""Elements of a tensor up to which a case may be a law's base: derived calls carry their data as explicit values."""

Parameters: TypeAlias = Mapping[str, int]
"""What a law chose for one trial, beside the base case: plain integers that a trial file keeps."""

Draw: TypeAlias = Callable[[int, int], int]
"""An integer between two bounds, both included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawInput:
    """The base of one trial: its case, the exact contents of its inputs, and the law's own choices.

    `tensors` holds every input in its logical shape: float64 for floating dtypes, int64 for integers, bool for BOOL.
    """

    case: Case
    tensors: Mapping[str, NDArray[Any]]
    parameters: Parameters = field(default_factory=dict)

    def tensor(self, name: str) -> Tensor:
        """The descriptor of a tensor argument; TypeError for anything else."""
        value = self.case.tensor(name)
        if value is None:
            raise TypeError(f"{name} is {self.case.arguments.get(name)!r}, not a tensor")
        return value

    def form(self, name: str) -> BinaryFormat:
        """The format of a floating tensor's elements, or of a complex one's components."""
        return BINARY_FORMATS[component(self.tensor(name).dtype)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LawOutput:
    """One output of one call. All arrays have the output's logical shape; float64 and bool."""

    got: Float64
    distance: Float64
    """How far a conforming result may be from the exact one, the last rounding included; 0 where one result alone
    conforms and is exact. Meaningless where not `judged`."""
    single: NDArray[np.bool_]
    """Where one result alone conforms, which is the exact one rounded: equal exact results must then be equal bits."""
    judged: NDArray[np.bool_]
    """Where the result is required to be finite and within the bound."""
    open: NDArray[np.bool_]
    """Where the document leaves the element open; the other elements that are not judged hold inf or nan, or may."""
    roundoff: float
    """Unit roundoff of the accumulation."""
    output_roundoff: float
    """Unit roundoff of the output's format (twice that where it truncates)."""
    repeatable: bool
    """Whether the same call must give the same bits."""

    @property
    def bound(self) -> Float64:
        """`distance`, inf where nothing is judged."""
        return np.where(self.judged, self.distance, np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCall:
    """One call of a trial and what came of it."""

    case: Case
    tensors: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, LawOutput]


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCheck:
    """One relation: `left` and `right` must not differ by more than `bound`.

    The arrays have one shape. Nothing is judged where the bound is inf. Infinities of one sign are equal, and nans.
    """

    output: str
    left: Float64
    right: Float64
    bound: Float64
    relation: str
    """What stands on both sides, in words: `3 f(g1) - 2 f(g2) and f(3 g1 - 2 g2)`."""
    place: str = ""
    """What an index means where it is not one of the output's elements: `(n, c)`, say."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Recorded, never judged."""

    @property
    def error(self) -> Float64:
        """The difference of both sides; inf where only one of them is nan, or one infinity meets anything else."""
        with np.errstate(all="ignore"):
            alike = (self.left == self.right) | (np.isnan(self.left) & np.isnan(self.right))
            difference = np.abs(self.left - self.right)
        return np.where(alike, 0.0, np.where(np.isnan(difference), np.inf, difference))


def _always(case: Case) -> bool:
    return True


def _nothing(draw: Draw) -> Parameters:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One law of one operator.

    - `applies`: whether a base case can be one of the law's at all, by its descriptors and attributes.
    - `draw`: the choices of a trial. They must mean something for every base case, so that a trial can be shrunk.
    - `calls`: the calls of a trial, none where the base's contents forbid it. Each is held against the document's
      constraints, and a trial with a call that breaks one is not generated.
    - `check`: the relations among the outputs of these calls, in their order.
    - `base_elements`: elements of a tensor up to which a case may be a base; more than `MAX_BASE_ELEMENTS` where no
      derived call carries its data as explicit values.
    - `long_sums`: whether a base says the more the longer its sums are; then each trial takes one of several bases.
    """

    id: str
    en: str
    zh: str
    calls: Callable[[LawInput], tuple[Case, ...]]
    check: Callable[[LawInput, Sequence[LawCall]], Iterable[LawCheck]]
    applies: Callable[[Case], bool] = _always
    draw: Callable[[Draw], Parameters] = _nothing
    base_elements: int = MAX_BASE_ELEMENTS
    long_sums: bool = False


def with_arguments(case: Case, changes: Mapping[str, Any]) -> Case:
    """The case with other arguments in place of those named; `name[2]` is one tensor of a list."""
    return msgspec.structs.replace(case, arguments=replaced(case.arguments, changes))


def with_values(tensor: Tensor, values: NDArray[Any]) -> Tensor:
    """The tensor with these contents; a contiguous one of their shape where that is another.

    Floating contents must be numbers of the dtype (`exactly_stored`), as data are rounded to it.
    """
    flat = values.reshape(-1).tolist()
    numbers: tuple[Number, ...]
    if tensor.dtype in INEXACT:
        numbers = tuple(spelled(float(value)) for value in flat)
    else:
        numbers = tuple(int(value) for value in flat)
    data = Data(values=numbers)
    if values.shape != real_view(tensor).shape:
        shape = values.shape[:-1] if tensor.dtype in COMPONENTS else values.shape
        return Tensor(shape, tensor.dtype, tensor.format, data=data)
    return msgspec.structs.replace(tensor, data=data)


def exactly_stored(values: Float64, dtype: str) -> bool:
    """Whether every number is one of the floating dtype, or of the components of a complex one."""
    return bool(np.array_equal(round_to(values, BINARY_FORMATS[component(dtype)]), values, equal_nan=True))
