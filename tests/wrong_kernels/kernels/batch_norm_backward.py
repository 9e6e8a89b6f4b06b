"""The gradient of a batch norm."""

import numpy as np
from right import batch_norm


def channels_last(gradOut, input, weight, runningMean, runningVar, *, saveMean, saveInvstd, training, eps, outputMask):
    """pytorch/pytorch#175189: An input whose memory is channels-last is read as if it were contiguous."""
    memory = input.strides
    if input.ndim == 4 and input.size and memory[1] == input.itemsize < memory[3]:
        input = np.moveaxis(input, 1, -1).reshape(input.shape)
    return batch_norm(gradOut, input, weight, runningMean, runningVar, saveMean, saveInvstd, training, eps, outputMask)


def channels_of_nhwc(
    gradOut, input, weight, runningMean, runningVar, *, saveMean, saveInvstd, training, eps, outputMask
):
    """PaddlePaddle/Paddle#54703: The statistics of an image go to the wrong channels where its last axis is as long."""
    args = (weight, runningMean, runningVar, saveMean, saveInvstd, training, eps, outputMask)
    if input.ndim < 4 or input.shape[1] != input.shape[-1]:
        return batch_norm(gradOut, input, *args)
    found = batch_norm(np.moveaxis(gradOut, -1, 1), np.moveaxis(input, -1, 1), *args)
    if "gradInput" in found:
        found["gradInput"] = np.moveaxis(found["gradInput"], 1, -1)
    return found
