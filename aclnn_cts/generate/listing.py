"""The ordered enumeration of an operator's cases, by kind: what `aclnn-cts cases` writes.

- `valid`: case i is that of index i in the stream `<operator>/<product>/valid`.
- `corner`: case i of the walk along the corners (`corner_walk`).
- `real`: recorded calls within the budget of a quick plan, shuffled (`real_calls`).
- `invalid`: place i takes constraint `i mod n` of the n that apply to the product, in the order of the spec. It has the
  `i div n`-th case that breaks it, and stays empty where that cannot be proved.
- `boundary`: all that can be proved, constraint by constraint.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.generate.choices import SEED_LIMIT, stream_block
from aclnn_cts.generate.corner_walk import corner_cases
from aclnn_cts.generate.negative import DerivedCase, boundary_cases, invalid_cases
from aclnn_cts.generate.real_calls import real_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.model import Constraint

__all__ = ["KINDS", "SEED_LIMIT", "Kind", "list_cases"]

Kind: TypeAlias = Literal["valid", "corner", "real", "invalid", "boundary"]
KINDS: tuple[Kind, ...] = ("valid", "corner", "real", "invalid", "boundary")


def list_cases(sampler: Sampler, kind: Kind, *, seed: int, count: int, unproved: Counter[str]) -> Iterator[Case]:
    """The first `count` cases of a kind.

    Fewer come where the boundary cases are fewer, and where a whole round of the constraints proves nothing.
    `unproved` counts the cases, by constraint id, that were wanted and could not be proved.
    """
    if kind == "valid":
        return _valid(sampler, seed, count)
    if kind == "corner":
        return corner_cases(sampler, seed=seed, first=0, count=count)
    if kind == "real":
        return real_cases(sampler, seed=seed, first=0, count=count)
    listed = _invalid if kind == "invalid" else _boundary
    return itertools.islice(listed(sampler, seed, unproved), count)


def _valid(sampler: Sampler, seed: int, count: int) -> Iterator[Case]:
    name = f"{sampler.spec.operator}/{sampler.target.product}/valid"
    for index, choices in enumerate(stream_block(seed, name, 0, count)):
        yield sampler.random_case(choices, index)


def _invalid(sampler: Sampler, seed: int, unproved: Counter[str]) -> Iterator[Case]:
    constraints = sampler.spec.constraints_for(sampler.target.product)
    empty = 0
    for place in itertools.count():
        if empty >= len(constraints):
            return
        number, position = divmod(place, len(constraints))
        constraint = constraints[position]
        derived = next(invalid_cases(sampler, constraint, seed=seed, count=1, first=number), None)
        if derived is None:
            empty += 1
            unproved[constraint.id] += 1
        else:
            empty = 0
            yield _marked(derived)


def _boundary(sampler: Sampler, seed: int, unproved: Counter[str]) -> Iterator[Case]:
    for constraint in sampler.spec.constraints_for(sampler.target.product):
        proved = False
        for derived in boundary_cases(sampler, constraint, seed=seed):
            proved = True
            yield _marked(derived)
        if not proved and _has_limits(sampler, constraint, seed):
            unproved[constraint.id] += 1


def _has_limits(sampler: Sampler, constraint: Constraint, seed: int) -> bool:
    """Whether the rule knows limits at all: a dtype list has none, so that no boundary case is missing there."""
    if constraint.near:
        return True
    twin = next(_valid(sampler, seed, 1))
    return next(constraint.rule.limits(sampler.spec, twin), None) is not None


def _marked(derived: DerivedCase) -> Case:
    """The case; of one that must not reach a device, its origin says why."""
    case = derived.case
    if not derived.broken or derived.constraint.unsafe is None:
        return case
    change = f"{derived.change} (unsafe on a device: {derived.constraint.unsafe})"
    return msgspec.structs.replace(case, origin=msgspec.structs.replace(case.origin, change=change))
