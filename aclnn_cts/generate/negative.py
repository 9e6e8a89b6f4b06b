"""Invalid and boundary cases: a rule broken on purpose in a valid drawing, and the result proved.

A case is kept as breaking a constraint only where evaluation shows that constraint broken and nothing else but what its
group shares or the spec says goes with it. What cannot be proved is not generated.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aclnn_cts.core.case import Case, Origin
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.regime import Regime
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.configuration import Drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import QUICK
from aclnn_cts.speclang.binding import check_prototype
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds import CaseChange, Strength
from aclnn_cts.speclang.kinds_dtype import ListedRule
from aclnn_cts.speclang.model import Constraint, Rule

ATTEMPTS = 24
"""Valid drawings that are tried for one change that breaks a rule."""
_LATER = 1 << 40
"""Where the drawings begin that are tried besides: a rule on a mode that is seldom drawn may need as many again."""

_MOST_BYTES = 1 << 24
"""Of the arguments of a broken call and of its twin: both are made, and a broken rank may multiply all sizes."""
_LARGE = 4
"""Drawings that gave more bytes before the smallest of them is taken: some rules are broken by large tensors alone."""

_EMPTY_ATTEMPTS = 4
"""Ways that are tried in an empty call."""

_MAX_RANK = 25
"""Dimensions of a tensor of a broken case."""

_PLACE = re.compile(r"(?P<name>\w+)\[(?P<axis>-?\d+)\]\Z")


@dataclass(frozen=True, slots=True)
class DerivedCase:
    """A case made from a valid one by one change."""

    case: Case
    twin: Case
    constraint: Constraint
    change: str
    broken: tuple[str, ...]
    """Ids of what is broken; empty for a boundary case inside the limit."""
    beside: frozenset[str] = frozenset()
    """Those that being empty breaks by itself, in a call that is empty besides."""


def _assignment(entry: Mapping[str, Any], drawing: Drawing, twin: Case, sampler: Sampler) -> CaseChange:
    """A spec's own assignment as a change, evaluated over the drawn names."""
    names = {**twin.arguments, **drawing.names}
    drawn = {draw.name for draw in sampler.spec.draws}
    assign: dict[str, Any] = {}
    axes: dict[tuple[str, int], int] = {}
    values: dict[str, Any] = {}
    for place, compute in entry.items():
        value = compute(names, drawing.target)
        if (match := _PLACE.match(place)) is not None:
            axes[match["name"], int(match["axis"])] = int(value)
        elif place in drawn:
            assign[place] = names[place] = value
        else:
            values[place] = value
    places = {f"{name}[{axis}]": value for (name, axis), value in axes.items()}
    text = ", ".join(f"{place}: -> {value}" for place, value in (assign | places | values).items())
    return CaseChange(text=text, assign=assign, axes=axes, values=values)


def _changes(
    constraint: Constraint, drawing: Drawing, twin: Case, sampler: Sampler, *, limits: bool = False
) -> Iterator[CaseChange]:
    """The spec's own changes that break a constraint, but those that this drawing gives no value, and the rule's own.

    `limits`: those onto its limits and one step beside them.
    """
    for entry in constraint.near if limits else constraint.breaks:
        with contextlib.suppress(*UNDEFINED):
            yield _assignment(entry, drawing, twin, sampler)
    # A rule about a parameter that the valid call leaves out has none of its own, unless all valid calls do.
    of = getattr(constraint.rule, "of", None)
    if (
        not isinstance(of, str)
        or twin.arguments.get(of, twin) is not None
        or _is_given_broken(constraint, twin, sampler)
    ):
        with contextlib.suppress(*UNDEFINED):  # so may one that reads another parameter, which is left out
            yield from (constraint.rule.limits if limits else constraint.rule.changes)(sampler.spec, twin)


def _is_given_broken(constraint: Constraint, twin: Case, sampler: Sampler) -> bool:
    """Whether the rule is broken by giving what no valid call gives: its list of dtypes or formats."""
    rule = constraint.rule
    return isinstance(rule, ListedRule) and sampler.spec.parameter(rule.of).is_never_given(twin.target)


def _apply(sampler: Sampler, drawing: Drawing, change: CaseChange, origin: Origin) -> Case | None:
    try:
        case = sampler.case(drawing, change=change, origin=origin)
        check_prototype(sampler.spec, case, where="generated case")
    except (*UNDEFINED, UsageError):
        return None
    return case if all(len(tensor.shape) <= _MAX_RANK for _, tensor in case.tensors()) else None


def _isolated(constraint: Constraint, broken: tuple[Constraint, ...]) -> bool:
    """Whether the constraint is broken, and everything else broken belongs to its group or goes with it (`also`)."""
    return constraint in broken and all(
        item is constraint or item.id in constraint.also or (item.group is not None and item.group == constraint.group)
        for item in broken
    )


