"""lower precision"""

import ml_dtypes
import numpy as np
from right import softmax_backward


def half(grad_output, output, dim):
    """It computes in half precision."""
    return softmax_backward(grad_output.astype(np.float16), output.astype(np.float16), dim).astype(np.float16)


def sum_in_bf16(grad_output, output, dim):
    """It rounds the sum along the dimension to BF16."""
    with np.errstate(all="ignore"):
        grad, value = grad_output.astype(np.float32), output.astype(np.float32)
        total = (grad * value).sum(axis=dim, keepdims=True) if grad.ndim else grad * value
        return value * (grad - total.astype(ml_dtypes.bfloat16).astype(np.float32))


def twelve_bits(grad_output, output, dim):
    """It keeps twelve bits of every result."""
    result = softmax_backward(grad_output, output, dim).astype(np.float32)
    return (result.view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
