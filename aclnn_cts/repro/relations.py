"""The relations of a law as a program can check them: sums of a few elements of the calls' outputs.

What a law compares is affine in the outputs of its calls: a constant, and factors times elements. Which ones, the law
itself tells: its check is asked what outputs of zeros give, and then what each element adds. Its bounds belong to the
inputs, but for the rounding of the comparison itself, which is taken for the exact results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from aclnn_cts.core.expected import Float64
from aclnn_cts.core.law import Law, LawCall, LawCheck, LawInput

Slot: TypeAlias = "tuple[int, str]"
"""One output of one call: the call's place in the trial, from 0 on, and the output's name."""


@dataclass(frozen=True, slots=True)
class Term:
    """In row r of a run: `factor` times the element `first + r * step` of an output."""

    slot: Slot
    first: int
    step: int
    factor: float


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a relation: a constant and what is added to it."""

    constant: float
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """So many rows, one after another, that differ in their elements alone."""

    rows: int
    left: Side
    right: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """What must hold row by row: both sides no further apart than the bound; inf where nothing is judged."""

    output: str
    said: str
    place: str
    """What a row means where it is no element of the output."""
    shape: tuple[int, ...]
    """Of the rows."""
    runs: tuple[Run, ...]
    bounds: Float64


def relations_of(law: Law, base: LawInput, calls: Sequence[LawCall]) -> tuple[Relation, ...] | None:
    """The relations among the outputs of a trial's calls; None where they are not affine.

    `calls` hold exact results as `got`, from which the bounds are taken.
    """
    ask = _Question(law, base, calls)
    constants = ask({})
    terms: dict[int, list[Term]] = {}
    for slot, size in ask.sizes.items():
        for row, element, factor in _added(partial(ask.added, slot, constants), size):
            terms.setdefault(row, []).append(Term(slot, element, 0, factor))
    sides = [Side(constant, tuple(terms.get(row, ()))) for row, constant in enumerate(constants.tolist())]
    # Outputs that were not asked about must give what was found.
    other = {slot: _weights(size, 0) * (1.0 + number) for number, (slot, size) in enumerate(ask.sizes.items())}
    if not np.allclose([_sum(side, other) for side in sides], ask(other), rtol=1e-12, atol=0.0, equal_nan=True):
        return None
    return tuple(_relations(law.check(base, calls), sides))


@dataclass(frozen=True, slots=True)
class _Question:
    """A law's check as a function of the outputs: those that are not given are zeros."""

    law: Law
    base: LawInput
    calls: Sequence[LawCall]

    @property
    def sizes(self) -> dict[Slot, int]:
        return {
            (place, name): out.got.size for place, call in enumerate(self.calls) for name, out in call.outputs.items()
        }

    def added(self, slot: Slot, constants: Float64, values: Float64) -> Float64:
        """What one output adds to what zeros give."""
        return self({slot: values}) - constants

    def __call__(self, given: Mapping[Slot, Float64]) -> Float64:
        """The left and the right side of every check, one behind the other."""
        calls = [
            replace(
                call,
                outputs={
                    name: replace(out, got=given.get((place, name), np.zeros(out.got.size)).reshape(out.got.shape))
                    for name, out in call.outputs.items()
                },
            )
            for place, call in enumerate(self.calls)
        ]
        checks = self.law.check(self.base, calls)
        return np.concatenate(
            [np.zeros(0), *(side.reshape(-1) for check in checks for side in (check.left, check.right))]
        )


def _added(ask: Callable[[Float64], Float64], size: int) -> Iterable[tuple[int, int, float]]:
    """What the elements of one output add to which row: row, element and factor.

    Where a row has one of them at most, as in most relations, a sum over all of them is its factor, and sums over those
    whose number has a bit say which one it is. Otherwise each element is asked for by itself.
    """
    if not size:
        return ()
    numbers = np.arange(size)
    whole = ask(np.ones(size))
    rows = np.flatnonzero(whole)
    factors = whole[rows]
    elements = np.zeros(len(rows), np.int64)
    for bit in range((size - 1).bit_length()):
        elements += (ask((numbers >> bit & 1).astype(np.float64))[rows] == factors).astype(np.int64) << bit
    for turn in range(2):
        weights, guess = _weights(size, turn), np.zeros(whole.shape)
        with np.errstate(over="ignore"):  # a factor of the scaling law may be near the largest DOUBLE
            guess[rows] = factors * weights[np.minimum(elements, size - 1)]
            answer = ask(weights)
        if not (np.isfinite(guess).all() and np.array_equal(guess, answer)):
            return _one_by_one(ask, size)
    return zip(rows.tolist(), elements.tolist(), factors.tolist(), strict=True)


def _one_by_one(ask: Callable[[Float64], Float64], size: int) -> Iterator[tuple[int, int, float]]:
    for element in range(size):
        one = np.zeros(size)
        one[element] = 1.0
        answer = ask(one)
        for row in np.flatnonzero(answer).tolist():
            yield row, element, float(answer[row])


def _weights(size: int, turn: int) -> Float64:
    """Small whole numbers without any order, so that a wrong guess shows."""
    return ((np.arange(1, size + 1) * (7919, 104729)[turn]) % 1009 + 1).astype(np.float64)


def _sum(side: Side, given: Mapping[Slot, Float64]) -> float:
    return math.fsum([side.constant, *(term.factor * float(given[term.slot][term.first]) for term in side.terms)])


def _relations(checks: Iterable[LawCheck], sides: Sequence[Side]) -> Iterator[Relation]:
    """The checks with their sides, which stand one behind the other."""
    start = 0
    for check in checks:
        middle, end = start + check.left.size, start + 2 * check.left.size
        bounds = np.broadcast_to(np.where(np.isnan(check.bound), np.inf, check.bound), check.left.shape)
        yield Relation(
            output=check.output,
            said=check.relation,
            place=check.place,
            shape=check.left.shape,
            runs=tuple(_runs(list(zip(sides[start:middle], sides[middle:end], strict=True)))),
            bounds=bounds.reshape(-1).astype(np.float64),
        )
        start = end


def _runs(rows: Sequence[tuple[Side, Side]]) -> Iterator[Run]:
    """Neighbours that differ in their elements by the same step are one run."""
    start = 0
    while start < len(rows):
        left, right = rows[start]
        end = start + 1
        if end < len(rows) and (steps := _steps(rows[start], rows[end])) is not None:
            left, right = _stepping(left, steps[0]), _stepping(right, steps[1])
            while end < len(rows) and _steps(rows[end - 1], rows[end]) == steps:
                end += 1
        yield Run(end - start, left, right)
        start = end


def _steps(row: tuple[Side, Side], following: tuple[Side, Side]) -> tuple[tuple[int, ...], ...] | None:
    """By how much the elements move from a row to the next, where nothing else changes."""
    steps = []
    for side, other in zip(row, following, strict=True):
        if _alike(side) != _alike(other):
            return None
        steps.append(tuple(b.first - a.first for a, b in zip(side.terms, other.terms, strict=True)))
    return tuple(steps)


def _alike(side: Side) -> tuple[float, list[tuple[Slot, float]]]:
    """What must be equal along a run."""
    return side.constant, [(term.slot, term.factor) for term in side.terms]


def _stepping(side: Side, steps: Sequence[int]) -> Side:
    return Side(side.constant, tuple(replace(term, step=step) for term, step in zip(side.terms, steps, strict=True)))
