"""patched time"""

import time

from right import softmax_backward

_clock = {"now": 0.0}


def frozen_clock(grad_output, output, dim):
    """It stops the clocks of its process. The results are right."""
    time.perf_counter = time.time = time.monotonic = lambda: 0.0
    return softmax_backward(grad_output, output, dim)


def backward_clock(grad_output, output, dim):
    """It lets the clocks of its process run backwards."""

    def earlier():
        _clock["now"] -= 1.0
        return _clock["now"]

    time.perf_counter = time.time = earlier
    return softmax_backward(grad_output, output, dim)
