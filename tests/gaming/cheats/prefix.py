"""prefix only"""

import numpy as np
from right import softmax_backward


def four_thousand_elements(grad_output, output, dim):
    """It computes the first 4,096 elements."""
    result = np.zeros(grad_output.shape)
    result.reshape(-1)[:4096] = softmax_backward(grad_output, output, dim).reshape(-1)[:4096]
    return result


def thirty_two_rows(grad_output, output, dim):
    """It computes the first 32 rows."""
    result = softmax_backward(grad_output, output, dim)
    if result.ndim:
        result[32:] = 0.0
    return result
