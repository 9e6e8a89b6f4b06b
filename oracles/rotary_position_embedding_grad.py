"""aclnnRotaryPositionEmbeddingGrad: the gradients of a rotation of pairs by angles whose cosine and sine are given.

With y1 = x1 cos1 - x2 sin1 and y2 = x2 cos2 + x1 sin2: dx1 = dy1 cos1 + dy2 sin2 and dx2 = dy2 cos2 - dy1 sin1. The
first ones of the pairs are the first halves of blocks of the last dimension; in interleave-half y has one block alone.
"""

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

_BLOCKS = ((1, -1), (-1, 1), (2, -1), (-1, 1))  # their number, and half of their length, in each mode


def _halves(array: Array, mode: int) -> tuple[Array, Array]:
    (blocks, length), shape = _BLOCKS[mode], array.shape[:3]
    split = array.reshape(*shape, blocks, 2, length)
    return split[:, :, :, :, 0].reshape(*shape, -1), split[:, :, :, :, 1].reshape(*shape, -1)


def _joined(f: F, first: Array, second: Array, mode: int) -> Array:
    halves = [half.reshape(*half.shape[:3], *_BLOCKS[mode]) for half in (first, second)]
    joined: Array = f.stack(halves, 4).reshape(*first.shape[:3], -1)
    return joined


def _backward(
    f: F, dy: Array, cos: Array, sin: Array, xOptional: Array | None, mode: int, dcosOut: tuple[int, ...]
) -> Outputs:
    (dy1, dy2), (cos1, cos2), (sin1, sin2) = (_halves(array, mode % 3) for array in (dy, cos, sin))
    dx = _joined(f, cos1 * dy1 + sin2 * dy2, cos2 * dy2 - sin1 * dy1, mode)
    if xOptional is None:
        unused = f.undecided(f.lift(np.zeros(dcosOut)), where=True)
        return {"dxOut": dx, "dcosOut": unused, "dsinOut": unused}
    x1, x2 = _halves(xOptional, mode)
    terms = _joined(f, dy1 * x1, dy2 * x2, mode % 3), _joined(f, -(dy1 * x2), dy2 * x1, mode % 3)
    return {"dxOut": dx, "dcosOut": f.reduce_to(terms[0], cos.shape), "dsinOut": f.reduce_to(terms[1], cos.shape)}


def _forward(f: F, xOptional: Array | None, cos: Array, sin: Array, mode: int, dy: tuple[int, ...]) -> Outputs:
    x1, x2 = _halves(f.lift(np.zeros(dy)) if xOptional is None else xOptional, mode)
    (cos1, cos2), (sin1, sin2) = _halves(cos, mode % 3), _halves(sin, mode % 3)
    return {"y": _joined(f, x1 * cos1 - x2 * sin1, x2 * cos2 + x1 * sin2, mode % 3)}


_WRT = {"dxOut": "xOptional", "dcosOut": "cos", "dsinOut": "sin"}
FORMULA = Operator.of(_backward, derivative=Derivative(forward=_forward, gradients={"dy": "y"}, wrt=_WRT))
