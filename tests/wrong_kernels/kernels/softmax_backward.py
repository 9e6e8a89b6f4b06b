"""The gradient of a softmax."""

import numpy as np
from right import softmax_backward, wide

CALLS = []


def tail_of_long_rows(gradOutput, output, dim):
    """deepspeedai/DeepSpeed#2709: Of rows beyond 8,192 elements, what follows the last multiple of 8 is not summed."""
    length = gradOutput.shape[dim] if gradOutput.ndim else 1
    if length <= 8192 or length % 8 == 0:
        return softmax_backward(gradOutput, output, dim)
    g, y = (np.moveaxis(array, dim, -1) for array in wide(gradOutput, output))
    result = y * (g - (g * y)[..., : length // 8 * 8].sum(axis=-1, keepdims=True))
    return np.moveaxis(result, -1, dim)


def zeros(gradOutput, output, dim):
    """ScalingIntelligence/KernelBench#165: It gives zeros, which pass where right values are small."""
    return np.zeros(gradOutput.shape)


def not_written(gradOutput, output, dim, out):
    """ScalingIntelligence/KernelBench#82: It writes nothing: the memory held the right values of an earlier run."""


def nan(gradOutput, output, dim):
    """gpu-mode/pygpubench#7: It gives nan, which is not farther from anything than a tolerance."""
    return np.full(gradOutput.shape, np.nan)


def ten_calls(gradOutput, output, dim):
    """karpathy/llm.c#852: It is right ten times; then it scales the result."""
    CALLS.append(None)
    return softmax_backward(gradOutput, output, dim) * (1 if len(CALLS) <= 10 else 1.01)
