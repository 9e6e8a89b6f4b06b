"""Which failures are one finding: the one function that groups fingerprints.

One mistake in a kernel shows in many calls: in several dtypes, modes and outputs, as several faults, and in laws and
life cycles of calls that are wrong by themselves. Two mistakes must stay two findings. The shares below were tuned on
the seeded faults, one and two at a time; `benchmarks.findings` measures what they come to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import Fingerprint, Looks

__all__ = ["BROAD", "group"]

BROAD = 3
"""Constraints whose calls are answered in the same wrong way: from so many on that is one finding."""

_FEW = 1 / 6
"""Failures of another sort that a fault may show as, over those of its own."""
_ROUNDING_OF_WRONG = 0.08
"""A wrong term rarely moves a value by so little that it looks like rounding."""
_WRONG_OF_ROUNDING = 0.45
"""Rounding that cancels looks like a wrong value much more often."""

_UNMADE = Fault.of(Family.ENDED, Family.LEAK, Family.REJECTED)
"""Faults of calls that wrote nothing that could be judged."""
_CONTENTS = Fault.of(Family.VALUES, Family.OUTPUT, Family.TOLERANCE, Family.LAW)
_WRITTEN = _CONTENTS | Fault.of(Family.MEMORY)
"""Faults of what a call wrote, whatever constraint it breaks."""
_PLAIN = frozenset({"values", "memory", "example", "boundary", "precision"})
"""Checks of one valid call by itself."""


class _Sort(NamedTuple):
    """What fingerprints of one operator share that are one finding before sorts are joined."""

    clause: str
    """The constraint that is broken; `_ANY` for several; empty for calls that are valid, or were made all the same."""
    fault: str
    """A code, or `_CONTENTS_FAULT` for all that an output can have."""
    answer: str = ""
    looks: str = ""
    output: str = ""
    plain: bool = True
    """Whether one valid call shows it by itself."""


_Numbers: TypeAlias = Mapping[_Sort, int]
_Into: TypeAlias = dict[_Sort, _Sort]

_ANY = "*"
_CONTENTS_FAULT = "contents"
_FORM = "form"
"""Looks of an output that is incomplete, or has another shape or dtype."""


def group(
    failures: Mapping[Fingerprint, int], *, order_dependent: Collection[Fingerprint] = ()
) -> tuple[tuple[Fingerprint, ...], ...]:
    """The findings among failures, each as its fingerprints; the most frequent ones come first.

    - `failures`: the number of failures by fingerprint. Their order is of no account. What else fails for an operator
      is: shares are of all its failures, so that a part of a run can be grouped otherwise than the whole.
    - `order_dependent`: those that show only after other calls. What calls leave behind is one finding of an operator
      and a family of faults, in whatever outputs it shows.
    """
    by_operator: dict[str, list[Fingerprint]] = defaultdict(list)
    for item in sorted(failures, key=lambda item: (-failures[item], repr(item))):
        by_operator[item.operator].append(item)
    found = [
        members
        for given in by_operator.values()
        for members in _of_operator({item: failures[item] for item in given}, order_dependent)
    ]
    return tuple(sorted(found, key=lambda members: (-sum(failures[item] for item in members), repr(members))))


def _of_operator(
    failures: Mapping[Fingerprint, int], order_dependent: Collection[Fingerprint]
) -> Iterable[tuple[Fingerprint, ...]]:
    sorts = {item: _left_behind(item) if item in order_dependent else _sort(item) for item in failures}
    for step in _STEPS:
        numbers: Counter[_Sort] = Counter()
        for item, sort in sorts.items():
            numbers[sort] += failures[item]
        into = step(numbers)
        sorts = {item: into.get(sort, sort) for item, sort in sorts.items()}
    members: dict[_Sort, list[Fingerprint]] = defaultdict(list)
    for item, sort in sorts.items():
        members[sort].append(item)
    return map(tuple, members.values())


def _sort(item: Fingerprint) -> _Sort:
    if item.fault in _CONTENTS:
        looks = _FORM if item.fault in Fault.of(Family.OUTPUT) else item.looks or Looks.WRONG
        plain = item.check in _PLAIN or bool(item.clause)
        return _Sort("", _CONTENTS_FAULT, looks=str(looks), output=item.output, plain=plain)
    if item.fault in _WRITTEN:
        return _Sort("", item.fault, output=item.output)
    if item.clause:
        return _Sort(item.clause, item.fault, item.answer)
    return _Sort("", item.fault, item.answer, plain=item.fault in _UNMADE)


def _left_behind(item: Fingerprint) -> _Sort:
    return _Sort("", f"{_CONTENTS_FAULT if item.fault in _CONTENTS else item.fault} after other calls")


def _most(numbers: _Numbers, sorts: Iterable[_Sort]) -> _Sort:
    return max(sorts, key=lambda sort: (numbers[sort], sort))


def _broad(numbers: _Numbers) -> _Into:
    """One answer to calls that break several constraints is one mistake in what these have in common."""
    alike: dict[tuple[str, str], list[_Sort]] = defaultdict(list)
    for sort in numbers:
        if sort.clause:
            alike[sort.fault, sort.answer].append(sort)
    return {sort: sort._replace(clause=_ANY) for sorts in alike.values() if len(sorts) >= BROAD for sort in sorts}


def _beside_broad(numbers: _Numbers) -> _Into:
    """What a mistake in many constraints shows as in few calls; a call that ends so whether it is valid or not."""
    into: _Into = {}
    for sort in numbers:
        valid = sort._replace(clause="", plain=True)
        if sort.clause and sort.fault in _UNMADE and valid in numbers:
            into[sort] = valid
    broken = [sort for sort in numbers if sort.clause and sort not in into]
    for sort in broken:
        # A rule that is not enforced is answered now by success, now by a crash.
        most = _most(numbers, [other for other in broken if other.clause == sort.clause])
        if sort.clause != _ANY and sort != most:
            into[sort] = most
    broad = [sort for sort in broken if sort.clause == _ANY]
    if broad:
        most = _most(numbers, broad)
        into |= {sort: most for sort in broken if sort != most and numbers[sort] <= _FEW * numbers[most]}
    return into


def _of_related_calls(numbers: _Numbers) -> _Into:
    """A law or a life cycle of calls that are wrong by themselves tells nothing new."""
    contents = [sort for sort in numbers if sort.fault == _CONTENTS_FAULT]
    others = [sort for sort in contents if not sort.plain]
    plain = [sort for sort in contents if sort.plain]
    if plain:
        return dict.fromkeys(others, _most(numbers, plain))
    return dict.fromkeys(others, _Sort("", _CONTENTS_FAULT, plain=False))


def _of_looks(numbers: _Numbers) -> _Into:
    """One mistake makes now a wrong value, now inf, and now one that is nearly right."""
    contents = [sort for sort in numbers if sort.fault == _CONTENTS_FAULT and sort.plain]
    totals: Counter[str] = Counter()
    for sort in contents:
        totals[sort.looks] += numbers[sort]
    into: dict[str, str] = {}

    def join(looks: str, other: str, share: float) -> None:
        if looks in totals and other in totals and totals[looks] <= share * totals[other]:
            into[looks] = other
            totals[other] += totals.pop(looks)

    join(Looks.ROUNDING, Looks.WRONG, _ROUNDING_OF_WRONG)
    join(Looks.WRONG, Looks.ROUNDING, _WRONG_OF_ROUNDING)
    join(Looks.WRONG, Looks.STRAY, 1.0)
    join(Looks.SPECIAL, Looks.WRONG, 1.0)
    for looks in sorted(totals, key=lambda item: (totals[item], item)):
        if most := max(
            (other for other in totals if other != looks), key=lambda item: (totals[item], item), default=""
        ):
            join(looks, most, _FEW)
    while any(other in into for other in into.values()):
        into = {looks: into.get(other, other) for looks, other in into.items()}
    joined: _Into = {}
    for sort in contents:
        if sort.looks in into:
            at_home = [item for item in contents if item.looks == into[sort.looks]]
            beside = sort._replace(looks=into[sort.looks])
            joined[sort] = beside if beside in at_home else _most(numbers, at_home)
    return joined


def _of_outputs(numbers: _Numbers) -> _Into:
    """Rounding, strides and special values go wrong in all outputs alike; a wrong formula does in its own."""
    into: _Into = {}
    contents = [sort for sort in numbers if sort.fault == _CONTENTS_FAULT and sort.plain]
    for looks in {sort.looks for sort in contents}:
        sorts = [sort for sort in contents if sort.looks == looks]
        most = _most(numbers, sorts)
        for sort in sorts:
            if sort != most and (looks != Looks.WRONG or numbers[sort] <= _FEW * numbers[most]):
                into[sort] = most
    incomplete = [sort for sort in contents if sort.looks == _FORM and sort not in into]
    if incomplete:
        most = _most(numbers, incomplete)
        stray = [sort for sort in numbers if sort.fault == Fault.GUARD and numbers[sort] <= _FEW * numbers[most]]
        into |= dict.fromkeys(stray, most)
    return into


_STEPS: tuple[Callable[[_Numbers], _Into], ...] = (_broad, _beside_broad, _of_related_calls, _of_looks, _of_outputs)
