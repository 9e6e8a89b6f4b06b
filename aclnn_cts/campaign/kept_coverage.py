"""What a campaign had covered when it ended, as its store and its summary keep it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from aclnn_cts.campaign.campaign_state import Memory
from aclnn_cts.campaign.corpus.check_coverage import Share
from aclnn_cts.store.counts import CoverageCount
from aclnn_cts.store.summary import Summary

__all__ = ["COVERAGE_STATE", "NAMED", "KeptCoverage", "Named", "keep_coverage"]

COVERAGE_STATE = "coverage/"
"""What the keys of coverage in a store's state begin with; the operator follows."""

NAMED = 500
"""Things of a sort that are named; of more, the number alone is kept."""


class Named(msgspec.Struct, kw_only=True):
    """Things of a sort: how many, and the first of them by name."""

    number: int
    names: Sequence[str]


class KeptCoverage(msgspec.Struct, kw_only=True):
    """One operator."""

    operator: str
    sorts: Mapping[str, CoverageCount]
    """`constraints` (each held, and each broken), `limits`, `laws`, `pairs`."""
    factors: Mapping[str, CoverageCount]
    """By factor: the pairs that its values stand in."""
    missing: Mapping[str, Named]
    """What can be covered and was not, by sort."""
    not_judged: Mapping[str, Named]
    """What was tried and never judged, by sort: this implementation cannot be given it, or nothing can be said."""


def keep_coverage(memory: Memory) -> None:
    """Store what all finished chunks of a campaign have covered."""
    part = Summary()
    state: dict[str, object] = {}
    for name, coverage in memory.coverage.items():
        covered = memory.so_far(name).covered
        summary = memory.writer.summary.operator(name)
        kept = KeptCoverage(
            operator=name,
            sorts=_counts(coverage.shares(covered, summary)),
            factors=_counts(coverage.by_factor(covered)),
            missing=_named(coverage.gaps(covered, summary)),
            not_judged=_named(coverage.apart(covered)),
        )
        part.operator(name).coverage = dict(kept.sorts)
        state[COVERAGE_STATE + name] = kept
    memory.writer.append_part(part, state=state)


def _counts(shares: Mapping[str, Share]) -> dict[str, CoverageCount]:
    return {name: CoverageCount(share.met, share.of, share.apart) for name, share in shares.items()}


def _named(found: Mapping[str, Sequence[str]]) -> dict[str, Named]:
    return {sort: Named(number=len(names), names=list(names[:NAMED])) for sort, names in found.items() if names}
