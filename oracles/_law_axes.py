"""Laws of operators that work item by item along a dimension, and the relations that laws are put together from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.law import (
    Draw,
    Law,
    LawCall,
    LawCheck,
    LawInput,
    LawOutput,
    Parameters,
    with_arguments,
    with_values,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension along which the operator works item by item, by tensor.

    Inputs that are not named are the same for every item. Outputs that are not named are sums over the items.
    """

    name: str
    tensors: Mapping[str, int]
    items: Mapping[str, int] = field(default_factory=dict)
    """Places in int arrays that hold the dimension's size."""

    def size(self, case: Case) -> int:
        """The dimension's size in a case."""
        name, axis = next(iter(self.tensors.items()))
        tensor = case.arguments[name]
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is {tensor!r}, not a tensor")
        return tensor.shape[axis]

    def taken(self, base: LawInput, places: NDArray[np.int64]) -> tuple[Case, Mapping[str, NDArray[Any]]]:
        """The base case with these items alone, in this order, and the contents that its inputs must have."""
        changes: dict[str, Any] = {}
        contents: dict[str, NDArray[Any]] = {}
        for name, axis in self.tensors.items():
            tensor = base.tensor(name)
            if name not in base.tensors:
                shape = list(tensor.shape)
                shape[axis] = len(places)
                changes[name] = (
                    tensor if tuple(shape) == tensor.shape else Tensor(tuple(shape), tensor.dtype, tensor.format)
                )
                continue
            values = base.tensors[name].take(places, axis=axis)
            contents[name] = values
            changes[name] = _moved(tensor, values)
        for name, place in self.items.items():
            numbers = base.case.arguments[name]
            if isinstance(numbers, tuple):
                changes[name] = (*numbers[:place], len(places), *numbers[place + 1 :])
        return with_arguments(base.case, changes), contents


def _moved(tensor: Tensor, values: NDArray[Any]) -> Tensor:
    """The tensor with other contents. What is computed from another parameter is computed from the moved one."""
    if tensor.data is not None and tensor.data.of is not None:
        if values.shape == tensor.shape:
            return tensor
        return Tensor(values.shape, tensor.dtype, tensor.format, data=tensor.data)
    return with_values(tensor, values)


def _as_meant(call: LawCall, contents: Mapping[str, NDArray[Any]]) -> bool:
    """Whether a call had the contents that its law meant: data computed anew may be rounded in another way."""
    return all(np.array_equal(call.tensors[name], values, equal_nan=True) for name, values in contents.items())


Axes: TypeAlias = "tuple[Axis, ...] | Callable[[Case], Sequence[Axis]]"
"""Dimensions, where a case decides which by its rank or attributes as a function of it."""


def _usable(axes: Axes, case: Case) -> list[Axis]:
    """Those with more than one item."""
    return [axis for axis in (axes(case) if callable(axes) else axes) if axis.size(case) > 1]


def _draw_axis(choose: Draw) -> Parameters:
    return {"axis": choose(0, 2**16), "at": choose(0, 2**32 - 1)}


def split(axes: Axes) -> Law:
    """The batch in two parts: their results side by side, or added where an output is a sum over the batch.

    Side by side: as for two results of one exact value. Added: at most e + e1 + e2 apart. Source: the operator's
    formula has no term with two items of the batch.
    """

    def parts(base: LawInput) -> tuple[Axis, NDArray[np.int64], NDArray[np.int64]]:
        found = _usable(axes, base.case)
        axis = found[base.parameters["axis"] % len(found)]
        size = axis.size(base.case)
        at = 1 + base.parameters["at"] % (size - 1)
        places = np.arange(size, dtype=np.int64)
        return axis, places[:at], places[at:]

    def calls(base: LawInput) -> tuple[Case, ...]:
        axis, first, second = parts(base)
        return base.case, axis.taken(base, first)[0], axis.taken(base, second)[0]

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        axis, first, second = parts(base)
        whole, *halves = done
        if not all(_as_meant(call, axis.taken(base, at)[1]) for call, at in zip(halves, (first, second), strict=True)):
            return
        for name, output in whole.outputs.items():
            pieces = [call.outputs[name] for call in halves]
            if name in axis.tensors:
                joined = _joined(pieces, axis.tensors[name])
                yield same(name, output, joined, f"the whole {axis.name}, and its two parts side by side")
            else:
                relation = f"the sum of two parts of the {axis.name}, and the whole"
                yield combined(name, tuple((1.0, piece) for piece in pieces), output, relation)

    return split_law(calls=calls, check=check, applies=lambda case: bool(_usable(axes, case)))


def split_law(
    *,
    calls: Callable[[LawInput], tuple[Case, ...]],
    check: Callable[[LawInput, Sequence[LawCall]], Iterator[LawCheck]],
    applies: Callable[[Case], bool],
) -> Law:
    """The law `split`, for an operator whose batch is no dimension; its calls read the parameter `at`."""
    return Law(
        id="split",
        en="a batch cut in two gives the same results as the whole",
        zh="把批切成两段分别计算，与整体计算结果一致",
        applies=applies,
        draw=_draw_axis,
        calls=calls,
        check=check,
    )


