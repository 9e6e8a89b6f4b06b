"""Mutants: one thing that an implementation does wrongly, and where.

Most sites are outside of the mathematics: how an input is read, which value an argument has, how a result is stored,
which status is returned (`selftest.kinds`). A mutant of an operation is part of the emulator: which kinds there are
depends on the operation. Some change its operands, others the terms of its sum or its result.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.rounding import BINARY_FORMATS, rounded

Real: TypeAlias = NDArray[Any]


class Site(enum.Enum):
    """What a mutant changes."""

    INPUT = "input"
    """How a tensor is read."""
    ARGUMENT = "argument"
    """The value of an attribute."""
    OPERATION = "operation"
    """An operation of the formula."""
    OUTPUT = "output"
    """A result before it is rounded to its dtype."""
    STORE = "store"
    """How a result is rounded or written."""
    STATUS = "status"
    """Which calls are refused, and how."""


EVERY = -1
"""The place of a mutant that sits on every operation of its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change to a correct implementation, in every call or where a trigger holds."""

    kind: str
    """Of the change; each site has kinds of its own."""
    site: Site = Site.OPERATION
    of: str = ""
    """The tensor, argument, output or constraint that is changed, or the operation by its name; empty: all of them."""
    place: int = 0
    """Of an operation among those that `of` names (in an evaluation: among all of them), or `EVERY`.

    Of an element a share of 2^16."""
    value: str = ""
    """How much, for kinds that ask: an expression over the call, and over `i` for the places along a dimension.

    The status that is returned, for kinds of the site STATUS."""
    outputs: tuple[str, ...] = ()
    """Those that are computed with the change; empty: all."""
    form: int = 0
    """Which form of the formula is changed."""
    trigger: str = ""
    """An expression over the call, as a waiver's `when`; empty: every call that the kind applies to."""
    block: int = 0
    """The element changed is one of the last block of so many; 0: of all elements."""
    id: str = ""
    operator: str = ""

    def sits_on(self, name: str, place: int) -> bool:
        """Whether it changes the operation of this name at this place of the evaluation."""
        return self.place == place or (self.place == EVERY and name in (self.of or name).split("|"))


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an evaluation: what it is, and its place."""

    name: str
    place: int


def _last_zero(values: Real) -> Real:
    changed = np.array(values)
    changed.reshape(-1)[-1:] = 0.0
    return changed


def _one_larger(values: Real) -> Real:
    changed = np.array(values)
    flat = changed.reshape(-1)
    flat[flat.size // 2 : flat.size // 2 + 1] *= 1.0 + 2.0**-10
    return changed


RESULT_KINDS: Mapping[str, Callable[[Real], Real]] = MappingProxyType(
    {
        "result in BF16": lambda values: rounded(values, BINARY_FORMATS["BF16"]),
        "result 2^-12 too large": lambda values: values * (1.0 + 2.0**-12),
        "one element 2^-10 too large": _one_larger,
        "last element 0": _last_zero,
        "result below 2^-14 flushed": lambda values: np.where(np.abs(values) < 2.0**-14, 0.0, values),
        "result saturated at 65504": lambda values: np.clip(values, -65504.0, 65504.0),
    }
)
"""What may be wrong with any result, by kind."""

_RESULTS = tuple(RESULT_KINDS)

KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "constant": ("constant + 1", "constant * (1 + 2^-8)"),
        "sum of two": ("other sign", "left term dropped", "right term dropped", *_RESULTS),
        "product": ("left factor dropped", "right factor dropped", *_RESULTS),
        "quotient": ("divisor dropped", "inverted", *_RESULTS),
        "sum": ("last term dropped", "last term twice", *_RESULTS),
        "scatter": ("next cell", "last term dropped", "overwrites", *_RESULTS),
        "sum of products": ("last term dropped", "last term twice", *_RESULTS),
        "maximum": ("minimum", *_RESULTS),
        "take": ("next cell", *_RESULTS),
        "comparison": ("or equal", "less"),
        "choice": ("branches swapped", *_RESULTS),
        "function": ("left out", "of half the argument", *_RESULTS),
        "store": _RESULTS,
    }
)
"""By the name of an operation: what may be wrong with it."""


def mutants_of(operations: list[Operation]) -> list[Mutant]:
    """All mutants of an evaluation."""
    return [Mutant(place=operation.place, kind=kind) for operation in operations for kind in KINDS[operation.name]]


def mutated(kind: str, values: Real, amount: float = 0.0) -> Real:
    """What a kind makes of a result (float64); unchanged where it is one that changes operands."""
    if kind == "scaled":
        return values * amount
    if kind == "result in FLOAT16":
        return rounded(values, BINARY_FORMATS["FLOAT16"])
    change = RESULT_KINDS.get(kind)
    return values if change is None else change(values)


def _partial_sums(form: str) -> Callable[[Real, float], Real]:
    """The sum as its one term: in pairs, each partial sum rounded to a format."""

    def summed(terms: Real, _amount: float) -> Real:
        while terms.shape[0] > 1:
            even = terms.shape[0] // 2 * 2
            pairs = rounded(terms[0:even:2] + terms[1:even:2], BINARY_FORMATS[form])
            terms = np.concatenate([pairs, terms[even:]])
        return terms

    return summed


def _whole_blocks(terms: Real, amount: float) -> Real:
    count, block = terms.shape[0], int(amount)
    return terms[: count // block * block] if count > block else terms


TERM_KINDS: Mapping[str, Callable[[Real, float], Real]] = MappingProxyType(
    {
        "last term dropped": lambda terms, _: terms[:-1],
        "last term twice": lambda terms, _: np.concatenate([terms, terms[-1:]]),
        "first term twice": lambda terms, _: np.concatenate([terms, terms[:1]]),
        "first terms alone": lambda terms, amount: terms[: int(amount)],
        "rest of terms dropped": _whole_blocks,
        "partial sums in BF16": _partial_sums("BF16"),
        "partial sums in FLOAT16": _partial_sums("FLOAT16"),
    }
)
"""What may be wrong with the terms of a sum, which lie along axis 0."""

Scattered: TypeAlias = tuple[NDArray[np.int64], Real]


SCATTER_KINDS: Mapping[str, Callable[[NDArray[np.int64], Real, int], Scattered]] = MappingProxyType(
    {
        "next cell": lambda cells, terms, size: (np.minimum(cells + 1, size - 1), terms),
        "last term dropped": lambda cells, terms, _: (cells[:-1], terms[:-1]),
        "last term twice": lambda cells, terms, _: (np.append(cells, cells[-1:]), np.append(terms, terms[-1:])),
        "overwrites": lambda cells, terms, _: _first_of_each(cells[::-1], terms[::-1]),
        "first term alone": lambda cells, terms, _: _first_of_each(cells, terms),
        "averaged": lambda cells, terms, size: (cells, terms / np.bincount(cells, minlength=size)[cells]),
        "empty cells nan": lambda cells, terms, size: _with_empty(cells, terms, size, repeat=False),
        "empty cells as the next": lambda cells, terms, size: _with_empty(cells, terms, size, repeat=True),
    }
)
"""What may be wrong with a scattered sum: other cells and terms in a table of so many cells."""


def _first_of_each(cells: NDArray[np.int64], terms: Real) -> Scattered:
    used, first = np.unique(cells, return_index=True)
    return used, terms[first]


def _with_empty(cells: NDArray[np.int64], terms: Real, size: int, *, repeat: bool) -> Scattered:
    """Cells without a term get nan, or the first term of the next cell that has one."""
    empty = np.flatnonzero(np.bincount(cells, minlength=size) == 0)
    filled = np.full(empty.size, np.nan, terms.dtype)
    if repeat and cells.size:
        used, first = _first_of_each(cells, terms)
        filled = first[np.minimum(np.searchsorted(used, empty), used.size - 1)]
    return np.append(cells, empty), np.append(terms, filled)


MORE_KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "product": ("left factor twice", "zeros of the left skipped"),
        "quotient": ("multiplied", "divisor + 1", "reciprocal in FLOAT16"),
        "sum": tuple(TERM_KINDS),
        "scatter": ("places", *SCATTER_KINDS, *TERM_KINDS),
        "sum of products": ("zeros of the left skipped", *TERM_KINDS),
    }
)
"""Kinds that seeded faults have beside `KINDS`; every operation also has "scaled" and "result in FLOAT16"."""


def kinds_of(name: str) -> tuple[str, ...]:
    """Every kind of mutant of an operation; of all operations for the empty name."""
    names = [name] if name else list(KINDS)
    kinds = (kind for each in names for kind in (*KINDS.get(each, ()), *MORE_KINDS.get(each, ())))
    return tuple(dict.fromkeys((*kinds, "scaled", "result in FLOAT16")))
