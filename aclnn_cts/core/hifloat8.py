"""HIFLOAT8: what each code stands for, and the code of each number of the format.

NumPy and ml_dtypes have no such dtype. The codes follow "Ascend HiFloat8 Format for Deep Learning" (arXiv 2409.16626).
They agree with its counts, and were compared with no device and no other implementation.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

STORAGE: np.dtype[Any] = np.dtype("V1")
"""A byte that NumPy does no arithmetic on: codes are not mistaken for UINT8, and a cast to float64 fails."""

MANTISSAS = ((3, 3), (7, 2), (15, 1), (22, 0))
"""Up to which magnitude of the exponent a number has how many mantissa bits."""

DENORMAL = 23
"""What the mantissa of a denormal number, 1 to 7, is above its exponent."""
NAN = 0x80
INFINITY = 0x6F
_SIGN = 0x80
_EXPONENT_BITS = ((0b11, 2, 4), (0b10, 2, 3), (0b01, 2, 2), (0b001, 3, 1), (0b0001, 4, 0))
"""The dot field: its prefix code, the bits of that, and the bits of the exponent field that it announces."""


def _magnitude(code: int) -> float:
    """The number of a code of seven bits, without the sign."""
    if code == INFINITY:
        return math.inf
    for dot, length, size in _EXPONENT_BITS:
        if code >> (7 - length) == dot:
            rest = 7 - length - size
            exponent = 0
            if size:
                field = code >> rest & (1 << size) - 1
                # A sign, and a magnitude whose leading 1 is not stored.
                below = 1 << (size - 1)
                exponent = (below | field & (below - 1)) * (-1 if field & below else 1)
            return math.ldexp(1.0 + math.ldexp(code & (1 << rest) - 1, -rest), exponent)
    return math.ldexp(1.0, code - DENORMAL) if code else 0.0


@functools.cache
def _tables() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8]]:
    """The number of every code; those that are not negative in order, and their codes."""
    positive = np.array([_magnitude(code) for code in range(_SIGN)])
    numbers = np.concatenate((positive, -positive))
    numbers[NAN] = math.nan  # where other formats have -0
    order = np.argsort(positive)
    return numbers, positive[order], order.astype(np.uint8)


def decode(array: NDArray[Any]) -> NDArray[np.float64]:
    """The numbers of codes."""
    numbers, _, _ = _tables()
    return np.asarray(numbers[array.view(np.uint8)])


def encode(values: NDArray[np.float64]) -> NDArray[Any]:
    """The codes of numbers of the format, infinities and nan; -0 becomes 0, for the format has one zero."""
    _, ordered, codes = _tables()
    found = codes[np.minimum(np.searchsorted(ordered, np.abs(values)), len(codes) - 1)]
    found = np.where(values < 0.0, found | np.uint8(_SIGN), found)
    return np.where(np.isnan(values), np.uint8(NAN), found).view(STORAGE)
