"""Which failures are one finding: the one function that groups fingerprints.

One mistake in a kernel shows in many calls: in several dtypes, modes and outputs, as several faults, and in laws and
life cycles of calls that are wrong by themselves. Two mistakes must stay two findings. The shares below were tuned on
the seeded faults and some pairs of them; `benchmarks.findings` measures what they come to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import combinations
from typing import NamedTuple, TypeAlias

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import Beside, Fingerprint, Looks
from aclnn_cts.core.outcome import SUCCESS

BROAD = 3
"""Constraints whose calls are answered in the same wrong way, and outputs that are wrong: from so many on that is one
finding."""

_FEW = 1 / 6
"""Failures of another sort that a fault may show as, over those of its own."""
_ROUNDING_OF_WRONG = 0.4
"""A wrong term moves a value now and then by so little that it looks like rounding."""
_RANGE_OF_ROUNDING = 0.4
"""Coarse arithmetic overflows to inf and underflows to 0."""
_FLUSHED_OF_ZERO = 0.25
"""A term that is missing was now and then as small as what flushing makes 0."""
_SAME_CALLS = 0.8
"""Outputs that are wrong in the same calls, of those in which either is: from so many on that is one mistake."""

_LEAKS = Fault.of(Family.LEAK)
"""Faults of many calls together, whatever each is refused for."""
_UNMADE = Fault.of(Family.ENDED, Family.LEAK, Family.REJECTED)
"""Faults of calls that wrote nothing that could be judged."""
_CONTENTS = Fault.of(Family.VALUES, Family.OUTPUT, Family.TOLERANCE, Family.LAW)
_WRITTEN = _CONTENTS | Fault.of(Family.MEMORY)
"""Faults of what a call wrote, whatever constraint it breaks."""
PLAIN = frozenset({"values", "memory", "example", "boundary", "precision"})
"""Checks of one valid call by itself."""


class Group(NamedTuple):
    """One finding."""

    fingerprints: tuple[Fingerprint, ...]
    """The most frequent one first."""
    hidden: Beside | None = None
    """What it is, where a graver fault or another output comes first in each verdict."""


class _Sort(NamedTuple):
    """What a call shows, as far as findings are made of it."""

    clause: str
    """The constraint that is broken; `_ANY` for several; empty for calls that are valid, or were made all the same."""
    fault: str
    """A code, or `_CONTENTS_FAULT` for all that an output can have."""
    answer: str = ""
    looks: str = ""
    output: str = ""
    plain: bool = True
    """Whether one valid call shows it by itself."""


class _Numbers(dict[_Sort, int]):
    """Failures that show each sort."""

    def __init__(self, failures: Mapping[Fingerprint, int], shown: _Shown) -> None:
        super().__init__()
        self._both: Counter[tuple[_Sort, ...]] = Counter()
        for item, sorts in shown.items():
            for sort in sorts:
                self[sort] = self.get(sort, 0) + failures[item]
            for pair in combinations(sorted(sorts), 2):
                self._both[pair] += failures[item]

    def in_the_same_calls(self, one: _Sort, other: _Sort) -> bool:
        """Whether most calls that show either of them show both."""
        both = self._both[tuple(sorted((one, other)))]
        return both >= _SAME_CALLS * (self[one] + self[other] - both)


_Shown: TypeAlias = Mapping[Fingerprint, tuple[_Sort, ...]]
"""What the calls of each fingerprint show, that of their verdict first."""
_Into: TypeAlias = dict[_Sort, _Sort]

_ANY = "*"
_CONTENTS_FAULT = "contents"
_SELDOM: Mapping[tuple[str, str], float] = {
    (Looks.WRONG, Looks.ROUNDING): 0.04,
    (Looks.SPECIAL, Looks.ROUNDING): 0.0,
    **dict.fromkeys([(Looks.FLUSHED, other) for other in (Looks.ROUNDING, Looks.WRONG, Looks.STRAY)], 0.04),
}
"""Looks that the mistake behind others hardly ever has, in place of `_FEW`."""
_LEFT_BEHIND = _Sort("", f"{_CONTENTS_FAULT} after other calls")
"""What calls leave to others shows in whatever these write."""
_FORM = "form"
"""Looks of an output that is incomplete, or has another shape or dtype."""


def group(failures: Mapping[Fingerprint, int], *, order_dependent: Collection[Fingerprint] = ()) -> tuple[Group, ...]:
    """The findings among failures; the most frequent ones come first, and each fingerprint is in one.

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
    return tuple(sorted(found, key=lambda item: (-sum(failures[each] for each in item.fingerprints), repr(item))))


