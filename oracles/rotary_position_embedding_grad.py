"""aclnnRotaryPositionEmbeddingGrad: the gradients of a rotation of pairs by angles whose cosine and sine are given.

With y1 = x1 cos1 - x2 sin1 and y2 = x2 cos2 + x1 sin2: dx1 = dy1 cos1 + dy2 sin2 and dx2 = dy2 cos2 - dy1 sin1. The
first ones of the pairs are the first halves of blocks of the last dimension; in interleave-half y has one block alone.
"""

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._rotary import joined, parted


def _half(width: int, mode: int) -> int:
    """Half of the length of a block in each mode."""
    return (width // 2, 1, width // 4, 1)[mode]


def _backward(
    f: F, dy: Array, cos: Array, sin: Array, xOptional: Array | None, mode: int, dcosOut: tuple[int, ...]
) -> Outputs:
    half, half_of_y = (_half(dy.shape[-1], number) for number in (mode, mode % 3))
    (dy1, dy2), (cos1, cos2), (sin1, sin2) = (parted(array, half_of_y) for array in (dy, cos, sin))
    dx = joined(f, cos1 * dy1 + sin2 * dy2, cos2 * dy2 - sin1 * dy1, half)
    if xOptional is None:
        unused = f.undecided(f.lift(np.zeros(dcosOut)), where=True)
        return {"dxOut": dx, "dcosOut": unused, "dsinOut": unused}
    x1, x2 = parted(xOptional, half)
    terms = joined(f, dy1 * x1, dy2 * x2, half_of_y), joined(f, -(dy1 * x2), dy2 * x1, half_of_y)
    return {"dxOut": dx, "dcosOut": f.reduce_to(terms[0], cos.shape), "dsinOut": f.reduce_to(terms[1], cos.shape)}


def _forward(f: F, xOptional: Array | None, cos: Array, sin: Array, mode: int, dy: tuple[int, ...]) -> Outputs:
    half, half_of_y = (_half(dy[-1], number) for number in (mode, mode % 3))
    x1, x2 = parted(f.lift(np.zeros(dy)) if xOptional is None else xOptional, half)
    (cos1, cos2), (sin1, sin2) = parted(cos, half_of_y), parted(sin, half_of_y)
    return {"y": joined(f, x1 * cos1 - x2 * sin1, x2 * cos2 + x1 * sin2, half_of_y)}


_WRT = {"dxOut": "xOptional", "dcosOut": "cos", "dsinOut": "sin"}
FORMULA = Operator.of(_backward, derivative=Derivative(forward=_forward, gradients={"dy": "y"}, wrt=_WRT))
