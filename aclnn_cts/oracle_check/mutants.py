"""Wrong implementations: is every mutant of the formula found?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from aclnn_cts.core.expected import Float64
from aclnn_cts.formula.emulator import FASTEST, ORDERS, Emulated, Emulator, TooManyTermsError, Variant
from aclnn_cts.formula.mutants import Mutant, mutants_of
from aclnn_cts.formula.special import DOUBLE
from aclnn_cts.oracle_check.subject import Evaluated, Subject

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


def check_mutants(subjects: Iterable[Subject], *, more: Iterable[Iterable[Subject]] = (), least: float = 1.0) -> Kills:
    """Put every mutant to the calls until one finds it; to `more` calls while fewer than `least` of them are found."""
    hunt, rest = _Hunt(), iter(more)
    hunt.extend(subjects)
    kills = hunt.kills()
    while kills.share < least and (batch := next(rest, None)) is not None:
        hunt.extend(batch)
        kills = hunt.kills()
    return kills


class _Hunt:
    """Which mutants were found on the calls so far."""

    def __init__(self) -> None:
        self._subjects: list[Subject] = []
        self._alive: dict[Identity, list[int]] = {}
        self._dead: set[Identity] = set()

    def extend(self, subjects: Iterable[Subject]) -> None:
        """Put the mutants that nothing has found to more calls."""
        for subject in subjects:
            self._subjects.append(subject)
            number = len(self._subjects) - 1
            variant = Variant(order=ORDERS[number % len(ORDERS)], key=number)
            try:
                plain = subject.emulated(variant, repeats=True)
            except TooManyTermsError:
                continue
            names = tuple(operation.name for operation in plain.operations)
            for mutant in mutants_of(list(plain.operations)):
                identity = (names, mutant)
                if identity not in self._dead:
                    self._put(subject, number, variant, identity, plain)

    def _put(self, subject: Subject, number: int, variant: Variant, identity: Identity, plain: Evaluated) -> None:
        changed = self._alive.setdefault(identity, [])
        outputs = subject.repeated(variant, plain, identity[1])
        if _same(outputs, plain.outputs):
            return
        if subject.faulty([outputs])[0]:
            self._dead.add(identity)
            del self._alive[identity]
        else:
            changed.append(number)

    def kills(self) -> Kills:
        """What came of all mutants."""
        kills = Kills(mutants=len(self._alive) + len(self._dead), found=len(self._dead))
        for (names, mutant), calls in self._alive.items():
            if not calls:
                kills.unchanged += 1
            elif all(_equivalent(self._subjects[number], mutant, number) for number in calls):
                kills.equivalent += 1
            else:
                kills.missed.append(
                    f"{mutant.kind} of operation {mutant.place} ({names[mutant.place]}) of {len(names)}"
                )
        return kills


def _same(left: Outputs, right: Outputs) -> bool:
    return all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def _equivalent(subject: Subject, mutant: Mutant, key: int) -> bool:
    """Whether a mutant computes the same mathematics: in DOUBLE it gives what that gives without it.

    That is the exact value but where the document leaves two readings, of which `key` chooses one.
    """
    with np.errstate(all="ignore"):
        plain, results = (
            subject.operator.evaluate(
                subject.operator.judging,
                Emulator(DOUBLE, Variant(order=FASTEST, key=key), mutant=one),
                subject.question,
            )
            for one in (None, mutant)
        )
        for name, limits in subject.bounds.items():
            exact, result, expected = plain[name], results[name], subject.expected[name]
            if not isinstance(exact, Emulated) or not isinstance(result, Emulated):
                return False
            away = np.abs(result.v - exact.v) > _SAME * np.asarray(limits.error)
            if expected.open is not None:
                away &= ~expected.open
            if away.any():
                return False
    return True
