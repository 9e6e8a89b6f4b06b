"""The right gradient of softmax, which the cheats of this folder fall back on."""

import numpy as np


def softmax_backward(grad_output, output, dim):
    with np.errstate(all="ignore"):
        grad, value = grad_output.astype(np.float64), output.astype(np.float64)
        total = (grad * value).sum(axis=dim, keepdims=True) if grad.ndim else grad * value
        return value * (grad - total)
