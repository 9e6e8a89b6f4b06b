"""aclnnCtcLossBackward: times beyond a sequence, and with zeroInfinity one of infinite loss, have a gradient of 0."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import F, Outputs
from aclnn_cts.formula.definition import Operator
from aclnn_cts.oracles._windows import Shape

Real: TypeAlias = "NDArray[np.float64]"


def _backward(
    f: F, gradOut: Real, logProbs: Real, inputLengths: Shape, negLogLikelihood: Real, logAlpha: Real, *,
    zeroInfinity: bool, out: Shape,
) -> Outputs:  # fmt: skip
    beyond = (np.arange(out[0])[:, None] >= np.array(inputLengths)) & np.isfinite(negLogLikelihood)
    # What inf and nan become where they do not count is open, but for an infinite loss.
    finite = np.isfinite(gradOut) & np.isfinite(logProbs).all(axis=(0, 2)) & np.isfinite(logAlpha).all(axis=(1, 2))
    zero = finite & (beyond | (zeroInfinity & (negLogLikelihood == np.inf)))
    # By what the loss is differentiated is not said.
    return {"out": f.undecided(f.lift(np.zeros(out)), where=np.broadcast_to(~zero[..., None], out))}


FORMULA = Operator.of(
    _backward,
    derivative="what the loss is differentiated by is not said",
    raw=("gradOut", "logProbs", "negLogLikelihood", "logAlpha"),
)
