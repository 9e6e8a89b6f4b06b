"""Coverage of what documents promise, not of lines: which of their rules have been put to the test.

Four sorts of things count: each constraint held and broken, each limit met from both sides, each law tried, and each
pair of values of the factors of a supported call (`campaign.corpus.factors`), single values among them. Limits and
pairs that were tried and never judged, since the implementation cannot be given them or nothing can be said of what it
does, are counted apart: all of the others can be met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.campaign.corpus.factors import Bits, Factors, Value
from aclnn_cts.checks.laws import law_ids
from aclnn_cts.core.case import Case
from aclnn_cts.generate.hazard import hazard
from aclnn_cts.generate.negative import boundary_cases
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import CoverageCount, OperatorSummary

TRIES = 8
"""Cases with a pair that are not judged, and none that is, until the pair is known not to be judged here."""

_MOST = np.uint8(255)


class Covered(msgspec.Struct):
    """What one operator's trials have met, as it is kept; squares of bits are packed row by row."""

    judged: bytes = b""
    """Pairs of values in a case that was judged."""
    unjudged: bytes = b""
    """How often each pair was in a case that was not judged, a byte each, 255 for all that is more."""
    limits: list[str] = []
    limits_unjudged: list[str] = []
    """Limits whose cases were left out or not judged."""
    values: list[int] = []
    """Judged cases of each value."""

    def include(self, other: Covered) -> None:
        """Add what other trials have met."""
        self.judged = _either(self.judged, other.judged)
        self.unjudged = _sum(self.unjudged, other.unjudged)
        self.limits = sorted({*self.limits, *other.limits})
        self.limits_unjudged = sorted({*self.limits_unjudged, *other.limits_unjudged})
        if other.values:
            mine = self.values or [0] * len(other.values)
            self.values = [own + more for own, more in zip(mine, other.values, strict=True)]


def _either(mine: bytes, theirs: bytes) -> bytes:
    if not mine or not theirs:
        return mine or theirs
    return (int.from_bytes(mine, "big") | int.from_bytes(theirs, "big")).to_bytes(len(mine), "big")


def _sum(mine: bytes, theirs: bytes) -> bytes:
    if not mine or not theirs:
        return mine or theirs
    left = _MOST - np.frombuffer(mine, np.uint8)
    more: bytes = (np.frombuffer(mine, np.uint8) + np.minimum(left, np.frombuffer(theirs, np.uint8))).tobytes()
    return more


class Share(CoverageCount):
    """So many of so many."""

    @property
    def part(self) -> float:
        """1 where there is nothing to meet."""
        return self.met / self.of if self.of else 1.0

    def __add__(self, other: Share) -> Share:
        return Share(self.met + other.met, self.of + other.of, self.apart + other.apart)


