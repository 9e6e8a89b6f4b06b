"""GELU, x times the normal distribution function of x, in the exact form and in the one by tanh, and its slope."""

import math

from aclnn_cts.formula.array import Array, F

_C, _A = math.sqrt(2.0 / math.pi), 0.044715


def slope(f: F, x: Array, *, by_tanh: bool) -> Array:
    """The derivative of GELU by x."""
    square = x * x
    if by_tanh:
        t = f.tanh(_C * (x + _A * (square * x)))
        of_t = (1.0 - t * t) * (_C * (1.0 + 3.0 * _A * square))
        found: Array = 0.5 * (1.0 + t) + 0.5 * x * of_t
    else:
        density = f.exp(-0.5 * square) * (1.0 / math.sqrt(2.0 * math.pi))
        found = 0.5 * (1.0 + f.erf(x * math.sqrt(0.5))) + x * density
    return found


def gelu(f: F, x: Array, *, by_tanh: bool) -> Array:
    """GELU of x."""
    cubed = x + _A * (x * x * x)
    inner = f.tanh(_C * cubed) if by_tanh else f.erf(x * math.sqrt(0.5))
    found: Array = 0.5 * x * (1.0 + inner)
    return found
