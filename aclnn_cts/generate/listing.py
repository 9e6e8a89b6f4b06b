"""The ordered enumeration of an operator's cases, by kind: what `aclnn-cts cases` writes and a run plans.

A kind, a seed and an index name one case, whatever part of the enumeration is asked for:

- `valid`: index i of the stream `<operator>/<product>/valid`.
- `invalid`: index i takes constraint `i mod n` of the n that apply to the product, in the order of the spec, and is the
  `i div n`-th case that breaks it. An index whose case cannot be proved stays empty.
- `boundary`: all that can be proved, constraint by constraint.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import SEED_LIMIT, stream_block
from aclnn_cts.generate.negative import Derived, boundary_cases, invalid_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.kinds import Constraint
from aclnn_cts.speclang.model import Spec

__all__ = ["KINDS", "SEED_LIMIT", "CaseStream", "Generation", "Kind", "ListedCase", "case_stream"]

Kind: TypeAlias = Literal["valid", "invalid", "boundary"]
KINDS: tuple[Kind, ...] = ("valid", "invalid", "boundary")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCase:
    """One case of the enumeration."""

    kind: Kind
    index: int
    case: Case
    constraint: Constraint | None = None
    """The constraint that an invalid case breaks, or on whose limit a boundary case lies."""
    broken: tuple[str, ...] = ()
    """Ids of all that is broken: the constraint and what of its group goes with it; empty where the case is valid."""
    twin: Case | None = None
    """The valid case that it was made from."""


@dataclass(slots=True)
class CaseStream:
    """Iterates over cases once; `unproved` and `proved` are complete when the iteration is."""

    _cases: Iterator[ListedCase]
    proved: Counter[str] = field(default_factory=Counter)
    """Cases by constraint id."""
    unproved: Counter[str] = field(default_factory=Counter)
    """Cases that were asked for and could not be proved, by constraint id."""

    def __iter__(self) -> Iterator[ListedCase]:
        return self._cases


def case_stream(
    spec: Spec,
    target: Target,
    kind: Kind,
    *,
    seed: int,
    count: int | None,
    first: int = 0,
    sampler: Sampler | None = None,
) -> CaseStream:
    """`count` cases of a kind from index `first` on; `count` None is all of them, for the kind `boundary` alone.

    Fewer come where the boundary cases are fewer, and where a whole round of the constraints proves nothing. A
    `sampler` of the same spec and target saves making one. ValueError for an endless enumeration.
    """
    if count is None and kind != "boundary":
        raise ValueError(f"the enumeration of {kind} cases has no end; give a count")
    sampler = sampler or Sampler(spec, target)
    stream = CaseStream(iter(()))
    if kind == "valid":
        found = _valid(sampler, seed, first, count or 0)
    elif kind == "invalid":
        found = _invalid(sampler, seed, first, stream)
    else:
        found = itertools.islice(_boundary(sampler, seed, stream), first, None)
    stream._cases = itertools.islice(found, count)  # noqa: SLF001 - a generator that counts into the stream it belongs to
    return stream


def _valid(sampler: Sampler, seed: int, first: int, count: int) -> Iterator[ListedCase]:
    name = f"{sampler.spec.operator}/{sampler.target.product}/valid"
    for index, choices in enumerate(stream_block(seed, name, first, count), first):
        yield ListedCase(kind="valid", index=index, case=sampler.random_case(choices, index))


def _invalid(sampler: Sampler, seed: int, first: int, stream: CaseStream) -> Iterator[ListedCase]:
    constraints = sampler.spec.constraints_for(sampler.target.product)
    empty = 0
    for index in itertools.count(first):
        if empty >= len(constraints):
            return
        number, position = divmod(index, len(constraints))
        constraint = constraints[position]
        derived = next(invalid_cases(sampler, constraint, seed=seed, count=1, first=number), None)
        if derived is None:
            empty += 1
            stream.unproved[constraint.id] += 1
            continue
        empty = 0
        stream.proved[constraint.id] += 1
        yield _listed("invalid", index, derived)


def _boundary(sampler: Sampler, seed: int, stream: CaseStream) -> Iterator[ListedCase]:
    index = 0
    for constraint in sampler.spec.constraints_for(sampler.target.product):
        for derived in boundary_cases(sampler, constraint, seed=seed):
            stream.proved[constraint.id] += 1
            yield _listed("boundary", index, derived)
            index += 1
        if constraint.id not in stream.proved and _has_limits(sampler, constraint, seed):
            stream.unproved[constraint.id] += 1


def _has_limits(sampler: Sampler, constraint: Constraint, seed: int) -> bool:
    """Whether the rule knows limits at all: a dtype list has none, so that no boundary case is missing there."""
    if constraint.near:
        return True
    twin = next(_valid(sampler, seed, 0, 1)).case
    return next(constraint.rule.limits(sampler.spec, twin), None) is not None


def _listed(kind: Kind, index: int, derived: Derived) -> ListedCase:
    case = derived.case
    if derived.broken and derived.constraint.unsafe is not None:
        change = f"{derived.change} (unsafe on a device: {derived.constraint.unsafe})"
        case = msgspec.structs.replace(case, origin=msgspec.structs.replace(case.origin, change=change))
    return ListedCase(
        kind=kind, index=index, case=case, constraint=derived.constraint, broken=derived.broken, twin=derived.twin
    )


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