def _drawing(
    sampler: Sampler, seed: int, kind: str, index: int, *, regime: Regime | None = None
) -> tuple[Drawing, Case]:
    choices = StreamChoices(seed, f"{sampler.spec.operator}/{sampler.target.product}/{kind}", index)
    drawing = sampler.draw(choices, regime=regime)
    return drawing, sampler.case(drawing)


def _regime(constraint: Constraint, number: int, attempt: int) -> Regime | None:
    """The size regime of every other invalid case, each rule beginning with another; None for mixed sizes.

    Where a drawing of the regime proves nothing, the next attempt has mixed sizes.
    """
    if number % 2 == 0 or attempt % 2:
        return None
    return QUICK[(number // 2 + zlib.crc32(constraint.id.encode())) % len(QUICK)]


def invalid_cases(
    sampler: Sampler, constraint: Constraint, *, seed: int, count: int, first: int = 0
) -> Iterator[DerivedCase]:
    """Cases that break one constraint: number `first` and the `count - 1` after it, each by another change.

    Every other one has sizes of a regime, so that rules are broken in aligned, long and wide calls too.

    Fewer come where a number's changes could not be proved on any of twice `ATTEMPTS` valid drawings.
    """
    for number in range(first, first + count):
        proved: list[DerivedCase] = []
        for attempt in range(2 * ATTEMPTS):
            place = number * ATTEMPTS + attempt % ATTEMPTS + (_LATER if attempt >= ATTEMPTS else 0)
            regime = _regime(constraint, number, attempt)
            drawing, twin = _drawing(sampler, seed, f"invalid/{constraint.id}", place, regime=regime)
            if (derived := break_drawing(sampler, constraint, drawing, number, twin=twin)) is None:
                continue
            proved.append(derived)
            if max(derived.case.nbytes, twin.nbytes) <= _MOST_BYTES or len(proved) > _LARGE:
                break
        if proved:
            yield min(proved, key=lambda derived: max(derived.case.nbytes, derived.twin.nbytes))


def break_drawing(
    sampler: Sampler, constraint: Constraint, drawing: Drawing, number: int, *, twin: Case | None = None
) -> DerivedCase | None:
    """A proved case that breaks a constraint, made from one drawing; by which change, the number decides.

    Three numbers of four take changes that break nothing else, the nearest first, where there are any: a value that
    another rule rejects too does not show whether this one is checked. The fourth takes any change; of a listed rule
    every other one breaks it in an empty call.
    """
    breaker = _Breaker(sampler, constraint, drawing, sampler.case(drawing) if twin is None else twin)
    turn, slot = divmod(number, 4)
    if slot < 3:
        return breaker.break_alone(3 * turn + slot)
    if constraint.strength != Strength.LISTED:
        return breaker.by_change(turn)
    rest, second = divmod(turn, 2)
    return (None if second else breaker.empty(rest)) or breaker.by_change(rest)


def break_at(
    sampler: Sampler, constraint: Constraint, drawing: Drawing, place: int, *, twin: Case
) -> DerivedCase | None:
    """A proved case made by the change at one place or the next that can; behind the last, by those on empty calls."""
    breaker = _Breaker(sampler, constraint, drawing, twin)
    return breaker.by_change(place) if place < len(breaker.changes) else breaker.empty(place - len(breaker.changes))


class _Breaker:
    """The changes that break one constraint in one drawing."""

    def __init__(self, sampler: Sampler, constraint: Constraint, drawing: Drawing, twin: Case) -> None:
        self._sampler, self._constraint, self._drawing, self._twin = sampler, constraint, drawing, twin
        self._twin_id = case_id(twin)
        self.changes = list(_changes(constraint, drawing, twin, sampler))

    def by_change(self, place: int) -> DerivedCase | None:
        """By the change at a place, or the next one that can be proved."""
        return next(self._proved(place), None)

    def break_alone(self, place: int) -> DerivedCase | None:
        """By a change that breaks nothing else, or as `by_change` does where there is none."""
        first = self.by_change(place)
        if first is None or len(first.broken) == 1:
            return first
        alone = [derived for derived in self._proved(0) if len(derived.broken) == 1]
        return alone[place % len(alone)] if alone else first

    def empty(self, place: int) -> DerivedCase | None:
        """By a change of a call with an empty tensor; nothing is broken beside it but what that breaks, no listed rule.

        None where no size can be 0 without breaking a listed rule.
        """
        emptied = [(change, beside) for change in self._emptying() if (beside := self._beside(change)) is not None]
        for step in range(min(len(self.changes), _EMPTY_ATTEMPTS) if emptied else 0):
            change = self.changes[(place + step) % len(self.changes)]
            for turn in range(len(emptied)):
                emptying, beside = emptied[(place + turn) % len(emptied)]
                if set(change.assign) & set(emptying.assign):
                    continue
                text = f"{change.text}, in an empty call: {emptying.text}"
                both = replace(change, text=text, assign={**emptying.assign, **change.assign})
                derived = self._prove(both, beside=beside)
                if derived is not None and _is_empty(derived.case):
                    return derived
        return None

    def _proved(self, place: int) -> Iterator[DerivedCase]:
        for step in range(len(self.changes)):
            if (derived := self._prove(self.changes[(place + step) % len(self.changes)])) is not None:
                yield derived

    def _prove(self, change: CaseChange, *, beside: frozenset[str] = frozenset()) -> DerivedCase | None:
        constraint = self._constraint
        origin = Origin(kind="invalid", constraint=constraint.id, change=change.text, twin=self._twin_id)
        case = _apply(self._sampler, self._drawing, change, origin)
        if case is None:
            return None
        broken = evaluate(self._sampler.spec, case).broken
        if not _isolated(constraint, tuple(item for item in broken if item.id not in beside)):
            return None
        return DerivedCase(case, self._twin, constraint, change.text, tuple(item.id for item in broken), beside)

    def _emptying(self) -> Iterator[CaseChange]:
        """Changes that may leave a tensor without elements."""
        for draw in self._sampler.spec.draws:
            old = self._drawing.names[draw.name]
            if draw.kind == "integer":
                yield CaseChange(text=f"{draw.name}: {old} -> 0", assign={draw.name: 0})
            elif draw.kind == "run" and old:
                yield CaseChange(text=f"{draw.name}: {old[0]} -> 0", assign={draw.name: (0, *old[1:])})

    def _beside(self, emptying: CaseChange) -> frozenset[str] | None:
        """What an empty call breaks by itself; None where it is not empty, or breaks a listed rule."""
        case = _apply(self._sampler, self._drawing, emptying, Origin())
        if case is None or not _is_empty(case):
            return None
        broken = evaluate(self._sampler.spec, case).broken
        if any(item.strength == Strength.LISTED for item in broken):
            return None
        return frozenset(item.id for item in broken)


def _is_empty(case: Case) -> bool:
    """Whether a tensor has no elements, and no size is below 0."""
    sizes = [size for _, tensor in case.tensors() for size in tensor.shape]
    return 0 in sizes and min(sizes) == 0


def boundary_cases(sampler: Sampler, constraint: Constraint, *, seed: int) -> Iterator[DerivedCase]:
    """Cases on each limit of a constraint and one step to both sides: inside they hold all, outside they break it.

    Each value comes once on each side: a limit that moves with the dtype or the rank is met from both.
    """
    if not constraint.near and type(constraint.rule).limits is Rule.limits:
        return
    proved: set[tuple[str, bool]] = set()
    for attempt in range(ATTEMPTS):
        drawing, twin = _drawing(sampler, seed, f"boundary/{constraint.id}", attempt)
        twin_id = case_id(twin)
        for change in _changes(constraint, drawing, twin, sampler, limits=True):
            key = _key(change)
            if (key, False) in proved and (key, True) in proved:
                continue
            origin = Origin(kind="boundary", constraint=constraint.id, change=change.text, twin=twin_id)
            case = _apply(sampler, drawing, change, origin)
            if case is None:
                continue
            broken = evaluate(sampler.spec, case).broken
            side = (key, bool(broken))
            if side not in proved and (not broken or _isolated(constraint, broken)):
                proved.add(side)
                yield DerivedCase(case, twin, constraint, change.text, tuple(item.id for item in broken))


def _key(change: CaseChange) -> str:
    """What a boundary is reached by: the value and where, and not from what."""
    place = re.sub(r"(: )[^,]*?-> ", r"\1", change.text)
    return place if change.assign else f"{place} {'place' if change.axes else 'value'}"


def tried_changes(
    sampler: Sampler, constraint: Constraint, *, seed: int
) -> Iterator[tuple[str, tuple[Constraint, ...] | None]]:
    """Every change that `invalid_cases` tries for number 0: the change, and all that it broke.

    None for a change that makes no case. For a person who asks why nothing could be proved.
    """
    for attempt in range(ATTEMPTS):
        drawing, twin = _drawing(sampler, seed, f"invalid/{constraint.id}", attempt)
        for change in _changes(constraint, drawing, twin, sampler):
            case = _apply(sampler, drawing, change, Origin())
            yield change.text, None if case is None else evaluate(sampler.spec, case).broken