@dataclass(slots=True)
class CheckCoverage:
    """Everything that counts of one operator."""

    factors: Factors
    constraints: tuple[str, ...]
    laws: tuple[str, ...]
    limits: frozenset[str]

    def _bits(self, packed: bytes) -> Bits:
        if not packed:
            return self.factors.square()
        size = len(self.factors.values)
        raw = np.unpackbits(np.frombuffer(packed, np.uint8), count=size * size)
        return raw.reshape(size, size).astype(np.bool_)

    def _tries(self, covered: Covered) -> NDArray[np.uint8]:
        size = len(self.factors.values)
        return np.frombuffer(covered.unjudged or bytes(size * size), np.uint8).reshape(size, size)

    def _pairs(self, covered: Covered) -> tuple[Bits, Bits, Bits]:
        """The pairs that were judged, those that are yet to be, and those that cannot be judged here."""
        judged = self._bits(covered.judged)
        left = self.factors.possible & ~judged
        apart = left & (self._tries(covered) >= TRIES)
        return judged, left & ~apart, apart

    def _limits(self, covered: Covered) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """The same of limits."""
        met = self.limits & frozenset(covered.limits)
        apart = (self.limits & frozenset(covered.limits_unjudged)) - met
        return met, self.limits - met - apart, apart

    def shares(self, covered: Covered, summary: OperatorSummary) -> Mapping[str, Share]:
        """How much is covered, by sort of thing."""
        sides = self._sides(summary)
        judged, left, apart = (len(self.factors.pairs(bits)) for bits in self._pairs(covered))
        met, missing, hopeless = map(len, self._limits(covered))
        untried = self._untried(summary)
        return {
            "constraints": Share(sum(sides.values()), len(sides)),
            "limits": Share(met, met + missing, hopeless),
            "laws": Share(len(self.laws) - len(untried), len(self.laws)),
            "pairs": Share(judged, judged + left, apart),
        }

    def _sides(self, summary: OperatorSummary) -> Mapping[str, bool]:
        """Each side of each constraint, and whether a case was on it."""
        found: dict[str, bool] = {}
        for name in self.constraints:
            count = summary.constraints.get(name)
            found[f"{name} held"] = count is not None and count.held > 0
            found[f"{name} broken"] = count is not None and count.broken > 0
        return found

    def _untried(self, summary: OperatorSummary) -> list[str]:
        return [name for name in self.laws if (count := summary.laws.get(name)) is None or not count.tried]

    def by_factor(self, covered: Covered) -> Mapping[str, Share]:
        """Of each factor: how many of the pairs that its values stand in are covered."""
        counts = [bits.sum(axis=1) for bits in self._pairs(covered)]
        found: dict[str, Share] = {}
        for number, (factor, _) in enumerate(self.factors.values):
            judged, left, apart = (int(count[number]) for count in counts)
            found[factor] = found.get(factor, Share(0, 0)) + Share(judged, judged + left, apart)
        return found

    def missing(self, covered: Covered) -> list[tuple[Value, Value]]:
        """The pairs that can be judged and were not yet; those that were tried come where there are no others."""
        _, left, _ = self._pairs(covered)
        untried = left & (self._tries(covered) == 0)
        return self._named(untried if untried.any() else left)

    def _named(self, bits: Bits) -> list[tuple[Value, Value]]:
        values = self.factors.values
        return [(values[first], values[second]) for first, second in self.factors.pairs(bits)]

    def gaps(self, covered: Covered, summary: OperatorSummary) -> Mapping[str, list[str]]:
        """What is missing, by sort of thing, in words: `rank:A 3, layout:out gaps`."""
        _, left, _ = self._pairs(covered)
        return {
            "constraints": [side for side, met in self._sides(summary).items() if not met],
            "limits": sorted(self._limits(covered)[1]),
            "laws": self._untried(summary),
            "pairs": [_words(*pair) for pair in self._named(left)],
        }

    def apart(self, covered: Covered) -> Mapping[str, list[str]]:
        """What was tried and never judged, likewise."""
        return {
            "limits": sorted(self._limits(covered)[2]),
            "pairs": [_words(*pair) for pair in self._named(self._pairs(covered)[2])],
        }


def _words(first: Value, second: Value) -> str:
    return " ".join(first) if first == second else f"{' '.join(first)}, {' '.join(second)}"


def packed(
    factors: Factors,
    *,
    judged: Sequence[Sequence[int]],
    unjudged: Sequence[Sequence[int]],
    limits: Iterable[str],
    limits_unjudged: Iterable[str] = (),
) -> Covered:
    """What trials have met: the numbers of each case's values (judged, and tried without a verdict), keys of limits."""
    counts = np.bincount([number for row in judged for number in row], minlength=len(factors.values))
    return Covered(
        judged=np.packbits(factors.among(judged)).tobytes(),
        unjudged=_counts(factors, unjudged),
        limits=sorted(set(limits)),
        limits_unjudged=sorted(set(limits_unjudged)),
        values=counts.tolist(),
    )


def _counts(factors: Factors, rows: Sequence[Sequence[int]]) -> bytes:
    """How many cases have each pair, as `Covered.unjudged` keeps it."""
    if not rows:
        return b""
    marks = factors.marks(rows)
    counts = np.stack([marks[has].sum(axis=0) for has in marks.T])
    content: bytes = np.minimum(counts, _MOST).astype(np.uint8).tobytes()
    return content


def limit_key(case: Case, *, beyond: bool) -> str:
    """What a boundary case meets: the constraint, the change that leads to its limit, and the side."""
    return f"{case.origin.constraint}: {case.origin.change}, {'beyond' if beyond else 'within'}"


def check_coverage(factors: Factors, *, seed: int, unsafe: bool = False, phases: int = 2) -> CheckCoverage:
    """What counts of an operator.

    The limits are those that the seed's boundary cases reach, as in a run; without those that are not sent to a
    device unless `unsafe` is asked for. With one phase of the two there are no laws.
    """
    sampler = factors.sampler
    constraints = sampler.spec.constraints_for(sampler.target.product)
    return CheckCoverage(
        factors=factors,
        constraints=tuple(item.id for item in constraints),
        laws=law_ids(sampler.spec) if phases == 2 else (),
        limits=frozenset(
            limit_key(derived.case, beyond=bool(derived.broken))
            for constraint in constraints
            for derived in boundary_cases(sampler, constraint, seed=seed)
            if unsafe or not _hazardous(sampler.spec, derived.case, phases)
        ),
    )


def _hazardous(spec: Spec, case: Case, phases: int) -> bool:
    both = phases == 2 and case.call.phases != 1
    return bool(hazard(spec, case, both_phases=both, evaluation=evaluate(spec, case)))
