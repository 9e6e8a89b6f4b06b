"""Recurrent units backwards: the cells of both directions are stacked, and each has its time in the order of its steps.

Arrays of a layer are [directions, time, batch, size]. `inner` are the gradients of what weight_ih gives before the
activations, and `outer` those of what weight_hh gives. `x` is the layer's input. `before` has the hidden states before
the steps.
"""

from collections.abc import Sequence

from aclnn_cts.formula.array import Array, F

_BACK = slice(None, None, -1)


def own_time(f: F, arrays: Sequence[Array]) -> Array:
    """Arrays [time, ...] of both directions, stacked, each in the order of its steps."""
    stacked: Array = f.stack([array if place == 0 else array[_BACK] for place, array in enumerate(arrays)])
    return stacked


def to_parameters(f: F, inner: Array, outer: Array, x: Array, before: Array, *, bias: bool) -> list[Array]:
    """The gradients of weight_ih, weight_hh and, with `bias`, bias_ih and bias_hh, direction after direction."""
    found = [f.einsum("dtbg,dtbi->dgi", inner, x), f.einsum("dtbg,dtbh->dgh", outer, before)]
    found += [inner.sum((1, 2)), outer.sum((1, 2))] if bias else []
    return [gradient[direction] for direction in range(inner.shape[0]) for gradient in found]


def to_input(f: F, inner: Array, w_ih: Array) -> Array:
    """The gradient [time, batch, size] of the layer's input, the sum of both directions."""
    dx = f.einsum("dtbg,dgi->dtbi", inner, w_ih)
    total: Array = f.evaluated(own_time(f, [dx[direction] for direction in range(dx.shape[0])]).sum(0))
    return total
