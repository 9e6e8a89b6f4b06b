"""Making the list of an operator's corners: which of them calls of a standard plan are at, and what refuses others."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from aclnn_cts.core.case_json import canonical_json, case_to_json
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.corner_list import (
    CORNERS_FORMAT,
    QUICK_CALLS,
    CornerList,
    ListedFactor,
    ListedProducts,
    RefusedCorners,
)
from aclnn_cts.generate.corner_walk import CornerWalk
from aclnn_cts.generate.corners import Factor, factors_of
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import digest_with_families

_CALLS = 1_000
"""Calls of a walk: the first of the profile `standard`."""
_OFTEN = 5
"""Calls of each walk that are at a corner at least. Where fewer are, chance decides: no run is asked for it."""
_COMPARED = 100
"""Calls by which products are compared: the documents' differences are in tables of dtypes, which each call shows."""
LONGER_CALLS = 3 * QUICK_CALLS
"""Calls of the walk that shows which pairs there are, and the most that a quick plan takes."""
_STEP = 50
"""A quick plan has a multiple of so many."""
SELDOM = "hardly any call has such a place"


def listed_corners(spec: Spec) -> CornerList:
    """Walk along the corners of an operator on each of its products."""
    return CornerList(CORNERS_FORMAT, digest_with_families(spec.text), tuple(listed_groups(spec)))


def listed_groups(spec: Spec) -> Iterator[ListedProducts]:
    """Products that have the same corners, with them: walks that are made when they are asked for."""
    alike: dict[Hashable, list[Sampler]] = {}
    for product in spec.products:
        sampler = Sampler(spec, Target(product))
        alike.setdefault(_shown(sampler), []).append(sampler)
    for samplers in alike.values():
        products = tuple(sampler.target.product for sampler in samplers)
        yield ListedProducts(products, quick_calls(samplers[0]), _factors(samplers))


def quick_calls(sampler: Sampler) -> int:
    """The calls of a quick plan that have nine tenths of the pairs which they, or a longer walk, have."""
    plan, longer = CornerWalk(sampler, seed=0), CornerWalk(sampler, seed=1)
    for _ in range(LONGER_CALLS):
        longer.next_call()
    pairs, number = longer.pairs(), 0
    while number < LONGER_CALLS:
        plan.next_call()
        number += 1
        if number >= QUICK_CALLS and number % _STEP == 0:
            had = plan.pairs()
            if 10 * len(had) >= 9 * len(had | pairs):
                break
    return number


def _shown(sampler: Sampler) -> Hashable:
    """What is the same on products with the same corners: their factors, rules, and calls drawn by the same numbers."""
    cases = [sampler.random_case(StreamChoices(0, "corners", number), number) for number in range(_COMPARED)]
    factors = [(factor.name, [corner.label for corner in factor.corners]) for factor in factors_of(sampler, heavy=True)]
    rules = [item.id for item in sampler.spec.constraints_for(sampler.target.product)]
    calls = [case_to_json(case, origin=False)["arguments"] for case in cases]
    return canonical_json([factors, rules, calls])


def _factors(samplers: Sequence[Sampler]) -> tuple[ListedFactor, ...]:
    """What the walks of all these products are at: the calls of each are its own, and so are those it gives up."""
    walks = [CornerWalk(sampler, seed=0, heavy=True) for sampler in samplers]
    calls = [Counter(itertools.chain.from_iterable(walk.next_call().corners for _ in range(_CALLS))) for walk in walks]
    refusals = {(factor, label): reason for walk in walks for factor, label, reason in walk.missed_corners()}
    return tuple(_listed(factor, calls, refusals) for factor in walks[0].factors)


def _listed(
    factor: Factor, calls: Sequence[Mapping[tuple[str, str], int]], refusals: Mapping[tuple[str, str], str]
) -> ListedFactor:
    visited, refused = [], dict[str, list[str]]()
    for label in (corner.label for corner in factor.corners):
        key = factor.name, label
        if all(found[key] >= _OFTEN for found in calls):
            visited.append(label)
        else:
            refused.setdefault(refusals.get(key, SELDOM), []).append(label)
    return ListedFactor(
        factor.name, tuple(visited), tuple(RefusedCorners(by, tuple(found)) for by, found in refused.items())
    )
