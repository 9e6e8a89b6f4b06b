"""Calls that training runs and published networks make, as valid cases within a budget of elements.

`specs/real/STEM.jsonl` has an operator's calls as a case file without data. A call keeps its attributes, ratios and
layouts, and those of its dtypes that the product has. Where it is too large its leading axes shrink first, each as
little as it must; the first one to 2 as long as the second can shrink.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from aclnn_cts.core.case import (
    Case,
    Origin,
    Scalar,
    Tensor,
    contiguous_strides,
    number,
    owner,
    scalar_of,
    with_arguments,
)
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.configuration import DATA_KINDS, Drawing
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import first_broken
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds import CaseChange
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import recorded_lines

QUICK_ELEMENTS = 1 << 16
"""Most elements of a tensor of a quick plan's calls."""
STANDARD_ELEMENTS = 1 << 18
"""The same of the longer profiles."""

_SMALL = 160
"""Elements of a drawing of which a call takes the data alone."""
_AFTER_SECOND = 1.5
"""Rank of the last step of the first axis, among axes."""
_ALIGNED = 16
"""Elements of a block of the devices: a size that is a multiple of it, and stays larger, stays a multiple."""


def recorded_calls(spec: Spec) -> Iterator[Case]:
    """The calls of an operator as they were made, most widespread first.

    A spec of one's own, or of another edition, may have the file's name and another prototype: it has none of them.
    """
    for place, line in enumerate(recorded_lines(spec.stem), 1):
        call = case_from_json(msgspec.json.decode(line), where=f"specs/real/{spec.stem}.jsonl:{place}")
        if call.operator == spec.operator and list(call.arguments) == [item.name for item in spec.parameters]:
            yield call


def real_cases(sampler: Sampler, *, seed: int, first: int, count: int, heavy: bool = False) -> Iterator[Case]:
    """Cases `first` to `first + count - 1` of a plan: each recorded call that the target can have once, shuffled."""
    found = _shuffled(sampler, seed, STANDARD_ELEMENTS if heavy else QUICK_ELEMENTS)
    for place in range(first, first + count):
        if (case := found.at(place)) is None:
            return
        yield case


class _Shuffled:
    """The calls of a plan in an order of the seed, made as they are asked for."""

    def __init__(self, sampler: Sampler, seed: int, most: int) -> None:
        self._made: list[Case] = []
        self._rest = self._cases(sampler, seed, most)

    def at(self, place: int) -> Case | None:
        """The call at a place; None where there are fewer."""
        while len(self._made) <= place:
            case = next(self._rest, None)
            if case is None:
                return None
            self._made.append(case)
        return self._made[place]

    @staticmethod
    def _cases(sampler: Sampler, seed: int, most: int) -> Iterator[Case]:
        name = f"{sampler.spec.operator}/{sampler.target.product}/real"
        left, order = list(recorded_calls(sampler.spec)), StreamChoices(seed, name, 0)
        for place in range(len(left)):
            call = left.pop(order.integer(0, len(left) - 1))
            case = real_case(sampler, call, StreamChoices(seed, name, place + 1), most=most)
            if case is not None:
                yield case


_shuffled = functools.lru_cache(maxsize=2)(_Shuffled)


def real_case(sampler: Sampler, call: Case, choices: StreamChoices, *, most: int) -> Case | None:
    """A recorded call with data, its tensors of at most `most` elements; None where the target cannot have it."""
    row = _fitting_row(sampler, call)
    drawing = recover_drawing(sampler, _contiguous(sampler, call, row))
    if drawing is None:
        return None
    other = sampler.draw(choices, budget=_SMALL, row=row, data_kind=choices.pick(DATA_KINDS[:2]))
    drawing = msgspec.structs.replace(drawing, data=other.data, seed=other.seed)
    scaled = _scaled(sampler, drawing, most)
    if scaled is None:
        return None
    case = _laid_out(sampler, scaled, call)
    if first_broken(sampler.spec, case):
        return None
    pairs = zip(case.tensors(), call.tensors(), strict=True)
    is_whole = all(item.shape == tensor.shape for (_, item), (_, tensor) in pairs)
    source = call.origin.source if is_whole else f"{call.origin.source}; scaled"
    return msgspec.structs.replace(case, origin=Origin("valid", source=source))


def _fitting_row(sampler: Sampler, call: Case) -> int:
    """The number of the row of dtypes that most tensors of a call have: a product may lack the others."""
    tensors = call.tensors()
    rows = enumerate(sampler.dtype_rows)
    return -max((sum(row[owner(name)] == item.dtype for name, item in tensors), -place) for place, row in rows)[1]


def _contiguous(sampler: Sampler, call: Case, row: int) -> Case:
    """A call for the sampler's target, with a row of dtypes and without layouts."""
    dtypes = sampler.dtype_rows[row]
    changes: dict[str, Tensor | Scalar] = {
        name: Tensor(item.shape, dtypes[owner(name)], item.format) for name, item in call.tensors()
    }
    for item in sampler.spec.parameters:
        value = call.arguments[item.name]
        if isinstance(value, Scalar):
            changes[item.name] = _scalar(value, sampler.dtypes_of(item, dtypes))
    return msgspec.structs.replace(with_arguments(call, changes), target=sampler.target)


def _scalar(value: Scalar, dtypes: Sequence[str]) -> Scalar:
    """The scalar in its own dtype where that is listed, else in the one that holds it best."""
    exact = number(value)
    listed = [value.dtype] if value.dtype in dtypes else dtypes
    return min((scalar_of(dtype, exact) for dtype in listed), key=lambda other: abs(number(other) - exact))


