"""Rules about dtypes and formats: lists, modes, promotion and conversion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from aclnn_cts.core.case import Case, Scalar, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.expression_parser import compile_text, parse
from aclnn_cts.speclang.kinds import CaseChange, Test, Words, tensor_of
from aclnn_cts.speclang.model import ParameterRule, Rule

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Modes, Parameter, Spec


OTHER_DTYPES = (
    "DOUBLE", "INT32", "BF16", "FLOAT16", "FLOAT", "INT64", "INT8", "BOOL", "UINT8", "INT16", "COMPLEX64", "UINT32",
    "UINT64",
)  # fmt: skip
OTHER_FORMATS = ("NCHW", "NHWC", "NCL", "ND", "NCDHW", "NC1HWC0", "FRACTAL_NZ")


def _other_names(
    spec: Spec, case: Case, of: str, what: str, names: Sequence[str], group: tuple[str, ...]
) -> Iterator[CaseChange]:
    """Ways to give a tensor another dtype or format: alone, with the tensors that follow it, with all of its group."""
    old = getattr(case.arguments[of], what)
    followers = _followers(spec, case, of, what)
    for name in names:
        text = f"{of}: {what} {old} -> {name}"
        yield _renamed(what, text, {**followers, of: name})
        if followers:
            yield _renamed(what, f"{text}, with {', '.join(followers)}", {of: name})
        if group:
            yield _renamed(what, f"{text}, with {', '.join(group)}", dict.fromkeys((of, *group), name))


def _followers(spec: Spec, case: Case, of: str, what: str) -> dict[str, str]:
    """The dtype or format, as it is now, of each tensor that takes that of another."""
    return {
        item.name: getattr(case.arguments[item.name], what)
        for item in spec.parameters
        if (item.dtype_as if what == "dtype" else item.format_as) == of and case.arguments[item.name] is not None
    }


def _renamed(what: str, text: str, names: Mapping[str, str]) -> CaseChange:
    return CaseChange(text=text, dtypes=names) if what == "dtype" else CaseChange(text=text, formats=names)


_OTHERS = {"dtype": OTHER_DTYPES, "format": OTHER_FORMATS}
"""Those that a break may choose among."""
_CHINESE = {"dtype": "数据类型", "format": "数据格式"}


@dataclass(frozen=True, slots=True)
class ListedRule(ParameterRule):
    """The dtype or format is in the product's list."""

    what: str
    """`dtype` or `format`, as tensors name it; parameters name their lists by its plural."""
    table: Mapping[str, tuple[str, ...]]
    group: tuple[str, ...] = ()
    """Parameters of the other rules of its group, which change together with it."""

    @property
    def test(self) -> Test:
        of, read = self.of, attrgetter(self.what)
        table = {product: frozenset(names) for product, names in self.table.items()}
        return lambda arguments, target: read(arguments[of]) in table[target.product]

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        """Those that another product lists come first, then those that another tensor has; last, of a wider rule."""
        elsewhere = [name for names in self.table.values() for name in names]
        lists = attrgetter(f"{self.what}s")
        sisters = [name for item in spec.parameters for name in lists(item).get(case.product, ())]
        others = _OTHERS[self.what]
        names = dict.fromkeys(name for name in (*elsewhere, *sisters, *others) if name in others)
        for rule in (constraint.rule for constraint in spec.constraints_for(case.product)):
            if isinstance(rule, ListedRule) and (rule.of, rule.what) == (self.of, self.what):
                names.update(dict.fromkeys(rule.table[case.product]))
        rejected = [name for name in names if name not in self.table[case.product]]
        if case.arguments[self.of] is None:
            for name in rejected:
                given = _renamed(self.what, f"{self.of}: null -> {self.what} {name}", {self.of: name})
                yield replace(given, given=self.of)
            return
        yield from _other_names(spec, case, self.of, self.what, rejected, self.group)

    def describe(self, product: str) -> Words:
        names = ", ".join(self.table.get(product, ()))
        return Words(
            f"{self.what} of {self.of} is one of {names or 'nothing'}",
            f"{self.of} 的{_CHINESE[self.what]}为 {names or '无'} 之一",
        )


@dataclass(frozen=True, slots=True)
class LayoutRule(ParameterRule):
    """The format is one of those for the tensor's number of dimensions. Of a number without formats it says nothing."""

    table: Mapping[int, tuple[str, ...]]

    @property
    def test(self) -> Test:
        of = self.of
        table = {rank: frozenset(names) for rank, names in self.table.items()}
        return lambda arguments, _target: arguments[of].format in table[len(arguments[of].shape)]

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        fitting = self.table.get(len(tensor_of(case, self.of).shape), ())
        names = dict.fromkeys(name for names in self.table.values() for name in names)
        yield from _other_names(spec, case, self.of, "format", [name for name in names if name not in fitting], ())

    def describe(self, product: str) -> Words:
        return Words(
            f"format of {self.of} by number of dimensions: {self._listed(', ', '; ')}",
            f"{self.of} 各维数对应的数据格式：{self._listed('、', '；')}",
        )

    def _listed(self, comma: str, between: str) -> str:
        return between.join(f"{rank} {comma.join(names)}" for rank, names in self.table.items())


