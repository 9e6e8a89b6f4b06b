"""Coverage of the promise, not of lines: what of everything that a document promises has been put to the test.

Four sorts of things count: each constraint held and broken, each limit met from both sides, each law tried, and each
pair of values of the factors of a supported call (`campaign.factors`), single values among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from aclnn_cts.adapters.cann.safety import hazard
from aclnn_cts.core.case import Case
from aclnn_cts.engine.campaign.factors import Bits, Factors, Value
from aclnn_cts.engine.counts import OperatorSummary
from aclnn_cts.engine.laws import law_ids
from aclnn_cts.generate.breaking import boundary_cases
from aclnn_cts.spec.evaluate import evaluate
from aclnn_cts.spec.model import Spec

__all__ = ["Covered", "PromiseCoverage", "Share", "limit_key", "packed", "promise_coverage"]


class Covered(msgspec.Struct):
    """What one operator's trials have met, as it is kept; squares of bits are packed row by row."""

    judged: bytes = b""
    """Pairs of values in a case that was judged."""
    tried: bytes = b""
    """Pairs in any case, judged or not."""
    limits: list[str] = []
    values: list[int] = []
    """Judged cases of each value."""

    def include(self, other: Covered) -> None:
        """Add what other trials have met."""
        self.judged = _either(self.judged, other.judged)
        self.tried = _either(self.tried, other.tried)
        self.limits = sorted({*self.limits, *other.limits})
        if other.values:
            mine = self.values or [0] * len(other.values)
            self.values = [own + more for own, more in zip(mine, other.values, strict=True)]


def _either(mine: bytes, theirs: bytes) -> bytes:
    if not mine or not theirs:
        return mine or theirs
    return (int.from_bytes(mine, "big") | int.from_bytes(theirs, "big")).to_bytes(len(mine), "big")


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    met: int
    of: int

    @property
    def part(self) -> float:
        """1 where there is nothing to meet."""
        return self.met / self.of if self.of else 1.0

    def __add__(self, other: Share) -> Share:
        return Share(self.met + other.met, self.of + other.of)


@dataclass(slots=True)
class PromiseCoverage:
    """Everything that counts of one operator."""

    factors: Factors
    constraints: tuple[str, ...]
    laws: tuple[str, ...]
    limits: frozenset[str]
    _size: int = field(init=False)

    def __post_init__(self) -> None:
        self._size = len(self.factors.values)

    def _bits(self, packed: bytes) -> Bits:
        if not packed:
            return self.factors.square()
        raw = np.unpackbits(np.frombuffer(packed, np.uint8), count=self._size * self._size)
        return raw.reshape(self._size, self._size).astype(np.bool_)

    def shares(self, covered: Covered, summary: OperatorSummary) -> Mapping[str, Share]:
        """How much is covered, by sort of thing."""
        held = [summary.constraints.get(name) for name in self.constraints]
        sides = [side for count in held for side in ((count.held, count.broken) if count else (0, 0))]
        # What was met though no search had found it can occur after all.
        judged = self._bits(covered.judged)
        possible = self.factors.possible | judged
        tried = [summary.laws.get(name) for name in self.laws]
        return {
            "constraints": Share(sum(number > 0 for number in sides), len(sides)),
            "limits": Share(len(self.limits & set(covered.limits)), len(self.limits)),
            "laws": Share(sum(count is not None and count.tried > 0 for count in tried), len(tried)),
            "pairs": Share(len(self.factors.pairs(judged)), len(self.factors.pairs(possible))),
        }

    def by_factor(self, covered: Covered) -> Mapping[str, Share]:
        """Of each factor: how many of the pairs that its values stand in are covered."""
        judged = self._bits(covered.judged)
        possible = self.factors.possible | judged
        found: dict[str, Share] = {}
        for number, (factor, _) in enumerate(self.factors.values):
            one = Share(int(judged[number].sum()), int(possible[number].sum()))
            found[factor] = found.get(factor, Share(0, 0)) + one
        return found

    def missing(self, covered: Covered) -> list[tuple[Value, Value]]:
        """The pairs that can occur and were not judged yet.

        Those that were tried already, in cases that could not be judged, come where there are no others.
        """
        values = self.factors.values
        judged, tried = self._bits(covered.judged), self._bits(covered.tried)
        left = self.factors.possible & ~judged
        untried = left & ~tried
        return [
            (values[first], values[second]) for first, second in self.factors.pairs(untried if untried.any() else left)
        ]

    def unjudged(self, covered: Covered) -> int:
        """Pairs that were tried and never judged: this implementation cannot be given them, say."""
        return len(self.factors.pairs(self._bits(covered.tried) & ~self._bits(covered.judged)))


def packed(
    factors: Factors, *, judged: Sequence[Sequence[int]], unjudged: Sequence[Sequence[int]], limits: Iterable[str]
) -> Covered:
    """What trials have met: the numbers of each case's values (judged, and tried without a verdict), keys of limits."""
    pairs = factors.among(judged)
    counts = np.bincount([number for row in judged for number in row], minlength=len(factors.values))
    return Covered(
        judged=np.packbits(pairs).tobytes(),
        tried=np.packbits(pairs | factors.among(unjudged)).tobytes(),
        limits=sorted(set(limits)),
        values=counts.tolist(),
    )


def limit_key(case: Case, *, beyond: bool) -> str:
    """What a boundary case meets: the constraint, the change that leads to its limit, and the side."""
    return f"{case.origin.constraint}: {case.origin.change}, {'beyond' if beyond else 'within'}"


def promise_coverage(factors: Factors, *, seed: int, unsafe: bool = False) -> PromiseCoverage:
    """What counts of an operator.

    The limits are those that the seed's boundary cases reach, as in a run; without those that are not sent to a
    device unless `unsafe` is asked for.
    """
    sampler = factors.sampler
    constraints = sampler.spec.constraints_for(sampler.target.product)
    return PromiseCoverage(
        factors=factors,
        constraints=tuple(item.id for item in constraints),
        laws=law_ids(sampler.spec),
        limits=frozenset(
            limit_key(derived.case, beyond=bool(derived.broken))
            for constraint in constraints
            for derived in boundary_cases(sampler, constraint, seed=seed)
            if unsafe or not _hazardous(sampler.spec, derived.case)
        ),
    )


def _hazardous(spec: Spec, case: Case) -> bool:
    return bool(hazard(spec, case, both_phases=case.call.phases != 1, evaluation=evaluate(spec, case)))
