r"""aclnnConvTbcBackward: the gradients of a convolution over time with respect to input, weight and bias.

With the gradient of the output `self` (To, B, Co), `input` (T, B, Ci) and `weight` (L, Ci, Co), To = T + 2 pad + 1 - L,
and only those terms whose time index exists:

    gradInput[t, b, i]  = sum_{k, o} self[t + pad - k, b, o] weight[k, i, o]
    gradWeight[k, i, o] = sum_{u, b} input[u + k - pad, b, i] self[u, b, o]
    gradBias[o]         = sum_{u, b} self[u, b, o]

Where pad > L - 1 some rows of `self` see nothing but padding: they count in gradBias alone. The values of `bias` are
never used.

Error terms, with gamma_m = m u / (1 - m u) (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed.): n
products summed in any order are off by at most gamma_n times the sum of their absolute values (chapter 3,
inner products), n being the real number of terms,

- gradInput[t]: Co times the number of k with 0 <= t + pad - k < To;
- gradWeight[k]: B times the number of u with 0 <= u + k - pad < T;
- gradBias: To B terms without a product, gamma_{n-1} (chapter 4).

In gradInput and gradWeight both factors of each product are operands, rounded to the mode's format before. gradBias
is a sum of `self` as it is given: a mode rounds the operands of the matrix unit, and it needs none.

Underflow: n products and n - 1 additions; in gradBias a load for each term, and where the operands of products hold
numbers subnormal in FLOAT, a load of each, multiplied by the other factor.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ErrorTerm, Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._convolution import fit_a_stack, gradients, to_input, to_weight, with_sizes
from aclnn_cts.oracles._convolution_single import gradients_in_order
from aclnn_cts.oracles._exact import sum_of_products
from aclnn_cts.oracles._single_precision import Float32, forward_sum, single
from aclnn_cts.oracles._special_values import (
    FLOAT16_LARGEST,
    FLOAT16_NORMAL,
    FLOAT_NORMAL,
    finite_part,
    holds_subnormal,
    settle,
)

Counts = NDArray[np.int64]

_OPERANDS = ("self", "input", "weight")
"""In the order of the helpers' parameters. `bias` is never used."""


def expected(call: OracleInput) -> Expected:
    """The gradients `gradInput` (T, B, Ci), `gradWeight` (L, Ci, Co) and `gradBias` (Co)."""
    return expected_each([call])[0]


def expected_each(calls: Sequence[OracleInput]) -> list[Expected]:
    """The same of each of several calls that differ in the values of their tensors alone; small ones share a stack."""
    operands = [[call.tensors[name] for name in _OPERANDS] for call in calls]
    if len(calls) > 1 and not fit_a_stack(*operands[0]):
        return [expected(call) for call in calls]
    with np.errstate(all="ignore"):
        (_, sizes), (grads, xs, weights) = with_sizes(operands)
        if not math.isfinite(np.add.reduce(sizes, axis=None)):
            return [_special(calls[0], sizes[0])] if len(calls) == 1 else [expected(call) for call in calls]
        of_input, of_weight = gradients(grads, xs, weights, calls[0].integer("pad"))
        of_bias = np.add.reduce(grads, axis=(2, 3))
        return [
            _outputs(
                call,
                sizes[place],
                of_input=_Sum(of_input[0, place], of_input[1, place]),
                of_weight=_Sum(of_weight[0, place], of_weight[1, place]),
                of_bias=_Sum(of_bias[0, place], of_bias[1, place]),
            )
            for place, call in enumerate(calls)
        ]


def values(call: OracleInput) -> dict[str, Float64]:
    """The three gradients alone, of any operands, tap by tap: the formula's arrays are L times larger."""
    grad, x, weight = (call.tensors[name] for name in _OPERANDS)
    pad = call.integer("pad")
    with np.errstate(all="ignore"):
        return {
            "gradInput": to_input(grad, weight, x.shape[0], pad),
            "gradWeight": to_weight(grad, x, weight.shape[0], pad),
            "gradBias": np.add.reduce(grad, axis=(0, 1)),
        }


def exact(call: OracleInput, output: str, index: tuple[int, ...]) -> Fraction:
    """One element in rational arithmetic, by the chain rule through the forward operator; inputs must be finite.

    Forward: y[u, b, o] = bias[o] + sum_k sum_i x[u + k - pad, b, i] w[k, i, o]. Every place (u, b, o) at which the
    variable of the wanted element stands contributes self[u, b, o] times what stands beside it.
    """
    grad, x, weight = call.tensors["self"], call.tensors["input"], call.tensors["weight"]
    pad = call.integer("pad")
    left: list[float] = []
    right: list[float] = []
    for u in range(grad.shape[0]):
        if output == "gradBias":
            left += grad[u, :, index[0]].tolist()
            continue
        # Of time and tap one is the element's own, and u tells the other.
        k = index[0] if output == "gradWeight" else index[0] + pad - u
        time = u + k - pad
        if not (0 <= k < weight.shape[0] and 0 <= time < x.shape[0]):
            continue
        if output == "gradInput":
            left += grad[u, index[1]].tolist()
            right += weight[k, index[2]].tolist()
        else:
            left += grad[u, :, index[2]].tolist()
            right += x[time, :, index[1]].tolist()
    return sum_of_products(left) if output == "gradBias" else sum_of_products(left, right)


