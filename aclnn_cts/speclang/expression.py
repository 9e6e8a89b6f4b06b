"""The expression language of specs: total, bounded, and never Python's `eval`.

Integers, exact division, comparisons (chained as in Python), `and or not`, and the functions below. An expression is
parsed once into a tree, checked for names, and compiled into closures over `(arguments, target)`. What is undefined
(a dimension that is not there, a null pointer, division by zero, a fact of the target that is not known) raises one of
`UNDEFINED`, which evaluation turns into *not applicable*.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from aclnn_cts.core.case import Scalar, TensorList, number
from aclnn_cts.core.dtypes import can_convert, itemsize, promoted_by_scalar, promoted_dtype
from aclnn_cts.core.target import Target

UNDEFINED = (AttributeError, IndexError, KeyError, ZeroDivisionError, TypeError, OverflowError)
"""What an expression raises where it has no value. Names are checked before, so these mean nothing else."""

Value: TypeAlias = Any
"""What an expression reads or gives: a number, a word, a tensor, a run of sizes."""

Compiled: TypeAlias = Callable[[Mapping[str, Value], Target], Value]


@dataclass(frozen=True, slots=True)
class ExpressionNode:
    """A node of the tree: `kind` with its operands; leaves carry `value`."""

    kind: str
    value: Any = None
    operands: tuple[ExpressionNode, ...] = ()

    def walk(self) -> list[ExpressionNode]:
        """The node and all within it, as they stand in the text."""
        found = [self]
        for operand in self.operands:
            found += operand.walk()
        return found

    def names(self) -> frozenset[str]:
        """Every name that the expression reads."""
        return frozenset(node.value for node in self.walk() if node.kind == "name")

    def contents_read(self) -> frozenset[str]:
        """The tensors whose contents the expression reads."""
        calls = (node for node in self.walk() if node.kind == "call" and node.value in CONTENTS)
        return frozenset().union(*(node.operands[0].names() for node in calls))


def _shape(value: Value) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else value.shape


def _items(value: Value) -> tuple[Any, ...]:
    """The sizes of a run, or the items of an array."""
    return value if isinstance(value, tuple) else value.items


def _is_empty(value: Value) -> bool:
    """Whether a dimension of a tensor, or of any tensor of a list, is 0."""
    if isinstance(value, TensorList):
        return any(0 in tensor.shape for tensor in value.items)
    return 0 in _shape(value)


def _numel(value: Value) -> int:
    product = 1
    for size in _shape(value):
        product *= size
    return product


def _broadcast(*values: Value) -> tuple[int, ...]:
    """The shape that several broadcast to; where two sizes do not fit, the larger."""
    shapes = [_shape(value) for value in values]
    rank = max(map(len, shapes))
    columns = zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes), strict=True)
    return tuple([max((size for size in column if size != 1), default=1) for column in columns])


def _broadcasts(*values: Value) -> bool:
    """Whether shapes broadcast: every size is 1 or that of the broadcast shape."""
    whole = _broadcast(*values)
    for shape in map(_shape, values):
        for size, wanted in zip(reversed(shape), reversed(whole), strict=False):
            if size not in (1, wanted):
                return False
    return True


def _windows(size: int, kernel: int, stride: int, padding: int, is_ceil: bool) -> int:  # noqa: FBT001 - an operand
    """How many windows of a pooling start within a padded dimension; the last may reach beyond it where `is_ceil`."""
    room = size + 2 * padding - kernel
    count: int = (-(-room // stride) if is_ceil else room // stride) + 1
    return count - 1 if is_ceil and (count - 1) * stride >= size + padding else count


def _dtype(value: Value) -> str:
    """The dtype that a word names, or that of an argument."""
    return value if isinstance(value, str) else str(value.dtype)


def _promote(*values: Value) -> str:
    """The dtype that tensors promote to, in their order, and scalars with them; KeyError where there is none."""
    found = promoted_dtype([_dtype(value) for value in values if not isinstance(value, Scalar)])
    for value in values:
        if isinstance(value, Scalar) and found is not None:
            found = promoted_by_scalar(found, value.dtype)
    if found is None:
        raise KeyError("these dtypes do not promote")
    return found


def _some(items: Sequence[int]) -> Sequence[int]:
    """The items; of none nothing is the least."""
    if not items:
        raise IndexError("no items")
    return items


def _lengths(value: Value) -> list[int]:
    """What each item is more than the one before it, the first one more than 0."""
    return [after - before for before, after in itertools.pairwise((0, *_items(value)))]


FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "rank": (1, lambda value: len(_shape(value))),
    "numel": (1, _numel),
    "shape": (1, lambda value: tuple(_shape(value))),
    "sizes": (3, lambda value, start, stop: tuple(_shape(value)[start:stop])),
    "broadcast": (-1, _broadcast),
    "broadcasts": (-1, _broadcasts),
    "dim": (2, lambda value, axis: value.shape[axis]),
    "len": (1, len),
    "item": (2, lambda value, index: value[index]),
    "dtype": (1, lambda value: value.dtype),
    "promote": (-1, _promote),
    "castable": (2, lambda source, to: can_convert(_dtype(source), _dtype(to))),
    "format": (1, lambda value: value.format),
    "value": (1, number),
    "given": (1, lambda value: value is not None),
    "itemsize": (1, lambda value: itemsize(value.dtype)),
    "contiguous": (1, lambda value: value.is_contiguous),
    "offset": (1, lambda value: value.offset),
    "empty": (1, _is_empty),
    "recipe": (1, lambda value: value.data.recipe or "values"),
    "holds": (2, lambda value, what: value.holds(what)),
    "highest": (1, lambda value: value.highest),
    "lowest": (1, lambda value: value.lowest),
    "distinct": (1, lambda value: value.distinct),
    "windows": (5, _windows),
    "sum": (1, lambda value: sum(_items(value))),
    "sums": (1, lambda value: tuple(itertools.accumulate(_items(value)))),
    "ascending": (1, lambda value: all(one <= other for one, other in itertools.pairwise(_items(value)))),
    "shortest": (1, lambda value: min(_some(_lengths(value)))),
    "longest": (1, lambda value: max(_some(_lengths(value)))),
    "least": (1, lambda value: min(_some(_items(value)))),
    "greatest": (1, lambda value: max(_some(_items(value)))),
    "min": (-1, min),
    "max": (-1, max),
    "abs": (1, abs),
}

CONTENTS = frozenset({"holds", "highest", "lowest", "distinct"})
"""Functions of what a tensor holds, which only the predicates of waivers can read (`generate.predicate`)."""

SIZES = ("broadcast", "sums")
"""Functions that give sizes: `*` takes them in a shape expression."""

VALUE_WORDS = ("nan", "inf", "zero", "negative", "subnormal")
"""What `holds` looks for, beside a number."""

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _divide(left: Value, right: Value) -> Value:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    return Fraction(left, right)


def _multiply(left: Value, right: Value) -> Value:
    if not type(left) is type(right) is int:  # nearly all are: asked first, since it is quick
        _demand_numbers(left, right)
    return left * right


def _remainder(left: Value, right: Value) -> Value:
    _demand_numbers(left, right)
    return left % right


def _demand_numbers(left: Value, right: Value) -> None:
    """Python would repeat a word or a run as often as it is told, and format a word to any width."""
    if isinstance(left, (str, tuple)) or isinstance(right, (str, tuple)):
        raise TypeError("words and runs are no numbers")


_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": _multiply,
    "/": _divide,
    "//": operator.floordiv,
    "%": _remainder,
}


_CONSTANTS = ("number", "word", "constant")


def compile_node(node: ExpressionNode) -> Compiled:
    """Closures that evaluate a tree over `(arguments, target)`, where `arguments` maps every name that it reads."""
    kind, value = node.kind, node.value
    if kind in _CONSTANTS:
        return lambda _arguments, _target: value
    if kind == "name":
        return lambda arguments, _target: arguments[value]
    if kind == "target":
        return _target_fact(value)
    if kind == "call":
        return _call(FUNCTIONS[value][1], node.operands)
    if kind == "arithmetic":
        return _binary(_ARITHMETIC[value], *node.operands)
    if kind in ("and", "or"):
        return _until(kind == "or", tuple(compile_node(operand) for operand in node.operands))
    if kind == "if":
        return _conditional(*(compile_node(operand) for operand in node.operands))
    if kind == "negative":
        return _call(operator.neg, node.operands)
    if kind == "not":
        return _call(operator.not_, node.operands)
    return _comparison(tuple(COMPARISONS[word] for word in value), node.operands)


def _target_fact(name: str) -> Compiled:
    def fact(_arguments: Mapping[str, Any], target: Target) -> Value:
        value = getattr(target, name)
        if value is None:
            raise TypeError(name)
        return value

    return fact


# Most operands are names and constants, which need no closure of their own: every case of a campaign is drawn within
# some dozen expressions and held against some dozen more.


def _call(function: Callable[..., Any], operands: Sequence[ExpressionNode]) -> Compiled:
    if len(operands) == 2:
        return _binary(function, *operands)
    if len(operands) == 1 and operands[0].kind == "name":
        name = operands[0].value
        return lambda arguments, _target: function(arguments[name])
    if len(operands) == 1:
        only = compile_node(operands[0])
        return lambda arguments, target: function(only(arguments, target))
    compiled = [compile_node(operand) for operand in operands]
    return lambda arguments, target: function(*[operand(arguments, target) for operand in compiled])


def _binary(function: Callable[[Any, Any], Any], left: ExpressionNode, right: ExpressionNode) -> Compiled:
    name, other = left.value, right.value
    if left.kind == "name" and right.kind in _CONSTANTS:
        return lambda arguments, _target: function(arguments[name], other)
    if left.kind == "name" and right.kind == "name":
        return lambda arguments, _target: function(arguments[name], arguments[other])
    first, second = compile_node(left), compile_node(right)
    if right.kind in _CONSTANTS:
        return lambda arguments, target: function(first(arguments, target), other)
    return lambda arguments, target: function(first(arguments, target), second(arguments, target))


def _until(decisive: bool, operands: Sequence[Compiled]) -> Compiled:  # noqa: FBT001 - the value that decides
    """Whether one operand is `decisive`; none after it is looked at. The result is `decisive` where one is."""

    def decided(arguments: Mapping[str, Any], target: Target) -> bool:
        for operand in operands:
            if bool(operand(arguments, target)) is decisive:
                return decisive
        return not decisive

    return decided


def _conditional(condition: Compiled, then: Compiled, otherwise: Compiled) -> Compiled:
    """One of two; the other is not looked at, so that it may have no value."""
    return lambda arguments, target: (then if condition(arguments, target) else otherwise)(arguments, target)


def _comparison(functions: tuple[Callable[[Any, Any], bool], ...], operands: Sequence[ExpressionNode]) -> Compiled:
    if len(functions) == 1:
        return _binary(functions[0], *operands)
    compiled = [compile_node(operand) for operand in operands]

    def chained(arguments: Mapping[str, Any], target: Target) -> bool:
        values = [operand(arguments, target) for operand in compiled]
        return all(function(values[place], values[place + 1]) for place, function in enumerate(functions))

    return chained
