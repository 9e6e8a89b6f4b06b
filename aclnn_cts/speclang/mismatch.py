"""What a call has where it breaks a rule, and what it must have: the values behind the words of `Rule.describe`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from aclnn_cts.core.case import Case, Scalar, Tensor, TensorList, number
from aclnn_cts.core.printable import alternatives_text, number_text, quote
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import COMPARISONS, UNDEFINED, ExpressionNode, compile_node
from aclnn_cts.speclang.expression_parser import compile_text, parse
from aclnn_cts.speclang.kinds_data import ElementsRule, FiniteRule, StructureRule, data_is_finite, data_range
from aclnn_cts.speclang.kinds_dtype import (
    DtypeRelationRule,
    DtypeRowsRule,
    LayoutRule,
    ListedRule,
    PromotedDtypeRule,
    PromotionRule,
    SameDtypeRule,
    SameFormatRule,
    SupportedModeRule,
)
from aclnn_cts.speclang.kinds_number import PredicateRule, RangeRule, bound_text
from aclnn_cts.speclang.kinds_size import (
    BroadcastRule,
    DimensionsRule,
    LengthRangeRule,
    LengthRule,
    ShapeRule,
    SizeRule,
    sizes_of,
)
from aclnn_cts.speclang.kinds_tensor import (
    ContiguousRule,
    EachItemRule,
    ListLengthRule,
    NotEmptyRule,
    RankRangeRule,
    RankRule,
    WordRule,
)
from aclnn_cts.speclang.model import Constraint, Rule
from aclnn_cts.speclang.shape import INDEX, compile_shape

_WORDS: Mapping[str, str] = {
    "==": "be",
    "!=": "not be",
    "<": "be less than",
    "<=": "be at most",
    ">": "be greater than",
    ">=": "be at least",
}
_MIRRORED: Mapping[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def mismatch_text(constraint: Constraint, case: Case) -> str:
    """As `512; must be 64`, of a constraint that a case breaks; empty where the rule's own words say all of it."""
    try:
        return _mismatch(constraint.rule, case.arguments, case.target)
    except UNDEFINED:
        return ""


def _text(value: Any) -> str:  # noqa: ANN401 - whatever an expression gives
    """A value in a sentence."""
    if isinstance(value, Tensor):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, TensorList):
        return f"{len(value)} tensors"
    if isinstance(value, Scalar):
        return _text(number(value))
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, float):
        return number_text(value, 9)
    return value if isinstance(value, str) and value.isidentifier() else quote(_plain(value))


def _plain(value: Any) -> Any:  # noqa: ANN401 - as above
    """Sizes and items as lists."""
    items = getattr(value, "items", value)
    return list(items) if isinstance(items, tuple) else value


def _must(found: Any, wanted: str) -> str:  # noqa: ANN401 - as above
    return f"{_text(found)}; must {wanted}"


def _within(low: Any, high: Any) -> str:  # noqa: ANN401 - as above
    if low == high:
        return f"be {_text(low)}"
    ends = (None if end is None else _text(end) for end in (low, high))
    return f"lie in {bound_text(*ends)}"


@functools.singledispatch
def _mismatch(_rule: Rule, _arguments: Mapping[str, Any], _target: Target) -> str:
    return ""


@_mismatch.register
def _(rule: EachItemRule, arguments: Mapping[str, Any], target: Target) -> str:
    for place, item in enumerate(arguments[rule.of].items):
        own = {**arguments, rule.of: item, INDEX: place}
        if not rule.rule.test(own, target):
            return f"{rule.of}[{place}]: {_mismatch(rule.rule, own, target)}"
    return ""


@_mismatch.register
def _(rule: PredicateRule, arguments: Mapping[str, Any], target: Target) -> str:
    reasons: dict[tuple[str, str], list[str]] = {}
    for named, found, wanted in _reasons(parse(rule.text), arguments, target):
        reasons.setdefault((named, found), []).append(wanted)
    if len(reasons) == 1:
        [((_, only), demands)] = reasons.items()
        return f"{only}; must {' or '.join(demands)}"
    given = " and ".join(f"{named} is {found}" for named, found in reasons)
    return f"{given}; " + ", or ".join(
        f"{named} must {' or '.join(demands)}" for (named, _), demands in reasons.items()
    )


