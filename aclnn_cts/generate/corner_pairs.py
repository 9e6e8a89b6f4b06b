"""Which pairs of corners calls have had, and which of the others are doubtful: kept as bits."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

Option: TypeAlias = tuple[int, int]
"""The places of a factor and of its corner."""

_DOUBTED = 8.0
"""Refusals after which a pair is doubtful. One that several pairs may be the cause of counts for each in part."""
_WORTH_ALONE = 4
"""Pairs that an option counts for which no call has had yet: it comes before most pairs."""


class OptionPairs:
    """The pairs of options of two factors. A set of options is a number, with a bit for each."""

    def __init__(self, counts: Sequence[int]) -> None:
        """`counts`: the corners of each factor."""
        self._starts = list(itertools.accumulate(counts, initial=0))
        self._options = [(place, option) for place, count in enumerate(counts) for option in range(count)]
        self._own = [((1 << count) - 1) << start for start, count in zip(self._starts, counts, strict=False)]
        every = (1 << self._starts[-1]) - 1
        self._had = [0] * self._starts[-1]
        """Of each option those that a call has had beside it; then those that are still to be had, and the doubtful."""
        self._missing = [every & ~self._own[place] for place, _ in self._options]
        self._doubtful = [0] * self._starts[-1]
        self._excluded = [0] * self._starts[-1]
        self._refused: dict[tuple[int, int], float] = defaultdict(float)
        self._met = 0
        self._left = [0] * self._starts[-1]

    def _index(self, option: Option) -> int:
        return self._starts[option[0]] + option[1]

    def bits(self, options: Iterable[Option]) -> int:
        """These options as a set."""
        return sum(1 << self._index(option) for option in options)

    @property
    def visited(self) -> int:
        """How many options calls have had."""
        return self._met.bit_count()

    def is_met(self, option: Option) -> bool:
        """Whether a call has had an option."""
        return bool(self._met >> self._index(option) & 1)

    def covered_pairs(self) -> Iterator[tuple[Option, Option]]:
        """The pairs that calls have had."""
        for number, beside in enumerate(self._had):
            yield from ((self._options[other], self._options[number]) for other in _places(beside) if other < number)

    def count_new_pairs(self, option: Option, beside: int) -> int:
        """How many pairs with these an option would meet for the first time; more where it would be itself."""
        number = self._index(option)
        return (self._missing[number] & beside).bit_count() + _WORTH_ALONE * (not self._met >> number & 1)

    def count_missing_pairs(self, option: Option) -> int:
        """How many pairs of an option with others that have been met were still to be had before this call."""
        return self._left[self._index(option)]

    def rank_options(self, place: int, options: Iterable[int], beside: int) -> list[int]:
        """Options of a factor: those in no doubtful pair with these first, and of them those that are worth most."""
        start, doubtful, missing, left, met = self._starts[place], self._doubtful, self._missing, self._left, self._met

        def key(option: int) -> tuple[int, int, int]:
            number = start + option
            worth = (missing[number] & beside).bit_count() + (0 if met >> number & 1 else _WORTH_ALONE)
            return -(doubtful[number] & beside).bit_count(), worth, left[number]

        return sorted(options, key=key, reverse=True)

    def note_call(self, options: Sequence[Option]) -> None:
        """Note what one call has had."""
        whole = self.bits(options)
        self._met |= whole
        for option in options:
            number, beside = self._index(option), whole & ~self._own[option[0]]
            self._had[number] |= beside
            self._missing[number] &= ~beside
            self._doubtful[number] &= ~beside
        self._left = [(missing & self._met).bit_count() for missing in self._missing]

    def exclude_pair(self, one: Option, other: Option) -> None:
        """Take a pair for one that no call can have, whatever is forgiven."""
        first, second = self._index(one), self._index(other)
        self._excluded[first] |= 1 << second
        self._excluded[second] |= 1 << first
        self._doubt(first, second)

    def _doubt(self, one: int, other: int) -> None:
        for number, beside in ((one, 1 << other), (other, 1 << one)):
            self._missing[number] &= ~beside
            self._doubtful[number] |= beside

    def note_refusal(self, option: Option, beside: int) -> None:
        """Note that an option could not be had beside these: of the pairs that no call has had, one may be why."""
        number = self._index(option)
        suspects = list(_places(beside & ~self._had[number] & ~self._own[option[0]]))
        for other in suspects:
            pair = min(number, other), max(number, other)
            self._refused[pair] += 1 / len(suspects)
            if self._refused[pair] >= _DOUBTED:
                self._doubt(number, other)

    def clear_refusals(self) -> None:
        """Doubt no refused pair any more: all others have been had, and chance may have refused some of these."""
        triples = zip(self._missing, self._doubtful, self._excluded, strict=True)
        self._missing = [missing | doubtful & ~excluded for missing, doubtful, excluded in triples]
        self._doubtful = list(self._excluded)
        self._refused.clear()


def _places(bits: int) -> Iterator[int]:
    """The numbers of the bits that are set, from the highest on."""
    while bits:
        highest = bits.bit_length() - 1
        yield highest
        bits ^= 1 << highest
