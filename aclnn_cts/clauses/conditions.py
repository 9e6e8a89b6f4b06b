"""Which condition failures are put down to, where calls meet several.

Calls that fail have much in common by chance. Of all conditions, the one that tells failing calls best from others is
at fault; then the same is asked of the calls that do not meet it. So a clause is left alone where its calls fail
because of what another clause speaks of.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from aclnn_cts.clauses.counted import is_first_phase
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.verdict import Record, Result

TIMES = 2
"""How many times as often as others calls fail that meet a condition which is at fault."""

EXPECTED = 5
"""That none of them fails where so many are expected to is no chance: exp(-5) is below one in a hundred."""

OF_CONTENTS = Fault.of(Family.VALUES, Family.OUTPUT, Family.TOLERANCE, Family.LAW)
"""Faults of one output's contents."""

CONTENTS = "contents"
"""Stands for all of them in a sort."""

Sort: TypeAlias = tuple[str, str]
"""What failures have in common: kind of fault, all of wrong values as one, and output."""


def sort_of_contents(record: Record) -> Sort:
    """That of a failure, all faults of one output's contents as one."""
    kind = record.verdict.kind
    return CONTENTS if kind in OF_CONTENTS else kind, record.fingerprint.output


def is_at_fault(failed: int, of: int, failed_others: int, of_others: int) -> bool:
    """Whether a condition is at fault where `failed` calls `of` those that meet it do, beside others.

    At least half of them fail, and that at least `TIMES` times as often as others; or no other call fails, and at least
    `EXPECTED` of them would where all calls failed alike.
    """
    if not failed_others and failed * of_others >= EXPECTED * of:
        return failed > 0
    return 2 * failed >= of and failed * of_others >= TIMES * failed_others * of


def is_judged(record: Record) -> bool:
    """Whether a trial says something of the implementation, beyond its first phase."""
    return record.verdict.result == Result.FAILED or (
        record.verdict.result == Result.PASSED and not is_first_phase(record)
    )


@dataclass(slots=True)
class ConditionedCalls:
    """Calls held to one check, counted by the conditions that they meet, each of which is a bit."""

    judged: Counter[int] = field(default_factory=Counter)
    failed: dict[Sort, Counter[int]] = field(default_factory=dict)

    def add(self, record: Record, met: int) -> None:
        """Count a call."""
        self.judged[met] += is_judged(record)
        if record.verdict.result == Result.FAILED:
            self.failed.setdefault(sort_of_contents(record), Counter())[met] += 1

    def outside(self, sort: Sort, conditions: int) -> tuple[int, int]:
        """Of the calls that meet none of these conditions: how many fail so, and how many there are."""
        failed, judged = (
            sum(number for met, number in counts.items() if not met & conditions)
            for counts in (self.failed.get(sort, Counter()), self.judged)
        )
        return failed, judged

    def at_fault(self, sort: Sort, candidates: int, *, about: int = 0) -> int:
        """The conditions, of these, that failures of a sort are put down to; `about` are those that name the fault."""
        found = 0
        while best := self._best(sort, candidates & ~found, apart=found):
            found |= best
        return found | self._common(sort, candidates, about, apart=found)

    def _common(self, sort: Sort, candidates: int, about: int, *, apart: int) -> int:
        """Conditions that every call meets, where these say so of the fault, or most calls are refused.

        That some calls fail says nothing else of what all of them have in common.
        """
        failed, judged = self.outside(sort, apart)
        common = sum(bit for bit in _bits(candidates) if self.judged and not self.outside(sort, bit)[1])
        if sort[0] == Fault.REJECTED:
            return common if failed and 2 * failed >= judged else 0
        return common & about

    def _best(self, sort: Sort, candidates: int, *, apart: int) -> int:
        """The condition that tells calls that fail from others best, and those that the same calls meet; 0: none."""
        best, highest = 0, 0.0
        all_failed, calls = self.outside(sort, apart)
        for bit in _bits(candidates) if all_failed else ():
            failed_others, others = self.outside(sort, apart | bit)
            failed, of = all_failed - failed_others, calls - others
            if not failed or not others or not is_at_fault(failed, of, failed_others, others):
                continue
            score = _correlation(failed, of, failed_others, others)
            if score > highest:
                best, highest = bit, score
        if not best:
            return 0
        left = [met for met in self.judged if not met & apart]
        return sum(bit for bit in _bits(candidates) if all(bool(met & bit) == bool(met & best) for met in left))


def _bits(conditions: int) -> list[int]:
    return [1 << place for place in range(conditions.bit_length()) if conditions >> place & 1]


def _correlation(failed: int, of: int, failed_others: int, of_others: int) -> float:
    """Between meeting a condition and failing (the phi coefficient): 1 where exactly the calls that meet it fail."""
    passed, passed_others = of - failed, of_others - failed_others
    scale = of * of_others * (failed + failed_others) * (passed + passed_others)
    return (failed * passed_others - passed * failed_others) / math.sqrt(scale) if scale else 1.0
