"""One emulation, repeated with each mutant: only what follows from the mutant is computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from aclnn_cts.core.expected import Arithmetic
from aclnn_cts.formula.array import Array, Operand
from aclnn_cts.formula.emulator import Emulator, Real, Variant
from aclnn_cts.formula.mutants import Mutant, Operation


class UnchangedError(Exception):
    """The operation that a mutant sits on gives what it gives without it."""


class _Step(NamedTuple):
    result: Any
    """An `Emulated` or a condition."""
    operations: tuple[Operation, ...]
    """What was computed for it."""


def _step(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A primitive of `Emulator` that is remembered, and not computed again from what no mutant has changed."""

    def call(self: RepeatedEmulator, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - as of the primitive
        if self.is_within:  # a primitive that calls another is one step
            return compute(self, *given, **options)
        step = self.next_step() if self.repeats else None
        mutated = step is not None and self.is_mutated(step.operations)
        if step is not None and not mutated and self.has_all(given):
            self.operations += step.operations
            return step.result
        before = len(self.operations)
        self.is_within = True
        try:
            result = compute(self, *given, **options)
        finally:
            self.is_within = False
        if step is None:
            self.remember(_Step(result, tuple(self.operations[before:])))
        elif mutated and _same_bits(result.v, step.result.v):
            raise UnchangedError
        return result

    return call


class RepeatedEmulator(Emulator):
    """The first evaluation has no mutant. After `repeat` the same formula is evaluated again."""

    __slots__ = ("_first", "_known", "_next", "_steps", "is_within", "repeats")

    def __init__(
        self, arithmetic: Arithmetic, variant: Variant, *, operand: Callable[[Real], Real] | None = None
    ) -> None:
        super().__init__(arithmetic, variant, operand=operand)
        self.repeats = self.is_within = False
        self._steps: list[_Step] = []
        self._known: set[int] = set()
        """Identities of the results of all steps, which live as long as this."""
        self._first = self._next = 0

    def keeps_arguments(self) -> bool:
        """Whether what was evaluated so far holds no operation: then what comes now is repeated without it."""
        if not self.operations:
            self._first = len(self._steps)
        return not self.operations

    def repeat(self, mutant: Mutant) -> None:
        """Begin again with a mutant."""
        self.mutant, self.repeats, self._next = mutant, True, self._first
        self.operations = []

    def remember(self, step: _Step) -> None:
        """Keep what a step gives without a mutant."""
        self._steps.append(step)
        self._known.add(id(step.result))

    def next_step(self) -> _Step:
        """What the next step gave without a mutant."""
        self._next += 1
        return self._steps[self._next - 1]

    def is_mutated(self, operations: tuple[Operation, ...]) -> bool:
        """Whether the mutant is one of these."""
        place = -1 if self.mutant is None else self.mutant.place
        return bool(operations) and operations[0].place <= place <= operations[-1].place

    def has_all(self, given: Iterable[Any]) -> bool:
        """Whether all arrays are those of the first evaluation."""
        for item in given:
            if isinstance(item, Array):
                if id(item) not in self._known:
                    return False
            elif isinstance(item, (list, tuple)) and not self.has_all(item):
                return False
        return True

    def lift(self, value: Operand) -> Any:  # noqa: ANN401 - an `Emulated`
        return value if isinstance(value, Array) else self._lifted(value)

    _lifted = _step(Emulator.lift)


_PRIMITIVES = (
    *("leaf", "add", "sub", "mul", "div", "sum", "max", "einsum", "moved", "joined", "take", "scatter_add"),
    *("gt", "where", "function", "binade", "narrowed", "store"),
)
for _name in _PRIMITIVES:
    setattr(RepeatedEmulator, _name, _step(getattr(Emulator, _name)))


def _same_bits(left: Real, right: Real) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
