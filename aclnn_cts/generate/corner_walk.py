"""Calls of a plan at corners: which corners meet in one call.

`CornerWalk` chooses greedily what meets most pairs that have not met yet (Cohen et al., "The AETG system", IEEE TSE 23,
1997). What a rule forbids is not known beforehand: it is tried, and given up after a few calls.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from aclnn_cts.core.case import Case, Origin
from aclnn_cts.generate.choices import Choices, StreamChoices
from aclnn_cts.generate.configuration import DATA_KINDS
from aclnn_cts.generate.corner_calls import NO_PLACE, TOO_LARGE, UNDONE, CornerCall
from aclnn_cts.generate.corners import Factor, Kind, factors_of
from aclnn_cts.generate.sampler import Sampler

QUICK_ELEMENTS = 1 << 16
"""Most elements of a tensor of a quick plan's corners."""
STANDARD_ELEMENTS = 1 << 18
"""The same of the longer profiles."""

_FIRST = (Kind.DTYPES, Kind.REGIME, Kind.DATA)
"""Kinds of factors that a drawing begins with."""
_SIZES = (Kind.SIZES, Kind.PLANE)
"""Those that change the sizes of a regime: half of the calls have neither, and keep the regime in all they take."""
_CHANCE = (NO_PLACE, TOO_LARGE, UNDONE)
"""Refusals by what else a call has, and not by a rule."""
_HOSTILE = DATA_KINDS[-1]
_TRIES_ALONE = 24
"""Calls in which a corner is tried before it counts as one that no call can have: some drawings have no room for it."""
_AGAIN = 4
"""In every so many-th call, one that no rule refused is tried again: it may need a rank, or a shape of its own."""
_TRIES_TOGETHER = 3
"""The same of a pair of corners that each have been met: fewer, since there are a hundred times as many."""
_TRIES_IN_ONE = 3
"""Options of a factor that are tried in one call; then it stays as it was drawn."""
_WORTH_ALONE = 4
"""Pairs that a corner counts for which no call has had yet: it comes before most pairs."""

_Option: TypeAlias = tuple[int, int]
"""The places of a factor and of its corner."""


class CornerCase(msgspec.Struct, frozen=True):
    """A valid call, and all corners that it has: factor and label."""

    case: Case
    corners: tuple[tuple[str, str], ...]


