"""What a run is going to try: parts, each a pure function of seed, spec and target, expanded where they are run.

A part is small enough to be handed to a worker and says nothing of its trials but how to make them, so a plan of
50,000 cases an operator costs nothing until it is run, and any part of it can be made again alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.model import Spec

CHUNK = 250
"""Random cases of a part."""

_FIRST_VALUES = 28
"""Random cases before the first trial of any other check; in them most mistakes of values show."""
_EARLY_VALUES = 48
"""Random cases in the first round."""
_EARLY_MEMORY = 6
"""Cases planned for their memory in it; of all else it has one each."""


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
        "other-attributes",
        "repeated-failure",
    )
)
"""The checks of the life cycle (`trials.checks.life_cycle`)."""


EQUAL_CALLS = ("determinism", "layout")
"""The checks of calls that must give equal results (`trials.checks.equal_calls`), as far as every run has them."""

ON_REQUEST = ("batch-invariance",)
"""Checks of what no document promises: a run has them where they are asked for."""


REPEATED_FAILURE = f"{LIFE_CYCLE_KIND}/repeated-failure"
"""The check of one refused call that is made many times in a row."""


CHECK_NAMES = (
    *("example", "boundary", "status", "memory", "precision", "values"),
    *LIFE_CYCLE,
    *EQUAL_CALLS,
    *ON_REQUEST,
)
"""All checks in the order in which they are shown (`trials.checks.registry`)."""

STATUS_CHECKS = ("example", "boundary", "status", "values", REPEATED_FAILURE)
"""What can be said of first phases alone."""


class Profile(msgspec.Struct, frozen=True):
    """How much of each kind a run tries, for each operator."""

    name: str
    random: int
    """Random valid cases."""
    breaks: int
    """Invalid cases for each constraint."""
    memory: int
    """Random cases planned for their memory."""
    equal_calls: int
    """Trials of each check of `EQUAL_CALLS`."""
    life_cycle: int
    """Trials of each check of the life cycle."""
    heavy: bool = False
    """Whether random cases include the regime `heavy`: 2^18 to 2^22 elements a tensor."""
    requested: tuple[str, ...] = ()
    """Checks of `ON_REQUEST` that the run has too."""


PROFILES: Mapping[str, Profile] = {
    entry.name: entry
    for entry in (
        Profile("quick", random=300, breaks=6, memory=24, equal_calls=8, life_cycle=3),
        Profile("standard", random=5_000, breaks=40, memory=400, equal_calls=100, life_cycle=20, heavy=True),
        Profile("thorough", random=50_000, breaks=200, memory=4_000, equal_calls=1_000, life_cycle=100, heavy=True),
    )
}


def profile(name: str) -> Profile:
    """A profile by its name; UsageError for an unknown one."""
    if name not in PROFILES:
        raise UsageError(f"--profile {shown(name)}: expected one of {', '.join(PROFILES)}{nearest(name, PROFILES)}")
    return PROFILES[name]


class Part(msgspec.Struct, frozen=True):
    """Some trials of one check of one operator: `count` from number `first` on, of a constraint if one is named."""

    operator: str
    check: str
    kind: str
    """`example`, `boundary`, `invalid`, `valid`, `life-cycle`, or one of `EQUAL_CALLS`."""
    constraint: str = ""
    first: int = 0
    count: int = 0
    heavy: bool = False
    """Whether random cases include the regime `heavy`."""


def _trials(part: Part, first: int, last: int | None = None) -> Iterator[Part]:
    """The trials of a part from number `first` on and before `last`, in parts of `CHUNK`."""
    end = part.count if last is None else min(last, part.count)
    for start in range(first, end, CHUNK):
        yield msgspec.structs.replace(part, first=start, count=min(CHUNK, end - start))


def _operator_parts(spec: Spec, product: str, chosen: Profile) -> Iterator[Part]:
    """The document's examples, then a round with a little of everything, then all the rest in its order.

    Most mistakes show in the first round already, whatever check they break: a run that is going to fail says so
    soon. Its order is the one in which the seeded faults are found after the fewest cases.
    """
    name = spec.operator
    constraints = [item.id for item in spec.constraints_for(product)]
    broken = [Part(name, "status", "invalid", constraint, count=chosen.breaks) for constraint in constraints]
    values = Part(name, "values", "valid", count=chosen.random, heavy=chosen.heavy)
    memory = Part(name, "memory", "valid", count=chosen.memory)
    equal = [Part(name, check, check, count=chosen.equal_calls) for check in (*EQUAL_CALLS, *chosen.requested)]
    lives = [Part(name, check, LIFE_CYCLE_KIND, count=chosen.life_cycle) for check in LIFE_CYCLE]
    if spec.examples:
        yield Part(name, "example", "example", count=len(spec.examples))
    yield from _trials(values, 0, _FIRST_VALUES)
    for part in (*lives, *equal, *broken):
        yield from _trials(part, 0, 1)
    yield from _trials(values, _FIRST_VALUES, _EARLY_VALUES)
    yield from _trials(memory, 0, _EARLY_MEMORY)
    for constraint in constraints:
        yield Part(name, "boundary", "boundary", constraint)
    for part in broken:
        yield from _trials(part, 1)
    yield Part(name, "precision", "valid")
    for part in (*equal, *lives):
        yield from _trials(part, 1)
    yield from _trials(memory, _EARLY_MEMORY)
    yield from _trials(values, _EARLY_VALUES)


def plan_parts(specs: Sequence[Spec], *, product: str, chosen: Profile, phases: int = 2) -> list[Part]:
    """The parts of a run, examples and a little of everything first, in the order in which they are recorded.

    With one phase of the two, only checks of statuses are planned.
    """
    return [
        part
        for spec in specs
        if product in spec.products
        for part in _operator_parts(spec, product, chosen)
        if phases != 1 or part.check in STATUS_CHECKS
    ]
