"""Calls of a plan at corners: which corners meet in one call.

`CornerWalk` chooses greedily what meets most pairs that have not met yet (Cohen et al., "The AETG system", IEEE TSE 23,
1997): of some candidates the best. What a rule forbids is not known beforehand: it is tried, and doubted after a few
refusals (`corner_pairs`).
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from aclnn_cts.core.case import Case, Origin
from aclnn_cts.generate.choices import Choices, StreamChoices
from aclnn_cts.generate.configuration import DATA_KINDS
from aclnn_cts.generate.corner_calls import NO_PLACE, TOO_LARGE, UNDONE, CornerCall
from aclnn_cts.generate.corner_list import corner_text
from aclnn_cts.generate.corner_pairs import Option, OptionPairs
from aclnn_cts.generate.corners import Corner, Factor, FactorKind, factors_of
from aclnn_cts.generate.sampler import Sampler

QUICK_ELEMENTS = 1 << 16
"""Most elements of a tensor of a quick plan's corners."""
STANDARD_ELEMENTS = 1 << 18
"""The same of the longer profiles."""

_FIRST = (FactorKind.DTYPES, FactorKind.REGIME, FactorKind.DATA)
"""Kinds of factors that a drawing begins with."""
_SIZES = (FactorKind.SIZES, FactorKind.PLANE)
"""Those that change the sizes of a regime: a call with neither keeps the regime in all that it takes."""
_CHANCE = (NO_PLACE, TOO_LARGE, UNDONE)
"""Refusals by what else a call has, and not by a rule."""
_HOSTILE = DATA_KINDS[-1]
_TRIES_ALONE = 24
"""Calls in which a corner is tried before it counts as one that no call can have: some drawings have no room for it."""
_AGAIN = 4
"""In every so many-th call, one that no rule refused is tried again: it may need a rank, or a shape of its own."""
_OTHERS = 1
"""Other options of a factor that are tried where a call cannot have the wanted one; then it stays as it was drawn."""
_ALL_CONTIGUOUS = 5
"""Every so many-th call has contiguous tensors alone, as most calls of users have."""
_EXTREME = 3
"""Every so many-th call may have a size that is large or 1."""
_LAYOUTS = 4
"""Ways to lay out the tensors of a call of which the best is taken."""


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
        self._first, self._sizes, self._views = map(self._places, (_FIRST, _SIZES, (FactorKind.VIEW,)))
        self._drawn = tuple(place for place in range(len(self.factors)) if place not in self._views)
        self._pairs = OptionPairs([len(factor.corners) for factor in self.factors])
        for null, other in _exclusive(self.factors):
            self._pairs.exclude_pair(null, other)
        self._failed: Counter[Option] = Counter()
        self._refusals: dict[Option, Counter[str]] = defaultdict(Counter)
        self._number = 0

    def _places(self, kinds: Sequence[FactorKind]) -> tuple[int, ...]:
        return tuple(place for place, factor in enumerate(self.factors) if factor.kind in kinds)

    @property
    def visited(self) -> int:
        """How many corners calls have had so far."""
        return self._pairs.visited

    def pairs(self) -> frozenset[frozenset[str]]:
        """The pairs of corners of two factors that one call has had, each corner as `factor: label`."""
        words = {option: corner_text(*self._named(option)) for option in _options(self.factors)}
        return frozenset(frozenset((words[one], words[other])) for one, other in self._pairs.covered_pairs())

    def missed_corners(self) -> Iterator[tuple[str, str, str]]:
        """Factor and label of the corners that no call has had so far, and what refused them most often."""
        for option in _options(self.factors):
            if not self._pairs.is_met(option):
                [(reason, _)] = self._refusals[option].most_common(1) or [("not tried", 0)]
                yield (*self._named(option), reason)

    def _named(self, option: Option) -> tuple[str, str]:
        factor, corner = self._at(option)
        return factor.name, corner.label

    def _at(self, option: Option) -> tuple[Factor, Corner]:
        factor = self.factors[option[0]]
        return factor, factor.corners[option[1]]

    def next_call(self) -> CornerCase:
        """The next call."""
        name = f"{self._sampler.spec.operator}/{self._sampler.target.product}/corner"
        choices = StreamChoices(self._seed, name, self._number)
        self._number += 1
        wanted = self._wanted(choices)
        chosen = {place: option for place, option in wanted.items() if place in self._first}
        first = {factor.kind: corner.value for factor, corner in map(self._at, chosen.items())}
        sizes = [place for place in wanted if place in self._sizes]
        call = CornerCall(self._sampler, choices, most=self._most, first=first, keeps_regime=not sizes)
        # Before attributes, which may follow from sizes: a scale agrees with them.
        for place in sizes:
            self._settle((place, wanted[place]), call, choices, chosen, self._pairs.bits(chosen.items()))
        others = [option for option in wanted.items() if option[0] not in (*chosen, *sizes, *self._views)]
        # What is refused may go with those that are taken after it, and is tried again.
        if refused := [option for option in others if self._taken(option, call, chosen)]:
            beside = self._pairs.bits(self._had(call, self._drawn))
            for option in refused:
                self._settle(option, call, choices, chosen, beside)
        if not self._is_contiguous:
            call.widen_sizes([self._at(option) for option in chosen.items()])
        drawn = self._had(call, self._drawn)
        if not self._is_contiguous:
            self._lay_out(call, choices, chosen, self._pairs.bits(drawn))
        return self._noted(call, chosen, sorted([*drawn, *self._had(call, self._views)]))

    @property
    def _is_contiguous(self) -> bool:
        """Whether all tensors of this call are to be contiguous."""
        return self._number % _ALL_CONTIGUOUS == 0

    def _noted(self, call: CornerCall, chosen: Mapping[int, int], had: Sequence[Option]) -> CornerCase:
        """The call with the corners that it has, of which some were not chosen and some that were chosen are undone."""
        self._pairs.note_call(had)
        for option in chosen.items() - set(had):
            self._refused(option, 0, UNDONE)
        corners = tuple(map(self._named, had))
        origin = Origin(kind="valid", corners=tuple(corner_text(*corner) for corner in corners))
        return CornerCase(msgspec.structs.replace(call.case, origin=origin), corners)

    def _had(self, call: CornerCall, places: Sequence[int]) -> list[Option]:
        """The options of some factors that a call has."""
        return [
            (place, option)
            for place in places
            for option, corner in enumerate(self.factors[place].corners)
            if call.has_corner(self.factors[place], corner)
        ]

    def _wanted(self, choices: Choices) -> dict[int, int]:
        """The options that the next call is to have: the candidate that meets most pairs for the first time.

        Two candidates have no factor of sizes, and two have each of these.
        """
        usable = {
            place: [option for option in range(len(factor.corners)) if not self._is_given_up((place, option))]
            for place, factor in enumerate(self.factors)
        }
        if choices.chance(1, 2):
            # Much of what hostile data give is open: every other call has none.
            usable = {
                place: [option for option in found if self._at((place, option))[1].value != _HOSTILE]
                for place, found in usable.items()
            }
        # Any regime: calls that are good for pairs of views would be small ones.
        regimes = self._places((FactorKind.REGIME,))
        usable |= {place: [choices.pick(usable[place])] for place in regimes if usable[place]}
        varied = self._drawn if self._is_contiguous else (*self._drawn, *self._views)
        fixed = {place: usable[place] for place in varied if place not in self._sizes}
        is_extreme = self._number % _EXTREME == 0
        sizes = (place for place in self._sizes if is_extreme or self.factors[place].kind is FactorKind.PLANE)
        best: dict[int, int] = {}
        most = -1
        for resized, is_sorted in itertools.product(({}, *({place: usable[place]} for place in sizes)), (False, True)):
            candidate, worth = self._candidate({**fixed, **resized}, choices, is_sorted=is_sorted)
            if worth > most:
                best, most = candidate, worth
        if not most and not self._is_contiguous:
            self._pairs.clear_refusals()
        return best

    def _is_given_up(self, option: Option) -> bool:
        """Whether no call is made for a corner any more that none has had."""
        if self._failed[option] < _TRIES_ALONE or self._pairs.is_met(option):
            return False
        return self._number % _AGAIN != 0 or not any(reason in _CHANCE for reason in self._refusals[option])

    def _candidate(
        self, usable: Mapping[int, Sequence[int]], choices: Choices, *, is_sorted: bool
    ) -> tuple[dict[int, int], int]:
        """An option of each factor, and how many pairs they would meet for the first time.

        The first option is the one that misses most pairs. Then come factors that miss most, or any.
        """
        options = [(place, option) for place, found in usable.items() for option in found]
        turn = choices.integer(0, len(options) - 1)
        first = max(options[turn:] + options[:turn], key=self._pairs.count_missing_pairs)
        wanted, beside, worth = dict([first]), self._pairs.bits([first]), self._pairs.count_new_pairs(first, 0)
        left = [place for place, found in usable.items() if found and place != first[0]]
        if is_sorted:
            left.sort(
                key=lambda place: sum(self._pairs.count_missing_pairs((place, option)) for option in usable[place])
            )
        while left:
            place = left.pop() if is_sorted else left.pop(choices.integer(0, len(left) - 1))
            ranked = self._ranked(place, usable[place], beside, choices)
            wanted[place] = ranked[0]
            worth += self._pairs.count_new_pairs((place, ranked[0]), beside)
            beside |= self._pairs.bits([(place, ranked[0])])
        return wanted, worth

    def _ranked(self, place: int, options: Sequence[int], beside: int, choices: Choices) -> list[int]:
        """The options of a factor, those first that meet most for the first time."""
        turn = choices.integer(0, len(options) - 1)
        return self._pairs.rank_options(place, [*options[turn:], *options[:turn]], beside)

    def _taken(self, option: Option, call: CornerCall, chosen: dict[int, int]) -> str:
        """Make a call have an option; why it cannot, or an empty text."""
        refusal = call.set_corner(
            *self._at(option), kept=[self._at(item) for item in chosen.items() if item[0] in self._sizes]
        )
        if not refusal:
            chosen.update([option])
        return refusal

    def _settle(self, wanted: Option, call: CornerCall, choices: Choices, chosen: dict[int, int], beside: int) -> None:
        """Take an option of a factor, or another one where it makes no valid call; `beside`: what the call has."""
        place, first = wanted
        others = [option for option in range(len(self.factors[place].corners)) if option != first]
        usable = [option for option in others if not self._is_given_up((place, option))]
        ranked = self._ranked(place, usable, beside, choices)[:_OTHERS] if usable else []
        for option in (first, *ranked):
            refusal = self._taken((place, option), call, chosen)
            if not refusal:
                return
            self._refused((place, option), beside, refusal)

    def _lay_out(self, call: CornerCall, choices: Choices, chosen: dict[int, int], drawn: int) -> None:
        """Choose a view of each tensor, of those that its shape can have; all of them are taken together.

        `drawn`: what else the call has.
        """
        possible: dict[int, list[int]] = defaultdict(list)
        for place, factor in ((place, self.factors[place]) for place in self._views):
            for option, corner in enumerate(factor.corners):
                if call.can_view(factor.of, corner.value):
                    possible[place].append(option)
                else:
                    self._refused((place, option), drawn, NO_PLACE)
        best: dict[int, int] = {}
        most = -1
        for _ in range(_LAYOUTS):
            left, found, beside, worth = list(possible), dict[int, int](), drawn, 0
            while left:
                place = left.pop(choices.integer(0, len(left) - 1))
                found[place] = self._ranked(place, possible[place], beside, choices)[0]
                worth += self._pairs.count_new_pairs((place, found[place]), beside)
                beside |= self._pairs.bits([(place, found[place])])
            if worth > most:
                best, most = found, worth
        if refusal := call.lay_out({factor.of: corner.value for factor, corner in map(self._at, best.items())}):
            for laid_out in best.items():
                self._refused(laid_out, drawn, refusal)
        else:
            chosen.update(best)

    def _refused(self, option: Option, beside: int, reason: str) -> None:
        """Count an option that could not be had beside these."""
        self._refusals[option][reason] += 1
        self._failed[option] += 1
        if self._pairs.is_met(option):
            self._pairs.note_refusal(option, beside)