class CornerWalk:
    """Valid calls of one operator at its corners, one after the other: call `n` depends on those before it."""

    def __init__(self, sampler: Sampler, *, seed: int, heavy: bool = False) -> None:
        self._sampler, self._seed = sampler, seed
        self._most = STANDARD_ELEMENTS if heavy else QUICK_ELEMENTS
        self.factors = factors_of(sampler, heavy=heavy)
        self._met: set[_Option] = set()
        self._pairs: set[tuple[_Option, _Option]] = set()
        self._failed: Counter[tuple[_Option, ...]] = Counter()
        self._refusals: dict[_Option, Counter[str]] = defaultdict(Counter)
        self._number = 0

    @property
    def visited(self) -> int:
        """How many corners calls have had so far."""
        return len(self._met)

    @property
    def share_of_pairs(self) -> float:
        """Of all pairs of visited corners of two factors, those that one call has had; rules forbid some of all."""
        counts = Counter(place for place, _ in self._met).values()
        possible = sum(one * other for one, other in itertools.combinations(counts, 2))
        return len(self._pairs) / possible if possible else 1.0

    def missed(self) -> Iterator[tuple[str, str, str]]:
        """Factor and label of the corners that no call has had so far, and what refused them most often."""
        for option in _options(self.factors):
            if option not in self._met:
                factor = self.factors[option[0]]
                [(reason, _)] = self._refusals[option].most_common(1) or [("not tried", 0)]
                yield factor.name, factor.corners[option[1]].label, reason

    def following(self) -> CornerCase:
        """The next call."""
        name = f"{self._sampler.spec.operator}/{self._sampler.target.product}/corner"
        choices = StreamChoices(self._seed, name, self._number)
        self._number += 1
        chosen = self._begun(choices)
        begun = [(self.factors[place], option) for place, option in chosen.items()]
        first = {factor.kind: factor.corners[option].value for factor, option in begun}
        is_resized = self._number % 2 == 1
        call = CornerCall(self._sampler, choices, most=self._most, first=first, keeps_regime=not is_resized)
        sizes = [place for place, factor in enumerate(self.factors) if factor.kind in _SIZES]
        views = [place for place, factor in enumerate(self.factors) if factor.kind is Kind.VIEW]
        others = [place for place in range(len(self.factors)) if place not in (*chosen, *sizes, *views)]
        if sizes and is_resized:
            # Before attributes, which may follow from sizes: a scale agrees with them.
            self._settle(sizes[self._number // 2 % len(sizes)], call, choices, chosen)
        while others:
            self._settle(others.pop(choices.integer(0, len(others) - 1)), call, choices, chosen)
        if self._number % 3:
            # Contiguous is what most calls are: every third one stays so.
            self._lay_out(views, call, choices, chosen)
        return self._noted(call, chosen)

    def _noted(self, call: CornerCall, chosen: Mapping[int, int]) -> CornerCase:
        """The call with the corners that it has, of which some were not chosen and some that were chosen are undone."""
        had = [option for option in _options(self.factors) if self._has(call, option)]
        self._met.update(had)
        self._pairs.update(pair for pair in itertools.combinations(had, 2) if pair[0][0] != pair[1][0])
        for option in chosen.items() - set(had):
            self._refused(option, {}, UNDONE)
        corners = tuple((self.factors[place].name, self.factors[place].corners[option].label) for place, option in had)
        origin = Origin(kind="valid", corners=tuple(f"{name}: {label}" for name, label in corners))
        return CornerCase(msgspec.structs.replace(call.case, origin=origin), corners)

    def _has(self, call: CornerCall, option: _Option) -> bool:
        factor = self.factors[option[0]]
        return call.has(factor, factor.corners[option[1]])

    def _begun(self, choices: Choices) -> dict[int, int]:
        """The options that a drawing begins with."""
        chosen: dict[int, int] = {}
        for place, factor in enumerate(self.factors):
            if factor.kind in _FIRST:
                ranked = self._ranked(place, choices, chosen)
                # Much of what hostile data give is open: every other call that would have them has another kind.
                skipped = factor.corners[ranked[0]].value == _HOSTILE and choices.chance(1, 2)
                chosen[place] = ranked[1 if skipped and len(ranked) > 1 else 0]
        return chosen

    def _ranked(self, place: int, choices: Choices, chosen: Mapping[int, int]) -> list[int]:
        """The options of a factor, those first that meet most for the first time; none that is given up."""
        count = len(self.factors[place].corners)
        turn = choices.integer(0, count - 1)
        beside = list(chosen.items()) if chosen else self._beginning(place)
        worth = {
            option: self._worth((place, option), beside)
            for option in ((turn + step) % count for step in range(count))
            if (place, option) in self._met or not self._is_given_up((place, option))
        }
        return sorted(worth, key=worth.__getitem__, reverse=True)

    def _is_given_up(self, option: _Option) -> bool:
        """Whether no call is made for a corner any more that none has had."""
        if self._failed[(option,)] < _TRIES_ALONE:
            return False
        return self._number % _AGAIN != 0 or not any(reason in _CHANCE for reason in self._refusals[option])

    def _beginning(self, place: int) -> list[_Option]:
        """All options of the others that a drawing begins with: what is left to do with them decides on the first."""
        others = [option for option in _options(self.factors) if self.factors[option[0]].kind in _FIRST]
        return [option for option in others if option[0] != place]

    def _worth(self, option: _Option, beside: Sequence[_Option]) -> int:
        """How many pairs with these an option would meet for the first time, itself counted where it would be."""
        pairs = [_ordered(option, other) for other in beside]
        missing = sum(pair not in self._pairs and self._failed[pair] < _TRIES_TOGETHER for pair in pairs)
        return missing + _WORTH_ALONE * (option not in self._met)

    def _settle(self, place: int, call: CornerCall, choices: Choices, chosen: dict[int, int]) -> None:
        """Choose the option of a factor that meets most, and another where it makes no valid call."""
        factor = self.factors[place]
        for option in self._ranked(place, choices, chosen)[:_TRIES_IN_ONE]:
            refusal = call.take(factor, factor.corners[option])
            if not refusal:
                chosen[place] = option
                return
            self._refused((place, option), chosen, refusal)

    def _lay_out(self, places: Sequence[int], call: CornerCall, choices: Choices, chosen: dict[int, int]) -> None:
        """Choose a view of each tensor, of those that its shape can have; all of them are taken together."""
        views = {}
        for place in places:
            factor = self.factors[place]
            for option in self._ranked(place, choices, chosen):
                view = factor.corners[option].value
                if call.can_view(factor.of, view):
                    views[factor.of], chosen[place] = view, option
                    break
                self._refused((place, option), chosen, NO_PLACE)
        if refusal := call.lay_out(views):
            for place in places:
                if place in chosen:
                    self._refused((place, chosen.pop(place)), chosen, refusal)

    def _refused(self, option: _Option, chosen: Mapping[int, int], reason: str) -> None:
        """Count an option that could not be had beside these."""
        self._refusals[option][reason] += 1
        self._failed[(option,)] += 1
        if option in self._met:
            self._failed.update(_ordered(option, other) for other in chosen.items())


def _options(factors: Sequence[Factor]) -> Iterator[_Option]:
    for place, factor in enumerate(factors):
        yield from ((place, option) for option in range(len(factor.corners)))


def _ordered(one: _Option, other: _Option) -> tuple[_Option, _Option]:
    return (one, other) if one < other else (other, one)


@functools.lru_cache(maxsize=2)
def _walk(sampler: Sampler, seed: int, *, heavy: bool) -> tuple[CornerWalk, list[Case]]:
    """The walk of a plan and the cases that it has made: a part of it begins where another one ended."""
    return CornerWalk(sampler, seed=seed, heavy=heavy), []


def corner_cases(sampler: Sampler, *, seed: int, first: int, count: int, heavy: bool = False) -> Iterator[Case]:
    """Cases `first` to `first + count - 1` of a plan's walk along the corners."""
    walk, made = _walk(sampler, seed, heavy=heavy)
    for number in range(first, first + count):
        while len(made) <= number:
            made.append(walk.following().case)
        yield made[number]
