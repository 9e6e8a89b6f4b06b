"""Generated mutants: a correct implementation with one change, in every call or where a trigger fires.

They need no code of an operator: a spec and a formula give them all. Triggers and changes come from a text, as a rule
the commit's hash, so that a commit is measured with mutants that nobody saw before.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Collection, Iterator, Sequence

import msgspec

from aclnn_cts.core.case import Case, TensorList, owner
from aclnn_cts.core.dtypes import INEXACT, component
from aclnn_cts.core.rounding import BINARY_FORMATS, covers
from aclnn_cts.core.target import Target
from aclnn_cts.formula.emulator import ORDERS, Variant
from aclnn_cts.generate.choices import Choices, StreamChoices
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.mutants.triggers import Asks, Condition, TriggerDrawer, holds
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.model import Spec


class Change(enum.Enum):
    """What a mutant does where its trigger fires."""

    ZERO = "zeroed"
    DOUBLE = "doubled"
    NEGATE = "negated"
    STALE = "stale"
    ULPS = "2 ulp off"
    ROWS = "rows swapped"
    COLUMNS = "columns swapped"
    DROP = "contribution dropped"
    TWICE = "contribution twice"
    ROUND = "operand rounded"
    SKIP = "check skipped"
    REJECT = "call rejected"


_OF_AN_ELEMENT = (Change.ZERO, Change.DOUBLE, Change.NEGATE, Change.STALE, Change.ULPS)
_OF_A_SUM = (Change.DROP, Change.TWICE)
_FORMATS = ("HFLOAT32", "BF16", "FLOAT16")
_PLACES = 1 << 16


class GeneratedMutant(msgspec.Struct, frozen=True, kw_only=True):
    """One change and its trigger."""

    id: str
    operator: str
    change: Change
    conditions: tuple[Condition, ...] = ()
    """The trigger: all of them together; none: every call."""
    output: str = ""
    place: int = 0
    """Which element, row, column or sum: a share of 2^16."""
    operand: str = ""
    """The input that is rounded; empty: all."""
    format: str = ""
    constraint: str = ""
    """The check that is skipped."""

    def fires(self, case: Case, broken: Collection[str]) -> bool:
        """Whether a call that breaks these constraints meets the trigger and has what is changed."""
        if self.change is Change.SKIP:
            return self.constraint in broken and holds(self.conditions, case)
        if broken:
            return False
        if self.change is not Change.REJECT:
            output = case.tensor(self.tensor(case))
            if case.call.phases != 2 or output is None or 0 in output.shape:
                return False
            return holds(self.conditions, case) and self._has_what_is_changed(case, output.shape)
        return holds(self.conditions, case)

    def tensor(self, case: Case) -> str:
        """The name of the tensor that is changed: the output, or one of its list."""
        value = case.arguments.get(self.output)
        if not isinstance(value, TensorList) or not len(value):
            return self.output
        return f"{self.output}[{(self.place * len(value)) // _PLACES}]"

    def _has_what_is_changed(self, case: Case, shape: tuple[int, ...]) -> bool:
        """Whether there are two rows or columns to swap, or an operand that the format does not hold."""
        if self.change in (Change.ROWS, Change.COLUMNS):
            axis = 1 if self.change is Change.COLUMNS else 2
            return len(shape) >= axis and shape[-axis] > 1
        if self.change is Change.ROUND:
            form = BINARY_FORMATS[self.format]
            return any(
                tensor.data is not None
                and self.operand in ("", owner(name))
                and tensor.dtype in INEXACT
                and not covers(form, BINARY_FORMATS[component(tensor.dtype)])
                for name, tensor in case.tensors()
            )
        return True

    def at(self, number: int) -> int:
        """Which of so many places is changed: one of the last block where the trigger is about that."""
        for condition in self.conditions:
            if condition.asks is Asks.TAIL and number > condition.number:
                rest = number % condition.number or condition.number
                return number - rest + (self.place * rest) // _PLACES
        return (self.place * number) // _PLACES

    def text(self) -> str:
        """The mutant in words."""
        trigger = " and ".join(condition.text() for condition in self.conditions)
        return f"{self._what()}{f', where {trigger}' if trigger else ''}"

    def _what(self) -> str:
        share = f"at {self.place / _PLACES:.0%}"
        match self.change:
            case Change.ROWS | Change.COLUMNS:
                return f"{self.output}: two {self.change.value} {share}"
            case Change.DROP:
                return "the last contribution of a sum dropped"
            case Change.TWICE:
                return "the last contribution of a sum added twice"
            case Change.ROUND:
                return f"{self.operand or 'all operands'} rounded to {self.format}"
            case Change.SKIP:
                return f"the check {self.constraint} skipped"
            case Change.REJECT:
                return "valid calls rejected"
            case _:
                return f"{self.output}: the element {share} {self.change.value}"


class GeneratedDecoy(msgspec.Struct, frozen=True, kw_only=True):
    """A correct implementation that computes in another order, in every call or where a trigger fires."""

    id: str
    operator: str
    variant: Variant | None = None
    """How it computes; None: the reference as it is."""
    conditions: tuple[Condition, ...] = ()

    def text(self) -> str:
        """The decoy in words."""
        way = self.variant
        if way is None:
            return "the correctly rounded result"
        ways = {"products fused": way.fused, "reciprocals": way.reciprocal, "subnormals flushed": way.flushes}
        words = [f"sums {way.order}", *(word for word, is_so in ways.items() if is_so)]
        words += [f"functions {way.tilt:+g} of their stated error"] if way.tilt else []
        trigger = " and ".join(condition.text() for condition in self.conditions)
        return ", ".join(words) + (f", where {trigger}" if trigger else "")


def draw_mutants(spec: Spec, target: Target, *, seed: str, count: int, sums: bool) -> Iterator[GeneratedMutant]:
    """Mutants number 0 to `count` - 1 of an operator; any number is the same, however many there are.

    `sums`: the operator has a formula, in whose sums contributions can be dropped.
    """
    drawer = TriggerDrawer(spec, target)
    changes = [item for item in Change if sums or item not in _OF_A_SUM]
    checks = [item.id for item in spec.constraints_for(target.product) if item.strength == Strength.LISTED]
    rows = Sampler(spec, target).dtype_rows
    floats = [name for name in spec.inputs if any(row[name] in INEXACT for row in rows)]
    for number in range(count):
        choices = _choices(seed, spec, "mutants", number)
        change = changes[number % len(changes)]
        if change is Change.SKIP and not checks:
            change = Change.ZERO
        conditions = drawer.draw(choices, least=int(change is Change.REJECT), tail=change in _OF_AN_ELEMENT)
        # A check is skipped in few calls as it is: mostly in all of them.
        if change is Change.SKIP and choices.chance(3, 4):
            conditions = ()
        output = next((item.tensor for item in conditions if item.asks is Asks.TAIL), None)
        yield GeneratedMutant(
            id=f"{spec.stem}.{number}",
            operator=spec.operator,
            change=change,
            conditions=conditions,
            output=output or choices.pick(spec.outputs),
            place=choices.pick((0, _PLACES - 1, choices.integer(0, _PLACES - 1))),
            operand=choices.pick(("", *floats)) if change is Change.ROUND else "",
            format=_FORMATS[number // len(changes) % len(_FORMATS)] if change is Change.ROUND else "",
            constraint=choices.pick(checks) if change is Change.SKIP else "",
        )


def draw_decoys(spec: Spec, target: Target, *, seed: str, orders: Sequence[str] = ORDERS) -> Iterator[GeneratedDecoy]:
    """The decoys of an operator: the reference as it is, and one for each order of summation."""
    yield GeneratedDecoy(id=f"{spec.stem}.decoy", operator=spec.operator)
    drawer = TriggerDrawer(spec, target)
    for number, order in enumerate(orders):
        choices = _choices(seed, spec, "decoys", number)
        yield GeneratedDecoy(
            id=f"{spec.stem}.decoy-{order}",
            operator=spec.operator,
            variant=Variant(
                order=order,
                fused=choices.chance(1, 2),
                reciprocal=choices.chance(1, 2),
                flushes=choices.chance(1, 4),
                tilt=choices.pick((0.0, 1.0, -1.0, 2.0)),
                key=choices.integer(0, 2**31),
            ),
            conditions=drawer.draw(choices) if choices.chance(1, 2) else (),
        )


def _choices(seed: str, spec: Spec, purpose: str, number: int) -> Choices:
    key = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big") >> 1
    return StreamChoices(key, f"{purpose}/{spec.operator}", number)
