"""Rules about numbers: ranges, and predicates over the arguments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aclnn_cts.core.case import Case
from aclnn_cts.speclang.expression import UNDEFINED, Compiled
from aclnn_cts.speclang.expression_parser import compile_text
from aclnn_cts.speclang.kinds import CaseChange, Test, Words
from aclnn_cts.speclang.model import Rule

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec

C_RANGES: Mapping[str, tuple[int, int]] = {
    "int8_t": (-(2**7), 2**7 - 1),
    "int16_t": (-(2**15), 2**15 - 1),
    "int32_t": (-(2**31), 2**31 - 1),
    "int64_t": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "uint8_t": (0, 2**8 - 1),
    "uint16_t": (0, 2**16 - 1),
    "uint32_t": (0, 2**32 - 1),
    "uint64_t": (0, 2**64 - 1),
}
"""Least and most of the integer types of C headers."""


def bound_text(low: object, high: object) -> str:
    """The interval between two bounds."""
    left = "(-inf" if low is None else f"[{low}"
    right = "inf)" if high is None else f"{high}]"
    return f"{left}, {right}"


@dataclass(frozen=True, slots=True)
class RangeRule(Rule):
    """A number lies between two bounds, either of which may be absent."""

    of: str
    low: str | float | None
    high: str | float | None
    draw: str | None = None
    """The draw that a break changes."""

    def _compiled(self) -> tuple[Compiled, Compiled | None, Compiled | None]:
        value = compile_text(self.of)
        low = compile_text(self.low) if self.low is not None else None
        high = compile_text(self.high) if self.high is not None else None
        return value, low, high

    @property
    def test(self) -> Test:
        value, low, high = self._compiled()
        if low is None and high is not None:
            return lambda arguments, target: bool(value(arguments, target) <= high(arguments, target))
        if high is None and low is not None:
            return lambda arguments, target: bool(low(arguments, target) <= value(arguments, target))
        if low is None or high is None:
            return lambda _arguments, _target: True
        if isinstance(self.low, (int, float)) and isinstance(self.high, (int, float)):
            least, most = self.low, self.high
            return lambda arguments, target: bool(least <= value(arguments, target) <= most)
        return lambda arguments, target: bool(
            low(arguments, target) <= value(arguments, target) <= high(arguments, target)
        )

    def _change(self, spec: Spec, old: object, new: float) -> CaseChange | None:
        name = self.draw or self.of
        parameter = next((item for item in spec.parameters if item.name == name), None)
        if parameter is not None and parameter.kind == "int":
            least, most = C_RANGES[parameter.c_type]
            if not least <= new <= most:
                return None
        if parameter is not None and parameter.kind == "double":
            return _double_change(name, old, float(new))
        if any(draw.name == name for draw in spec.draws):
            return CaseChange(text=f"{name}: {old} -> {new}", assign={name: new})
        return CaseChange(text=f"{name}: {old} -> {new}", values={name: int(new)})

    def _values(self, spec: Spec, case: Case, offsets: tuple[tuple[int, ...], tuple[int, ...]]) -> Iterator[CaseChange]:
        try:
            old, low, high = (
                part(case.arguments, case.target) if part is not None else None for part in self._compiled()
            )
        except UNDEFINED:
            return
        values = [low + step for step in offsets[0] if low is not None] + [
            high + step for step in offsets[1] if high is not None
        ]
        for value in dict.fromkeys(values):
            if (change := self._change(spec, old, value)) is not None:
                yield change

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        if isinstance(old := case.arguments.get(self.of), float):
            yield _double_change(self.of, old, math.nan)
            yield from (
                _double_change(self.of, old, beyond)
                for bound, beyond in ((self.low, -math.inf), (self.high, math.inf))
                if bound is not None
            )
        near = (-1, -2, -1000, -(2**31), -(2**62))
        yield from self._values(spec, case, (near, tuple(-step for step in near)))

    def limits(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        yield from self._values(spec, case, ((-1, 0, 1), (-1, 0, 1)))

    def describe(self, product: str) -> Words:
        return Words(
            f"{self.of} lies in {bound_text(self.low, self.high)}", f"{self.of} 在 {bound_text(self.low, self.high)} 内"
        )


def _double_change(name: str, old: object, new: float) -> CaseChange:
    return CaseChange(text=f"{name}: {old} -> {new}", values={name: new})


@dataclass(frozen=True, slots=True)
class PredicateRule(Rule):
    """A predicate holds. It makes no changes of its own that break it: the spec writes them (`breaks`)."""

    text: str

    @property
    def test(self) -> Test:
        predicate = compile_text(self.text)
        return lambda arguments, target: bool(predicate(arguments, target))

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        return iter(())

    def describe(self, product: str) -> Words:
        return Words(self.text, self.text)
