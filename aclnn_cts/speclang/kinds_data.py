"""Rules about the contents of tensors, decided from values or from what a recipe is known to give."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import compile_node
from aclnn_cts.speclang.expression_parser import parse
from aclnn_cts.speclang.kinds import NoLimits, Test, Way

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec

__all__ = ["INDEX_RECIPES", "Elements", "Finite", "data_is_finite", "data_range"]

_INTEGER_LIMITS: Mapping[str, int] = {
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
        high = min(data.high if data.high is not None else 1, _INTEGER_LIMITS.get(tensor.dtype, 2**62))
        return min(data.low or 0, high - 1), high - 1
    if data.recipe == "zeros":
        return 0, 0
    if data.recipe == "constant":
        value = 1.0 if data.mean is None else data.mean
        return value, value
    if data.recipe == "integers" and not data.exponent:
        low, high = DEFAULT_INTEGERS
        return (data.low if data.low is not None else low), (data.high if data.high is not None else high)
    raise TypeError(f"recipe {data.recipe} has no known range")


@dataclass(frozen=True, slots=True)
class Finite(NoLimits):
    """The inputs named hold no inf and no nan."""

    of: tuple[str, ...]

    @property
    def test(self) -> Test:
        names = self.of
        return lambda arguments, _target: all([data_is_finite(arguments[name]) for name in names])

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        for name in self.of:
            tensor = case.arguments[name]
            if isinstance(tensor, Tensor) and tensor.data is not None:
                data = Data(recipe="special", seed=tensor.data.seed)
                yield Way(text=f"{name}: data with inf and nan", data={name: data})

    def describe(self, product: str) -> str:
        return f"{', '.join(self.of)} hold neither inf nor nan"

    def describe_zh(self, product: str) -> str:
        return f"{'、'.join(self.of)} 不含 inf 与 nan"


@dataclass(frozen=True, slots=True)
class Elements(NoLimits):
    """Every element of an integer tensor lies in a range."""

    of: str
    low: str | int
    high: str | int

    @property
    def test(self) -> Test:
        of = self.of
        low, high = compile_node(parse(self.low)), compile_node(parse(self.high))

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
        high = int(compile_node(parse(self.high))(case.arguments, case.target))
        low = int(compile_node(parse(self.low))(case.arguments, case.target))
        limit = _INTEGER_LIMITS.get(tensor.dtype, 2**31)
        for value in (high + 1, low - 1, high * 2 + 10):
            if value < limit and not (value < 0 and tensor.dtype in ("UINT8", "BOOL")):
                data = Data(values=(value,) * tensor.numel)
                yield Way(text=f"{self.of}: elements -> {value}", data={self.of: data})

    def describe(self, product: str) -> str:
        return f"elements of {self.of} lie in [{self.low}, {self.high}]"

    def describe_zh(self, product: str) -> str:
        return f"{self.of} 的元素在 [{self.low}, {self.high}] 内"
