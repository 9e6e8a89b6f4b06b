"""The condition of a finding, confirmed by calls that are made for the purpose: some meet it, some miss it narrowly.

`findings.shared_condition` proposes a condition from the failing and passing calls that are known. It is stated where
new calls agree with it. Where they do not, they are known calls as well, and the next proposal is made.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.finding import Confirmation, Finding, SharedCondition
from aclnn_cts.core.fingerprint import PLAIN_CHECKS, Fingerprint
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, is_valid_call
from aclnn_cts.findings.findings import FindingIndex, with_best_record
from aclnn_cts.findings.shared_condition import alternative, shared_condition
from aclnn_cts.generate.choices import Choices, StreamChoices
from aclnn_cts.generate.configuration import Drawing
from aclnn_cts.generate.predicate import compile_predicate
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds import CaseChange
from aclnn_cts.trials.trial_runner import TrialRunner

ROUNDS = 4
"""Proposals for one finding."""
CALLS = 6
"""Calls of a round that meet the proposal, and as many that miss it."""
LEAST = 3
"""Calls of either sort without which nothing is confirmed."""
SECONDS = 20.0
"""For one finding; after three times as long no further finding of a run is looked at."""
MOST = 8
"""Findings of a run whose conditions are looked for, the most frequent first."""
_CANDIDATES = 160
"""Calls of a round that are drawn and looked at before some are made."""
_BUDGET = 4096
"""Most elements of a tensor of these calls."""
_AGREE = 0.95
"""Share of known calls that must agree: a fault can be hidden by values."""
_UNTRIED = Fault.of(Family.ENDED, Family.LEAK)
"""Faults that cost a process each time."""

Fails = Callable[[Sequence[Case]], "list[bool | None]"]
"""Whether calls fail like the finding; None where nothing can be said."""


@dataclass(slots=True)
class _Known:
    """Calls that fail like the finding, and calls that pass."""

    failing: list[Case]
    passing: list[Case]

    def add(self, calls: Sequence[Case], ends: Sequence[bool | None]) -> None:
        for case, fails in zip(calls, ends, strict=True):
            if fails is not None:
                (self.failing if fails else self.passing).append(case)

    def pass_where_missed(self, when: str) -> bool:
        """Whether nearly all calls that pass miss a condition."""
        holds = compile_predicate(when)
        return sum(not holds(case) for case in self.passing) >= _AGREE * len(self.passing)


def confirmed_conditions(
    failing: Sequence[Case], passing: Sequence[Case], *, sampler: Sampler, fails: Fails, seconds: float = SECONDS
) -> tuple[SharedCondition, ...]:
    """The condition that failing calls share, as calls made by `fails` confirm it; none where none was found.

    Several are alternatives: nearly each failing call meets one. Failing calls that meet none have one of their own, or
    are left with the others.
    """
    every = _Known([*failing], [*passing])

    def tried(cases: Sequence[Case]) -> list[bool | None]:
        ends = fails(cases)
        every.add(cases, ends)
        return ends

    found = _searched(failing, passing, sampler, tried, seconds)
    rest = [case for case in failing if not _is_met(found, case)]
    if not found or not rest:
        return found

    def of_rest(cases: Sequence[Case]) -> list[bool | None]:
        # What meets a condition that is known says nothing of another.
        return [None if _is_met(found, case) else end for case, end in zip(cases, tried(cases), strict=True)]

    if more := _searched(rest, passing, sampler, of_rest, seconds):
        # With all these calls one condition may tell what two did.
        if len(shared_condition(every.failing, every.passing)) == 1:
            found = _searched(every.failing, every.passing, sampler, fails, seconds)
        else:
            found = (*found, *more)
    return found if sum(_is_met(found, case) for case in failing) >= _AGREE * len(failing) else ()


def _is_met(conditions: Iterable[SharedCondition], case: Case) -> bool:
    return any(compile_predicate(each.when)(case) for each in conditions)


def _searched(
    failing: Sequence[Case], passing: Sequence[Case], sampler: Sampler, fails: Fails, seconds: float
) -> tuple[SharedCondition, ...]:
    known = _Known([*failing], [*passing])
    until = time.monotonic() + seconds
    for turn in range(ROUNDS):
        whens = shared_condition(known.failing, known.passing)
        holds = [compile_predicate(when) for when in whens]
        # Another fault may be what fails next to a failing call that misses the proposal.
        own = [case for case in known.failing if not holds or any(each(case) for each in holds)]
        near = list(islice(_near(sampler, own, turn), _CANDIDATES // 2))
        if whens:
            fresh = list(islice(_fresh(sampler, turn), _CANDIDATES // 2))
            found = _confirmed(known, whens, near, [*fresh, *near], fails)
            if found:
                return found
        elif min(len(known.failing), len(known.passing)) > CALLS * ROUNDS:
            return ()
        else:
            chosen = near[: 2 * CALLS]
            known.add(chosen, fails(chosen))
        if time.monotonic() > until:
            break
    return ()


def _confirmed(
    known: _Known, whens: Sequence[str], near: Sequence[Case], calls: Sequence[Case], fails: Fails
) -> tuple[SharedCondition, ...]:
    """What fails must fail anywhere, what passes must pass next to what fails."""
    holds = [compile_predicate(when) for when in whens]
    missed = _spread([case for case in near if not any(each(case) for each in holds)], CALLS)
    ends = fails(missed)
    known.add(missed, ends)
    passed, is_confirmed = ends.count(False), True not in ends
    found = []
    for when, each in zip(whens, holds, strict=True):
        met = _spread([case for case in calls if each(case)], CALLS)
        ends = fails(met)
        known.add(met, ends)
        is_confirmed &= ends.count(True) >= LEAST and False not in ends
        found.append(SharedCondition(when=when, met=ends.count(True), missed=passed))
    return tuple(found) if is_confirmed and passed >= LEAST and known.pass_where_missed(alternative(whens)) else ()


def _spread(cases: Sequence[Case], most: int) -> list[Case]:
    return list(cases[:: max(-(-len(cases) // most), 1)])[:most]


def _fresh(sampler: Sampler, turn: int) -> Iterator[Case]:
    for number in range(_CANDIDATES):
        choices = StreamChoices(turn, f"condition/{sampler.spec.operator}", number)
        yield sampler.case(sampler.draw(choices, budget=_BUDGET if number % 2 else None))


def _near(sampler: Sampler, failing: Sequence[Case], turn: int) -> Iterator[Case]:
    """Valid calls that differ from a failing one in one decision."""
    small = sorted(failing, key=lambda case: case.nbytes)[: 4 * CALLS]
    drawings = [drawing for case in small if (drawing := recover_drawing(sampler, case)) is not None]
    for number in range(2 * _CANDIDATES if drawings else 0):
        choices = StreamChoices(turn, f"near/{sampler.spec.operator}", number)
        try:
            case = sampler.case(_varied(sampler, drawings[number % len(drawings)], choices))
        except (*UNDEFINED, LookupError):
            continue
        if not evaluate(sampler.spec, case).broken:
            yield case


def _varied(sampler: Sampler, drawing: Drawing, choices: Choices) -> Drawing:
    other = sampler.draw(choices, budget=_BUDGET)
    names = [draw.name for draw in sampler.spec.draws if drawing.names[draw.name] != other.names[draw.name]]
    part = choices.pick((*names, *names, "dtypes", "formats", "views", "data", "scalars", "nulls"))
    if part not in names:
        return msgspec.structs.replace(drawing, **{part: getattr(other, part)})
    value = other.names[part]
    if type(value) is int and choices.chance(1, 2):
        # Blocks and thresholds show one step beside what fails.
        value = max(drawing.names[part] + choices.pick((-1, 1)), 0)
    way = CaseChange(text="", assign={part: value})
    return msgspec.structs.replace(drawing, names=sampler.names.reassign(drawing, way))


def with_conditions(
    findings: Iterable[Finding], records: Callable[[str, str], Iterable[Record]], runner: TrialRunner
) -> tuple[Finding, ...]:
    """The findings of a run, split and merged by the conditions that calls made by `runner` confirm.

    A finding whose failures meet one of two conditions is two; two findings with one condition are one.
    `records` are those of an operator with a result.
    """
    given = list(findings)
    index = FindingIndex(given)
    found: list[Finding] = []
    until = time.monotonic() + 3 * SECONDS
    for number, item in enumerate(given):
        operator = item.key.operator
        failed = [record for record in records(operator, Result.FAILED) if index.number_of(record) == number]
        found += (
            with_condition(item, failed, records(operator, Result.PASSED), runner)
            if number < MOST and time.monotonic() < until
            else [item]
        )
    return merge_equal_conditions(found)


def with_condition(
    finding: Finding, failed: Sequence[Record], passed: Iterable[Record], runner: TrialRunner
) -> tuple[Finding, ...]:
    """A finding with its condition, where one can be confirmed; of alternatives one finding each."""
    is_steady = finding.confirmed in (Confirmation.WAITING, Confirmation.ALWAYS)
    if finding.waiver or not is_steady or finding.key.clause or finding.key.fault in _UNTRIED:
        return (finding,)
    failing, passing = _plain(failed), _plain(passed)
    if not failing:
        return (finding,)
    keys = frozenset(item.key for item in finding.fingerprints)

    def fails(cases: Sequence[Case]) -> list[bool | None]:
        made = [record for judged in runner.run([Trial("values", case) for case in cases]) for record in judged.records]
        return [_fails(record, keys) for record in made]

    sampler = runner.sampler(runner.specs[finding.key.operator])
    conditions = confirmed_conditions(failing, passing, sampler=sampler, fails=fails)
    if len(conditions) < 2:
        return tuple(msgspec.structs.replace(finding, condition=each) for each in conditions) or (finding,)
    return tuple(_split(finding, failed, conditions))


def _plain(records: Iterable[Record]) -> list[Case]:
    return [
        record.trial.case for record in records if record.trial.check in PLAIN_CHECKS and is_valid_call(record.trial)
    ]


def _fails(record: Record, keys: Collection[Fingerprint]) -> bool | None:
    if record.verdict.result == Result.PASSED:
        return False
    return True if record.verdict.result == Result.FAILED and record.key in keys else None


def _split(finding: Finding, failed: Sequence[Record], conditions: Sequence[SharedCondition]) -> Iterator[Finding]:
    holds = [compile_predicate(each.when) for each in conditions]
    last = len(conditions) - 1
    members: dict[int, list[Record]] = {}
    for record in failed:
        met = (place for place, each in enumerate(holds) if each(record.trial.case))
        members.setdefault(next(met, last), []).append(record)
    for number, (place, records) in enumerate(sorted(members.items()), start=1):
        counts = Counter(record.fingerprint for record in records)
        part = msgspec.structs.replace(
            finding, number=number, counts=tuple(counts.most_common()), condition=conditions[place]
        )
        yield with_best_record(part, records)


def merge_equal_conditions(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings of one operator with one condition as one, which the most frequent of them names."""
    found: dict[tuple[object, ...], Finding] = {}
    for item in sorted(findings, key=lambda each: (bool(each.waiver), -each.failures, each.file)):
        place = (item.key.operator, item.condition.when) if item.condition is not None else (item.file,)
        known = found.setdefault(place, item)
        if known is not item:
            counts = Counter(dict(known.counts)) + Counter(dict(item.counts))
            found[place] = msgspec.structs.replace(known, counts=tuple(counts.most_common()))
    return tuple(found.values())
