"""aclnnConvolutionBackward: the gradients of a convolution of 1 to 3 dimensions, or of a transposed one.

A convolution leads from a wide array b to a narrow one m, group by group: m[o, u] = sum_{c, k} w[o, c, k] b[c, v] with
v = u stride - padding + k dilation. A transposed one leads the other way by the same weights. Implementations leave out
what lies in the padding, or multiply its zeros. Those that begin at the elements of b multiply zeros where no window
meets one. These are the forms of the gradients, which decide what inf and nan require.
"""

import functools
import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Formula, Operator

_MOST_MEETINGS = 1 << 22
"""Elements of the wide array times taps and narrow channels: more would not fit into memory."""

Sizes: TypeAlias = tuple[int, ...]
Cells: TypeAlias = "NDArray[np.int64]"


class _Way(NamedTuple):
    """How windows lie in the wide array: an item a dimension."""

    kernel: Sizes
    stride: Sizes
    before: Sizes
    dilation: Sizes


def _way(weight: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> _Way:
    """Of four paddings, those of a dimension stand together: in front of it and behind it."""
    before = padding[::2] if len(padding) > len(stride) else padding
    return _Way(weight[2:], tuple(stride), tuple(before), tuple(dilation))


@functools.lru_cache(maxsize=64)
def _windows(way: _Way, wide: Sizes, narrow: Sizes) -> Cells:
    """(narrow, taps): the element of the wide array that each tap of each window meets; -1 in the padding."""
    places = [
        np.arange(count)[:, None] * stride - before + np.arange(kernel) * dilation
        for count, kernel, stride, before, dilation in zip(narrow, *way, strict=True)
    ]
    return _joined(places, wide)


@functools.lru_cache(maxsize=64)
def _meetings(way: _Way, wide: Sizes, narrow: Sizes) -> Cells:
    """(wide, taps): the window that meets each element by each tap; -1 where there is none."""
    places = []
    for size, count, kernel, stride, before, dilation in zip(wide, narrow, *way, strict=True):
        steps = np.arange(size)[:, None] + before - np.arange(kernel) * dilation
        places.append(np.where((steps % stride == 0) & (steps < count * stride), steps // stride, -1))
    return _joined(places, narrow)


def _joined(places: list[Cells], sizes: Sizes) -> Cells:
    """Places (from, tap) of several dimensions as cells (all from, all taps) of an array of these sizes."""
    rank = len(sizes)
    cells, inside = np.zeros((1,) * (2 * rank), np.int64), np.ones((1,) * (2 * rank), np.bool_)
    for axis, (place, size) in enumerate(zip(places, sizes, strict=True)):
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = place.shape
        one = place.reshape(shape)
        cells, inside = cells * size + one, inside & (one >= 0) & (one < size)
    counts = zip(*[place.shape for place in places], strict=True)
    found: Cells = np.where(inside, cells, -1).reshape(*[math.prod(count) for count in counts])
    return found


def _cells(table: Cells, shape: Sizes) -> Cells:
    """The table's cells in every plane of an array (N, groups, channels, elements)."""
    *lead, size = shape
    planes = np.arange(math.prod(lead), dtype=np.int64).reshape(*lead, 1, 1) * size
    return np.where(table < 0, -1, planes + table)


def _taken(f: F, array: Array, table: Cells, *, zeros: bool) -> Array:
    """The table's elements of every plane; outside of the array there is nothing, or there are `zeros` to multiply."""
    if zeros:
        *lead, size = array.shape
        array, table = f.concat([array, f.lift(np.zeros((*lead, 1)))], 3), np.where(table < 0, size, table)
    found: Array = f.take(array, _cells(table, array.shape))
    return found


class _Parts(NamedTuple):
    """Both arrays as (N, groups, channels of a group, elements), and the weights (groups, narrow, wide, taps)."""

    b: Array
    m: Array
    w: Array
    way: _Way
    sizes: tuple[Sizes, Sizes]
    """Of both arrays' elements."""

    def windows(self) -> Cells:
        """Where each window's taps meet b."""
        return _windows(self.way, *self.sizes)


def _parts(
    wide: Array, narrow: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> _Parts:
    (of_narrow, of_wide, *kernel), sizes = weight.shape, (wide.shape[2:], narrow.shape[2:])
    return _Parts(
        wide.reshape(wide.shape[0], groups, of_wide, math.prod(sizes[0])),
        narrow.reshape(narrow.shape[0], groups, of_narrow // groups, math.prod(sizes[1])),
        weight.reshape(groups, of_narrow // groups, of_wide, math.prod(kernel)),
        _way(weight.shape, stride, padding, dilation),
        sizes,
    )


def _narrowed(f: F, parts: _Parts, *, zeros: bool = False) -> Array:
    """The convolution."""
    y: Array = f.einsum("ngcpt,goct->ngop", _taken(f, parts.b, parts.windows(), zeros=zeros), parts.w)
    return y


def _widened(f: F, parts: _Parts) -> Array:
    """The transposed convolution."""
    products = f.einsum("ngop,goct->ngcpt", parts.m, parts.w)
    y: Array = f.scatter_add(products, _cells(parts.windows(), parts.b.shape), parts.b.shape)
    return y


def _by_windows(f: F, parts: _Parts, *, transposed: bool, zeros: bool) -> tuple[Array, Array]:
    """The gradients of input and weight; with `zeros`, what lies in the padding is multiplied."""
    of_input = _narrowed(f, parts, zeros=zeros) if transposed else _widened(f, parts)
    return of_input, f.einsum("ngcpt,ngop->goct", _taken(f, parts.b, parts.windows(), zeros=zeros), parts.m)


def _by_elements(f: F, parts: _Parts, *, transposed: bool) -> tuple[Array, Array]:
    """The same from the elements of b."""
    b, m, w, way, sizes = parts
    meetings = _meetings(way, *sizes)
    met = _taken(f, m, meetings, zeros=True)
    if transposed:
        of_input = f.scatter_add(f.einsum("ngcq,goct->ngoqt", b, w), _cells(meetings, m.shape), m.shape)
    else:
        of_input = f.einsum("ngoqt,goct->ngcq", met, w)
    return of_input, f.einsum("ngcq,ngoqt->goct", b, met)


def _form(*, zeros: bool | None) -> Formula:
    """By windows, or (None) by elements where there are not too many of them."""

    def backward(  # noqa: PLR0913 - the parameters of the prototype
        f: F, gradOutput: Array, input: Array, weight: Array, *, stride: Sizes, padding: Sizes, dilation: Sizes,
        transposed: bool, groups: int,
    ) -> Outputs:  # fmt: skip
        wide, narrow = (gradOutput, input) if transposed else (input, gradOutput)
        parts = _parts(wide, narrow, weight, stride, padding, dilation, groups)
        meetings = math.prod(parts.m.shape[:3]) * parts.b.shape[3] * parts.w.shape[3]
        if zeros is None and meetings <= _MOST_MEETINGS:
            of_input, of_weight = _by_elements(f, parts, transposed=transposed)
        else:
            of_input, of_weight = _by_windows(f, parts, transposed=transposed, zeros=zeros is not False)
        of_bias = gradOutput.sum((0, *range(2, gradOutput.ndim)))
        shaped = of_input.reshape(*input.shape), of_weight.reshape(*weight.shape)
        return {"gradInput": shaped[0], "gradWeight": shaped[1], "gradBias": of_bias}

    return backward


def _forward(  # noqa: PLR0913 - as above
    f: F, input: Array, weight: Array, bias: Array | None, *, stride: Sizes, padding: Sizes, dilation: Sizes,
    transposed: bool, groups: int, gradOutput: Sizes,
) -> Outputs:  # fmt: skip
    # The other array is none yet: its shape alone counts.
    other = f.lift(np.zeros(gradOutput))
    wide, narrow = (other, input) if transposed else (input, other)
    parts = _parts(wide, narrow, weight, stride, padding, dilation, groups)
    y = (_widened(f, parts) if transposed else _narrowed(f, parts)).reshape(*gradOutput)
    return {"y": y if bias is None else y + bias.reshape(-1, *[1] * (input.ndim - 2))}


WRT = {"gradInput": "input", "gradWeight": "weight", "gradBias": "bias"}
DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt=WRT)
FORMULA = Operator.of(_form(zeros=False), _form(zeros=True), _form(zeros=None), derivative=DERIVATIVE, adds_zeros=True)
