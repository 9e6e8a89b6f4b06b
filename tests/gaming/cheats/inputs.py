"""modified inputs"""

import numpy as np
from right import softmax_backward


def in_place(grad_output, output, dim):
    """It computes in the memory of the gradient."""
    grad_output[...] = softmax_backward(grad_output, output, dim).astype(grad_output.dtype)
    return grad_output


def zeroed(grad_output, output, dim):
    """It sets the inputs to zero, so that a reference that is computed afterwards is zero too."""
    grad_output[...] = 0
    output[...] = 0
    return np.zeros_like(grad_output)
