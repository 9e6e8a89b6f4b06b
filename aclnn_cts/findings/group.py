"""Which failures are one finding.

One mistake in a kernel shows in many calls, dtypes, modes and outputs. Two mistakes must stay two findings. The rules,
for the failures of one operator:

1. What an output holds is wrong, or a constraint is not enforced, or a call ends as it must not: that is a symptom.
   Dtype, call mode, check and the kind of wrong value are no part of it.
2. What shows only after other calls is one finding in whatever it shows, and each way to end so another.
3. Equal calls with unequal results, and results beyond a tolerance, are of the finding of that output's wrong values.
   Without one they are a separate finding.
4. A valid call and a call that breaks a constraint are one finding where both end in the same wrong way.
5. A constraint that is not enforced is one finding, whatever comes instead of the promised status.
6. Different constraints stay apart. Where the operator enforces none of at least three, each wrong answer is one.
7. What is written outside of an output is missing inside: stray writes and incomplete outputs are one finding.
8. Symptoms that more than half of the calls show together, of all that show either, are one finding.
9. A call that shows several findings counts with the one that the fewest calls show.
10. Failures that a waiver accepts are separate findings.

Then conditions split and merge findings (`triage.condition`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from typing import NamedTuple, TypeAlias

import msgspec

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import WRITTEN, Fingerprint, Symptom

_UNEQUAL = Fault.of(Family.EQUAL_CALLS, Family.TOLERANCE)
_ENDS = Fault.of(Family.ENDED, Family.LEAK, Family.REJECTED)
"""Faults of calls that wrote nothing that could be judged."""
_OUT_OF_PLACE = Fault.of(Family.OUTPUT) | {Fault.GUARD}

_NONE_OF = 3
"""Constraints of which none is enforced, from which on that is one finding."""

LEFT_BEHIND = "state left behind"
"""Stands for the fault of all that calls write wrongly after others alone."""


class FailureGroup(NamedTuple):
    """The failures of one finding."""

    symptom: Symptom
    """The most frequent of what they have in common."""
    fingerprints: tuple[Fingerprint, ...]
    """The most frequent one first."""


_Into: TypeAlias = Mapping[Symptom, Symptom]
_Shown: TypeAlias = Mapping[Fingerprint, tuple[Symptom, ...]]
"""What the calls of each fingerprint show, that of their verdict first."""


class _Calls(dict[Symptom, int]):
    """Failing calls that show each symptom."""

    def __init__(self, failures: Mapping[Fingerprint, int], shown: _Shown) -> None:
        super().__init__()
        self.both: Counter[tuple[Symptom, Symptom]] = Counter()
        for item, symptoms in shown.items():
            for symptom in symptoms:
                self[symptom] = self.get(symptom, 0) + failures[item]
            for one, other in combinations(sorted(symptoms), 2):
                self.both[one, other] += failures[item]

    def usual(self, symptoms: Iterable[Symptom]) -> Symptom:
        """The most frequent one."""
        return max(symptoms, key=lambda item: (self[item], item))


def group_failures(
    failures: Mapping[Fingerprint, int],
    *,
    order_dependent: Collection[Fingerprint] = (),
    unenforced: Collection[str] = (),
) -> tuple[FailureGroup, ...]:
    """The findings among failures that one waiver accepts, or none; the most frequent first.

    - `failures`: the number of failures by fingerprint, in any order.
    - `order_dependent`: those that show only after other calls.
    - `unenforced`: the operators that answered no broken constraint as promised.
    """
    by_operator: dict[str, list[Fingerprint]] = defaultdict(list)
    for item in sorted(failures, key=lambda item: (-failures[item], item.text())):
        by_operator[item.operator].append(item)
    found = [
        members
        for operator, given in by_operator.items()
        for members in _of_operator(
            {item: failures[item] for item in given}, order_dependent, any_rule=operator in unenforced
        )
    ]
    return tuple(sorted(found, key=lambda item: (-sum(failures[each] for each in item.fingerprints), repr(item))))


def _of_operator(
    failures: Mapping[Fingerprint, int], order_dependent: Collection[Fingerprint], *, any_rule: bool
) -> Iterable[FailureGroup]:
    shown: _Shown = {item: _symptoms(item, is_order_dependent=item in order_dependent) for item in failures}
    for rule in (_unequal_results, _same_end, _same_constraint, *[_no_constraint] * any_rule, _misplaced, _same_calls):
        calls = _Calls(failures, shown)
        into = rule(calls)
        shown = {item: tuple(dict.fromkeys(into.get(each, each) for each in known)) for item, known in shown.items()}
    calls = _Calls(failures, shown)
    members: dict[Symptom, list[Fingerprint]] = defaultdict(list)
    for item, symptoms in shown.items():
        members[min(symptoms, key=lambda each: (calls[each], each))].append(item)
    for symptom, given in members.items():
        yield FailureGroup(symptom, tuple(given))


def _symptoms(item: Fingerprint, *, is_order_dependent: bool) -> tuple[Symptom, ...]:
    if is_order_dependent:
        return (Symptom(LEFT_BEHIND if item.fault in WRITTEN else f"{item.fault} after other calls"),)
    return tuple(dict.fromkeys((item.symptom, *item.also)))


def _unequal_results(calls: _Calls) -> _Into:
    into: dict[Symptom, Symptom] = {}
    for symptom in (symptom for symptom in calls if symptom.fault in _UNEQUAL):
        alike = [other for other in calls if other.output == symptom.output and other.fault not in _UNEQUAL]
        values = [other for other in alike if other.fault == Fault.VALUE]
        unequal = [other for other in calls if other.output == symptom.output and other.fault in _UNEQUAL]
        into[symptom] = calls.usual(values or [other for other in alike if other.fault in WRITTEN] or unequal)
    return into


def _same_end(calls: _Calls) -> _Into:
    alike = {
        symptom: msgspec.structs.replace(symptom, clause="")
        for symptom in calls
        if symptom.fault in _ENDS and symptom.clause
    }
    return {symptom: valid for symptom, valid in alike.items() if valid in calls}


def _same_constraint(calls: _Calls) -> _Into:
    by_rule: dict[str, list[Symptom]] = defaultdict(list)
    for symptom in calls:
        if symptom.clause:
            by_rule[symptom.clause].append(symptom)
    return {symptom: calls.usual(symptoms) for symptoms in by_rule.values() for symptom in symptoms}


def _no_constraint(calls: _Calls) -> _Into:
    alike: dict[tuple[str, str], list[Symptom]] = defaultdict(list)
    for symptom in calls:
        if symptom.clause:
            alike[symptom.fault, symptom.answer].append(symptom)
    # Two may well be two mistakes.
    many = (symptoms for symptoms in alike.values() if len(symptoms) >= _NONE_OF)
    return {symptom: calls.usual(symptoms) for symptoms in many for symptom in symptoms}


def _misplaced(calls: _Calls) -> _Into:
    found = [symptom for symptom in calls if symptom.fault in _OUT_OF_PLACE]
    return dict.fromkeys(found, calls.usual(found)) if found else {}


def _same_calls(calls: _Calls) -> _Into:
    into: dict[Symptom, Symptom] = {}
    for symptom in sorted(calls, key=lambda item: (-calls[item], item)):
        for other in dict.fromkeys(into.values()):
            both = calls.both[min(symptom, other), max(symptom, other)]
            if 2 * both > calls[symptom] + calls[other] - both:
                into[symptom] = other
                break
        else:
            into[symptom] = symptom
    return into
