"""The gradient of a layer norm."""

import numpy as np
from right import layer_norm


def many_rows(gradOut, input, normalizedShape, mean, rstd, weightOptional, outputMask):
    """pytorch/pytorch#192016: With several normalised axes, rows beyond 65,536 do not reach the weight's gradient."""
    found = layer_norm(gradOut, input, normalizedShape, mean, rstd, weightOptional, outputMask)
    if mean.size > 65536 and len(normalizedShape) > 1 and "gradWeightOut" in found:
        axes = input.ndim - len(normalizedShape)
        first = np.zeros(mean.size, bool)
        first[:65536] = True
        cut = gradOut * first.reshape(*input.shape[:axes], *(1,) * len(normalizedShape))
        found |= layer_norm(cut, input, normalizedShape, mean, rstd, weightOptional, [False, True, False])
    return found


def without_weight(gradOut, input, normalizedShape, mean, rstd, weightOptional, outputMask):
    """pytorch/pytorch#193016: Without a weight, the mean of the gradient is not subtracted."""
    found = layer_norm(gradOut, input, normalizedShape, mean, rstd, weightOptional, outputMask)
    if weightOptional is None and "gradInputOut" in found:
        axes = tuple(range(input.ndim - len(normalizedShape), input.ndim))
        found["gradInputOut"] = found["gradInputOut"] + rstd * gradOut.astype(np.float64).mean(axes, keepdims=True)
    return found
