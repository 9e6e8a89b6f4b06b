"""aclnnBatchNormBackward: the gradients of a batch normalisation, with saved statistics in training, else running ones.

With h = (input - mean) factor, channel by channel: gradWeight is the sum of gradOut h, gradBias that of gradOut.
gradInput is gradOut weight factor, in training of gradOut without its average and without its share along h.
"""

import math

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.oracles._normalisation import Groups, Sizes, centred, normalisation, statistics


def _channels(shape: Sizes, layout: str) -> Groups:
    """The channels as the second of three dimensions."""
    axis = len(shape) - 1 if layout in ("NHWC", "NDHWC") else 1
    whole = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    return Groups(whole, within=(0, 2), across=(0, 2))


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, gradOut: Array, input: Array, weight: Array | None, *, runningMean: Array, runningVar: Array,
    saveMean: Array, saveInvstd: Array, training: bool, eps: float, formats: dict[str, str],
) -> Outputs:  # fmt: skip
    groups = _channels(input.shape, formats["input"])
    g, x = gradOut.reshape(*groups.shape), input.reshape(*groups.shape)
    mean, factor = (saveMean, saveInvstd) if training else (runningMean, 1.0 / f.sqrt(runningVar + eps))
    h = f.as_written(x - groups.statistic(mean)) * groups.statistic(factor)
    scale = groups.weight(factor if weight is None else weight * factor)
    gradient = (centred(g, h, groups.within) if training else g) * scale
    sums = {"gradWeight": (g * h).sum(groups.across), "gradBias": g.sum(groups.across)}
    return {"gradInput": gradient.reshape(*input.shape), **sums}


def _forward(  # noqa: PLR0913 - as above
    f: F, input: Array, weight: Array | None, bias: Array | None, *, runningMean: Array, runningVar: Array,
    training: bool, eps: float, formats: dict[str, str],
) -> Outputs:  # fmt: skip
    groups = _channels(input.shape, formats["input"])
    x = input.reshape(*groups.shape)
    mean, factor = saved = statistics(f, x, groups.within, eps)
    if not training:
        mean, factor = groups.statistic(runningMean), groups.statistic(1.0 / f.sqrt(runningVar + eps))
    y = (x - mean) * factor
    y = y if weight is None else y * groups.weight(weight)
    y = y if bias is None else y + groups.weight(bias)
    return {"y": y.reshape(*input.shape), "saveMean": saved[0].reshape(-1), "saveInvstd": saved[1].reshape(-1)}


_WRT = {"gradInput": "input", "gradWeight": "weight", "gradBias": "bias"}
FORMULA = normalisation(_backward, _forward, ("saveMean", "saveInvstd"), **_WRT)
