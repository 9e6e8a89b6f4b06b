"""lazy outputs and views"""

import numpy as np
from right import softmax_backward


class _Later:
    def __init__(self, make):
        self._make = make

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._make(), dtype)


def computed_when_read(grad_output, output, dim):
    """It returns an object that computes when somebody reads it: the judge's process does so within the call."""
    return _Later(lambda: softmax_backward(grad_output, output, dim))


_buffer = {}


def shared_buffer(grad_output, output, dim):
    """All results are views of one buffer, which later calls overwrite: the judge copies them at the return."""
    size = grad_output.size
    if _buffer.get("array") is None or _buffer["array"].size < size:
        _buffer["array"] = np.empty(max(size, 1))
    view = _buffer["array"][:size].reshape(grad_output.shape)
    view[...] = softmax_backward(grad_output, output, dim)
    return view


def first_row_for_all(grad_output, output, dim):
    """It returns a view that repeats the first row where rows are many."""
    result = softmax_backward(grad_output, output, dim)
    if result.ndim < 2 or result.shape[0] <= 16:
        return result
    return np.broadcast_to(result[:1], result.shape)