def _reasons(node: ExpressionNode, arguments: Mapping[str, Any], target: Target) -> Iterator[tuple[str, str, str]]:
    """Why a predicate is false: the words of an operand, its value, and what that must; any of them would do."""

    def value(operand: ExpressionNode) -> Any:  # noqa: ANN401 - whatever an expression gives
        return compile_node(operand)(arguments, target)

    if node.kind == "and":
        yield from _reasons(next(item for item in node.operands if not value(item)), arguments, target)
    elif node.kind == "or":
        for operand in node.operands:
            yield from _reasons(operand, arguments, target)
    elif node.kind == "if":
        yield from _reasons(node.operands[1 if value(node.operands[0]) else 2], arguments, target)
    else:
        negated = node.kind == "not"
        stated = node.operands[0] if negated else node
        found = [value(operand) for operand in stated.operands]
        if stated.kind != "compare":
            yield _words(stated), ", ".join(map(_text, found)) or _text(value(stated)), f"{'not ' * negated}hold"
            return
        place, word, left, right = next(
            (place, word, *pair)
            for place, (word, pair) in enumerate(zip(stated.value, itertools.pairwise(found), strict=True))
            if negated or not COMPARISONS[word](*pair)
        )
        named = stated.operands[place]
        if named.kind in ("number", "constant"):
            named, left, right, word = stated.operands[place + 1], right, left, _MIRRORED.get(word, word)
        yield _words(named), _text(left), f"{'not ' * negated}{_WORDS[word]} {_text(right)}"


def _words(node: ExpressionNode) -> str:
    """An expression as a spec writes it."""
    kind, value = node.kind, node.value
    parts = [_words(operand) for operand in node.operands]
    if kind == "number":
        return _text(value)
    if kind == "call":
        return f"{parts[0]}[{parts[1]}]" if value == "item" else f"{value}({', '.join(parts)})"
    if kind == "if":
        return f"({parts[1]} if {parts[0]} else {parts[2]})"
    if kind in ("arithmetic", "negative", "not", "and", "or", "compare"):
        words = {"arithmetic": [value], "negative": ["-"], "compare": value}.get(kind, [kind])
        inner = [
            f"({part})" if operand.kind in ("arithmetic", "and", "or", "compare") else part
            for part, operand in zip(parts, node.operands, strict=True)
        ]
        if len(inner) == 1:
            return f"{words[0]}{' ' * (kind == 'not')}{inner[0]}"
        return inner[0] + "".join(
            f" {word} {part}" for word, part in zip(itertools.cycle(words), inner[1:], strict=False)
        )
    return f"target.{value}" if kind == "target" else str(value)


@_mismatch.register
def _(rule: RangeRule, arguments: Mapping[str, Any], target: Target) -> str:
    found, low, high = (
        None if text is None else compile_text(text)(arguments, target) for text in (rule.of, rule.low, rule.high)
    )
    return _must(found, _within(low, high))


@_mismatch.register
def _(rule: LengthRangeRule, arguments: Mapping[str, Any], _target: Target) -> str:
    return _must(len(arguments[rule.of]), _within(rule.low, rule.high))


@_mismatch.register
def _(rule: LengthRule, arguments: Mapping[str, Any], target: Target) -> str:
    return _must(len(arguments[rule.of]), f"be {_text(compile_text(rule.text)(arguments, target))}")


@_mismatch.register
def _(rule: ListLengthRule, arguments: Mapping[str, Any], target: Target) -> str:
    return _must(len(arguments[rule.of]), f"be {_text(compile_text(rule.text)(arguments, target))}")


@_mismatch.register
def _(rule: RankRangeRule, arguments: Mapping[str, Any], _target: Target) -> str:
    return _must(len(arguments[rule.of].shape), _within(rule.low, rule.high))


@_mismatch.register
def _(rule: RankRule, arguments: Mapping[str, Any], target: Target) -> str:
    return _must(len(arguments[rule.of].shape), f"be {_text(compile_text(rule.text)(arguments, target))}")


@_mismatch.register
def _(rule: DimensionsRule, arguments: Mapping[str, Any], _target: Target) -> str:
    sizes = sizes_of(arguments[rule.of])
    found = sizes if rule.axes is None else tuple(sizes[axis] for axis in rule.axes)
    return _must(found, f"each {_within(rule.low, rule.high)}")


@_mismatch.register
def _(rule: ShapeRule, arguments: Mapping[str, Any], target: Target) -> str:
    return _must(sizes_of(arguments[rule.of]), f"be {_text(compile_shape(rule.shape)(arguments, target))}")


@_mismatch.register
def _(rule: SizeRule, arguments: Mapping[str, Any], target: Target) -> str:
    return _must(sizes_of(arguments[rule.of])[rule.axis], f"be {_text(compile_text(rule.text)(arguments, target))}")


@_mismatch.register
def _(rule: BroadcastRule, arguments: Mapping[str, Any], target: Target) -> str:
    other = sizes_of(compile_text(rule.other)(arguments, target))
    return f"{_text(sizes_of(arguments[rule.of]))} and {_text(other)}; must broadcast"