@dataclass(frozen=True, slots=True)
class SameDtypeRule(ParameterRule):
    """Two dtypes are equal."""

    others: tuple[str, ...]
    """The first that is given counts."""

    @property
    def test(self) -> Test:
        of, others = self.of, self.others
        if len(others) == 1:
            other = others[0]
            return lambda arguments, _target: arguments[of].dtype == arguments[other].dtype

        def same(arguments: Mapping[str, Any], _target: Target) -> bool:
            found = next((arguments[name] for name in others if arguments[name] is not None), None)
            return bool(arguments[of].dtype == found.dtype)  # type: ignore[union-attr]  # none given: undefined

        return same

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        old = tensor_of(case, self.of).dtype
        followers = _followers(spec, case, self.of, "dtype")
        listed = _listed_dtypes(spec, self.of, case.product)
        for dtype in (*listed, *(name for name in OTHER_DTYPES if name not in listed)):
            if dtype == old:
                continue
            text = f"{self.of}: dtype {old} -> {dtype}"
            if followers:
                yield CaseChange(text=f"{text}, with {', '.join(followers)}", dtypes={self.of: dtype})
            yield CaseChange(text=text, dtypes={**followers, self.of: dtype})

    def describe(self, product: str) -> Words:
        return Words(
            f"dtype of {self.of} equals dtype of {' or else '.join(self.others)}",
            f"{self.of} 与 {'（为空时与 '.join(self.others)}{'）' * (len(self.others) - 1)} 的数据类型相同",
        )


def _listed_dtypes(spec: Spec, name: str, product: str) -> tuple[str, ...]:
    parameter = spec.parameter(name)
    while parameter.dtype_as is not None:
        parameter = spec.parameter(parameter.dtype_as)
    return parameter.dtypes.get(product, ())


@dataclass(frozen=True, slots=True)
class DtypeRowsRule(Rule):
    """The dtypes of several parameters stand in one row of the product's table."""

    parameters: tuple[str, ...]
    rows: Mapping[str, tuple[tuple[str, ...], ...]]

    @property
    def test(self) -> Test:
        names = self.parameters
        rows = {product: frozenset(entries) for product, entries in self.rows.items()}

        def listed(arguments: Mapping[str, Any], target: Target) -> bool:
            values = [arguments[name] for name in names]
            if None not in values:
                return tuple([value.dtype for value in values]) in rows[target.product]
            given = [(place, value.dtype) for place, value in enumerate(values) if value is not None]
            return any(all(row[place] == dtype for place, dtype in given) for row in rows[target.product])

        return listed

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        rows = self.rows[case.product]
        for position, name in enumerate(self.parameters):
            if case.arguments[name] is None:
                continue
            old = tensor_of(case, name).dtype
            for dtype in dict.fromkeys((*(row[position] for row in rows), "FLOAT", "FLOAT16", "BF16")):
                if dtype != old:
                    yield CaseChange(
                        text=f"{name}: dtype {old} -> {dtype}, a row that the table lacks", dtypes={name: dtype}
                    )

    def describe(self, product: str) -> Words:
        count = len(self.rows.get(product, ()))
        return Words(
            f"dtypes of {', '.join(self.parameters)} are a row of the table ({count} rows)",
            f"{'、'.join(self.parameters)} 的数据类型在表的同一行内，共 {count} 行",
        )


@dataclass(frozen=True, slots=True)
class SupportedModeRule(Rule):
    """The compute mode is one that the document does not reject for the product and dtype."""

    modes: Modes

    @property
    def test(self) -> Test:
        modes = self.modes
        of_dtype, attribute, operand = modes.dtype_of, modes.attribute, modes.operand

        def supported(arguments: Mapping[str, Any], target: Target) -> bool:
            row = operand[target.product][of_dtype({name: arguments[name].dtype for name in modes.sources})]
            value = arguments[attribute]
            if value < 0:
                raise IndexError(value)
            return row[value] is not None

        return supported

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        modes = self.modes
        by_dtype = modes.operand.get(case.product, {})
        old = modes.dtype_of({name: tensor_of(case, name).dtype for name in modes.sources})
        for dtype in dict.fromkeys((old, *by_dtype)):
            for value, promised in enumerate(by_dtype.get(dtype, ())):
                if promised is None:
                    yield CaseChange(
                        text=f"{modes.attribute}: {value} for {dtype}",
                        values={modes.attribute: value},
                        dtypes={} if dtype == old else dict.fromkeys(modes.sources, dtype),
                    )

    def describe(self, product: str) -> Words:
        rows = self.modes.operand.get(product, {}).items()
        rejected = [(value, dtype) for dtype, row in rows for value, operand in enumerate(row) if operand is None]
        attribute = self.modes.attribute
        but = ", ".join(f"{value} with {dtype}" for value, dtype in rejected)
        but_zh = ", ".join(f"{dtype} 不支持 {value}" for value, dtype in rejected)
        return Words(
            f"{attribute} is supported for the dtype" + (f"; not {but}" if rejected else ""),
            f"该数据类型支持此 {attribute}" + (f" ({but_zh})" if rejected else ""),
        )


