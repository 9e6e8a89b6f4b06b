"""How fast two trees are: their own benchmarks, in turns, so that what disturbs one side disturbs both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from aclnn_cts.core.errors import HarnessError
from benchmarks.measure import Figure, geometric_mean, ratio
from benchmarks.same_verdicts.trees import Measured, Tree
from benchmarks.stored import Rounds, figures_of

SLOWER = 0.9
"""A tree whose speed is below this share of BASE's is slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One figure of both trees."""

    benchmark: str
    name: str
    unit: str
    old: Figure
    new: Figure

    @property
    def share(self) -> Figure:
        """The current tree's speed over BASE's, round by round."""
        return ratio(self.old, self.new) if self.unit == "seconds" else ratio(self.new, self.old)

    @property
    def is_slower(self) -> bool:
        """Whether the median is below what is allowed."""
        return self.share.median < SLOWER


def measure(name: str, measured: Measured, old: Tree, new: Tree, *, rounds: int, scratch: Path) -> list[Speed]:
    """The figures of one benchmark, each the mean over the operators, of so many rounds of both trees in turn."""
    alone = all(_knows_alone(tree, measured) for tree in (old, new))
    found: dict[Tree, list[Rounds]] = {old: [], new: []}
    for number in range(rounds):
        # The first of a round has the colder machine.
        for tree in (old, new) if number % 2 == 0 else (new, old):
            found[tree].append(_round(tree, measured, scratch / "figures.json" if alone else None))
    sides = [_figures(measured, found[tree]) for tree in (old, new)]
    return [
        Speed(benchmark=name, name=figure, unit=unit, old=sides[0][figure], new=sides[1][figure])
        for figure, unit in measured.figures.items()
        if all(figure in side for side in sides)
    ]


def _knows_alone(tree: Tree, measured: Measured) -> bool:
    """Whether the tree's benchmark can leave out what the harness is compared with, which takes most of the time."""
    return "--alone" in tree.python("-m", measured.module, "--help")[1]


def _round(tree: Tree, measured: Measured, out: Path | None) -> Rounds:
    words = ["-m", measured.module, *measured.words, "--rounds", "1"]
    code, _, errors = tree.python(*words, *(("--alone", str(out)) if out is not None else ("--store",)))
    if code:
        raise HarnessError(f"{tree.name}: python {' '.join(words)}: exit code {code}\n{errors}")
    path = out if out is not None else tree.folder / measured.stored
    rounds: Mapping[str, tuple[float, ...]] = msgspec.json.decode(path.read_bytes(), type=_Stored).rounds
    return rounds


class _Stored(msgspec.Struct):
    rounds: Mapping[str, tuple[float, ...]]


def _figures(measured: Measured, rounds: list[Rounds]) -> dict[str, Figure]:
    """By name, the mean over the operators of each round."""
    found = {}
    for name in measured.figures:
        values = [value for item in rounds if (value := _value(item, name)) is not None]
        if len(values) == len(rounds):
            found[name] = Figure(tuple(values))
    return found


def _value(rounds: Rounds, name: str) -> float | None:
    if by_operator := figures_of(rounds, name):
        return geometric_mean(by_operator.values()).median
    return Figure(tuple(rounds[name])).median if name in rounds else None
