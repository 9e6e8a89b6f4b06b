"""Shape expressions: `[To, B, Co]`, `[*A, *G]`, `[*x[0:rank(x) - rank(gamma)]]`.

`[H, W] if flag else [H]` chooses one of two. An item is an expression, a run or a tensor's whole shape (`*x`), the
shape that several broadcast to
(`*broadcast(x, y)`), or a slice of one. They say how a valid tensor is constructed and what a shape must equal.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aclnn_cts.core.case import Tensor, TensorList
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import Compiled, ExpressionNode, compile_node
from aclnn_cts.speclang.expression_parser import ExpressionError, ExpressionParser

INDEX = "index"
"""What the shape of a tensor of a list calls its place, from 0 on. `*other` is then the tensor of that place there."""


@dataclass(frozen=True, slots=True)
class ShapeItem:
    """One item: an expression (`spliced` false), or the sizes of a name or call, sliced or whole."""

    node: ExpressionNode
    spliced: bool = False
    start: ExpressionNode | None = None
    stop: ExpressionNode | None = None

    @property
    def multiple(self) -> int:
        """A number that the size is always a multiple of: 2 of `2*H`, mostly 1."""
        node = self.node
        factors = node.operands if (node.kind, node.value) == ("arithmetic", "*") else ()
        return math.prod(item.value for item in factors if item.kind == "number" and isinstance(item.value, int))


@dataclass(frozen=True, slots=True)
class ShapeExpression:
    """A parsed shape expression."""

    text: str
    items: tuple[ShapeItem, ...]
    condition: ExpressionNode | None = None
    """Where it is false, the shape is that of `otherwise`."""
    otherwise: ShapeExpression | None = None

    def names(self) -> frozenset[str]:
        """Every name that it reads."""
        nodes = [part for item in self.items for part in (item.node, item.start, item.stop) if part is not None]
        found: frozenset[str] = frozenset().union(*(node.names() for node in nodes))
        if self.condition is None or self.otherwise is None:
            return found
        return found | self.condition.names() | self.otherwise.names()

    def chosen(self, arguments: Mapping[str, Any], target: Target) -> ShapeExpression:
        """Of two lists the one that the condition chooses, by one of `UNDEFINED` where that has no value."""
        if self.condition is None or self.otherwise is None:
            return self
        if compile_node(self.condition)(arguments, target):
            return ShapeExpression(text=self.text, items=self.items)
        return self.otherwise.chosen(arguments, target)

    def whole(self) -> str | None:
        """The name whose shape it copies, if it is `[*name]`."""
        only = self.items[0] if len(self.items) == 1 and self.condition is None else None
        if only is not None and only.spliced and only.node.kind == "name" and only.start is only.stop is None:
            return str(only.node.value)
        return None


@functools.lru_cache(maxsize=4096)
def parse_shape(text: str) -> ShapeExpression:
    """Parse a shape expression; ExpressionError says what is wrong. Kept, since specs repeat each other's shapes."""
    cursor = ExpressionParser(text)
    shape = _shape(cursor)
    if cursor.peek()[0] != "end":
        raise ExpressionError(f"{quote(text)}: {cursor.peek()[1]!r} is left over; expected the end")
    return shape


def _shape(cursor: ExpressionParser) -> ShapeExpression:
    """One list in brackets, or two with a condition between them; the second may be such a pair again."""
    cursor.expect("[")
    items: list[ShapeItem] = []
    while not cursor.take("]"):
        if items:
            cursor.expect(",")
        items.append(_item(cursor))
    if not cursor.take("if"):
        return ShapeExpression(text=cursor.text, items=tuple(items))
    condition = cursor.disjunction()
    cursor.expect("else")
    return ShapeExpression(text=cursor.text, items=tuple(items), condition=condition, otherwise=_shape(cursor))


def _item(cursor: ExpressionParser) -> ShapeItem:
    if not cursor.take("*"):
        return ShapeItem(cursor.disjunction())
    kind, word = cursor.peek()
    if kind != "name":
        raise ExpressionError(f"{quote(cursor.text)}: * is followed by {quote(word)}; expected a run or a tensor")
    cursor.at += 1
    node = cursor.sizes(word)
    start = stop = None
    if cursor.take("["):
        if cursor.peek() != ("op", ":"):
            start = cursor.disjunction()
        if cursor.peek() == ("op", "]"):
            raise ExpressionError(
                f"{quote(cursor.text)}: *{word}[...] takes a slice such as *{word}[0:1]; leave the * out for one size"
            )
        cursor.expect(":")
        if cursor.peek() != ("op", "]"):
            stop = cursor.disjunction()
        cursor.expect("]")
    return ShapeItem(node, spliced=True, start=start, stop=stop)


def compile_shape(shape: ShapeExpression) -> Callable[[Mapping[str, Any], Target], tuple[int, ...]]:
    """A function of `(arguments, target)` that gives the shape; names map to sizes, runs (tuples) or tensors."""
    if shape.condition is not None and shape.otherwise is not None:
        condition = compile_node(shape.condition)
        then = compile_shape(ShapeExpression(text=shape.text, items=shape.items))
        otherwise = compile_shape(shape.otherwise)
        return lambda arguments, target: (then if condition(arguments, target) else otherwise)(arguments, target)
    if (name := shape.whole()) is not None:
        return lambda arguments, _target: _sizes(arguments[name], arguments)
    parts = [(_compile_item(item), item.spliced) for item in shape.items]
    if not any(spliced for _, spliced in parts):
        plain = [part for part, _ in parts]
        return lambda arguments, target: tuple([part(arguments, target) for part in plain])

    def build(arguments: Mapping[str, Any], target: Target) -> tuple[int, ...]:
        sizes: list[int] = []
        for part, spliced in parts:
            if spliced:
                sizes.extend(part(arguments, target))
            else:
                sizes.append(part(arguments, target))
        return tuple(sizes)

    return build


def _sizes(value: Any, arguments: Mapping[str, Any]) -> tuple[int, ...]:  # noqa: ANN401 - a run, a tensor or a list
    if isinstance(value, tuple):
        return value
    tensor: Tensor = value.items[arguments[INDEX]] if isinstance(value, TensorList) else value
    return tensor.shape


def _compile_item(item: ShapeItem) -> Compiled:
    if not item.spliced:
        return compile_node(item.node)
    whole = compile_node(item.node)
    start = compile_node(item.start) if item.start is not None else None
    stop = compile_node(item.stop) if item.stop is not None else None
    if start is None and stop is None:
        return lambda arguments, target: _sizes(whole(arguments, target), arguments)

    def splice(arguments: Mapping[str, Any], target: Target) -> tuple[int, ...]:
        first = start(arguments, target) if start is not None else None
        last = stop(arguments, target) if stop is not None else None
        return _sizes(whole(arguments, target), arguments)[first:last]

    return splice
