"""What a run is going to try: parts, each a pure function of seed, spec and target, expanded where they are run.

A part is small enough to be handed to a worker and says nothing of its trials but how to make them, so a plan of
50,000 cases an operator costs nothing until it is run, and any part of it can be made again alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.spec.model import Spec

__all__ = ["LIFE_CYCLE", "LIFE_CYCLE_KIND", "PROFILES", "STATUS_PROMISES", "Part", "Profile", "plan_parts", "profile"]

CHUNK = 250
"""Random cases of a part."""


LIFE_CYCLE_KIND = "life-cycle"
"""The kind of case that a trial of a life cycle takes."""

LIFE_CYCLE = tuple(
    f"{LIFE_CYCLE_KIND}/{name}"
    for name in (
        "repeatable",
        "two-streams",
        "interleaved",
        "phase-one-alone",
        "exact-workspace",
        "larger-workspace",
        "cold-warm",
        "repeated-failure",
    )
)
"""The promises of the life cycle (`engine.life_cycle`)."""


STATUS_PROMISES = ("example", "boundary", "status", "values", f"{LIFE_CYCLE_KIND}/repeated-failure")
"""What can be said of first phases alone."""


class Profile(msgspec.Struct, frozen=True):
    """How much of each kind a run tries, for each operator."""

    name: str
    random: int
    """Random valid cases."""
    breaks: int
    """Invalid cases for each constraint."""
    memory: int
    """Random cases whose memory alone is judged, by layout."""
    laws: int
    """Trials of each law."""
    life_cycle: int
    """Trials of each promise of the life cycle."""


PROFILES: Mapping[str, Profile] = {
    entry.name: entry
    for entry in (
        Profile("quick", random=300, breaks=6, memory=24, laws=8, life_cycle=3),
        Profile("standard", random=5_000, breaks=40, memory=400, laws=100, life_cycle=20),
        Profile("thorough", random=50_000, breaks=200, memory=4_000, laws=1_000, life_cycle=100),
    )
}


def profile(name: str) -> Profile:
    """A profile by its name; UsageError for an unknown one."""
    if name not in PROFILES:
        raise UsageError(f"--profile {name!r}: expected one of {', '.join(PROFILES)}{nearest(name, PROFILES)}")
    return PROFILES[name]


class Part(msgspec.Struct, frozen=True):
    """Some trials of one promise of one operator: `count` from number `first` on, of a constraint if one is named."""

    operator: str
    promise: str
    kind: str
    """`example`, `boundary`, `invalid`, `valid`, `law` or `life-cycle`."""
    constraint: str = ""
    first: int = 0
    count: int = 0


def _chunks(operator: str, promise: str, count: int, *, kind: str = "valid") -> Iterator[Part]:
    for first in range(0, count, CHUNK):
        yield Part(operator, promise, kind, first=first, count=min(CHUNK, count - first))


def _operator_parts(spec: Spec, product: str, chosen: Profile, laws: Sequence[str]) -> Iterator[Part]:
    name = spec.operator
    if spec.examples:
        yield Part(name, "example", "example", count=len(spec.examples))
    constraints = spec.constraints_for(product)
    for constraint in constraints:
        yield Part(name, "boundary", "boundary", constraint.id)
    for constraint in constraints:
        yield Part(name, "status", "invalid", constraint.id, count=chosen.breaks)
    yield Part(name, "precision", "valid")
    for law in laws:
        yield from _chunks(name, law, chosen.laws, kind="law")
    for promise in LIFE_CYCLE:
        yield Part(name, promise, LIFE_CYCLE_KIND, count=chosen.life_cycle)
    yield from _chunks(name, "memory", chosen.memory)
    yield from _chunks(name, "values", chosen.random)


def plan_parts(
    specs: Sequence[Spec], *, product: str, chosen: Profile, laws: Callable[[Spec], Sequence[str]], phases: int = 2
) -> list[Part]:
    """The parts of a run, examples and limits first, in the order in which they are recorded.

    `laws` gives the ids of the promises that an operator's laws are. With one phase of the two, only promises of
    statuses are planned.
    """
    return [
        part
        for spec in specs
        if product in spec.products
        for part in _operator_parts(spec, product, chosen, laws(spec))
        if phases != 1 or part.promise in STATUS_PROMISES
    ]
