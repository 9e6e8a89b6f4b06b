"""Which chunk comes when, how it is made again from its few values, and what finished chunks teach later ones.

Chunks come in generations of a fixed size. Those of one are made from what all generations but the last have taught:
while the last one is under way, the next is made, so that no worker waits for another and every campaign of a seed
makes the same chunks, however many workers it has.

A random chunk has a configuration: some features favoured, some omitted. Cases that are drawn from everything at once
are all alike: of 13 recipes each has its share in every chunk. Omitting features lets the others meet more often than
their share (swarm testing: Groce et al., ISSTA 2012).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from aclnn_cts.core.case import Origin
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.choices import Choices, RecordedChoices, StreamChoices, stream_block
from aclnn_cts.generate.configuration import Configuration, Drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.runs.campaign.corpus.check_coverage import CheckCoverage, CoverageFactors, CoveredPairs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.registry import check_by_id
from aclnn_cts.trials.plan import EQUAL_CALLS, LIFE_CYCLE, LIFE_CYCLE_KIND, Part, plan_parts, profile

FAVOUR = 3
"""How much more often a favoured label is chosen than another."""


def draw_configuration(factors: CoverageFactors, *, seed: int, index: int) -> Mapping[str, Sequence[str]]:
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
    factors: Mapping[str, CoverageFactors]
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
        """What a random chunk has beside supported calls: about as many broken constraints, and a few equal calls."""
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
        if number >= 4:
            equal = EQUAL_CALLS[index % len(EQUAL_CALLS)]
            yield Part(name, equal, equal, first=first, count=max(number // 8, 1))
            check = LIFE_CYCLE[index % len(LIFE_CYCLE)]
            yield Part(name, check, LIFE_CYCLE_KIND, first=first, count=max(number // 16, 1))
            yield Part(name, "memory", "valid", first=first, count=max(number // 8, 1))


def _stages(spec: Spec, product: str, phases: int) -> Iterator[list[Part]]:
    """The parts of a quick run, without those that a campaign draws itself: limits, then broken, then the rest."""
    parts = [
        part
        for part in plan_parts([spec], product=product, chosen=profile("quick"), phases=phases)
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
    generation: int,
    learned: Mapping[str, CorpusUpdate],
    coverage: Mapping[str, CheckCoverage],
    operators: Iterable[str],
) -> Snapshot:
    """What chunks are to know after a generation: the first pairs that are missing, and the good cases."""
    names = [name for name in operators if name in learned]
    return Snapshot(
        generation=generation,
        wishes={name: tuple(coverage[name].missing(learned[name].covered)[:WISHES]) for name in names},
        parents={name: learned[name].parents for name in names},
    )


_TAIL = 1
"""Decisions at the end that are always drawn anew: the seed of the data."""


class MutatedChoices(Choices):
    """Gives back a parent's decisions, but for those that the source says are to be drawn anew.

    Of 8 cases, 3 keep everything but the data's seed, 3 change up to three decisions elsewhere, and 2 are new from some
    decision on. A value that does not fit its bounds any more, since what went before has changed, is drawn anew too.
    """

    __slots__ = ("_changed", "_cut", "_position", "_source", "_values")

    def __init__(self, source: Choices, values: Sequence[int]) -> None:
        self._source = source
        self._values = values
        self._position = 0
        self._changed: frozenset[int] = frozenset()
        self._cut = max(len(values) - _TAIL, 0)
        style = source.integer(0, 7)
        if self._cut and style > 2:
            places = [source.integer(0, self._cut - 1) for _ in range(1 + source.integer(0, 2))]
            if style > 5:
                self._cut = min(places)
            else:
                self._changed = frozenset(places)

    def integer(self, low: int, high: int) -> int:
        """The parent's decision where it stands and fits, else a fresh one."""
        position = self._position
        self._position = position + 1
        if position < self._cut and position not in self._changed:
            value = self._values[position]
            if low <= value <= high:
                return value
        return self._source.integer(low, high)


PINNED = "pinned"
"""The cases that waivers pin."""
FIRST_PINNED = -2
"""Index of the first chunk of pinned cases, from which the others count down; -1 stands for no chunk."""
PLAN = "plan"
"""Examples, limits, broken constraints, equal calls and life cycles, as a run has them."""
RANDOM = "random"
"""Drawn by a configuration."""
SEARCH = "search"
"""Mutated from good cases, or narrowed to what was not met yet."""

Wish = tuple[tuple[str, str], tuple[str, str]]
"""Two values of factors (`check_coverage.CoverageFactors`) that a case is to have together."""


class SeedCase(msgspec.Struct, frozen=True, array_like=True):
    """A case by the decisions that made it, and its largest error ratio."""

    error_ratio: float
    values: tuple[int, ...]
    configuration: Mapping[str, Sequence[str]] = {}
    """What the decisions chose among: without it they would mean something else."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker is handed. A function of the campaign's seed, `index` and the snapshot of that id alone."""

    index: int
    seed: int
    snapshot: str
    """Id of the feedback that it was made from; empty where it needed none."""
    phase: str
    operator: str
    trials: tuple[Trial, ...] = ()
    """Given as they are; first of all."""
    parts: tuple[Part, ...] = ()
    """Trials that checks make, as in a run; before those that are drawn."""
    draws: int = 0
    configuration: Mapping[str, Sequence[str]] = {}
    """Labels that draws choose among, by factor (`generate.configuration`)."""
    parents: tuple[SeedCase, ...] = ()
    wishes: tuple[Wish, ...] = ()


