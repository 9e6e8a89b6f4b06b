r"""aclnnSoftmaxBackward: the gradient of softmax along `dim`.

With y = `output` and g = `gradOutput`, for every slice along `dim` of n elements:

    out[i] = y[i] g[i] - y[i] s,    s = sum_j y[j] g[j]

y need not be the result of a softmax. The document's formula is this one; an implementation may as well evaluate
y (g - s).

Error terms, with u the unit roundoff of the accumulation format, M = sum_j |y[j] g[j]| and gamma_k = k u / (1 - k u)
(Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed.): the sum of n products in any order is off by at
most gamma_n M (chapter 3, inner products).

- y g - y s: y g meets its own product and the subtraction, y s the n roundings of s, a product and the subtraction.
- y (g - s): g meets the subtraction and the product, s the n roundings of s, the subtraction and the product.

Roundings of roundings add up (`judgement.model.gamma`), so both are off by at most

    gamma_2 |y[i] g[i]| + gamma_{n+2} |y[i]| M.

A fused multiply-add leaves roundings out and stays within it.

Underflow (Higham, chapter 2: it adds an absolute error to the relative one): n products and n - 1 additions of s, whose
errors are multiplied by y, two products and a subtraction. Where y or g hold subnormal numbers, loading them may be
an underflow too: 2 n in s, multiplied by y and the other factor, and those of y[i] and of g[i], multiplied by
|g[i]| + M and by y[i].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.expected import Block, ErrorTerm, Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS, as_operand, blocks
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._special_values import FLOAT_NORMAL, Form, finite_part, loads_may_underflow, settle

_ONE = np.array(1.0).view(np.int64)[()]


def expected(call: OracleInput) -> Expected:
    """The gradient `out`, of the shape of `gradOutput`, rank 0 included."""
    y, g = _lines(call, "output"), _lines(call, "gradOutput")
    with np.errstate(all="ignore"):
        loads = _loads_may_underflow(call, y, g)
        return _expected_of_lines(call, y, g, call.tensors["output"].shape, loads=loads)


def _expected_of_lines(call: OracleInput, y: Float64, g: Float64, shape: tuple[int, ...], *, loads: bool) -> Expected:
    unsettled = None
    with np.errstate(all="ignore"):
        known = _known(y, g, loads=loads)
        if not known.finite:
            value, unsettled = settle(_expanded(1), _factored(1), operands=(y, g))
            # A nan stays nan whatever else overflows.
            known = _known(finite_part(y), finite_part(g), loads=loads)
            known = replace(known, value=value, partial=np.where(np.isnan(value), 0.0, np.asarray(known.partial)))
            unsettled = unsettled.reshape(shape)
        return {"out": _stated(call, known, shape, unsettled=unsettled, loads=loads)}


def expected_blocks(call: OracleInput) -> Iterator[Block]:
    """The same of some slices after others."""
    y, g = _lines(call, "output"), _lines(call, "gradOutput")
    each = y.shape[1] * y.shape[2]
    places = list(blocks(y.shape[0], each=each))
    with np.errstate(all="ignore"):
        loads = any(_loads_may_underflow(call, as_operand(y[place]), as_operand(g[place])) for place in places)
        for place in places:
            own = as_operand(y[place]), as_operand(g[place])
            known = _known(*own, loads=loads, reach=bool(call.lattices))
            shape = (known.value.size,)
            careful = partial(_expected_of_lines, call, *own, shape, loads=loads)
            flat = slice(place.start * each, place.stop * each)
            if known.finite:
                yield Block(flat, {"out": _stated(call, known, shape, loads=loads)}, careful)
            else:
                yield Block(flat, careful())


def _lines(call: OracleInput, name: str) -> Float64:
    """A tensor with `dim` in the middle of three dimensions."""
    tensor: Float64 = call.tensors[name]
    shape = tensor.shape or (1,)
    dim = range(len(shape))[call.integer("dim")]
    return tensor.reshape(math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]))


def _loads_may_underflow(call: OracleInput, y: Float64, g: Float64) -> bool:
    """Whether an operand holds a number below FLOAT's normal range; no FLOAT16 tensor does, and no coarse lattice."""
    sizes: dict[str, Float64] = {}
    for name, operand in (("output", y), ("gradOutput", g)):
        tensor = call.arguments.get(name)
        form = BINARY_FORMATS.get(tensor.dtype) if isinstance(tensor, Tensor) else None
        if form is None or form.smallest_subnormal < FLOAT_NORMAL:
            sizes[name] = np.abs(operand)
    return loads_may_underflow(sizes, call.lattices)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of every element of a result."""

    value: Float64
    magnitude: Float64
    """|y[i] g[i]|."""
    size: Float64
    """|y[i]| M."""
    scale: Float64
    """What an underflow is multiplied by."""
    partial: Float64 | None
    """The largest of: a partial sum of s, |g - s|, and the two terms of the result."""
    length: int
    finite: bool


def _known(y: Float64, g: Float64, *, loads: bool, reach: bool = True) -> _Known:
    """All of it, the partial sums with `reach` alone. `loads`: loading an operand may be an underflow.

    `finite` is false where an input or a sum is not.
    """
    product = y * g
    magnitude = np.abs(product)
    mass = np.add.reduce(magnitude, axis=1, keepdims=True)
    value = y * np.add.reduce(product, axis=1, keepdims=True)
    np.subtract(product, value, out=value)
    size = np.abs(y)
    # By bits, which NumPy compares several times as fast: no size is negative.
    scale: Float64 = np.maximum(size.view(np.int64), _ONE).view(np.float64)
    partial = None
    if reach or loads:
        size_of_g = np.abs(g)
        difference = np.add(size_of_g, mass, out=product)
    if reach:
        partial = difference * scale
    if loads:
        largest = np.maximum.reduce(np.maximum(size, size_of_g), axis=1, keepdims=True)
        scale *= np.maximum(largest, 1.0)
        np.maximum(scale, difference, out=scale)
    size *= mass
    finite = math.isfinite(np.add.reduce(mass, axis=None))
    return _Known(value, magnitude, size, scale, partial, length=y.shape[1], finite=finite)


def _stated(
    call: OracleInput,
    known: _Known,
    shape: tuple[int, ...],
    *,
    loads: bool,
    unsettled: NDArray[np.bool_] | None = None,
) -> ExpectedOutput:
    return ExpectedOutput(
        value=known.value.reshape(shape),
        terms=(
            ErrorTerm(kind="compute", count=2, magnitude=known.magnitude.reshape(shape)),
            ErrorTerm(kind="compute", count=known.length + 2, magnitude=known.size.reshape(shape)),
        ),
        underflows=(2 * known.length + 2) * (2 if loads else 1),
        underflow_scale=known.scale.reshape(shape),
        partial=None if known.partial is None else known.partial.reshape(shape),
        lattice=_lattice(call),
        open=unsettled,
    )


def exact(call: OracleInput, output: str, index: tuple[int, ...]) -> Fraction:
    """One element in rational arithmetic, by the Jacobian of softmax: sum_j y_j (delta_jk - y_k) g_j; finite inputs.

    For any y, and not for a softmax alone, that is y_k g_k - y_k sum_j y_j g_j, as the operator is defined.
    """
    y, g = call.tensors["output"], call.tensors["gradOutput"]
    if y.ndim == 0:
        y, g, index = y.reshape(1), g.reshape(1), (0,)
    axis = call.integer("dim") % y.ndim
    line = tuple(slice(None) if place == axis else position for place, position in enumerate(index))
    chosen = index[axis]
    pairs = enumerate(zip(y[line].tolist(), g[line].tolist(), strict=True))
    own = Fraction(float(y[index]))
    return sum((Fraction(a) * Fraction(b) * ((place == chosen) - own) for place, (a, b) in pairs), Fraction(0))


def _expanded(dim: int) -> Form:
    def form(y: NDArray[Any], g: NDArray[Any]) -> NDArray[Any]:
        product = y * g
        result: NDArray[Any] = product - y * product.sum(axis=dim, keepdims=True)
        return result

    return form


def _factored(dim: int) -> Form:
    def form(y: NDArray[Any], g: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = y * (g - (y * g).sum(axis=dim, keepdims=True))
        return result

    return form


def _lattice(call: OracleInput) -> float | None:
    """With y in the lattice a and g in b: y g lies in a b and y s in a a b, hence both in a b min(a, 1).

    Where y is not 0, |y| >= a, so that s and g - s fit a significand wherever `partial` does; where it is, out is 0.
    """
    a, b = call.lattices.get("output"), call.lattices.get("gradOutput")
    return None if a is None or b is None else a * b * min(a, 1.0)


def _dim(case: Case) -> int:
    """`dim` counted from the front."""
    dim, tensor = case.arguments["dim"], case.arguments["output"]
    if not isinstance(dim, int) or not isinstance(tensor, Tensor):
        raise TypeError(f"dim is {dim!r} and output {tensor!r}, not an integer and a tensor")
    return dim % max(len(tensor.shape), 1)


def _expanded_formula(f: F, gradOutput: Array, output: Array, dim: int) -> Outputs:
    product = output * gradOutput
    return {"out": product - output * product.sum(dim, keepdims=True)}


def _factored_formula(f: F, gradOutput: Array, output: Array, dim: int) -> Outputs:
    return {"out": output * (gradOutput - (output * gradOutput).sum(dim, keepdims=True))}


def _softmax(f: F, self: Array, dim: int) -> Outputs:
    power = f.exp(self - self.max(dim, keepdims=True))
    return {"output": power / power.sum(dim, keepdims=True)}


FORMULA = Operator.of(
    _expanded_formula,
    _factored_formula,
    derivative=Derivative(forward=_softmax, gradients={"gradOutput": "output"}, wrt={"out": "self"}, saved=("output",)),
)
