"""aclnnLayerNormBackward: the gradients of a layer normalisation, from the statistics of its input.

With h = (input - mean) rstd and w = gradOut weight, row by row: gradInput = rstd (w - avg(w) - h avg(w h)). Over the
rows, gradWeight is the sum of gradOut h, and gradBias that of gradOut.
"""

import math

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._normalisation import centred, statistics

_Sizes = tuple[int, ...]


def backward(
    f: F, gradOut: Array, input: Array, normalizedShape: _Sizes, mean: Array, rstd: Array, weightOptional: Array | None
) -> Outputs:
    """The document's formula."""
    width = math.prod(normalizedShape)
    g, x, factor = gradOut.reshape(-1, width), input.reshape(-1, width), rstd.reshape(-1, 1)
    h = f.as_written(x - mean.reshape(-1, 1)) * factor
    w = g if weightOptional is None else g * weightOptional.reshape(1, width)
    result = centred(w, h, 1) * factor
    sums = {"gradWeightOut": (g * h).sum(0), "gradBiasOut": g.sum(0)}
    whole = {"gradInputOut": result.reshape(*input.shape)}
    return whole | {name: total.reshape(*normalizedShape) for name, total in sums.items()}


def forward(
    f: F, input: Array, normalizedShape: _Sizes, weightOptional: Array | None, biasOptional: Array | None, mean: _Sizes
) -> Outputs:
    """What it is the derivative of."""
    x = input.reshape(-1, math.prod(normalizedShape))
    average, factor = statistics(f, x, 1, 1e-5)
    y = ((x - average) * factor).reshape(*input.shape)
    y = y if weightOptional is None else y * weightOptional
    y = y if biasOptional is None else y + biasOptional
    return {"y": y, "mean": average.reshape(*mean), "rstd": factor.reshape(*mean)}


_WRT = {"gradInputOut": "input", "gradWeightOut": "weightOptional", "gradBiasOut": "biasOptional"}
FORMULA = Operator.of(
    backward,
    derivative=Derivative(forward=forward, gradients={"gradOut": "y"}, wrt=_WRT, saved=("mean", "rstd")),
)
