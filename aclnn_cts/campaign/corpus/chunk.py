"""A chunk: some trials of one operator, made again from its few values alone wherever that is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from aclnn_cts.checks.plan import Part
from aclnn_cts.checks.registry import check
from aclnn_cts.core.case import Origin
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.choices import Choices, RecordedChoices, StreamChoices, stream_block
from aclnn_cts.generate.configuration import Configuration
from aclnn_cts.generate.drawing import Drawing
from aclnn_cts.generate.sampler import Sampler

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
"""Examples, limits, broken constraints, laws and life cycles, as a run has them."""
RANDOM = "random"
"""Drawn by a configuration."""
SEARCH = "search"
"""Mutated from good cases, or narrowed to what was not met yet."""

Wish = tuple[tuple[str, str], tuple[str, str]]
"""Two values of factors (`campaign.corpus.factors`) that a case is to have together."""


class Parent(msgspec.Struct, frozen=True, array_like=True):
    """A case by the decisions that made it, and how near it came to its bound."""

    share: float
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
    parents: tuple[Parent, ...] = ()
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
        for trial in check(part.check, where="campaign").trials(part, sampler, seed=chunk.seed):
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


def parent_of(chunk: Chunk, sampler: Sampler, draw: int, share: float) -> Parent:
    """A draw of a chunk as a parent of later ones."""
    source: Choices = StreamChoices(chunk.seed, _stream(chunk, sampler), draw)
    if chunk.parents:
        source = MutatedChoices(source, chunk.parents[draw % len(chunk.parents)].values)
    configurations = _configurations(chunk)
    configuration = configurations[draw % len(configurations)]
    recorded = RecordedChoices(source)
    sampler.draw(recorded, options=sampler.options(Configuration(configuration)) if configuration else None)
    return Parent(share, recorded.values, configuration)


def pinned_chunks(trials: Iterable[Trial], *, seed: int) -> list[Chunk]:
    """Chunks of pinned trials, one an operator. They belong to no generation, and teach nothing."""
    by_operator: dict[str, list[Trial]] = {}
    for trial in trials:
        by_operator.setdefault(trial.case.operator, []).append(trial)
    return [
        Chunk(index=FIRST_PINNED - place, seed=seed, snapshot="", phase=PINNED, operator=operator, trials=tuple(given))
        for place, (operator, given) in enumerate(by_operator.items())
    ]
