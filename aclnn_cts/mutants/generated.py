"""Generated mutants: a correct implementation with one change, in every call or where a trigger fires.

They need no code of an operator: a spec and a formula give them all. Triggers and changes come from a text, as a rule
the commit's hash, so that a commit is measured with mutants that nobody saw before.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Collection, Iterator, Sequence

import msgspec

from aclnn_cts.core.case import Case, Tensor, TensorList, owner, tensors_in
from aclnn_cts.core.dtypes import INEXACT, component
from aclnn_cts.core.rounding import BINARY_FORMATS, covers
from aclnn_cts.core.target import Target
from aclnn_cts.formula.emulator import ORDERS, Variant
from aclnn_cts.generate.choices import Choices, StreamChoices
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.model import Spec

_MODULI = (2, 300)
_THRESHOLDS = (2, 14)
"""Least and greatest exponent of two of a threshold."""
_AXES = (0, -1, -2, None)
"""Of a quantity: a dimension of a tensor, or None for its number of elements."""


class Asks(enum.Enum):
    """What a condition asks of its tensor."""

    MULTIPLE = "multiple"
    """A quantity leaves a certain remainder after division."""
    AT_LEAST = "at least"
    BELOW = "below"
    DTYPE = "dtype"
    LAYOUT = "layout"
    TAIL = "tail"
    """The elements do not fill blocks of a certain size: the mutant changes an element of the last one."""


class Layout(enum.Enum):
    """How a tensor lies in its memory."""

    CONTIGUOUS = "contiguous"
    STRIDED = "not contiguous"
    OFFSET = "with an offset"


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition on one tensor of a call. It does not hold where the tensor is null or has no such dimension."""

    asks: Asks
    tensor: str
    axis: int | None = None
    """The dimension that is tested; None: the number of elements."""
    number: int = 0
    """A modulus, a threshold or the elements of a block."""
    remainder: int = 0
    dtype: str = ""
    layout: Layout = Layout.CONTIGUOUS

    def holds(self, case: Case) -> bool:
        """Whether a call meets it."""
        # Of a list the first tensor counts.
        tensor = next(iter(tensors_in(case.arguments.get(self.tensor))), None)
        if tensor is None:
            return False
        if self.asks is Asks.DTYPE:
            return tensor.dtype == self.dtype
        if self.asks is Asks.LAYOUT:
            if self.layout is Layout.OFFSET:
                return tensor.offset > 0
            return tensor.is_contiguous is (self.layout is Layout.CONTIGUOUS)
        quantity = self._quantity(tensor)
        if quantity is None or quantity <= 0:
            return False
        if self.asks is Asks.MULTIPLE:
            return quantity % self.number == self.remainder
        if self.asks is Asks.TAIL:
            return quantity > self.number and quantity % self.number != 0
        return (quantity >= self.number) is (self.asks is Asks.AT_LEAST)

    def _quantity(self, tensor: Tensor) -> int | None:
        if self.axis is None:
            return tensor.numel
        rank = len(tensor.shape)
        return tensor.shape[self.axis] if -rank <= self.axis < rank else None

    def text(self) -> str:
        """The condition in words, as a reader of a report takes it."""
        quantity = f"{self.tensor}.numel" if self.axis is None else f"{self.tensor}.shape[{self.axis}]"
        match self.asks:
            case Asks.DTYPE:
                return f"{self.tensor} is {self.dtype}"
            case Asks.LAYOUT:
                return f"{self.tensor} is {self.layout.value}"
            case Asks.MULTIPLE:
                return f"{quantity} % {self.number} = {self.remainder}"
            case Asks.TAIL:
                return f"{quantity} ends in a part of a block of {self.number}"
            case Asks.AT_LEAST:
                return f"{quantity} >= {self.number}"
            case Asks.BELOW:
                return f"{quantity} < {self.number}"


def holds(conditions: Sequence[Condition], case: Case) -> bool:
    """Whether a call meets all conditions."""
    return all(condition.holds(case) for condition in conditions)


class TriggerDrawer:
    """Draws conditions for one operator. Of its spec it reads names, dtypes and layouts, and no sizes."""

    def __init__(self, spec: Spec, target: Target) -> None:
        sampler = Sampler(spec, target)
        self._tensors = tuple(item.name for item in spec.parameters if item.holds_tensors)
        self._outputs = spec.outputs
        self._strided = sampler.strided
        rows = sampler.dtype_rows
        choices = {name: tuple(dict.fromkeys(row[name] for row in rows)) for name in self._tensors}
        self._dtypes = {name: dtypes for name, dtypes in choices.items() if len(dtypes) > 1}

    def draw(self, choices: Choices, *, least: int = 0, tail: bool = False) -> tuple[Condition, ...]:
        """No condition, one or a conjunction of two, and at least `least`; `tail`: the last block may be one."""
        number = max(choices.pick((0, 1, 1, 1, 1, 2)), least)
        return tuple(self._conditions(choices, number, tail=tail))

    def _conditions(self, choices: Choices, number: int, *, tail: bool) -> Iterator[Condition]:
        taken: set[Asks] = set()
        while number:
            asked = choices.pick(
                (*[Asks.MULTIPLE] * 5, *[Asks.AT_LEAST] * 2, Asks.BELOW, Asks.DTYPE, Asks.LAYOUT, Asks.TAIL)
            )
            if (asked is Asks.TAIL and not tail) or (asked is Asks.DTYPE and not self._dtypes):
                continue
            if (asked is Asks.LAYOUT and not self._strided) or asked in taken:
                continue
            taken.add(asked)
            number -= 1
            yield self._condition(choices, asked)

    def _condition(self, choices: Choices, asked: Asks) -> Condition:
        if asked is Asks.DTYPE:
            name = choices.pick(tuple(self._dtypes))
            return Condition(asks=asked, tensor=name, dtype=choices.pick(self._dtypes[name]))
        if asked is Asks.LAYOUT:
            return Condition(asks=asked, tensor=choices.pick(self._strided), layout=choices.pick(tuple(Layout)))
        name = choices.pick(self._outputs if asked is Asks.TAIL else self._tensors)
        axis = None if asked is Asks.TAIL else choices.pick(_AXES)
        if asked in (Asks.AT_LEAST, Asks.BELOW):
            exponent = choices.integer(*_THRESHOLDS)
            number = (1 << exponent) + choices.pick((0, choices.integer(0, (1 << exponent) - 1)))
            return Condition(asks=asked, tensor=name, axis=axis, number=number)
        number = _modulus(choices)
        remainder = choices.pick((0, 0, 0, choices.integer(0, number - 1))) if asked is Asks.MULTIPLE else 0
        return Condition(asks=asked, tensor=name, axis=axis, number=number, remainder=remainder)


def _modulus(choices: Choices) -> int:
    """A modulus: any, or a multiple of eight, as tiles are."""
    low, high = _MODULI
    return choices.integer(low, high) if choices.chance(1, 2) else 8 * choices.integer(1, high // 8)


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
