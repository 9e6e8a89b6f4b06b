"""aclnnChamferDistanceBackward: 2 g (a - b) for a point a and its nearest point b, less what other points pull at a."""

from collections.abc import Callable

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Formula, Operator
from aclnn_cts.oracles._windows import Numbers, within_planes


def _cells(idx: Numbers, points: Array) -> Numbers:
    # The example counts through all batches: the remainder is the point of the batch by either count.
    return within_planes(idx[..., None] % points.shape[1] * 2 + np.arange(2), points.shape)


def _apart(f: F, a: Array, b: Array, idx: Numbers) -> Array:
    apart: Array = a - f.take(b.reshape(-1), _cells(idx, b))
    return apart


def _form(term: Callable[[Array, Array], Array]) -> Formula:
    def backward(f: F, xyz1: Array, xyz2: Array, idx1: Numbers, idx2: Numbers, gradDist1: Array,
                 gradDist2: Array) -> Outputs:  # fmt: skip
        one = term(gradDist1.reshape(*gradDist1.shape, 1), _apart(f, xyz1, xyz2, idx1))
        two = term(gradDist2.reshape(*gradDist2.shape, 1), _apart(f, xyz2, xyz1, idx2))
        first = one - f.scatter_add(two, _cells(idx2, one), one.shape)
        second = two - f.scatter_add(one, _cells(idx1, two), two.shape)
        several = len(idx1) > 1  # what an index counts there is open
        return {"gradXyz1": f.undecided(first, where=several), "gradXyz2": f.undecided(second, where=several)}

    return backward


def _forward(f: F, xyz1: Array, xyz2: Array, idx1: Numbers, idx2: Numbers) -> Outputs:
    one, two = _apart(f, xyz1, xyz2, idx1), _apart(f, xyz2, xyz1, idx2)
    return {"dist1": (one * one).sum(-1), "dist2": (two * two).sum(-1)}


GRADIENTS, WRT = {"gradDist1": "dist1", "gradDist2": "dist2"}, {"gradXyz1": "xyz1", "gradXyz2": "xyz2"}
FORMULA = Operator.of(_form(lambda g, apart: 2.0 * g * apart), _form(lambda g, apart: 2.0 * (g * apart)),
                      derivative=Derivative(forward=_forward, gradients=GRADIENTS, wrt=WRT))  # fmt: skip