def _of_operator(failures: Mapping[Fingerprint, int], order_dependent: Collection[Fingerprint]) -> Iterable[Group]:
    shown = {item: _left_behind(item) if item in order_dependent else _sorts(item) for item in failures}
    for step in _STEPS:
        into = step(_Numbers(failures, shown))
        shown = {item: tuple(dict.fromkeys(into.get(sort, sort) for sort in sorts)) for item, sorts in shown.items()}
    found = {item: sorts[0] for item, sorts in shown.items()}
    masked = _unmasked(shown, found)
    members: dict[_Sort, list[Fingerprint]] = defaultdict(list)
    for item, sort in found.items():
        members[sort].append(item)
    for sort, given in members.items():
        yield Group(tuple(given), _hidden(sort) if sort in masked else None)


def _unmasked(shown: _Shown, found: dict[Fingerprint, _Sort]) -> set[_Sort]:
    """Give each sort that no verdict names the most frequent calls that another finding can do without."""
    masked = {sort for sorts in shown.values() for sort in sorts} - set(found.values())
    for sort in sorted(masked):
        for item in (item for item, sorts in shown.items() if sort in sorts):
            beside = [other for other, home in found.items() if home == found[item]]
            if item != beside[0]:
                found[item] = sort
                break
    return masked


def _sorts(item: Fingerprint) -> tuple[_Sort, ...]:
    return tuple(dict.fromkeys((_sort(item), *(_beside(item.clause, each) for each in item.beside))))


def _hidden(sort: _Sort) -> Beside:
    if sort.fault == _CONTENTS_FAULT:
        return Beside(sort.output, Looks.WRONG if sort.looks in ("", _FORM) else Looks(sort.looks))
    return Beside(sort.output, Looks.NONE, sort.fault, sort.answer)


def _beside(clause: str, item: Beside) -> _Sort:
    if not item.fault:
        return _Sort("", _CONTENTS_FAULT, looks=str(item.looks), output=item.output)
    return _Sort("", item.fault, output=item.output) if item.output else _Sort(clause, item.fault, item.answer)


def _sort(item: Fingerprint) -> _Sort:
    if item.fault in _CONTENTS:
        looks = _FORM if item.fault in Fault.of(Family.OUTPUT) else item.looks or Looks.WRONG
        plain = item.check in PLAIN or bool(item.clause)
        return _Sort("", _CONTENTS_FAULT, looks=str(looks), output=item.output, plain=plain)
    if item.fault in _WRITTEN:
        return _Sort("", item.fault, output=item.output)
    if item.clause and item.fault not in _LEAKS:
        return _Sort(item.clause, item.fault, item.answer)
    return _Sort("", item.fault, item.answer, plain=item.fault in _UNMADE)


def _left_behind(item: Fingerprint) -> tuple[_Sort, ...]:
    if item.fault in _WRITTEN:
        return (_LEFT_BEHIND,)
    return (_LEFT_BEHIND._replace(fault=f"{item.fault} after other calls"),)


def _most(numbers: _Numbers, sorts: Iterable[_Sort]) -> _Sort:
    return max(sorts, key=lambda sort: (numbers[sort], sort))


def _of_rules(numbers: _Numbers) -> _Into:
    """A rule that is not enforced is answered now by success, now by a crash; how valid calls end is no answer."""
    by_rule: dict[str, list[_Sort]] = defaultdict(list)
    for sort in numbers:
        if sort.clause and not (sort.fault in _UNMADE and sort._replace(clause="", plain=True) in numbers):
            by_rule[sort.clause].append(sort)
    return {sort: _most(numbers, sorts) for sorts in by_rule.values() for sort in sorts}


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
    broad = [sort for sort in broken if sort.clause == _ANY]
    if broad:
        most = _most(numbers, broad)
        # A rule that is not enforced is no consequence of how others are answered.
        few = (sort for sort in broken if sort != most and numbers[sort] <= _FEW * numbers[most])
        into |= {sort: most for sort in few if sort.answer != SUCCESS or most.answer == SUCCESS}
    return into


def _of_related_calls(numbers: _Numbers) -> _Into:
    """A law or a life cycle of calls that are wrong by themselves tells nothing new.

    What only related calls leave incomplete does: wrong values are no reason for it.
    """
    contents = [sort for sort in numbers if sort.fault == _CONTENTS_FAULT]
    plain = [sort for sort in contents if sort.plain]
    into: _Into = {}
    for sort in (sort for sort in contents if not sort.plain):
        alike = [other for other in plain if (other.looks == _FORM) == (sort.looks == _FORM)]
        if not alike and sort.looks != _FORM:
            alike = plain
        same = [other for other in alike if other.output == sort.output] or alike
        alone = _LEFT_BEHIND if _LEFT_BEHIND in numbers else _Sort("", _CONTENTS_FAULT, plain=False)
        into[sort] = _most(numbers, same) if same else alone
    return into


