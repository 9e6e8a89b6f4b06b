"""When a generated mutant misbehaves: conditions on one call, drawn apart from anything that plans calls."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

import msgspec

from aclnn_cts.core.case import Case, Tensor, tensors_in
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import Choices
from aclnn_cts.generate.sampler import Sampler
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
