"""The gradient of GELU."""

import math

import numpy as np
from right import gelu, wide


def zero_in_the_tail(gradOutput, self, approximate):
    """tenstorrent/tt-metal#35885: The derivative is 0 below -4."""
    return np.where(wide(self) < -4, 0.0, gelu(gradOutput, self, approximate))


def coarse_interval(gradOutput, self, approximate):
    """tenstorrent/tt-metal#55349: In (-5, -3) the derivative is off by 2^-8."""
    x = wide(self)
    return gelu(gradOutput, self, approximate) + np.where((x > -5) & (x < -3), wide(gradOutput) * 2.0**-8, 0)


def sign_of_the_tail(gradOutput, self, approximate):
    """tenstorrent/tt-metal#35971: Around -3.7 the derivative has the wrong sign."""
    x = wide(self)
    return gelu(gradOutput, self, approximate) * np.where(np.abs(x + 3.7) < 0.1, -1, 1)


def tanh_by_exponentials(gradOutput, self, approximate):
    """intel/llm-scaler#484, pytorch/executorch#22324: tanh is a ratio of exponentials, which overflow."""
    if approximate != "tanh":
        return gelu(gradOutput, self, approximate)
    g, x = np.float32(gradOutput), np.float32(self)
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x**3)
    e = np.exp(2 * inner)
    t = (e - 1) / (e + 1)
    slope = np.float32(math.sqrt(2 / math.pi)) * (1 + np.float32(3 * 0.044715) * x**2)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