def _options(factors: Sequence[Factor]) -> Iterator[Option]:
    for place, factor in enumerate(factors):
        yield from ((place, option) for option in range(len(factor.corners)))


def _exclusive(factors: Sequence[Factor]) -> Iterator[tuple[Option, Option]]:
    """Pairs that no call has: a null pointer, and a view or contents of that tensor."""
    for (place, factor), (other, item) in itertools.permutations(enumerate(factors), 2):
        if (
            factor.of == item.of
            and factor.kind in (FactorKind.NULL, FactorKind.MEMORY)
            and item.kind in (FactorKind.VIEW, FactorKind.CONTENTS)
        ):
            null = next(option for option, corner in enumerate(factor.corners) if corner.value)
            yield from (((place, null), (other, option)) for option in range(len(item.corners)))


@functools.lru_cache(maxsize=2)
def _walk(sampler: Sampler, seed: int, *, heavy: bool) -> tuple[CornerWalk, list[Case]]:
    """The walk of a plan and the cases that it has made: a part of it begins where another one ended."""
    return CornerWalk(sampler, seed=seed, heavy=heavy), []


def corner_cases(sampler: Sampler, *, seed: int, first: int, count: int, heavy: bool = False) -> Iterator[Case]:
    """Cases `first` to `first + count - 1` of a plan's walk along the corners."""
    walk, made = _walk(sampler, seed, heavy=heavy)
    for number in range(first, first + count):
        while len(made) <= number:
            made.append(walk.next_call().case)
        yield made[number]
