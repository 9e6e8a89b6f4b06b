"""Rules about the contents of tensors, decided from values or from what a recipe is known to give."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aclnn_cts.core.case import Case, Data, Tensor, owner, tensors_in
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import Compiled
from aclnn_cts.speclang.expression_parser import compiled
from aclnn_cts.speclang.kinds import ParameterRule, Rule, Test, Way, Words

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec

INTEGER_LIMITS: Mapping[str, int] = {
    "INT8": 128,
    "UINT8": 256,
    "BOOL": 2,
    "INT16": 2**15,
    "UINT16": 2**16,
    "INT32": 2**31,
}
INDEX_RECIPES = frozenset({"indices", "few_indices", "equal_indices", "hot_indices", "end_indices", "ramp", "argmax"})
"""Recipes of integers from low to high - 1."""
DEFAULT_INTEGERS = (-4, 4)
"""Bounds of the recipe `integers` where it names none."""


def data_is_finite(tensor: Tensor) -> bool:
    """Whether the contents hold neither inf nor nan. A tensor without stated contents has no answer (TypeError)."""
    data = tensor.data
    if data is None:
        raise TypeError("no data")
    if data.values is not None:
        return all(math.isfinite(float(value)) for value in data.values)
    return data.recipe != "special"


def data_range(tensor: Tensor) -> tuple[int | float, int | float]:
    """Bounds of the contents, from the values or from the recipe's own; TypeError where the recipe has none."""
    data = tensor.data
    if data is None:
        raise TypeError("no data")
    if data.values is not None:
        numbers = [float(value) for value in data.values] or [0.0]
        return min(numbers), max(numbers)
    if data.recipe in INDEX_RECIPES:
        high = min(data.high if data.high is not None else 1, INTEGER_LIMITS.get(tensor.dtype, 2**62))
        return min(data.low or 0, high - 1), high - 1
    if data.recipe == "zeros":
        return 0, 0
    if data.recipe == "constant":
        value = 1.0 if data.mean is None else data.mean
        return value, value
    if data.recipe == "integers" and not data.exponent:
        low, high = DEFAULT_INTEGERS
        return (data.low if data.low is not None else low), (data.high if data.high is not None else high)
    if data.recipe in ("uniform", "repeated") and data.low is not None and data.high is not None:
        return data.low * 2.0 ** (data.exponent or 0), data.high * 2.0 ** (data.exponent or 0)
    if data.recipe in ("positive", "rstd", "invstd"):
        return 0.0, math.inf
    raise TypeError(f"recipe {data.recipe} has no known range")


def _given(value: object) -> tuple[Tensor, ...]:
    """The tensors of an argument; a null pointer has no answer (TypeError)."""
    if value is None:
        raise TypeError("null pointer")
    return tensors_in(value)


@dataclass(frozen=True, slots=True)
class Finite(Rule):
    """The inputs named hold no inf and no nan."""

    of: tuple[str, ...]

    @property
    def test(self) -> Test:
        names = self.of
        return lambda arguments, _target: all(
            [data_is_finite(tensor) for name in names for tensor in _given(arguments[name])]
        )

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        for name in self.of:
            for key, tensor in case.tensors():
                if owner(key) == name and tensor.data is not None:
                    data = Data(recipe="special", seed=tensor.data.seed)
                    yield Way(text=f"{key}: data with inf and nan", data={key: data})

    def describe(self, product: str) -> Words:
        return Words(f"{', '.join(self.of)} hold neither inf nor nan", f"{'、'.join(self.of)} 不含 inf 与 nan")


@dataclass(frozen=True, slots=True)
class Elements(ParameterRule):
    """Every element of a tensor lies in a range; a bound may be None."""

    low: str | int | None
    high: str | int | None

    @property
    def test(self) -> Test:
        of = self.of
        low, high = _bound(self.low, -math.inf), _bound(self.high, math.inf)

        def within(arguments: Mapping[str, Any], target: Target) -> bool:
            tensor = arguments[of]
            if 0 in tensor.shape:
                return True
            least, most = data_range(tensor)
            return bool(low(arguments, target) <= least and most <= high(arguments, target))

        return within

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        tensor = case.arguments[self.of]
        if not isinstance(tensor, Tensor) or tensor.data is None:
            return
        beside: list[int] = []
        if self.high is not None:
            high = int(_bound(self.high, 0)(case.arguments, case.target))
            beside += [high + 1, high * 2 + 10]
        if self.low is not None:
            beside.insert(1, int(_bound(self.low, 0)(case.arguments, case.target)) - 1)
        limit = INTEGER_LIMITS.get(tensor.dtype, 2**31)
        for value in beside:
            if value < limit and not (value < 0 and tensor.dtype in ("UINT8", "BOOL")):
                data = Data(values=(value,) * tensor.numel)
                yield Way(text=f"{self.of}: elements -> {value}", data={self.of: data})

    def describe(self, product: str) -> Words:
        return Words(
            f"elements of {self.of} {self._range('lie in [{}, {}]', 'are at least {}', 'are at most {}')}",
            f"{self.of} 的元素{self._range('在 [{}, {}] 内', '不小于 {}', '不大于 {}')}",
        )

    def _range(self, both: str, least: str, most: str) -> str:
        if self.high is None:
            return least.format(self.low)
        return most.format(self.high) if self.low is None else both.format(self.low, self.high)


def _bound(value: str | int | None, none: float) -> Compiled:
    """A bound over the arguments of a call."""
    return (lambda _arguments, _target: none) if value is None else compiled(value)