@_mismatch.register
def _(rule: NotEmptyRule, arguments: Mapping[str, Any], _target: Target) -> str:
    return _must(arguments[rule.of].shape, "have no dimension of 0")


@_mismatch.register
def _(rule: ContiguousRule, arguments: Mapping[str, Any], _target: Target) -> str:
    tensor = arguments[rule.of]
    return f"shape {_text(tensor.shape)} with strides {_text(tensor.strides)}; must be contiguous"


@_mismatch.register
def _(rule: WordRule, arguments: Mapping[str, Any], _target: Target) -> str:
    return f"{quote(arguments[rule.of])}; must be {alternatives_text([quote(word) for word in rule.words])}"


@_mismatch.register
def _(rule: ListedRule, arguments: Mapping[str, Any], target: Target) -> str:
    return _one_of(getattr(arguments[rule.of], rule.what), rule.table.get(target.product, ()))


def _one_of(found: str, listed: Iterable[str]) -> str:
    return f"{found}; must be {alternatives_text(list(listed)) or 'none at all'}"


@_mismatch.register
def _(rule: LayoutRule, arguments: Mapping[str, Any], _target: Target) -> str:
    tensor = arguments[rule.of]
    return _one_of(f"{tensor.format} of rank {len(tensor.shape)}", rule.table[len(tensor.shape)])


@_mismatch.register
def _(rule: SameDtypeRule, arguments: Mapping[str, Any], _target: Target) -> str:
    other = next(arguments[name] for name in rule.others if arguments[name] is not None)
    return _must(arguments[rule.of].dtype, f"be {other.dtype}")


@_mismatch.register
def _(rule: SameFormatRule, arguments: Mapping[str, Any], _target: Target) -> str:
    return _must(arguments[rule.of].format, f"be {arguments[rule.other].format}")


@_mismatch.register
def _(rule: DtypeRowsRule, arguments: Mapping[str, Any], _target: Target) -> str:
    given = [arguments[name] for name in rule.parameters]
    return f"{', '.join('null' if value is None else value.dtype for value in given)}; must be a row of the table"


@_mismatch.register
def _(rule: SupportedModeRule, arguments: Mapping[str, Any], _target: Target) -> str:
    dtype = rule.modes.dtype_of({name: arguments[name].dtype for name in rule.modes.sources})
    return f"{_text(arguments[rule.modes.attribute])} with {dtype}; must be supported"


@_mismatch.register
def _(rule: PromotionRule, arguments: Mapping[str, Any], target: Target) -> str:
    dtypes = " and ".join(arguments[name].dtype for name in rule.operands)
    try:
        found = compile_text(f"promote({rule.other}, {rule.of})")(arguments, target)
    except KeyError:
        return f"{dtypes}; must promote"
    return _one_of(f"{dtypes} promote to {found}", (rule.table or {}).get(target.product, ()))


@_mismatch.register
def _(rule: DtypeRelationRule, arguments: Mapping[str, Any], _target: Target) -> str:
    dtypes = " and ".join(arguments[name].dtype for name in rule.reads)
    return f"{arguments[rule.of].dtype}; must be convertible from {dtypes}"


@_mismatch.register
def _(rule: PromotedDtypeRule, arguments: Mapping[str, Any], target: Target) -> str:
    return _must(arguments[rule.of].dtype, f"be {_text(compile_text(rule.other)(arguments, target))}")


@_mismatch.register
def _(rule: FiniteRule, arguments: Mapping[str, Any], _target: Target) -> str:
    special = [name for name in rule.of if not all(map(data_is_finite, _tensors(arguments[name])))]
    return f"inf or nan in {' and '.join(special)}; must be finite"


def _tensors(value: Any) -> tuple[Tensor, ...]:  # noqa: ANN401 - an argument
    return value.items if isinstance(value, TensorList) else (value,)


@_mismatch.register
def _(rule: ElementsRule, arguments: Mapping[str, Any], target: Target) -> str:
    least, most = data_range(arguments[rule.of])
    low, high = (None if end is None else compile_text(end)(arguments, target) for end in (rule.low, rule.high))
    found = _text(least) if least == most else f"from {_text(least)} to {_text(most)}"
    return f"{found}; must {_within(low, high)}"


@_mismatch.register
def _(rule: StructureRule, arguments: Mapping[str, Any], target: Target) -> str:
    value = arguments[rule.of]
    found = value if isinstance(value, tuple) else value.data.values or value.data.recipe
    total = compile_text(rule.number)(arguments, target)
    return f"{_text(found)}; must hold {rule.words(total).en}"
