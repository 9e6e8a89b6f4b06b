"""Generated cases of an operator, kind after kind, and what of them could not be proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.generate.listing import KINDS, Kind, case_stream
from aclnn_cts.generate.philox import SEED_LIMIT
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.model import Spec

__all__ = ["KINDS", "SEED_LIMIT", "Generation", "Kind"]


@dataclass(slots=True, kw_only=True)
class Generation:
    """`count` cases of each kind, from one seed; iterate once, then the counts are complete."""

    spec: Spec
    target: Target
    kinds: Sequence[Kind]
    seed: int
    count: int
    written: Counter[str] = field(default_factory=Counter)
    """Cases by kind."""
    unproved: Counter[str] = field(default_factory=Counter)
    """Invalid and boundary cases that were wanted and could not be proved, by constraint id."""

    def __iter__(self) -> Iterator[Case]:
        sampler = Sampler(self.spec, self.target)
        for kind in self.kinds:
            stream = case_stream(self.spec, self.target, kind, seed=self.seed, count=self.count, sampler=sampler)
            for listed in stream:
                self.written[kind] += 1
                yield listed.case
            self.unproved += stream.unproved
