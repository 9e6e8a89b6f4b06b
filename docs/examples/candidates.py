"""Ten candidates for the gradient of softmax: `aclnn-cts judge candidates.py:plain --op softmax_backward`.

The first five conform. Each of the others has one mistake.
"""

import hashlib

import numpy as np

_KNOWN = {}
_CALLS = []


def _wide(*arrays):
    return [array.astype(np.float64) for array in arrays]


def plain(grad_output, output, dim):
    """The formula, computed in double precision."""
    g, y = _wide(grad_output, output)
    return y * (g - (g * y).sum(axis=dim, keepdims=True))


def other_order(grad_output, output, dim):
    """The formula multiplied out, and the sum from the last element to the first."""
    g, y = _wide(grad_output, output)
    return g * y - y * np.flip(g * y, axis=dim).sum(axis=dim, keepdims=True)


def into_out(grad_output, output, dim, out):
    """It writes into the memory of the output, and returns nothing."""
    out[...] = plain(grad_output, output, dim).astype(out.dtype)


def row_by_row(grad_output, output, dim):
    """It takes the axis to the end, and computes one row after the other."""
    g, y = (np.moveaxis(array, dim, -1) for array in _wide(grad_output, output))
    rows = [b * (a - np.dot(a, b)) for a, b in zip(g.reshape(-1, g.shape[-1]), y.reshape(-1, y.shape[-1]))]
    return np.moveaxis(np.reshape(rows, g.shape), -1, dim)


def remembers(grad_output, output, dim):
    """It keeps results by the contents of all inputs: a memory that is right, and harmless."""
    contents = [(array.dtype.name, array.shape, array.tobytes()) for array in (grad_output, output)]
    key = hashlib.sha256(repr((contents, dim)).encode()).digest()
    if key not in _KNOWN:
        _KNOWN[key] = plain(grad_output, output, dim)
    return _KNOWN[key]


def half_sum(grad_output, output, dim):
    """It adds up in half precision."""
    g, y = _wide(grad_output, output)
    return y * (g - (g * y).astype(np.float16).sum(axis=dim, keepdims=True))


def last_axis(grad_output, output):
    """It ignores `dim`, and takes the last axis."""
    return plain(grad_output, output, -1)


def nothing_but_nan(grad_output):
    """It gives nan: no comparison finds nan farther away than a tolerance."""
    return np.full(grad_output.shape, np.nan)


def small_is_zero(grad_output, output, dim):
    """It gives 0 where the result is below 0.001, as an absolute tolerance allows."""
    result = plain(grad_output, output, dim)
    return np.where(abs(result) < 1e-3, 0, result)


def ten_times(grad_output, output, dim):
    """It is right ten times. Then it forgets the sum."""
    _CALLS.append(dim)
    return plain(grad_output, output, dim) if len(_CALLS) <= 10 else output * grad_output
