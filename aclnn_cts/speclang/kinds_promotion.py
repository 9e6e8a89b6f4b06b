"""Rules that relate dtypes by promotion and conversion (`core.promotion`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aclnn_cts.core.case import Case, Scalar, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.expression_parser import compiled, parse
from aclnn_cts.speclang.kinds import ParameterRule, Test, Way, Words, tensor_of
from aclnn_cts.speclang.kinds_dtype import OTHER_DTYPES

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec

PROMOTE = "promote("
"""How the dtype that several promote to begins."""


@dataclass(frozen=True, slots=True)
class Relation(ParameterRule):
    """A rule on the dtype of `of` and on those that an expression reads; each kind has its own test."""

    other: str
    """A tensor or scalar, or `promote(a, b)`."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The parameters whose dtypes it reads but `of`, in their order."""
        return _names(self.other)

    @property
    def operands(self) -> tuple[str, ...]:
        """Those that are computed with: what promotes."""
        return self.reads

    @property
    def test(self) -> Test:
        raise NotImplementedError

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        old = tensor_of(case, self.of).dtype
        listed = spec.parameter(self.of).dtypes.get(case.product, ())
        for dtype in dict.fromkeys((*listed, *OTHER_DTYPES)):
            if dtype != old:
                yield Way(text=f"{self.of}: dtype {old} -> {dtype}", dtypes={self.of: dtype})


@dataclass(frozen=True, slots=True)
class Promotes(Relation):
    """The dtype promotes with others, and where a list is given, to one of it."""

    table: Mapping[str, tuple[str, ...]] | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        return (*self.reads, self.of)

    @property
    def test(self) -> Test:
        promote, table = compiled(f"promote({self.other}, {self.of})"), self.table
        names = self.operands

        def promotes(arguments: Mapping[str, Any], target: Target) -> bool:
            if any(arguments[name] is None for name in names):
                raise TypeError("a null pointer has no dtype")
            try:
                found = promote(arguments, target)
            except KeyError:
                return False
            return table is None or found in table[target.product]

        return promotes

    def describe(self, product: str) -> Words:
        listed = None if self.table is None else ", ".join(self.table.get(product, ()))
        return Words(
            f"dtypes of {self.of} and {self.other} promote" + ("" if listed is None else f" to one of {listed}"),
            f"{self.of} 与 {self.other} 的数据类型可互推导" + ("" if listed is None else f"，推导结果为 {listed} 之一"),
        )


@dataclass(frozen=True, slots=True)
class CastFrom(Relation):
    """The dtype is one to which another can be converted."""

    @property
    def test(self) -> Test:
        return compiled(f"castable({self.other}, {self.of})")

    def describe(self, product: str) -> Words:
        return Words(
            f"dtype of {self.other} converts to dtype of {self.of}",
            f"{self.other} 的数据类型可转换为 {self.of} 的数据类型",
        )


@dataclass(frozen=True, slots=True)
class SameAsPromoted(Relation):
    """The dtype is the one that others promote to."""

    @property
    def test(self) -> Test:
        return compiled(f"dtype({self.of}) == {self.other}")

    def describe(self, product: str) -> Words:
        return Words(f"dtype of {self.of} equals {self.other}", f"{self.of} 的数据类型等于 {self.other}")


def _names(text: str) -> tuple[str, ...]:
    """The parameters that an expression reads, in their order."""
    return tuple(dict.fromkeys(node.value for node in parse(text).walk() if node.kind == "name"))


def relations(spec: Spec, product: str) -> tuple[Relation, ...]:
    """The relations of dtypes that a document states for a product."""
    rules = (item.rule for item in spec.constraints_for(product))
    return tuple(rule for rule in rules if isinstance(rule, Relation))


def is_allowed(
    rules: Iterable[Relation], tensors: Mapping[str, str], target: Target, scalars: Mapping[str, str] | None = None
) -> bool:
    """Whether no relation is broken by tensors and scalars of these dtypes; one that reads another says nothing."""
    arguments: dict[str, Any] = {name: Tensor((), dtype) for name, dtype in tensors.items()}
    arguments |= {name: Scalar(dtype, 0) for name, dtype in (scalars or {}).items()}
    for rule in rules:
        try:
            if rule.test(arguments, target) is False:
                return False
        except UNDEFINED:
            continue
    return True
