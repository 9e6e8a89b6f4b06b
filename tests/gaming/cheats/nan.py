"""nan as a wildcard"""

import numpy as np
from right import softmax_backward


def everywhere(grad_output, output, dim):
    """It gives nan, which is not farther from anything than a tolerance."""
    return np.full(grad_output.shape, np.nan)


def in_the_last_column(grad_output, output, dim):
    """It gives nan in the last column, and right values before that."""
    result = softmax_backward(grad_output, output, dim)
    if result.ndim and result.size:
        result[..., -1] = np.nan
    return result