def benchmark(call: OracleInput) -> dict[str, Float32]:
    """The three gradients in FLOAT: gradInput by taps and channels, the others by times and batches, in order.

    Where plain loops would take longer than seconds there is gradBias alone.
    """
    grad, x, weight = (single(call.tensors[name]) for name in ("self", "input", "weight"))
    with np.errstate(all="ignore"):
        of_bias = forward_sum(grad.reshape(grad.shape[0] * grad.shape[1], grad.shape[2]), axis=0)[0]
        both = gradients_in_order(grad, x, weight, call.integer("pad"))
    of_input, of_weight = both or (None, None)
    found = {"gradInput": of_input, "gradWeight": of_weight, "gradBias": of_bias}
    return {name: value for name, value in found.items() if value is not None}


class _Sum(NamedTuple):
    """A gradient, whose elements are sums, and the same sums over absolute values."""

    value: Float64
    magnitude: Float64
    unsettled: NDArray[np.bool_] | None = None
    """Where inf and nan depend on the order of evaluation; None: all is finite."""

    @property
    def partial(self) -> Float64:
        """What intermediates reach; nan tells nothing of the finite terms beside it."""
        return self.magnitude if self.unsettled is None else np.where(np.isnan(self.value), 0.0, self.magnitude)


def _special(call: OracleInput, sizes: Float64) -> Expected:
    """The gradients where an operand is inf or nan, which a mode may also round to FLOAT16: to 0 or to inf.

    Products with padding may be left out, or made: inf times the zeros of padding is nan.
    """
    grad, x, weight = (call.tensors[name] for name in _OPERANDS)
    time, length, pad = x.shape[0], weight.shape[0], call.integer("pad")
    rounding = {"normal": FLOAT16_NORMAL, "largest": FLOAT16_LARGEST}
    of_input, input_open = settle(
        lambda s, w: to_input(s, w, time, pad),
        lambda s, w: to_input(_padded(s, length - 1), w, time, pad + length - 1),
        operands=(grad, weight),
        **rounding,
    )
    of_weight, weight_open = settle(
        lambda s, i: to_weight(s, i, length, pad),
        lambda s, i: to_weight(s, _padded(i, pad), length, 0),
        operands=(grad, x),
        **rounding,
    )
    of_bias = np.add.reduce(grad, axis=(0, 1))  # inf and nan come out as in every order
    grad_size, x_size, weight_size = (finite_part(np.abs(operand)) for operand in (grad, x, weight))
    return _outputs(
        call,
        finite_part(sizes),
        of_input=_Sum(of_input, to_input(grad_size, weight_size, time, pad), input_open),
        of_weight=_Sum(of_weight, to_weight(grad_size, x_size, length, pad), weight_open),
        of_bias=_Sum(of_bias, np.add.reduce(grad_size, axis=(0, 1)), np.zeros(of_bias.shape, np.bool_)),
    )


def _padded(operand: Float64, steps: int) -> Float64:
    return np.pad(operand, ((max(steps, 0), max(steps, 0)), (0, 0), (0, 0)))


def _outputs(call: OracleInput, sizes: Float64, *, of_input: _Sum, of_weight: _Sum, of_bias: _Sum) -> Expected:
    """The gradients with their error terms; `sizes`: the operands' absolute values, flat, where they are finite."""
    lattices = call.lattices
    grad, x, weight = (lattices.get(name) for name in _OPERANDS)
    loads = _loads(sizes, (grad, x, weight))
    out_time, batch, _ = of_grad = call.tensors["self"].shape
    taps, pairs = _counts(
        of_grad, len(of_input.value), len(of_weight.value), call.integer("pad"), 2 if loads is None else 4
    )
    return {
        "gradInput": _products(of_input, taps, loads=loads, lattice=_product(grad, weight)),
        "gradWeight": _products(of_weight, pairs, loads=loads, lattice=_product(x, grad)),
        "gradBias": _bias(of_bias, out_time * batch, grad),
    }


def _loads(sizes: Float64, lattices: Iterable[float | None]) -> float | None:
    """What the underflow of an operand's load is multiplied by at most; None where no load can underflow."""
    if all(lattice is not None and lattice >= FLOAT_NORMAL for lattice in lattices) or not holds_subnormal(sizes):
        return None
    return max(1.0, float(sizes.max(initial=0.0)))


