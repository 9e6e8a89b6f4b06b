"""What a run is going to try: parts, each a pure function of seed, spec and target, expanded where they are run.

A part is small enough to be handed to a worker and says nothing of its trials but how to make them, so a plan of
50,000 cases an operator costs nothing until it is run, and any part of it can be made again alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.model import Spec

CHUNK = 250
"""Random cases of a part."""

_FIRST_VALUES = 28
"""Random cases before the first trial of any other check; in them most mistakes of values show."""


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
"""The checks of the life cycle (`checks.life_cycle`)."""


STATUS_CHECKS = ("example", "boundary", "status", "values", f"{LIFE_CYCLE_KIND}/repeated-failure")
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
    laws: int
    """Trials of each law."""
    life_cycle: int
    """Trials of each check of the life cycle."""
    heavy: bool = False
    """Whether random cases include the regime `heavy`: 2^18 to 2^22 elements a tensor."""


PROFILES: Mapping[str, Profile] = {
    entry.name: entry
    for entry in (
        Profile("quick", random=300, breaks=6, memory=24, laws=8, life_cycle=3),
        Profile("standard", random=5_000, breaks=40, memory=400, laws=100, life_cycle=20, heavy=True),
        Profile("thorough", random=50_000, breaks=200, memory=4_000, laws=1_000, life_cycle=100, heavy=True),
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
    """`example`, `boundary`, `invalid`, `valid`, `law` or `life-cycle`."""
    constraint: str = ""
    first: int = 0
    count: int = 0
    heavy: bool = False
    """Whether random cases include the regime `heavy`."""


@dataclass(frozen=True, slots=True)
class _Row:
    """What is planned of one check: some of it in the first round, the rest in its turn."""

    check: str
    kind: str
    count: int
    early: int = 0
    constraint: str = ""
    heavy: bool = False

    def first_round(self, operator: str, first: int = 0, last: int | None = None) -> Iterator[Part]:
        """What is early, or numbers `first` to `last` of it."""
        end = min(self.early if last is None else last, self.early, self.count)
        if first < end:
            yield self._part(operator, first, end - first)

    def rest(self, operator: str) -> Iterator[Part]:
        for first in range(min(self.early, self.count), self.count, CHUNK):
            number = min(CHUNK, self.count - first)
            yield self._part(operator, first, number)

    def _part(self, operator: str, first: int, count: int) -> Part:
        return Part(operator, self.check, self.kind, self.constraint, first=first, count=count, heavy=self.heavy)


def _operator_parts(spec: Spec, product: str, chosen: Profile, laws: Sequence[str]) -> Iterator[Part]:
    """The document's examples, then a round with a little of everything, then all the rest in its order.

    Most mistakes show in the first round already, whatever check they break: a run that is going to fail says so
    soon. Its order is the one in which the seeded faults are found after the fewest cases.
    """
    name = spec.operator
    constraints = [item.id for item in spec.constraints_for(product)]
    broken = [_Row("status", "invalid", chosen.breaks, 1, constraint) for constraint in constraints]
    values = _Row("values", "valid", chosen.random, 48, heavy=chosen.heavy)
    memory = _Row("memory", "valid", chosen.memory, 6)
    related = [_Row(law, "law", chosen.laws, 1) for law in laws]
    lives = [_Row(check, LIFE_CYCLE_KIND, chosen.life_cycle, 1) for check in LIFE_CYCLE]
    if spec.examples:
        yield Part(name, "example", "example", count=len(spec.examples))
    yield from values.first_round(name, last=_FIRST_VALUES)
    for row in (*lives, *related, *broken):
        yield from row.first_round(name)
    yield from values.first_round(name, first=_FIRST_VALUES)
    yield from memory.first_round(name)
    for constraint in constraints:
        yield Part(name, "boundary", "boundary", constraint)
    for row in broken:
        yield from row.rest(name)
    yield Part(name, "precision", "valid")
    for row in (*related, *lives, memory, values):
        yield from row.rest(name)


def plan_parts(
    specs: Sequence[Spec], *, product: str, chosen: Profile, laws: Callable[[Spec], Sequence[str]], phases: int = 2
) -> list[Part]:
    """The parts of a run, examples and a little of everything first, in the order in which they are recorded.

    `laws` gives the ids of the checks that an operator's laws are. With one phase of the two, only checks of
    statuses are planned.
    """
    return [
        part
        for spec in specs
        if product in spec.products
        for part in _operator_parts(spec, product, chosen, laws(spec))
        if phases != 1 or part.check in STATUS_CHECKS
    ]