class ChunkTrial(msgspec.Struct, frozen=True):
    """One trial of a chunk; `drawing` and `draw` where it was drawn here."""

    trial: Trial
    drawing: Drawing | None = None
    draw: int = -1


def chunk_trials(chunk: Chunk, sampler: Sampler) -> Iterator[ChunkTrial]:
    """The trials of a chunk, always the same ones."""
    yield from map(ChunkTrial, chunk.trials)
    for part in chunk.parts:
        for trial in check_by_id(part.check, where="campaign").trials(part, sampler, seed=chunk.seed):
            yield ChunkTrial(trial)
    kind = "search" if chunk.phase == SEARCH else "valid"
    narrowed = [
        sampler.options(Configuration(configuration)) if configuration else None
        for configuration in _configurations(chunk)
    ]
    for draw, choices in enumerate(_choices(chunk, sampler)):
        drawing = sampler.draw(choices, options=narrowed[draw % len(narrowed)])
        origin = Origin(kind=kind, source=f"campaign, seed {chunk.seed}, chunk {chunk.index}, draw {draw}")
        yield ChunkTrial(Trial("values", sampler.case(drawing, origin=origin)), drawing, draw)


def _configurations(chunk: Chunk) -> list[Mapping[str, Sequence[str]]]:
    """What draws choose among, in turn."""
    if chunk.parents:
        return [parent.configuration for parent in chunk.parents]
    if chunk.wishes:
        return [{factor: (label,) for factor, label in wish} for wish in chunk.wishes]
    return [chunk.configuration]


def _choices(chunk: Chunk, sampler: Sampler) -> Iterator[Choices]:
    stream = stream_block(chunk.seed, _stream(chunk, sampler), 0, chunk.draws)
    if not chunk.parents:
        return iter(stream)
    parents = itertools.cycle(chunk.parents)
    return (MutatedChoices(choices, parent.values) for choices, parent in zip(stream, parents, strict=False))


def _stream(chunk: Chunk, sampler: Sampler) -> str:
    return f"{chunk.operator}/{sampler.target.product}/campaign/{chunk.index}"


def parent_of(chunk: Chunk, sampler: Sampler, draw: int, error_ratio: float) -> SeedCase:
    """A draw of a chunk as a parent of later ones."""
    source: Choices = StreamChoices(chunk.seed, _stream(chunk, sampler), draw)
    if chunk.parents:
        source = MutatedChoices(source, chunk.parents[draw % len(chunk.parents)].values)
    configurations = _configurations(chunk)
    configuration = configurations[draw % len(configurations)]
    recorded = RecordedChoices(source)
    sampler.draw(recorded, options=sampler.options(Configuration(configuration)) if configuration else None)
    return SeedCase(error_ratio, recorded.values, configuration)


def pinned_chunks(trials: Iterable[Trial], *, seed: int) -> list[Chunk]:
    """Chunks of pinned trials, one an operator. They belong to no generation, and teach nothing."""
    by_operator: dict[str, list[Trial]] = {}
    for trial in trials:
        by_operator.setdefault(trial.case.operator, []).append(trial)
    return [
        Chunk(index=FIRST_PINNED - place, seed=seed, snapshot="", phase=PINNED, operator=operator, trials=tuple(given))
        for place, (operator, given) in enumerate(by_operator.items())
    ]


PARENTS = 24
"""Good cases that an operator keeps."""

ALIKE = 6
"""Of these, those that one configuration made: neighbours of one case must not push all others out."""

WISHES = 400
"""Uncovered pairs that a snapshot names for an operator."""


class CorpusUpdate(msgspec.Struct):
    """What the trials of one operator have shown: of a chunk, or of all chunks so far."""

    covered: CoveredPairs = msgspec.field(default_factory=CoveredPairs)
    parents: tuple[SeedCase, ...] = ()
    worst: float = 0.0
    """The largest error ratio of what conforms."""

    def include(self, other: CorpusUpdate) -> None:
        """Add what other trials have shown."""
        self.covered.include(other.covered)
        self.parents = best_seeds([*self.parents, *other.parents])
        self.worst = max(self.worst, other.worst)


def best_seeds(parents: Iterable[SeedCase]) -> tuple[SeedCase, ...]:
    """The parents to keep: the largest error ratio first, not too many of one configuration; the same in any order."""
    kept: list[SeedCase] = []
    alike: dict[bytes, int] = {}
    seen: set[tuple[int, ...]] = set()
    for parent in sorted(parents, key=lambda item: (-item.error_ratio, item.values)):
        configuration = msgspec.msgpack.encode(parent.configuration, order="sorted")
        if parent.values in seen or alike.get(configuration, 0) >= ALIKE:
            continue
        seen.add(parent.values)
        alike[configuration] = alike.get(configuration, 0) + 1
        kept.append(parent)
        if len(kept) == PARENTS:
            break
    return tuple(kept)


class Snapshot(msgspec.Struct, frozen=True):
    """What chunks are made from beside seed and index: by operator, the pairs that are missing and the good cases."""

    generation: int
    wishes: Mapping[str, tuple[Wish, ...]] = {}
    parents: Mapping[str, tuple[SeedCase, ...]] = {}


def snapshot_id(snapshot: Snapshot) -> str:
    """A hash of its contents."""
    return hashlib.sha256(msgspec.msgpack.encode(snapshot, order="sorted")).hexdigest()[:16]