@dataclass(frozen=True, slots=True)
class SameFormatRule(ParameterRule):
    """Two formats are equal."""

    other: str

    @property
    def test(self) -> Test:
        of, other = self.of, self.other
        return lambda arguments, _target: arguments[of].format == arguments[other].format

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        old = tensor_of(case, self.of).format
        listed = spec.parameter(self.of).formats.get(case.product, ())
        for name in (*listed, *OTHER_FORMATS):
            if name != old:
                yield CaseChange(text=f"{self.of}: format {old} -> {name}", formats={self.of: name})

    def describe(self, product: str) -> Words:
        return Words(f"format of {self.of} equals format of {self.other}", f"{self.of} 与 {self.other} 的数据格式相同")


PROMOTE = "promote("
"""How the dtype that several promote to begins."""


@dataclass(frozen=True, slots=True)
class DtypeRelationRule(ParameterRule):
    """A rule on the dtype of `of` and on those that an expression reads; each kind has its own test."""

    other: str
    """A tensor or scalar, or `promote(a, b)`."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The parameters whose dtypes it reads but `of`, in their order."""
        return names_read(self.other)

    @property
    def operands(self) -> tuple[str, ...]:
        """Those that are computed with: what promotes."""
        return self.reads

    @property
    def test(self) -> Test:
        raise NotImplementedError

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        old = getattr(case.arguments[self.of], "dtype", None)
        listed = spec.parameter(self.of).dtypes.get(case.product, ())
        for dtype in dict.fromkeys((*listed, *OTHER_DTYPES)):
            if dtype != old:
                yield CaseChange(text=f"{self.of}: dtype {old} -> {dtype}", dtypes={self.of: dtype})


@dataclass(frozen=True, slots=True)
class PromotionRule(DtypeRelationRule):
    """The dtype promotes with others, and where a list is given, to one of it."""

    table: Mapping[str, tuple[str, ...]] | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        return (*self.reads, self.of)

    @property
    def test(self) -> Test:
        promote, table = compile_text(f"promote({self.other}, {self.of})"), self.table
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
class CastRule(DtypeRelationRule):
    """The dtype is one to which another can be converted."""

    @property
    def test(self) -> Test:
        return compile_text(f"castable({self.other}, {self.of})")

    def describe(self, product: str) -> Words:
        return Words(
            f"dtype of {self.other} converts to dtype of {self.of}",
            f"{self.other} 的数据类型可转换为 {self.of} 的数据类型",
        )


@dataclass(frozen=True, slots=True)
class PromotedDtypeRule(DtypeRelationRule):
    """The dtype is the one that others promote to."""

    @property
    def test(self) -> Test:
        return compile_text(f"dtype({self.of}) == {self.other}")

    def describe(self, product: str) -> Words:
        return Words(f"dtype of {self.of} equals {self.other}", f"{self.of} 的数据类型等于 {self.other}")


def names_read(text: str) -> tuple[str, ...]:
    """The parameters that an expression reads, in their order."""
    return tuple(dict.fromkeys(node.value for node in parse(text).walk() if node.kind == "name"))


def relations(spec: Spec, product: str) -> tuple[DtypeRelationRule, ...]:
    """The relations of dtypes that a document states for a product."""
    rules = (item.rule for item in spec.constraints_for(product))
    return tuple(rule for rule in rules if isinstance(rule, DtypeRelationRule))


def are_dtypes_allowed(
    rules: Iterable[ParameterRule], tensors: Mapping[str, str], target: Target, scalars: Mapping[str, str] | None = None
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


def scalar_dtypes(
    rules: Iterable[DtypeRelationRule], item: Parameter, tensors: Mapping[str, str], target: Target
) -> tuple[str, ...]:
    """The dtypes that a scalar may have beside tensors of these; where the relations allow none, all that it lists."""
    listed = item.dtypes.get(target.product, ())
    own = [rule for rule in rules if item.name in (rule.of, *rule.reads)]
    return tuple(name for name in listed if are_dtypes_allowed(own, tensors, target, {item.name: name})) or listed
