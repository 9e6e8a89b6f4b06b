"""Wrong implementations: is every mutant of the formula found?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Float64
from aclnn_cts.formula.emulator import ORDERS, TooManyTerms, Variant, variants
from aclnn_cts.formula.mutants import Mutant, mutants_of
from aclnn_cts.oracle_check.subject import Subject

__all__ = ["Kills", "check_mutants"]

Outputs: TypeAlias = "Mapping[str, Float64]"
Identity: TypeAlias = "tuple[tuple[str, ...], Mutant]"
"""The operations of an evaluation, of which attributes may choose some, and the mutant among them."""


@dataclass(slots=True)
class Kills:
    """What came of the mutants of a formula."""

    mutants: int = 0
    found: int = 0
    unchanged: int = 0
    """Those that changed no bit of any output in any call."""
    equivalent: int = 0
    """Those whose every changed element lies among those of correct emulations of the same call."""
    missed: list[str] = field(default_factory=list)
    """The others, in words."""

    @property
    def share(self) -> float:
        """Found of those that can be."""
        real = self.found + len(self.missed)
        return self.found / real if real else 1.0


def check_mutants(subjects: Sequence[Subject]) -> Kills:
    """Put every mutant to the calls until one finds it."""
    alive: dict[Identity, list[int]] = {}
    dead: set[Identity] = set()
    correct: dict[int, Outputs] = {}
    for number, subject in enumerate(subjects):
        variant = Variant(order=ORDERS[number % len(ORDERS)], key=number)
        try:
            plain = subject.emulated(variant)
        except TooManyTerms:
            continue
        correct[number] = plain.outputs
        names = tuple(operation.name for operation in plain.operations)
        for mutant in mutants_of(list(plain.operations)):
            identity = (names, mutant)
            if identity in dead:
                continue
            changed = alive.setdefault(identity, [])
            outputs = subject.emulated(variant, mutant=mutant).outputs
            if _same(outputs, plain.outputs):
                continue
            if subject.faulty(outputs):
                dead.add(identity)
                del alive[identity]
            else:
                changed.append(number)
    kills = Kills(mutants=len(alive) + len(dead), found=len(dead))
    ranges: dict[int, Mapping[str, tuple[Float64, Float64]]] = {}
    for (names, mutant), calls in alive.items():
        if not calls:
            kills.unchanged += 1
        elif all(_alike(subjects[number], number, mutant, ranges) for number in calls):
            kills.equivalent += 1
        else:
            kills.missed.append(f"{mutant.kind} of operation {mutant.place} ({names[mutant.place]}) of {len(names)}")
    return kills


def _same(left: Outputs, right: Outputs) -> bool:
    return all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def _alike(
    subject: Subject, number: int, mutant: Mutant, ranges: dict[int, Mapping[str, tuple[Float64, Float64]]]
) -> bool:
    """Whether every element of a mutant's outputs lies among those of correct emulations."""
    if number not in ranges:
        arithmetic = next(iter(subject.models.values())).arithmetic
        made = [subject.emulated(variant).outputs for turn in range(4) for variant in variants(arithmetic, turn)]
        with np.errstate(all="ignore"):
            ranges[number] = {
                name: (
                    np.fmin.reduce([outputs[name] for outputs in made]),
                    np.fmax.reduce([outputs[name] for outputs in made]),
                )
                for name in made[0]
            }
    variant = Variant(order=ORDERS[number % len(ORDERS)], key=number)
    outputs = subject.emulated(variant, mutant=mutant).outputs
    return all(_inside(outputs[name], *ends) for name, ends in ranges[number].items())


def _inside(values: Float64, lower: Float64, upper: Float64) -> bool:
    inside: NDArray[np.bool_] = ((lower <= values) & (values <= upper)) | (np.isnan(values) & np.isnan(lower))
    return bool(inside.all())
