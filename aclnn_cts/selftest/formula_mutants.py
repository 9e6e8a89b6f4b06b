"""Wrong implementations: is every mutant of the formula found?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from aclnn_cts.core.expected import Float64
from aclnn_cts.formula.array import Array
from aclnn_cts.formula.emulator import FASTEST, ORDERS, OTHER_READING, Emulator, TooManyTermsError, Variant
from aclnn_cts.formula.evaluation import DOUBLE
from aclnn_cts.formula.mutants import RESULT_KINDS, Mutant, mutants_of
from aclnn_cts.formula.repeated import RepeatedEmulator
from aclnn_cts.judgement.bound import Bound
from aclnn_cts.selftest.subject import Subject, emulated

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
    hidden: list[str] = field(default_factory=list)
    """Wrong operations, and not only wrongly rounded ones, that change open elements alone, in words."""

    @property
    def share(self) -> float:
        """Found of those that can be."""
        real = self.found + len(self.missed)
        return self.found / real if real else 1.0


def check_mutants(subjects: Iterable[Subject], *, more: Iterable[Iterable[Subject]] = (), least: float = 1.0) -> Kills:
    """Put every mutant to the calls until one finds it.

    To `more` calls while fewer than `least` of them are found, or any changes open elements alone.
    """
    hunt, rest = _Hunt(), iter(more)
    hunt.extend(subjects)
    kills = hunt.kills()
    while (kills.share < least or kills.hidden) and (batch := next(rest, None)) is not None:
        hunt.extend(batch)
        kills = hunt.kills()
    return kills


_MOST_BYTES = 1 << 29
"""Of inputs of calls that wait to be compared: masks of attention have 32 MB each."""


class _Hunt:
    """Which mutants were found on the calls so far."""

    def __init__(self) -> None:
        self._number = 0
        """Of the next call."""
        self._calls: list[tuple[int, Subject, list[Identity]]] = []
        """Those not compared yet, each with the mutants that changed it, and were not found in it."""
        self._bytes = 0
        """Of their inputs."""
        self._alive: dict[Identity, bool] = {}
        """What nothing has found, and whether it has changed a call."""
        self._dead: set[Identity] = set()
        self._other: dict[Identity, bool] = {}
        """Of those that are alive: what computes other mathematics, and whether in open elements alone."""

    def extend(self, subjects: Iterable[Subject]) -> None:
        """Put the mutants that nothing has found to more calls."""
        for number, subject in enumerate(subjects, self._number):
            self._number = number + 1
            changed: list[Identity] = []
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
            if changed:
                self._calls.append((number, subject, changed))
                self._bytes += sum(array.nbytes for array in subject.question.tensors.values())
            if self._bytes > _MOST_BYTES:
                self._compare()

    def _compare(self) -> None:
        """Look at what changed calls and is still alive: later ones may find it, and save this."""
        for number, subject, changed in self._calls:
            left = [item for item in changed if item in self._alive and self._other.get(item, True)]
            self._other.update(_others(subject, left, number))
        self._calls.clear()
        self._bytes = 0

    def kills(self) -> Kills:
        """What came of all mutants."""
        self._compare()
        kills = Kills(mutants=len(self._alive) + len(self._dead), found=len(self._dead))
        for identity, has_changed in self._alive.items():
            names, mutant = identity
            if not has_changed:
                kills.unchanged += 1
            elif identity not in self._other or (self._other[identity] and mutant.kind in RESULT_KINDS):
                kills.equivalent += 1
            else:
                text = f"{mutant.kind} of operation {mutant.place} ({names[mutant.place]}) of {len(names)}"
                (kills.hidden if self._other[identity] else kills.missed).append(text)
        return kills


def _same(left: Outputs, right: Outputs) -> bool:
    return all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def _others(subject: Subject, identities: Sequence[Identity], key: int) -> Iterator[tuple[Identity, bool]]:
    """The mutants that compute other mathematics: in DOUBLE they give something else than that gives without them.

    Each with whether that shows in open elements alone. Where the document leaves two readings, `key` chooses one, and
    what lies between both is no other mathematics.
    """
    if not identities:
        return
    evaluate, form, question = subject.operator.evaluate, subject.operator.judging, subject.question
    with np.errstate(all="ignore"):
        f = RepeatedEmulator(DOUBLE, Variant(order=FASTEST, key=key))
        plain = evaluate(form, f, question)
        bounds = subject.bounds
        f.finish({name: plain[name] for name in bounds})
        other = evaluate(form, Emulator(DOUBLE, Variant(order=FASTEST, key=key ^ OTHER_READING)), question)
        for identity in identities:
            shown = [
                _shows(subject, name, result, (plain[name], other[name]), bounds[name])
                for name, result in f.repeated(identity[1]).items()
            ]
            if any(away for away, _ in shown):
                yield identity, not any(decided for _, decided in shown)


def _shows(
    subject: Subject, name: str, result: Array, readings: tuple[Array, Array], limits: Bound
) -> tuple[bool, bool]:
    """Whether an element of an output is away from what it is without a mutant, and whether one that is not open is."""
    found, first, second = (emulated(name, array).v for array in (result, *readings))
    margin = _SAME * np.asarray(limits.error)
    away = (found < np.minimum(first, second) - margin) | (found > np.maximum(first, second) + margin)
    unknown = subject.expected[name].open
    return bool(away.any()), bool((away if unknown is None else away & ~unknown).any())
