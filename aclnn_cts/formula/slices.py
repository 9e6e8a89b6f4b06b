"""Large calls of a formula, slice by slice, where slices know nothing of each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor, TensorList
from aclnn_cts.core.expected import Block, OracleInput
from aclnn_cts.core.rounding import as_operand, blocks
from aclnn_cts.formula.definition import is_complex, output_shapes
from aclnn_cts.formula.expectation import FormulaOracle

_SLICE = 1 << 17
"""Elements of a slice. In smaller ones Python takes longer than arithmetic; larger ones leave the processor's cache."""

_Part: TypeAlias = tuple[slice, OracleInput]
"""Consecutive elements of all outputs, flat, and the call that has them alone."""


@dataclass(frozen=True, slots=True)
class SlicedOracle:
    """A formula's oracle of large calls (`core.expected.BlockOracle`).

    Of several forms that judge, the first alone is asked about ordinary elements: it says less than all together.
    The bound of an element is that of its slice: what underflows in others is no part of it.
    """

    oracle: FormulaOracle
    leading: int | str | None = None
    """Which leading axes slices are cut along: those before the axis that an attribute names, or all but the last -n.

    The first axis alone where a format has the channels last. A tensor with fewer dimensions than the outputs is not
    cut. None: the operator is elementwise.
    """

    def __call__(self, call: OracleInput) -> Iterator[Block | None]:
        """What conforms of one slice after another; None where the call must be looked at as a whole."""
        first = self.oracle.first
        careful = first.forms != self.oracle.forms
        for part in self._parts(call):
            if part is None:
                yield None
            else:
                place, question = part
                yield Block(place, first(question), partial(self.oracle, question) if careful else None)

    def _parts(self, call: OracleInput) -> Iterable[_Part | None]:
        shapes = {*output_shapes(call).values()}
        of_lists = any(isinstance(value, TensorList) for value in call.arguments.values())
        if len(shapes) > 1 or of_lists or any(is_complex(call, name) for name in call.arguments):
            return [None]
        [shape] = shapes
        if self.leading is None:
            alike = all(tensor.shape == shape for tensor in call.tensors.values())
            count = len(shape) if alike and not self._depends_on_count(call) else 0
        else:
            count = _axes(call, self.leading, len(shape))
        return _places(call, shape, count) if count else [None]

    def _depends_on_count(self, call: OracleInput) -> bool:
        """Whether an element of two has another value than the same one of three, as in a mean."""
        two, three = (self.oracle.first(_uniform(call, count)) for count in (2, 3))
        return any(not np.array_equal(two[name].value[:2], three[name].value[:2], equal_nan=True) for name in two)


def _axes(call: OracleInput, leading: int | str, rank: int) -> int:
    """How many leading axes the slices of a call are cut along."""
    if isinstance(leading, str):
        return call.integer(leading) % rank if rank else 0
    tensors = (value for value in call.arguments.values() if isinstance(value, Tensor))
    channels_last = any(tensor.format.startswith("N") and tensor.format.endswith("C") for tensor in tensors)
    return 1 if channels_last else max(rank + leading, 0)


def _places(call: OracleInput, shape: tuple[int, ...], count: int, *, axis: int = 0, start: int = 0) -> Iterator[_Part]:
    """Some places of the first axis after others; of one place alone those of the next axis, where it is a block."""
    each = max(math.prod(tensor.shape[axis + 1 :]) for tensor in call.tensors.values() if tensor.ndim == len(shape))
    elements = math.prod(shape[axis + 1 :])
    for place in blocks(shape[axis], each=each, most=_SLICE):
        part, first = _cut(call, axis, place, len(shape)), start + place.start * elements
        if place.stop - place.start == 1 and axis + 1 < count:
            yield from _places(part, shape, count, axis=axis + 1, start=first)
        else:
            tensors = {name: as_operand(tensor) for name, tensor in part.tensors.items()}
            yield slice(first, start + place.stop * elements), msgspec.structs.replace(part, tensors=tensors)


def _cut(call: OracleInput, axis: int, place: slice, rank: int) -> OracleInput:
    """A call with some places of an axis, of those tensors that are not broadcast along it."""
    index = (slice(None),) * axis + (place,)

    def cut(value: object) -> object:
        if not isinstance(value, Tensor) or len(value.shape) != rank or value.shape[axis] == 1:
            return value
        size = place.stop - place.start
        return msgspec.structs.replace(value, shape=(*value.shape[:axis], size, *value.shape[axis + 1 :]))

    tensors = {
        name: tensor[index] if tensor.ndim == rank and tensor.shape[axis] > 1 else tensor
        for name, tensor in call.tensors.items()
    }
    arguments: Mapping[str, Any] = {name: cut(value) for name, value in call.arguments.items()}
    return msgspec.structs.replace(call, tensors=tensors, arguments=arguments)


def _uniform(call: OracleInput, count: int) -> OracleInput:
    """A call with so many equal elements: of integers 1, else a number between 0 and 1, another one for each tensor."""
    tensors = {
        name: as_operand(np.ones(count, tensor.dtype))
        if tensor.dtype.kind in "biu"
        else np.full(count, (number + 1) / (len(call.tensors) + 2))
        for number, (name, tensor) in enumerate(call.tensors.items())
    }
    return _with_elements(call, tensors, count)


def _with_elements(call: OracleInput, tensors: Mapping[str, NDArray[Any]], size: int) -> OracleInput:
    """A call with other tensors, each flat with so many elements."""
    arguments = {
        name: msgspec.structs.replace(value, shape=(size,)) if isinstance(value, Tensor) else value
        for name, value in call.arguments.items()
    }
    return msgspec.structs.replace(call, tensors=tensors, arguments=arguments)
