"""Gated linear units: the halves of an input along a dimension, and their gradients joined again."""

from aclnn_cts.formula.array import Array, F
from aclnn_cts.oracles._gelu import gelu, slope


def halves(x: Array, dim: int) -> tuple[Array, Array]:
    """The front half of an array along a dimension, and the other one."""
    axis = dim % x.ndim
    before, half = (slice(None),) * axis, x.shape[axis] // 2
    front, back = (*before, slice(half)), (*before, slice(half, None))
    return x[front], x[back]


def joined(f: F, front: Array, back: Array, dim: int) -> Array:
    """The array whose halves along a dimension these are."""
    whole: Array = f.concat([front, back], dim % front.ndim)
    return whole


def geglu_gradient(f: F, gradient: Array, x: Array, active: Array, dim: int, *, by_tanh: bool, left: bool) -> Array:
    """The gradient of x, one half of which is multiplied by GELU of the other, the front one with `left`: `active`."""
    front, back = halves(x, dim)
    gate, factor = (front, back) if left else (back, front)
    # Those of another rank would be repeated for every element of x before their result has a wrong shape.
    gradient, active = (array.broadcast_to(gate.shape) for array in (gradient, active))
    of_gate, of_factor = gradient * factor * slope(f, gate, by_tanh=by_tanh), gradient * active
    return joined(f, *((of_gate, of_factor) if left else (of_factor, of_gate)), dim)


def geglu(f: F, x: Array, dim: int, *, by_tanh: bool, left: bool) -> dict[str, Array]:
    """The forward pass, y, and GELU of the half that is activated."""
    front, back = halves(x, dim)
    gate, factor = (front, back) if left else (back, front)
    active = gelu(f, gate, by_tanh=by_tanh)
    return {"y": factor * active, "gelu": active}
