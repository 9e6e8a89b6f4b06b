"""Which sizes generation prefers, and the size regimes of networks and kernels.

Pairwise different, odd and prime sizes show transposes and layout faults that square shapes hide; sizes at and beside
powers of two show tails of tiles; 1 shows broadcasts.
"""

from __future__ import annotations

import bisect
import enum
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from aclnn_cts.core.regime import LEAST_LARGE, Regime
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import Choices
from aclnn_cts.speclang.package import products

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

    @property
    def least_rank(self) -> int:
        """Fewest dimensions that a tensor needs for them."""
        ...

    def size(self, choices: Choices, low: int, high: int, *, later: int, is_last: bool, unit: int = 0) -> int:
        """A dimension in [low, high], with `later` dimensions to be drawn after it.

        `is_last` of a tensor; `unit`: elements of one, where training has it large together with others, else 0.
        """
        ...


@dataclass(slots=True)
class MixedSizes:
    """Sizes of every sort, small ones first of all, and different from one another where `distinct`."""

    budget: int
    distinct: bool
    taken: list[int] = field(default_factory=list)

    @property
    def least_rank(self) -> int:
        """Any rank has sizes of every sort."""
        return 0

    def size(self, choices: Choices, low: int, high: int, *, later: int, is_last: bool, unit: int = 0) -> int:
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


def divide_total(choices: Choices, total: int, count: int, least: int) -> tuple[int, ...]:
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


class Carriers(enum.Enum):
    """Which dimensions carry a regime's sizes."""

    ALL = "all"
    SEVERAL = "several"
    ONE = "one"
    ROWS = "rows"
    """All but the last."""


QUICK = tuple(regime for regime in Regime if regime is not Regime.HEAVY)
"""The regimes of every profile; in quick a tensor has at most 2^16 elements."""
STANDARD = tuple(Regime)
"""Those of the longer profiles."""

SHARES: Mapping[Regime, int] = MappingProxyType(
    {
        Regime.TINY: 80,
        Regime.ODD: 120,
        Regime.ALIGNED: 160,
        Regime.EDGE: 100,
        Regime.LONG: 30,
        Regime.WIDE: 40,
        Regime.REAL: 40,
        Regime.HEAVY: 2,
    }
)
"""How many of a thousand random cases are drawn for each regime; all others mix sizes (`sizes.MixedSizes`)."""

LARGE_SHARES: Mapping[bool, int] = MappingProxyType({False: 125, True: 520})
"""How many of a thousand random cases have large sizes, of an operator that has such: in quick, and in longer profiles.

So a third of the calls of a standard plan do, and of quick as many as cost a tenth of its time.
"""

_TILES = (8, 16, 32, 64, 128, 256)
_ODD = (
    3, 5, 7, 9, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 127, 131, 151,
)  # fmt: skip
_REAL = (
    768, 1024, 1152, 1280, 1536, 1600, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 12288, 16384,
    80, 128, 256, 320, 512, 640, 1500, 3000, 900, 8400, 21760, 32000, 151936,
)  # fmt: skip
"""Hidden sizes of language and vision models; mel bins and frames of audio models; queries and anchors of detectors;
vocabularies."""

_LARGE = (64, 65, 80, 96, 127, 128, 129, 192, 255, 256, 257, 511, 512, 513, 2047, 2048, 2049, 4096)
"""Blocks of kernels with their edges, and the widths of heads of published networks."""
_LARGE_ELEMENTS = {False: (1 << 15, 1 << 16), True: (1 << 16, 1 << 18)}
"""Most elements of a tensor in quick, and in the longer profiles."""
_TINY = 64
_LONG = (1 << 10, 1 << 17)
_WIDE_ROWS = 1 << 10
_HEAVY = (1 << 18, 1 << 22)

_ELEMENTS: Mapping[Regime, tuple[int, int]] = MappingProxyType(
    {
        Regime.TINY: (48, 160),
        Regime.ODD: (160, 2048),
        Regime.ALIGNED: (1 << 10, 1 << 13),
        Regime.EDGE: (1 << 10, 1 << 13),
        Regime.LONG: (1 << 14, 1 << 16),
        Regime.WIDE: (1 << 13, 1 << 15),
        Regime.REAL: (1 << 10, 1 << 16),
        Regime.HEAVY: _HEAVY,
    }
)
"""Most elements of a tensor, from the least to the greatest limit that is drawn."""
_LARGER: Mapping[Regime, tuple[int, int]] = MappingProxyType(
    {**_ELEMENTS, Regime.LONG: (1 << 14, 1 << 18), Regime.REAL: (1 << 10, 1 << 18)}
)
"""The same in the longer profiles, where a dimension may be as long as it is in networks."""
_VOCABULARIES = (32000, 151936)


