"""aclnnBatchNormBackward: the gradients of a batch normalisation, with saved statistics in training, else running ones.

With h = (input - mean) factor, channel by channel: gradWeight is the sum of gradOut h, gradBias that of gradOut.
gradInput is gradOut weight factor, in training of gradOut without its average and without its share along h.
"""

import math

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._normalisation import centred, statistics

_Sizes = tuple[int, ...]
_OTHERS = (0, 2)
"""All dimensions but that of the channels, where there are three."""


def _by_channel(shape: _Sizes, layout: str) -> _Sizes:
    """As many elements in three dimensions, the second of which are the channels."""
    axis = len(shape) - 1 if layout in ("NHWC", "NDHWC") else 1
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, gradOut: Array, input: Array, weight: Array | None, *, runningMean: Array, runningVar: Array,
    saveMean: Array, saveInvstd: Array, training: bool, eps: float, formats: dict[str, str],
) -> Outputs:  # fmt: skip
    shape = _by_channel(input.shape, formats["input"])
    g, x = gradOut.reshape(*shape), input.reshape(*shape)
    mean, factor = (saveMean, saveInvstd) if training else (runningMean, 1.0 / f.sqrt(runningVar + eps))
    h = f.as_written(x - mean.reshape(1, -1, 1)) * factor.reshape(1, -1, 1)
    scale = (factor if weight is None else weight * factor).reshape(1, -1, 1)
    gradient = (centred(g, h, _OTHERS) if training else g) * scale
    return {"gradInput": gradient.reshape(*input.shape), "gradWeight": (g * h).sum(_OTHERS), "gradBias": g.sum(_OTHERS)}


def _forward(  # noqa: PLR0913 - as above
    f: F, input: Array, weight: Array | None, bias: Array | None, *, runningMean: Array, runningVar: Array,
    training: bool, eps: float, formats: dict[str, str],
) -> Outputs:  # fmt: skip
    x = input.reshape(*_by_channel(input.shape, formats["input"]))
    mean, factor = saved = statistics(f, x, _OTHERS, eps)
    if not training:
        mean, factor = runningMean.reshape(1, -1, 1), 1.0 / f.sqrt(runningVar + eps).reshape(1, -1, 1)
    y = (x - mean) * factor
    y = y if weight is None else y * weight.reshape(1, -1, 1)
    y = y if bias is None else y + bias.reshape(1, -1, 1)
    return {"y": y.reshape(*input.shape), "saveMean": saved[0].reshape(-1), "saveInvstd": saved[1].reshape(-1)}


_WRT = {"gradInput": "input", "gradWeight": "weight", "gradBias": "bias"}
DERIVATIVE = Derivative(forward=_forward, gradients={"gradOut": "y"}, wrt=_WRT, saved=("saveMean", "saveInvstd"))
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
