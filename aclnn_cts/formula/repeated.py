"""One emulation, repeated with each mutant: only what follows from the mutant is computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from aclnn_cts.core.expected import Arithmetic
from aclnn_cts.formula.array import Array, Operand
from aclnn_cts.formula.emulator import Emulator, Real, Variant
from aclnn_cts.formula.mutants import Mutant, Operation


class _Step(NamedTuple):
    """A primitive as the formula calls it without a mutant."""

    compute: Callable[..., Any]
    given: tuple[Any, ...]
    options: Mapping[str, Any]
    result: Any
    """An `Emulated` or a condition."""
    place: int
    """Of the first operation that it computes."""
    arrays: frozenset[int]
    """Identities of the arrays that are given."""


def _step(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A primitive of `Emulator` that is recorded; what it calls in turn is part of it."""

    def call(self: RepeatedEmulator, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - as of the primitive
        if not self.records:
            return compute(self, *given, **options)
        place = len(self.operations)
        self.records = False
        try:
            result = compute(self, *given, **options)
        finally:
            self.records = True
        self.steps.append(_Step(compute, given, options, result, place, frozenset(map(id, _arrays(given)))))
        return result

    return call


class RepeatedEmulator(Emulator):
    """A first evaluation, without a mutant, is recorded until `finish`. Then `repeated` needs no formula any more.

    A formula calls the same primitives whatever the values are, for it cannot see them.
    """

    __slots__ = ("_of_place", "_plain", "records", "results", "steps")

    def __init__(
        self, arithmetic: Arithmetic, variant: Variant, *, operand: Callable[[Real], Real] | None = None
    ) -> None:
        super().__init__(arithmetic, variant, operand=operand)
        self.records = True
        self.steps: list[_Step] = []
        """In order; after `finish` those alone that a result follows from."""
        self._of_place: dict[int, int] = {}
        """By the place of an operation: the number of its step."""
        self._plain: list[Operation] = []
        """What was computed without a mutant."""
        self.results: Mapping[str, Array] = {}
        """Without a mutant; from `finish` on."""

    def finish(self, results: Mapping[str, Array]) -> None:
        """End the recording, with the results that are asked for. TypeError for an array that no primitive gave."""
        self.records, self.results, self._plain = False, dict(results), self.operations
        needed, given = set(map(id, results.values())), set[int]()
        kept: list[tuple[_Step, range]] = []
        behind = len(self._plain)
        for step in reversed(self.steps):
            if id(step.result) in needed:
                needed |= step.arrays
                given.add(id(step.result))
                kept.append((step, range(step.place, behind)))
            behind = step.place
        if needed != given:
            raise TypeError("the formula has an array that none of its backend's primitives gave")
        kept.reverse()
        self.steps = [step for step, _ in kept]
        self._of_place = {place: number for number, (_, places) in enumerate(kept) for place in places}

    def repeated(self, mutant: Mutant) -> dict[str, Array]:
        """The results that a mutant changes."""
        number = self._of_place.get(mutant.place)
        if number is None:
            return {}
        self.mutant = mutant
        changed: dict[int, Any] = {}
        """By the identity of a result without the mutant: what it is now."""
        self._repeat(self.steps[number], changed)
        if changed:
            for step in self.steps[number + 1 :]:
                if not changed.keys().isdisjoint(step.arrays):
                    self._repeat(step, changed)
        return {name: changed[id(result)] for name, result in self.results.items() if id(result) in changed}

    def _repeat(self, step: _Step, changed: dict[int, Any]) -> None:
        self.operations = self._plain[: step.place]
        result = step.compute(self, *_replaced(step.given, changed), **step.options)
        if not _same_bits(result, step.result):
            changed[id(step.result)] = result

    def lift(self, value: Operand) -> Any:  # noqa: ANN401 - an `Emulated`
        return value if isinstance(value, Array) else self._lifted(value)

    _lifted = _step(Emulator.lift)


_PRIMITIVES = (
    *("leaf", "add", "sub", "mul", "div", "sum", "max", "einsum", "moved", "joined", "take", "scatter_add"),
    *("gt", "where", "function", "binade", "narrowed", "store"),
)
for _name in _PRIMITIVES:
    setattr(RepeatedEmulator, _name, _step(getattr(Emulator, _name)))


def _arrays(given: Iterable[Any]) -> Iterator[Array]:
    for item in given:
        if isinstance(item, Array):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from _arrays(item)


def _replaced(given: Iterable[Any], changed: Mapping[int, Any]) -> tuple[Any, ...]:
    return tuple(
        _replaced(item, changed) if isinstance(item, (list, tuple)) else changed.get(id(item), item) for item in given
    )


def _same_bits(left: Any, right: Any) -> bool:  # noqa: ANN401 - results of one primitive
    return left is right or all(_same(getattr(left, part), getattr(right, part)) for part in ("v", *left.__slots__))


def _same(left: Real | None, right: Real | None) -> bool:
    if left is None or right is None:
        return left is right
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