@dataclass(slots=True)
class RegimeSizes:
    """Draws the sizes of one case of a regime."""

    regime: Regime
    budget: int
    """Most elements of a tensor."""
    carriers: Carriers
    tiles: Sequence[int]
    carried: int = 0
    """Dimensions so far that carry the regime's sizes."""

    @property
    def least_rank(self) -> int:
        """Rows stand before a last dimension."""
        return 2 if self.regime is Regime.WIDE else 0

    def size(self, choices: Choices, low: int, high: int, *, later: int, is_last: bool, unit: int = 0) -> int:
        """A dimension in [low, high], with `later` dimensions to be drawn after it; `is_last` of a tensor."""
        if high <= low:
            return low
        if not self._carries(choices, later, is_last=is_last):
            return _tiny(choices, low, high, self.tiles)
        share = max(low, self._share(high, later))
        self.carried += 1
        return max(low, min(high, _VALUES[self.regime](choices, low, share, self.tiles)))

    def _carries(self, choices: Choices, later: int, *, is_last: bool) -> bool:
        if self.carriers is Carriers.ALL:
            return True
        if self.carriers is Carriers.ROWS:
            return self.carried < 2 and (not is_last or (later == 0 and not self.carried))
        if self.carriers is Carriers.ONE:
            return not self.carried and choices.integer(0, later) == later
        return choices.chance(1, 2) or (later == 0 and not self.carried)

    def _share(self, high: int, later: int) -> int:
        """What of the elements left a dimension may take: those after it have their share too."""
        if self.carriers is Carriers.ONE:
            return high
        if self.carriers is Carriers.ROWS:
            return math.isqrt(high) if later > 1 and not self.carried else -(-high // 4) if later else high
        # Of many dimensions the first have tiles, instead of none.
        return int(high ** (1 / (1 + min(later, 2))))


def draw_sizes(choices: Choices, regime: Regime, target: Target, *, heavy: bool = False) -> RegimeSizes:
    """A regime's limit on elements and what carries its sizes, for one case; `heavy`: of a longer profile."""
    least, most = (_LARGER if heavy else _ELEMENTS)[regime]
    return RegimeSizes(regime, _logarithmic(choices, least, most), choices.pick(_CARRIERS[regime]), _tiles(target))


@dataclass(slots=True)
class LargeSizes:
    """Sizes of one case in which all that training has large together are at least a block, and others are 1 or 2."""

    budget: int
    least_rank: int = field(default=0, init=False)

    def size(self, choices: Choices, low: int, high: int, *, later: int, is_last: bool, unit: int = 0) -> int:
        """A dimension in [low, high], with `later` dimensions to be drawn after it."""
        if not unit:
            return max(low, min(high, 2)) if choices.chance(1, 4) else low
        # Sizes after it get a block at least.
        most = max(math.isqrt(high * unit * LEAST_LARGE), LEAST_LARGE) if later else high * unit
        fitting = [size // unit for size in _LARGE if size % unit == 0 and low * unit <= size <= min(high * unit, most)]
        return choices.pick(fitting) if fitting else max(low, min(high, LEAST_LARGE // unit))


def large_sizes(choices: Choices, *, heavy: bool = False) -> LargeSizes:
    """Large sizes for one case; `heavy`: of a longer profile."""
    return LargeSizes(_logarithmic(choices, *_LARGE_ELEMENTS[heavy]))


def _tiles(target: Target) -> tuple[int, ...]:
    """Tiles of vector and matrix units, and the numbers of cores that blocks are dealt out to."""
    cores = {count.ai for count in products()[target.product].cores.values()} | ({target.core_count or 8})
    return (*_TILES, *(8 * number for number in sorted(cores)))


_ANY = (Carriers.ONE, Carriers.SEVERAL, Carriers.ALL)
_CARRIERS: Mapping[Regime, Sequence[Carriers]] = MappingProxyType(
    {
        Regime.TINY: (Carriers.ALL,),
        Regime.ODD: (Carriers.ALL,),
        Regime.ALIGNED: _ANY,
        Regime.EDGE: _ANY,
        Regime.LONG: (Carriers.ONE,),
        Regime.WIDE: (Carriers.ROWS,),
        Regime.REAL: (Carriers.ONE,),
        Regime.HEAVY: (Carriers.ROWS, Carriers.ROWS, Carriers.SEVERAL),
    }
)


def _logarithmic(choices: Choices, low: int, high: int) -> int:
    """An integer in [low, high], each doubling as likely as any other, and half the time a power of two."""
    if high <= low:
        return low
    exponent = choices.integer(low.bit_length() - 1, high.bit_length() - 1)
    value = (1 << exponent) + (0 if choices.chance(1, 2) else choices.integer(0, (1 << exponent) - 1))
    return min(max(value, low), high)


def _tiny(choices: Choices, low: int, high: int, _tiles: Sequence[int]) -> int:
    return choices.integer(low, min(high, max(low, 3)))


def _odd(choices: Choices, low: int, high: int, _tiles: Sequence[int]) -> int:
    fitting = [size for size in _ODD if low <= size <= high]
    return choices.pick(fitting) if fitting else low | 1


def _aligned(choices: Choices, low: int, high: int, _tiles: Sequence[int]) -> int:
    fitting = [tile for tile in _TILES if -(-low // tile) * tile <= high]
    if not fitting:
        return _tiny(choices, low, high, ())
    tile = choices.pick(fitting)
    first = -(-low // tile)
    return tile * choices.integer(first, min(high // tile, first + 3))


def _edge(choices: Choices, low: int, high: int, tiles: Sequence[int]) -> int:
    fitting = [tile for tile in tiles if low < tile < high]
    if not fitting:
        return _tiny(choices, low, high, ())
    tile = choices.pick(fitting)
    return tile * choices.integer(1, min((high - 1) // tile, 3)) + choices.pick((1, -1))


def _long(choices: Choices, low: int, high: int, _tiles: Sequence[int]) -> int:
    return _logarithmic(choices, max(low, min(_LONG[0], high)), min(high, _LONG[1]))


def _wide(choices: Choices, low: int, high: int, _tiles: Sequence[int]) -> int:
    return choices.integer(max(low, high // 2), high)


def _real(choices: Choices, low: int, high: int, _tiles: Sequence[int]) -> int:
    largest = max(_VOCABULARIES)
    if low <= largest <= high and choices.chance(1, 2):
        return choices.pick(_VOCABULARIES)  # few draws have room for them
    fitting = [size for size in _REAL if low <= size <= high]
    return choices.pick(fitting) if fitting else high


_VALUES: Mapping[Regime, Callable[[Choices, int, int, Sequence[int]], int]] = MappingProxyType(
    {
        Regime.TINY: _tiny,
        Regime.ODD: _odd,
        Regime.ALIGNED: _aligned,
        Regime.EDGE: _edge,
        Regime.LONG: _long,
        Regime.WIDE: _wide,
        Regime.REAL: _real,
        Regime.HEAVY: _wide,
    }
)


def regimes_of(shapes: Iterable[Sequence[int]]) -> frozenset[Regime]:
    """The regimes that tensors of these shapes are in.

    - tiny: no tensor has more than 64 elements.
    - odd: the last dimension of a tensor, and every other above 3, is odd, or a power of two times an odd one: as many
      tensors side by side.
    - aligned: a dimension is a multiple of 8.
    - edge: a dimension is a multiple of 8 plus or minus 1.
    - long: a dimension has 2^10 or more. Wide: as many rows, whatever the last dimension.
    - real: a dimension is one of published networks. Heavy: a tensor has 2^18 or more elements.
    """
    known = [tuple(shape) for shape in shapes if shape and min(shape) > 0]
    sizes = [size for shape in known for size in shape]
    large = [size for size in sizes if size > 3]
    odd = {size for size in sizes if size % 2 and size > 1}
    checks = {
        Regime.TINY: bool(known) and max(map(math.prod, known)) <= _TINY,
        Regime.ODD: bool(large) and odd.issuperset(map(_odd_part, large)) and any(shape[-1] % 2 for shape in known),
        Regime.ALIGNED: any(size % 8 == 0 for size in sizes),
        Regime.EDGE: any(size > 6 and size % 8 in (1, 7) for size in sizes),
        Regime.LONG: any(size >= _LONG[0] for size in sizes),
        Regime.WIDE: any(math.prod(shape[:-1]) >= _WIDE_ROWS for shape in known),
        Regime.REAL: any(size in _REAL for size in sizes),
        Regime.HEAVY: any(math.prod(shape) >= _HEAVY[0] for shape in known),
    }
    return frozenset(regime for regime, holds in checks.items() if holds)


def _odd_part(size: int) -> int:
    """A size above 0 without its factors of 2."""
    return size // (size & -size)