def _joined(pieces: Sequence[LawOutput], axis: int) -> LawOutput:
    def join(name: str) -> Any:  # noqa: ANN401 - arrays of several dtypes
        return np.concatenate([getattr(piece, name) for piece in pieces], axis=axis)

    return LawOutput(
        got=join("got"),
        distance=join("distance"),
        single=join("single"),
        judged=join("judged"),
        open=join("open"),
        roundoff=pieces[0].roundoff,
        output_roundoff=pieces[0].output_roundoff,
        repeatable=pieces[0].repeatable,
    )


def taken(output: LawOutput, places: NDArray[np.int64], axis: int) -> LawOutput:
    """The items of an output at some places of an axis, in that order."""
    return LawOutput(
        got=output.got.take(places, axis=axis),
        distance=output.distance.take(places, axis=axis),
        single=output.single.take(places, axis=axis),
        judged=output.judged.take(places, axis=axis),
        open=output.open.take(places, axis=axis),
        roundoff=output.roundoff,
        output_roundoff=output.output_roundoff,
        repeatable=output.repeatable,
    )


def permute(axes: Axes) -> Law:
    """Items in another order: their results in that order, and sums over them unchanged.

    Both sides have one exact value. Source: the operator's formula names no item by its number.
    """

    def chosen(base: LawInput) -> tuple[Axis, NDArray[np.int64]]:
        found = _usable(axes, base.case)
        axis = found[base.parameters["axis"] % len(found)]
        size = axis.size(base.case)
        places = shuffled(size, base.parameters["at"])
        if (places == np.arange(size)).all():
            places = places[::-1].copy()
        return axis, places

    def calls(base: LawInput) -> tuple[Case, ...]:
        axis, places = chosen(base)
        return base.case, axis.taken(base, places)[0]

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        axis, places = chosen(base)
        if not _as_meant(done[1], axis.taken(base, places)[1]):
            return
        for name, output in done[0].outputs.items():
            moved = taken(output, places, axis.tensors[name]) if name in axis.tensors else output
            yield same(name, moved, done[1].outputs[name], f"the {axis.name} in one order, and in another")

    return Law(
        id="permute",
        en="rows and channels in another order give the same results in that order",
        zh="打乱行或通道的顺序，结果只随之换序",
        applies=lambda case: bool(_usable(axes, case)),
        draw=_draw_axis,
        calls=calls,
        check=check,
    )


def gamma64(count: int) -> float:
    """gamma_count of float64, for counts far below 2^53."""
    product = count * 2.0**-53
    return product / (1.0 - product)


def key(draw: Draw) -> Parameters:
    """The one choice of a law that shuffles: what the shuffling starts from."""
    return {"key": draw(0, 2**32 - 1)}


def shuffled(count: int, start: int) -> NDArray[np.int64]:
    """A permutation of `count` places that depends on `start` alone (Fisher and Yates, by a 64-bit congruence)."""
    places = list(range(count))
    state = (start * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64
    for last in range(count - 1, 0, -1):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        other = (state >> 33) % (last + 1)
        places[last], places[other] = places[other], places[last]
    return np.array(places, dtype=np.int64)


def all_finite(base: LawInput, *names: str) -> bool:
    """Whether the named inputs (all of them where none is named) hold neither inf nor nan."""
    return all(bool(np.isfinite(base.tensors[name]).all()) for name in names or tuple(base.tensors))


def same(output: str, left: LawOutput, right: LawOutput, relation: str) -> LawCheck:
    """Two results of one exact value: at most e1 + e2 apart, and equal where each has one conforming result."""
    bound = np.where(left.single & right.single, 0.0, left.distance + right.distance)
    bound = np.where(left.judged & right.judged, bound, np.inf)
    return LawCheck(output=output, left=left.got, right=right.got, bound=bound, relation=relation)


def combined(output: str, terms: Sequence[tuple[float, LawOutput]], right: LawOutput, relation: str) -> LawCheck:
    """sum_i c_i y_i against y, where the exact results obey: at most sum_i |c_i| e_i + e apart."""
    with np.errstate(all="ignore"):
        left = np.zeros(right.got.shape)
        bound = right.bound
        size = np.abs(right.got)
        for factor, term in terms:
            left = left + factor * term.got
            bound = bound + abs(factor) * term.bound
            size = size + np.abs(factor * term.got)
        bound = np.where(bound > 0.0, bound + gamma64(2 * len(terms)) * size, bound)
    return LawCheck(output=output, left=left, right=right.got, bound=bound, relation=relation)


def totals(values: Float64, axis: int) -> Float64:
    """The sums along an axis, each rounded once."""
    lines = np.moveaxis(values, axis, -1)
    sums = np.empty(lines.shape[:-1])
    for index in np.ndindex(*sums.shape):
        line = lines[index]
        sums[index] = math.fsum(line.tolist()) if np.isfinite(line).all() else line.sum()
    return sums
