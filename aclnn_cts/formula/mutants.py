"""Mutants of a formula: one operation of an emulation computed wrongly.

A mutant is an operation's place in the order of evaluation, and a kind. Which kinds there are depends on the operation;
some change its operands, which the emulator does, and the others its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.rounding import BINARY_FORMATS, rounded

Real: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One wrong operation."""

    place: int
    kind: str


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
    return [Mutant(operation.place, kind) for operation in operations for kind in KINDS[operation.name]]


def mutated(kind: str, values: Real) -> Real:
    """What a kind makes of a result (float64); unchanged where it is one that changes operands."""
    change = RESULT_KINDS.get(kind)
    return values if change is None else change(values)
