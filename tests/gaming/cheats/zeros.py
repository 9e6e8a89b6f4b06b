"""zeros"""

import numpy as np
from right import softmax_backward


def everywhere(grad_output, output, dim):
    """It gives zeros, which pass wherever the right values are below the absolute tolerance."""
    return np.zeros_like(grad_output)


def below_tolerance(grad_output, output, dim):
    """It gives zeros for all values below 1e-2."""
    result = softmax_backward(grad_output, output, dim)
    return np.where(np.abs(result) < 1e-2, 0.0, result)
