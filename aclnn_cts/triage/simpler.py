"""Simpler arguments for a failing trial: contents first, then layouts, formats, modes and attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from aclnn_cts.core.case import Data, Tensor, owner
from aclnn_cts.core.delta_debugging import without_others
from aclnn_cts.core.dtypes import components
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.strict_json import spelled
from aclnn_cts.generate.contents import case_arrays
from aclnn_cts.speclang.model import Spec
from aclnn_cts.triage.attempts import Attempts

EXPLICIT = 64
"""Elements up to which data may become explicit values."""

_SIMPLE = (
    Data(recipe="zeros"),
    Data(recipe="constant", mean=1.0),
    Data(recipe="one_hot"),
    Data(recipe="integers", low=-1, high=1),
    Data(recipe="integers", low=-4, high=4),
)
"""Contents, simplest first."""


def shrink_values(attempts: Attempts, spec: Spec) -> None:
    """Contents: zeros, ones, one element, small integers; few elements become explicit and simple one by one."""
    inputs = spec.given_inputs(attempts.best.case)
    for name in inputs:
        tensor = attempts.best.case.tensor(name)
        if tensor is None or tensor.data is None or tensor.data in _SIMPLE[:1]:
            continue
        for data in _SIMPLE:
            if data == tensor.data or attempts.changed(spec, {name: msgspec.structs.replace(tensor, data=data)}):
                break
    for name in inputs:
        _explicit(attempts, spec, name)


def _explicit(attempts: Attempts, spec: Spec, name: str) -> None:
    tensor = attempts.best.case.tensor(name)
    if tensor is None or tensor.data is None or not 0 < tensor.numel <= EXPLICIT or tensor.data == _SIMPLE[0]:
        return
    try:
        made = case_arrays(attempts.best.case, [name])[name]
    except UsageError:
        return
    values = [_number(value) for value in components(made).reshape(-1).tolist()]

    def only(places: Sequence[int]) -> list[int | float | str]:
        return [values[place] if place in places else 0 for place in range(len(values))]

    values = only(
        without_others(
            [place for place, value in enumerate(values) if value],
            lambda places: attempts.changed(spec, {name: _with(tensor, only(places))}),
        )
    )
    for place, value in enumerate(values):
        for simple in _simpler(value):
            changed = [*values[:place], simple, *values[place + 1 :]]
            if attempts.changed(spec, {name: _with(tensor, changed)}):
                values = changed
                break


def _number(value: Any) -> int | float | str:  # noqa: ANN401 - an element
    if isinstance(value, bool | int):
        return int(value)
    value = float(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else spelled(value)


def _simpler(value: float | str) -> Iterator[int]:
    """Integers to stand for a value, simplest first."""
    if isinstance(value, str) or value in (0, 1):
        return
    yield 1
    if value not in (-1, 2) and abs(value) < 2**31 and round(value) not in (0, 1, value):
        yield round(value)


def _with(tensor: Tensor, values: Sequence[int | float | str]) -> Tensor:
    return msgspec.structs.replace(tensor, data=Data(values=tuple(values)))


def make_plain(attempts: Attempts, spec: Spec) -> None:
    """Layouts, formats, mode and attributes as an ordinary call has them."""
    case = attempts.best.case
    laid_out = {name: _contiguous(tensor) for name, tensor in case.tensors() if _contiguous(tensor) != tensor}
    if laid_out and not attempts.changed(spec, laid_out):
        for name, tensor in laid_out.items():
            attempts.changed(spec, {name: tensor})
    named = {
        name: msgspec.structs.replace(tensor, format="ND")
        for name, tensor in attempts.best.case.tensors()
        if tensor.format != "ND"
    }
    # Formats may have to be equal, and those of outputs may have to stay.
    inputs = {name: tensor for name, tensor in named.items() if owner(name) in spec.inputs}
    if named and not attempts.changed(spec, named) and not (inputs and attempts.changed(spec, inputs)):
        for name, tensor in named.items():
            attempts.changed(spec, {name: tensor})
    for item in spec.parameters:
        value = attempts.best.case.arguments.get(item.name)
        if item.role != "attribute" or isinstance(value, tuple) or not value:
            continue
        for plain in (False,) if isinstance(value, bool) else (0.0, 1.0) if isinstance(value, float) else (0, 1):
            if plain != value and attempts.changed(spec, {item.name: plain}):
                break


def _contiguous(tensor: Tensor) -> Tensor:
    return Tensor(tensor.shape, tensor.dtype, tensor.format, data=tensor.data)
