"""Sums in rational arithmetic, for the second oracles.

Every float64 is an integer over a power of two, so a sum needs one common denominator and no gcd: many times as fast
as adding `Fraction`s, which cancel after every step, and as exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction


def sum_of_products(*columns: Iterable[float]) -> Fraction:
    """The exact sum over the rows of what the numbers of each multiply to; one column is summed as it is.

    Raises OverflowError or ValueError for inf and nan, ValueError for columns of different lengths.
    """
    total, bits = 0, 0
    for row in zip(*columns, strict=True):
        numerator, power = 1, 0
        for value in row:
            above, below = value.as_integer_ratio()
            numerator *= above
            power += below.bit_length() - 1
        if power > bits:
            total <<= power - bits
            bits = power
        total += numerator << (bits - power)
    return Fraction(total, 1 << bits)
