"""Which chunk comes when: a function of the seed, the chunk's number and the snapshot, and of nothing else.

Chunks come in generations of a fixed size. Those of one are made from what all generations but the last have taught:
while the last one is under way, the next is made, so that no worker waits for another and every campaign of a seed
makes the same chunks, however many workers it has.

A random chunk has a configuration: some features favoured, some omitted. Cases that are drawn from everything at once
are all alike: of 13 recipes each has its share in every chunk. Omitting features lets the others meet more often than
their share (swarm testing: Groce et al., ISSTA 2012).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from aclnn_cts.campaign.corpus.check_coverage import CheckCoverage
from aclnn_cts.campaign.corpus.chunk import PLAN, RANDOM, SEARCH, Chunk
from aclnn_cts.campaign.corpus.corpus import WISHES, Learned, Snapshot, snapshot_id
from aclnn_cts.campaign.corpus.factors import Factors
from aclnn_cts.checks.laws import law_ids
from aclnn_cts.checks.plan import LIFE_CYCLE, LIFE_CYCLE_KIND, Part, plan_parts, profile
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.speclang.model import Spec

FAVOUR = 3
"""How much more often a favoured label is chosen than another."""


def draw_configuration(factors: Factors, *, seed: int, index: int) -> Mapping[str, Sequence[str]]:
    """A configuration for the chunk of that number.

    Half of the factors stay as they are. Of each of the others, labels are left out with even chance, at least one
    stays, and one of those that stay is favoured.
    """
    # The stream keeps its name: with another one, a seed would make other chunks.
    choices = StreamChoices(seed, f"{factors.sampler.spec.operator}/campaign/policy", index)
    possible = np.diagonal(factors.possible)
    labels: dict[str, list[str]] = {}
    for (factor, label), can in zip(factors.values, possible, strict=True):
        if can:
            labels.setdefault(factor, []).append(label)
    configuration: dict[str, Sequence[str]] = {}
    for factor, known in labels.items():
        if len(known) < 2 or choices.chance(1, 2):
            continue
        kept = [label for label in known if choices.chance(1, 2)] or [choices.pick(known)]
        configuration[factor] = (*kept, *[choices.pick(kept)] * (FAVOUR - 1))
    return configuration


GENERATION = 4
"""Chunks of a generation where nothing else is said."""

FEEDBACK_LAG = 2
"""A generation is made from what those before the last have taught."""

RANDOM_ROUNDS = 2
"""Rounds over the operators that are random before searching begins."""

PLAN_TRIALS = 250
"""Trials that a chunk of the plan has, about."""

_BOUNDARY_TRIALS = 6
"""What the limits of one constraint come to, about."""


@dataclass(slots=True)
class Schedule:
    """The chunks of a campaign."""

    operators: tuple[Spec, ...]
    factors: Mapping[str, Factors]
    product: str
    seed: int
    size: int
    """Trials of a chunk that is drawn."""
    generation: int = GENERATION
    phases: int = 2
    """1: chunks hold statuses alone."""
    _plan: tuple[tuple[Part, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Lay the plan out: the first kinds of all operators, then the next kinds of all."""
        by_stage = [tuple(_stages(spec, self.product, self.phases)) for spec in self.operators]
        self._plan = tuple(group for stage in zip(*by_stage, strict=True) for parts in stage for group in _split(parts))

    @property
    def planned(self) -> int:
        """Chunks of the plan, with which every campaign begins."""
        return len(self._plan)

    def generation_of(self, index: int) -> int:
        """The generation that a chunk belongs to."""
        return index // self.generation

    def chunk(self, index: int, snapshot: Snapshot) -> Chunk:
        """The chunk of a number; `snapshot` is that of `generation_of(index) - FEEDBACK_LAG`, or of none."""
        if index < len(self._plan):
            parts = self._plan[index]
            return Chunk(index=index, seed=self.seed, snapshot="", phase=PLAN, operator=parts[0].operator, parts=parts)
        turn, place = divmod(index - len(self._plan), len(self.operators))
        spec = self.operators[place]
        name = spec.operator
        turn -= RANDOM_ROUNDS
        identity = snapshot_id(snapshot)
        wishes, parents = snapshot.wishes.get(name, ()), snapshot.parents.get(name, ())
        if turn >= 0 and turn % 3 == 1 and wishes:
            return Chunk(
                index=index,
                seed=self.seed,
                snapshot=identity,
                phase=SEARCH,
                operator=name,
                draws=min(self.size, 4 * len(wishes)),
                wishes=wishes,
            )
        if turn >= 0 and turn % 3 != 2 and parents:
            return Chunk(
                index=index,
                seed=self.seed,
                snapshot=identity,
                phase=SEARCH,
                operator=name,
                draws=self.size,
                parents=parents,
            )
        others = self.size // 8
        return Chunk(
            index=index,
            seed=self.seed,
            snapshot="",
            phase=RANDOM,
            operator=name,
            parts=tuple(self._others(spec, index, others)),
            draws=max(self.size - 2 * others, 1),
            configuration=draw_configuration(self.factors[name], seed=self.seed, index=index),
        )

    def _others(self, spec: Spec, index: int, number: int) -> Iterator[Part]:
        """What a random chunk has beside supported calls: about as many broken constraints, half as many laws."""
        name = spec.operator
        constraints = spec.constraints_for(self.product)
        each = max(number // max(len(constraints), 1), 1)
        # Numbers that no other chunk has, the plan's own first ones included.
        first = (index + 1) * 10_000
        for place in range(min(number, len(constraints))):
            constraint = constraints[(index + place) % len(constraints)]
            yield Part(name, "status", "invalid", constraint.id, first=first, count=each)
        if self.phases == 1:
            return
        laws = law_ids(spec)
        if laws and number >= 4:
            law = laws[index % len(laws)]
            yield Part(name, law, "law", first=first, count=max(number // 4, 1))
        if number >= 4:
            check = LIFE_CYCLE[index % len(LIFE_CYCLE)]
            yield Part(name, check, LIFE_CYCLE_KIND, first=first, count=max(number // 16, 1))
            yield Part(name, "memory", "valid", first=first, count=max(number // 8, 1))


def _stages(spec: Spec, product: str, phases: int) -> Iterator[list[Part]]:
    """The parts of a quick run, without those that a campaign draws itself: limits, then broken, then the rest."""
    parts = [
        part
        for part in plan_parts([spec], product=product, chosen=profile("quick"), laws=law_ids, phases=phases)
        if part.check not in ("values", "memory")
    ]
    yield [part for part in parts if part.kind in ("example", "boundary")]
    yield [part for part in parts if part.kind == "invalid"]
    yield [part for part in parts if part.kind not in ("example", "boundary", "invalid")]


def _split(parts: Sequence[Part]) -> Iterator[tuple[Part, ...]]:
    group: list[Part] = []
    size = 0
    for part in parts:
        group.append(part)
        size += part.count or _BOUNDARY_TRIALS
        if size >= PLAN_TRIALS:
            yield tuple(group)
            group, size = [], 0
    if group:
        yield tuple(group)


def take_snapshot(
    generation: int, learned: Mapping[str, Learned], coverage: Mapping[str, CheckCoverage], operators: Iterable[str]
) -> Snapshot:
    """What chunks are to know after a generation: the first pairs that are missing, and the good cases."""
    names = [name for name in operators if name in learned]
    return Snapshot(
        generation=generation,
        wishes={name: tuple(coverage[name].missing(learned[name].covered)[:WISHES]) for name in names},
        parents={name: learned[name].parents for name in names},
    )