def _products(
    gradient: _Sum, counts: tuple[Counts, Counts], *, loads: float | None, lattice: float | None
) -> ExpectedOutput:
    """A gradient whose elements are sums of products of two operands: how many (`_counts`), a slice of axis 0."""
    count, underflows = counts
    magnitude = gradient.magnitude
    return ExpectedOutput(
        value=gradient.value,
        terms=(
            ErrorTerm(kind="operand", count=2, magnitude=magnitude),
            ErrorTerm(kind="compute", count=count, magnitude=magnitude),
        ),
        underflows=underflows,
        underflow_scale=1.0 if loads is None else loads,
        partial=gradient.partial,
        lattice=lattice,
        open=gradient.unsettled,
    )


def _bias(gradient: _Sum, terms: int, lattice: float | None) -> ExpectedOutput:
    """The output gradBias, of sums of so many terms."""
    return ExpectedOutput(
        value=gradient.value,
        terms=(ErrorTerm(kind="compute", count=max(terms - 1, 0), magnitude=gradient.magnitude),),
        underflows=max(2 * terms - 1, 0),
        partial=gradient.partial,
        lattice=lattice,
    )


@functools.lru_cache(maxsize=256)
def _counts(
    of_grad: tuple[int, int, int], time: int, length: int, pad: int, each: int
) -> tuple[tuple[Counts, Counts], tuple[Counts, Counts]]:
    """How many products make each slice of gradInput and of gradWeight, and how many operations may underflow there.

    The former are the taps k that reach each time t, times Co, and the times u that meet each tap k, times B. `each` is
    how many operations there are for a product, itself and an addition among them. Kept, since the operands' intervals
    (`judgement.operands`) are asked about beside the operands.
    """
    out_time, batch, channels = of_grad
    # To integers each: the k with 0 <= t + pad - k < To, and the times u + k - pad of all u.
    taps = channels * _overlaps(np.arange(time) + (pad + 1 - out_time), out_time, length)
    pairs = batch * _overlaps(np.arange(length) - pad, out_time, time)
    found = []
    for products in (taps, pairs):
        count = products[:, None, None]
        underflows = np.maximum(each * count - 1, 0)
        count.flags.writeable = underflows.flags.writeable = False
        found.append((count, underflows))
    return found[0], found[1]


def _overlaps(first: Counts, number: int, limit: int) -> Counts:
    """How many of `number` integers from each `first` on lie from 0 to `limit` - 1."""
    counts: Counts = np.maximum(np.minimum(first + number, limit) - np.maximum(first, 0), 0)
    return counts


def _product(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left * right


def _scattered(f: F, self: Array, input: Array, weight: Array, pad: int) -> Outputs:
    length = weight.shape[0]
    # Steps before and after these meet nothing but padding.
    first = max(pad - length + 1, 0)
    seen = self[first : input.shape[0] + pad]
    cells = _cells(input.shape, seen.shape[0], range(first - pad, first - pad + length))
    products = f.einsum("ubo,kio->ubki", seen, weight)
    return {
        "gradInput": f.scatter_add(products, cells, input.shape),
        "gradWeight": f.einsum("ubki,ubo->kio", f.take(input, cells), seen),
        "gradBias": self.sum((0, 1)),
    }


def _gathered(f: F, self: Array, input: Array, weight: Array, pad: int) -> Outputs:
    gathered = f.take(self, _cells(self.shape, input.shape[0], range(pad, pad - weight.shape[0], -1)))
    return {
        "gradInput": f.einsum("tbko,kio->tbi", gathered, weight),
        "gradWeight": f.einsum("tbko,tbi->kio", gathered, input),
        "gradBias": self.sum(1).sum(0),
    }


def _convolution(f: F, input: Array, weight: Array, bias: Array, pad: int) -> Outputs:
    length = weight.shape[0]
    cells = _cells(input.shape, input.shape[0] + 2 * pad + 1 - length, range(-pad, length - pad))
    return {"y": f.einsum("ubki,kio->ubo", f.take(input, cells), weight) + bias}


@functools.lru_cache(maxsize=8)
def _cells(shape: tuple[int, int, int], steps: int, offsets: range) -> NDArray[np.int64]:
    """The places (u, b, k, c) in an array (T, B, C) that step u meets with tap k: those of time u + offsets[k].

    Kept, since a formula is evaluated several times for a call.
    """
    time, batch, channels = shape
    times = np.arange(steps)[:, None] + np.array(offsets, np.int64)
    times = np.where((times >= 0) & (times < time), times, -1).reshape(steps, 1, len(offsets), 1)
    return times * (batch * channels) + np.arange(batch * channels).reshape(batch, 1, channels)


FORMULA = Operator.of(
    _scattered,
    _gathered,
    derivative=Derivative(
        forward=_convolution,
        gradients={"self": "y"},
        wrt={"gradInput": "input", "gradWeight": "weight", "gradBias": "bias"},
    ),
)
