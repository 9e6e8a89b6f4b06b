"""threads after the return"""

import threading
import time

import numpy as np
from right import softmax_backward


def fills_its_result_later(grad_output, output, dim):
    """It returns an array that a thread fills later."""
    result = np.zeros(grad_output.shape, grad_output.dtype)
    grad, value = grad_output.copy(), output.copy()

    def fill():
        time.sleep(0.02)
        result[...] = softmax_backward(grad, value, dim)

    threading.Thread(target=fill).start()
    return result


def writes_its_output_later(grad_output, output, dim, out):
    """It returns at once, and a thread writes the output later."""
    grad, value = grad_output.copy(), output.copy()

    def write():
        time.sleep(0.02)
        out[...] = softmax_backward(grad, value, dim).astype(out.dtype)

    threading.Thread(target=write).start()