def _values(numbers: _Numbers) -> list[_Sort]:
    return [sort for sort in numbers if sort.fault == _CONTENTS_FAULT and sort.plain and sort.looks != _FORM]


def _of_looks(numbers: _Numbers) -> _Into:
    """One mistake makes now a wrong value, now inf, and now one that is nearly right, in the same output."""
    by_output: dict[str, list[_Sort]] = defaultdict(list)
    for sort in _values(numbers):
        by_output[sort.output].append(sort)
    return {
        sort: sort._replace(looks=into[sort.looks])
        for sorts in by_output.values()
        for into in (_looks_into({sort.looks: numbers[sort] for sort in sorts}),)
        for sort in sorts
        if sort.looks in into
    }


def _looks_into(numbers: dict[str, int]) -> dict[str, str]:
    """The looks that join others, of one output; `numbers` are changed."""
    into: dict[str, str] = {}
    near = numbers.get(Looks.NEAR, 0)

    def join(looks: str, other: str, share: float) -> None:
        if 0 < numbers.get(looks, 0) <= share * numbers.get(other, 0):
            rename(looks, other)

    def rename(looks: str, other: str) -> None:
        if looks in numbers:
            into[looks] = other
            numbers[other] = numbers.get(other, 0) + numbers.pop(looks)

    join(Looks.FLUSHED, Looks.ZERO, _FLUSHED_OF_ZERO)
    join(Looks.ZERO, Looks.ROUNDING, _RANGE_OF_ROUNDING)
    join(Looks.STRAY, Looks.ROUNDING, _RANGE_OF_ROUNDING)
    rename(Looks.ZERO, Looks.WRONG)
    rename(Looks.NEAR, Looks.WRONG)
    if numbers.get(Looks.ROUNDING, 0) <= near:
        # Errors of any size are those of a wrong term, the small ones among them too.
        rename(Looks.ROUNDING, Looks.WRONG)
    join(Looks.ROUNDING, Looks.WRONG, _ROUNDING_OF_WRONG)
    join(Looks.WRONG, Looks.STRAY, 1.0)
    join(Looks.SPECIAL, Looks.WRONG, 1.0)
    join(Looks.WRONG, Looks.SPECIAL, 1.0)
    for looks in sorted(numbers, key=lambda item: (numbers[item], item)):
        others = (other for other in numbers if other != looks)
        if most := max(others, key=lambda item: (numbers[item], item), default=""):
            join(looks, most, _SELDOM.get((looks, most), _FEW))
    while any(other in into for other in into.values()):
        into = {looks: into.get(other, other) for looks, other in into.items()}
    return into


def _of_outputs(numbers: _Numbers) -> _Into:
    """Rounding, strides and special values go wrong in all outputs alike; a wrong formula does in its own.

    Another output stays apart however few calls it is wrong in, unless they are the same calls.
    """
    into: _Into = {}
    values = _values(numbers)
    for looks in {sort.looks for sort in values}:
        sorts = sorted((sort for sort in values if sort.looks == looks), key=lambda sort: (-numbers[sort], sort))
        often = sum(numbers[sort] > _FEW * numbers[sorts[0]] for sort in sorts)
        if looks != Looks.WRONG or often >= BROAD:
            into |= dict.fromkeys(sorts[1:], sorts[0])
            continue
        for place, sort in enumerate(sorts[1:], 1):
            same = next((other for other in sorts[:place] if numbers.in_the_same_calls(sort, other)), None)
            if same is not None:
                into[sort] = into.get(same, same)
    incomplete = [sort for sort in numbers if sort.fault == _CONTENTS_FAULT and sort.plain and sort.looks == _FORM]
    if incomplete:
        into |= dict.fromkeys(incomplete, _most(numbers, incomplete))
    return into


def _of_stray_writes(numbers: _Numbers) -> _Into:
    """What is written elsewhere is missing in its own place, and now and then ends the process."""
    incomplete = [sort for sort in numbers if sort.looks == _FORM]
    stray = [sort for sort in numbers if sort.fault == Fault.GUARD]
    into: _Into = {}
    if incomplete and stray:
        most = _most(numbers, incomplete)
        into |= {sort: most for sort in stray if numbers[sort] <= _FEW * numbers[most]}
    if stray:
        most = _most(numbers, stray)
        died = [sort for sort in numbers if sort.fault == Fault.CRASH and not sort.clause]
        into |= {sort: into.get(most, most) for sort in died if numbers[sort] <= _FEW * numbers[most]}
    return into


_STEPS: tuple[Callable[[_Numbers], _Into], ...] = (
    _of_rules,
    _broad,
    _beside_broad,
    _of_related_calls,
    _of_looks,
    _of_outputs,
    _of_stray_writes,
)
