"""Wrong implementations: is every mutant of the formula found?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from aclnn_cts.core.expected import Float64
from aclnn_cts.formula.emulator import FASTEST, ORDERS, Emulated, Emulator, TooManyTermsError, Variant
from aclnn_cts.formula.mutants import Mutant, mutants_of
from aclnn_cts.formula.special import DOUBLE
from aclnn_cts.oracle_check.subject import Subject

__all__ = ["Kills", "check_mutants"]

Outputs: TypeAlias = "Mapping[str, Float64]"
Identity: TypeAlias = "tuple[tuple[str, ...], Mutant]"
"""The operations of an evaluation, of which attributes may choose some, and the mutant among them."""

_SAME = 2.0**-20
"""Of the bound: what float64 itself rounds is far below it."""


@dataclass(slots=True)
class Kills:
    """What came of the mutants of a formula."""

    mutants: int = 0
    found: int = 0
    unchanged: int = 0
    """Those that changed no bit of any output in any call."""
    equivalent: int = 0
    """Those that are the same mathematics with other roundings, such as another shift in a softmax."""
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
    for number, subject in enumerate(subjects):
        variant = Variant(order=ORDERS[number % len(ORDERS)], key=number)
        try:
            plain = subject.emulated(variant)
        except TooManyTermsError:
            continue
        names = tuple(operation.name for operation in plain.operations)
        for mutant in mutants_of(list(plain.operations)):
            identity = (names, mutant)
            if identity in dead:
                continue
            changed = alive.setdefault(identity, [])
            outputs = subject.emulated(variant, mutant=mutant).outputs
            if _same(outputs, plain.outputs):
                continue
            if subject.faulty([outputs])[0]:
                dead.add(identity)
                del alive[identity]
            else:
                changed.append(number)
    kills = Kills(mutants=len(alive) + len(dead), found=len(dead))
    for (names, mutant), calls in alive.items():
        if not calls:
            kills.unchanged += 1
        elif all(_equivalent(subjects[number], mutant) for number in calls):
            kills.equivalent += 1
        else:
            kills.missed.append(f"{mutant.kind} of operation {mutant.place} ({names[mutant.place]}) of {len(names)}")
    return kills


def _same(left: Outputs, right: Outputs) -> bool:
    return all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def _equivalent(subject: Subject, mutant: Mutant) -> bool:
    """Whether a mutant computes the same mathematics: in DOUBLE it gives the exact values."""
    with np.errstate(all="ignore"):
        f = Emulator(DOUBLE, Variant(order=FASTEST), mutant=mutant)
        results = subject.operator.evaluate(subject.operator.judging, f, subject.question)
        for name, limits in subject.bounds.items():
            result, expected = results[name], subject.expected[name]
            if not isinstance(result, Emulated):
                return False
            away = np.abs(result.v - expected.value) > _SAME * np.asarray(limits.error)
            if expected.open is not None:
                away &= ~expected.open
            if away.any():
                return False
    return True
