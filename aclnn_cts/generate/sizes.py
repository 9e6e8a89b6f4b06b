"""Which sizes and numbers generation prefers.

Pairwise different, odd and prime sizes show transposes and layout faults that square shapes hide; sizes at and beside
powers of two show tails of tiles; 1 shows broadcasts.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from aclnn_cts.generate.choices import Choices

PREFERRED = (
    1, 2, 3, 5, 7, 8, 9, 11, 13, 15, 16, 17, 19, 23, 29, 31, 32, 33, 37, 41, 43, 47, 53, 59, 61, 63, 64, 65, 67, 71, 79,
    83, 97, 101, 127, 128, 129, 131, 151, 191, 211, 251, 255, 256, 257, 1031, 2048, 2053, 4096, 4099,
)  # fmt: skip
BUDGETS = (48, 48, 160, 160, 160, 512, 512, 1024)
"""Most elements of a tensor of a random case, drawn once a case."""


class Sizes(Protocol):
    """Draws the sizes of one case."""

    @property
    def budget(self) -> int:
        """Most elements of a tensor."""
        ...

    def size(self, choices: Choices, low: int, high: int, *, later: int, is_last: bool) -> int:
        """A dimension in [low, high], with `later` dimensions to be drawn after it; `is_last` of a tensor."""
        ...


@dataclass(frozen=True, slots=True)
class MixedSizes:
    """Sizes of every sort, small ones first of all, and different from one another where `distinct`."""

    budget: int
    distinct: bool
    taken: list[int] = field(default_factory=list)

    def size(self, choices: Choices, low: int, high: int, *, later: int, is_last: bool) -> int:
        """A dimension in [low, high]: small, preferred or anything."""
        value = _size_value(choices, low, high, self.taken)
        if self.distinct:
            self.taken.append(value)
        return value


def mixed_sizes(choices: Choices, budget: int) -> MixedSizes:
    """Mixed sizes for one case; seven cases in eight have distinct ones."""
    return MixedSizes(budget, choices.integer(0, 7) > 0)


def _size_value(choices: Choices, low: int, high: int, taken: Sequence[int]) -> int:
    """A dimension in [low, high]: small, preferred or anything; away from the sizes already `taken` where it can be."""
    if high <= low:
        return low
    style = choices.integer(0, 15)
    if style < 9:
        value = choices.integer(low, min(high, low + 8))
    elif style < 14:
        first = bisect.bisect_left(PREFERRED, low)
        last = bisect.bisect_right(PREFERRED, high) - 1
        value = PREFERRED[choices.integer(first, last)] if first <= last else low
    elif style == 14:
        return choices.integer(low, high)
    else:
        return choices.integer(low, min(high, low + 32))
    while value in taken and value < high:
        value += 1
    return value


def attribute_value(choices: Choices, low: int, high: int) -> int:
    """An attribute in [low, high]: near zero as a rule, sometimes a bound or anything between."""
    if high <= low:
        return low
    style = choices.integer(0, 15)
    if style == 0:
        return high
    if style == 1:
        return low
    if style == 2 or high < 0 or low > 8:
        return choices.integer(low, high)
    return choices.integer(max(low, -8), min(high, max(low, 0) + 8))


ATTRIBUTE_CLASSES = ("lowest", "highest", "zero", "negative", "positive")
"""Both bounds of an attribute's range, and what lies between them."""


def attribute_class(value: int, low: int, high: int) -> str:
    """Which of ATTRIBUTE_CLASSES an attribute in [low, high] belongs to."""
    if value <= low:
        return "lowest"
    if value >= high:
        return "highest"
    return "zero" if value == 0 else "negative" if value < 0 else "positive"


def class_range(name: str, low: int, high: int) -> tuple[int, int] | None:
    """The values in [low, high] that belong to a class, least and most; None where there are none."""
    if name == "lowest":
        return low, low
    if name == "highest":
        return (high, high) if high > low else None
    least, most = {"zero": (0, 0), "negative": (low + 1, -1)}.get(name, (1, high - 1))
    least, most = max(least, low + 1), min(most, high - 1)
    return (least, most) if least <= most else None


def divided(choices: Choices, total: int, count: int, least: int) -> tuple[int, ...]:
    """`count` numbers whose sum is `total`, each at least `least` where that can be, one in four as small as that.

    Without a number to divide it among, nothing is left of the total.
    """
    if count == 0:
        return ()
    total = max(total, 0)
    least = min(least, total // count)
    span = total - least * count
    ends = sorted(choices.integer(0, span) for _ in range(count - 1))
    ends = [before if choices.chance(1, 4) else end for before, end in itertools.pairwise((0, *ends))]
    ends = list(itertools.accumulate(ends, max))
    return tuple(end - before + least for before, end in itertools.pairwise((0, *ends, span)))


def factorise(choices: Choices, number: int, count: int) -> tuple[int, ...]:
    """`count` factors whose product is `number` (a positive integer, or 0), prime factors dealt out at random."""
    if count == 0:
        return ()
    factors = [1] * count
    if number == 0:
        factors[choices.integer(0, count - 1)] = 0
        return tuple(factors)
    rest, divisor = number, 2
    while rest > 1:
        if divisor > math.isqrt(rest):
            divisor = rest
        while rest % divisor == 0:
            factors[choices.integer(0, count - 1)] *= divisor
            rest //= divisor
        divisor += 1
        if divisor > 4096:
            factors[choices.integer(0, count - 1)] *= rest
            break
    return tuple(factors)
