"""Rules about pointers, ranks and layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aclnn_cts.core.case import Case
from aclnn_cts.speclang.kinds import ParameterRule, Test, Way, Words, tensor_of

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec

MAX_RANK = 25
"""Dimensions that the operator library's shape object has room for.

It drops more of them silently and keeps their count all the same: undefined, so never sent.
"""


@dataclass(frozen=True, slots=True)
class _Pointer(ParameterRule):
    """A pointer is not null."""

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} is not a null pointer", f"{self.of} 不是空指针")


@dataclass(frozen=True, slots=True)
class Present(_Pointer):
    """The pointer is not null."""

    @property
    def test(self) -> Test:
        of = self.of
        return lambda arguments, _target: arguments[of] is not None

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        yield Way(text=f"{self.of}: null pointer", null=self.of)


@dataclass(frozen=True, slots=True)
class CallPresent(_Pointer):
    """A pointer of the interface itself (`workspaceSize`, `executor`) is not null; evaluated on the call options."""

    @property
    def test(self) -> Test:
        return lambda _arguments, _target: True

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        yield Way(text=f"{self.of}: null pointer", call_null=(self.of,))


@dataclass(frozen=True, slots=True)
class Rank(ParameterRule):
    """The number of dimensions lies in a range."""

    low: int
    high: int

    @property
    def test(self) -> Test:
        of, low, high = self.of, self.low, self.high
        return lambda arguments, _target: low <= len(arguments[of].shape) <= high

    def _way(self, case: Case, rank: int) -> Way:
        old = len(tensor_of(case, self.of).shape)
        return Way(text=f"{self.of}: rank {old} -> {rank}", ranks={self.of: rank})

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        for rank in dict.fromkeys((self.high + 1, self.low - 1, self.high + 2, 0, min(self.high * 2, MAX_RANK))):
            if 0 <= rank <= MAX_RANK and not self.low <= rank <= self.high:
                yield self._way(case, rank)

    def limits(self, spec: Spec, case: Case) -> Iterator[Way]:
        for rank in sorted({self.low - 1, self.low, self.low + 1, self.high - 1, self.high, self.high + 1}):
            if 0 <= rank <= MAX_RANK:
                yield self._way(case, rank)

    def describe(self, product: str) -> Words:
        return Words(
            f"rank of {self.of} is {self.low}" + (f" to {self.high}" if self.high != self.low else ""),
            f"{self.of} 的维数为 {self.low}" + (f" 至 {self.high}" if self.high != self.low else ""),
        )


@dataclass(frozen=True, slots=True)
class Contiguous(ParameterRule):
    """The tensor is contiguous."""

    @property
    def test(self) -> Test:
        of = self.of
        return lambda arguments, _target: bool(arguments[of].is_contiguous)

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        yield Way(text=f"{self.of}: contiguous -> strided with gaps", strided=self.of)

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} is contiguous", f"{self.of} 是连续的")


@dataclass(frozen=True, slots=True)
class NotEmpty(ParameterRule):
    """No dimension is 0."""

    @property
    def test(self) -> Test:
        of = self.of
        return lambda arguments, _target: 0 not in arguments[of].shape

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        shape = tensor_of(case, self.of).shape
        for axis in range(len(shape) - 1, -1, -1):
            yield Way(text=f"{self.of}: dimension {axis} {shape[axis]} -> 0", axes={(self.of, axis): 0})

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} is not empty", f"{self.of} 非空")
