"""The expression language of specs: total, bounded, and never Python's `eval`.

Integers, exact division, comparisons (chained as in Python), `and or not`, and the functions below. An expression is
parsed once into a tree, checked for names, and compiled into closures over `(arguments, target)`. What is undefined
(a dimension that is not there, a null pointer, division by zero, a fact of the target that is not known) raises one of
`UNDEFINED`, which evaluation turns into *not applicable*.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from aclnn_cts.core.dtypes import itemsize
from aclnn_cts.core.target import Target

__all__ = ["COMPARISONS", "FUNCTIONS", "UNDEFINED", "Compiled", "Node", "compile_node"]

UNDEFINED = (AttributeError, IndexError, KeyError, ZeroDivisionError, TypeError, OverflowError)
"""What an expression raises where it has no value. Names are checked before, so these mean nothing else."""

Value: TypeAlias = Any
"""What an expression reads or gives: a number, a word, a tensor, a run of sizes."""

Compiled: TypeAlias = Callable[[Mapping[str, Value], Target], Value]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree: `kind` with its operands; leaves carry `value`."""

    kind: str
    value: Any = None
    operands: tuple[Node, ...] = ()

    def names(self) -> frozenset[str]:
        """Every name that the expression reads."""
        inner: frozenset[str] = frozenset().union(*(operand.names() for operand in self.operands))
        return inner | {self.value} if self.kind == "name" else inner


def _shape(value: Value) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else value.shape


def _numel(value: Value) -> int:
    product = 1
    for size in _shape(value):
        product *= size
    return product


FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "rank": (1, lambda value: len(_shape(value))),
    "numel": (1, _numel),
    "dim": (2, lambda value, axis: value.shape[axis]),
    "len": (1, len),
    "item": (2, lambda value, index: value[index]),
    "dtype": (1, lambda value: value.dtype),
    "format": (1, lambda value: value.format),
    "itemsize": (1, lambda value: itemsize(value.dtype)),
    "contiguous": (1, lambda value: value.is_contiguous),
    "empty": (1, lambda value: 0 in _shape(value)),
    "recipe": (1, lambda value: value.data.recipe or "values"),
    "min": (-1, min),
    "max": (-1, max),
    "abs": (1, abs),
}

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


def compile_node(node: Node) -> Compiled:
    """Closures that evaluate a tree over `(arguments, target)`, where `arguments` maps every name that it reads."""
    kind, value = node.kind, node.value
    if kind in ("number", "word", "constant"):
        return lambda _arguments, _target: value
    if kind == "name":
        return lambda arguments, _target: arguments[value]
    if kind == "target":
        return _target_fact(value)
    operands = tuple(compile_node(operand) for operand in node.operands)
    if kind == "call":
        return _call(FUNCTIONS[value][1], operands)
    if kind == "arithmetic":
        return _binary(_ARITHMETIC[value], operands[0], operands[1])
    if kind == "negative":
        inner = operands[0]
        return lambda arguments, target: -inner(arguments, target)
    if kind == "not":
        inner = operands[0]
        return lambda arguments, target: not inner(arguments, target)
    if kind == "and":
        return lambda arguments, target: all(operand(arguments, target) for operand in operands)
    if kind == "or":
        return lambda arguments, target: any(operand(arguments, target) for operand in operands)
    return _comparison(tuple(COMPARISONS[word] for word in value), operands)


def _target_fact(name: str) -> Compiled:
    def fact(_arguments: Mapping[str, Any], target: Target) -> Value:
        value = getattr(target, name)
        if value is None:
            raise TypeError(name)
        return value

    return fact


def _call(function: Callable[..., Any], operands: tuple[Compiled, ...]) -> Compiled:
    if len(operands) == 1:
        only = operands[0]
        return lambda arguments, target: function(only(arguments, target))
    return lambda arguments, target: function(*[operand(arguments, target) for operand in operands])


def _binary(function: Callable[[Any, Any], Any], left: Compiled, right: Compiled) -> Compiled:
    return lambda arguments, target: function(left(arguments, target), right(arguments, target))


def _comparison(functions: tuple[Callable[[Any, Any], bool], ...], operands: tuple[Compiled, ...]) -> Compiled:
    if len(functions) == 1:
        return _binary(functions[0], operands[0], operands[1])

    def chained(arguments: Mapping[str, Any], target: Target) -> bool:
        values = [operand(arguments, target) for operand in operands]
        return all(function(values[i], values[i + 1]) for i, function in enumerate(functions))

    return chained