def _case_of(sampler: Sampler, drawing: Drawing, change: CaseChange) -> Case | None:
    """The case of a drawing with a change's names; None where these make no shape."""
    try:
        return sampler.case(drawing, change=change)
    except (*UNDEFINED, ArithmeticError, UsageError):
        return None


class _Size(NamedTuple):
    """A size of a change: a name, and the place in a run."""

    name: str
    place: int


class _Step(NamedTuple):
    """A change to a smaller size, its case, and the first axis of the largest tensor that is smaller."""

    axis: int
    change: CaseChange
    case: Case


def _scaled(sampler: Sampler, drawing: Drawing, most: int) -> Case | None:
    """The case of a drawing with leading sizes so small that every tensor is within the budget."""
    drawn = [draw.name for draw in sampler.spec.draws if draw.kind not in ("derived", "dtype")]
    change = CaseChange(text="", assign={name: drawing.names[name] for name in drawn})
    sizes = [
        _Size(name, place)
        for name in sampler.names.free_sizes()
        for place in range(len(change.assign[name]) if isinstance(change.assign[name], tuple) else 1)
    ]
    case = _case_of(sampler, drawing, change)
    if case is None:
        return None
    # Each step makes one size smaller; some need two, where a multiple of a block was kept, or the first axis at 2.
    for _ in range(3 * len(sizes) + 1):
        largest, elements = max(((name, tensor.numel) for name, tensor in case.tensors()), key=lambda item: item[1])
        if elements <= most:
            return case
        factor = most / elements
        ranked = [
            found
            for size in sizes
            if (found := _ranked_step(sampler, drawing, change, case, size, largest, factor)) is not None
        ]
        if not ranked:
            return None
        _, (_, change, case) = min(ranked, key=operator.itemgetter(0))
    return None


def _ranked_step(
    sampler: Sampler, drawing: Drawing, change: CaseChange, case: Case, size: _Size, largest: str, factor: float
) -> tuple[float, _Step] | None:
    """A step that makes a size smaller, after which others it comes; None where no valid call has it smaller.

    Training has several images or sequences in a call: the first axis keeps 2 as long as the second can shrink.
    """
    value = change.assign[size.name]
    now = value[size.place] if isinstance(value, tuple) else value
    new = max(math.floor(now * factor), 1)
    if now % _ALIGNED == 0 and new > _ALIGNED:
        new -= new % _ALIGNED
    step = _step(sampler, drawing, change, case, size, largest, new) if new < now else None
    if step is None or step.axis > 0 or new > 1:
        return None if step is None else (step.axis, step)
    pair = _step(sampler, drawing, change, case, size, largest, 2) if now > 2 else None
    return (_AFTER_SECOND, step) if pair is None else (0, pair)


def _step(
    sampler: Sampler, drawing: Drawing, change: CaseChange, case: Case, size: _Size, largest: str, new: int
) -> _Step | None:
    value = change.assign[size.name]
    changed: Any = new
    names = [size.name]
    if isinstance(value, tuple):
        changed = (*value[: size.place], new, *value[size.place + 1 :])
        # Runs that are equal stay equal: what is not broadcast in the call is not broadcast here.
        names = [name for name, same in change.assign.items() if same == value]
    smaller = CaseChange(text="", assign={**change.assign, **dict.fromkeys(names, changed)})
    found = _case_of(sampler, drawing, smaller)
    before, after = case.tensor(largest), None if found is None else found.tensor(largest)
    if found is None or before is None or after is None or len(after.shape) != len(before.shape):
        return None
    pairs = enumerate(zip(after.shape, before.shape, strict=True))
    axis = next((axis for axis, (then, now) in pairs if then < now), None)
    return None if axis is None or first_broken(sampler.spec, found) else _Step(axis, smaller, found)


def _laid_out(sampler: Sampler, case: Case, call: Case) -> Case:
    """The case with each tensor that need not be contiguous laid out as in the call."""
    changes = {
        name: _layout(tensor, small)
        for name, tensor in call.tensors()
        if tensor.strides is not None and name in sampler.strided and (small := case.tensor(name)) is not None
    }
    return with_arguments(case, changes)


def _layout(tensor: Tensor, small: Tensor) -> Tensor:
    """A tensor in the order of axes of another one, with its gaps scaled; contiguous where elements share memory."""
    strides = tensor.strides or contiguous_strides(tensor.shape)
    order = sorted(range(len(strides)), key=lambda axis: (-strides[axis], -tensor.shape[axis]))
    if not order or 0 in strides or 0 in small.shape:
        return small
    # The size of each axis in memory, gaps included; what lies behind the outermost one is not seen.
    whole = [tensor.shape[order[0]], *(strides[one] // strides[other] for one, other in itertools.pairwise(order))]
    step = strides[order[-1]]
    if any(size < tensor.shape[axis] for size, axis in zip(whole, order, strict=True)):
        return small
    storage = [
        small.shape[axis] + (size - tensor.shape[axis]) * small.shape[axis] // tensor.shape[axis]
        for size, axis in zip(whole, order, strict=True)
    ]
    storage[-1] *= step
    by_place = contiguous_strides(tuple(storage))
    placed = dict(zip(order, by_place, strict=True))
    placed[order[-1]] = step
    laid = tuple(placed[axis] for axis in range(len(strides)))
    if laid == contiguous_strides(small.shape):
        return small
    return msgspec.structs.replace(small, strides=laid, storage_shape=tuple(storage))
