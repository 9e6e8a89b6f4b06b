"""Wrong implementations: is every mutant of the formula found?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from aclnn_cts.core.expected import Float64
from aclnn_cts.formula.array import Array
from aclnn_cts.formula.emulator import FASTEST, ORDERS, TooManyTermsError, Variant
from aclnn_cts.formula.expectation import DOUBLE
from aclnn_cts.formula.mutants import Mutant, mutants_of
from aclnn_cts.formula.repeated import RepeatedEmulator
from aclnn_cts.judgement.bound import Bound
from aclnn_cts.oracle_check.subject import Subject, emulated

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
        self._calls: list[tuple[Subject, list[Identity]]] = []
        """Each with the mutants that changed it, and were not found in it."""
        self._alive: dict[Identity, bool] = {}
        """What nothing has found, and whether it has changed a call."""
        self._dead: set[Identity] = set()
        self._other: set[Identity] = set()
        """Of those that are alive: what computes other mathematics."""
        self._compared = 0
        """Calls up to which that is known."""

    def extend(self, subjects: Iterable[Subject]) -> None:
        """Put the mutants that nothing has found to more calls."""
        for number, subject in enumerate(subjects, len(self._calls)):
            changed: list[Identity] = []
            self._calls.append((subject, changed))
            variant = Variant(order=ORDERS[number % len(ORDERS)], key=number)
            try:
                plain = subject.emulated(variant, repeats=True)
            except TooManyTermsError:
                continue
            names = tuple(operation.name for operation in plain.operations)
            for mutant in mutants_of(list(plain.operations)):
                identity = (names, mutant)
                if identity in self._dead:
                    continue
                self._alive.setdefault(identity, False)
                outputs = subject.repeated(variant, plain, mutant)
                if _same(outputs, plain.outputs):
                    continue
                if subject.faulty([outputs])[0]:
                    self._dead.add(identity)
                    del self._alive[identity]
                else:
                    changed.append(identity)
                    self._alive[identity] = True

    def kills(self) -> Kills:
        """What came of all mutants."""
        for number, (subject, changed) in enumerate(self._calls[self._compared :], self._compared):
            left = [identity for identity in changed if identity in self._alive and identity not in self._other]
            self._other.update(_others(subject, left, number))
        self._compared = len(self._calls)
        kills = Kills(mutants=len(self._alive) + len(self._dead), found=len(self._dead))
        for identity, has_changed in self._alive.items():
            names, mutant = identity
            if not has_changed:
                kills.unchanged += 1
            elif identity not in self._other:
                kills.equivalent += 1
            else:
                kills.missed.append(
                    f"{mutant.kind} of operation {mutant.place} ({names[mutant.place]}) of {len(names)}"
                )
        return kills


def _same(left: Outputs, right: Outputs) -> bool:
    return all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def _others(subject: Subject, identities: Sequence[Identity], key: int) -> Iterator[Identity]:
    """The mutants that compute other mathematics: in DOUBLE they give something else than that gives without them.

    That is the exact value but where the document leaves two readings, of which `key` chooses one.
    """
    if not identities:
        return
    with np.errstate(all="ignore"):
        f = RepeatedEmulator(DOUBLE, Variant(order=FASTEST, key=key))
        plain = subject.operator.evaluate(subject.operator.judging, f, subject.question)
        bounds = subject.bounds
        f.finish({name: plain[name] for name in bounds})
        for identity in identities:
            results = f.repeated(identity[1])
            if any(_away(subject, name, result, plain[name], bounds[name]) for name, result in results.items()):
                yield identity


def _away(subject: Subject, name: str, result: Array, plain: Array, limits: Bound) -> bool:
    """Whether an output has an element that is not open, and away from what it is without a mutant."""
    away = np.abs(emulated(name, result).v - emulated(name, plain).v) > _SAME * np.asarray(limits.error)
    unknown = subject.expected[name].open
    return bool((away if unknown is None else away & ~unknown).any())
