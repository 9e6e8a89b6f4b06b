"""The expression language of specs: total, bounded, and never Python's `eval`.

Integers, exact division, comparisons (chained as in Python), `and or not`, and the functions below. An expression is
parsed once into a tree, checked for names, and compiled into closures over `(arguments, target)`. What is undefined
(a dimension that is not there, a null pointer, division by zero, a fact of the target that is not known) raises one of
`UNDEFINED`, which evaluation turns into *not applicable*.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from aclnn_cts.core.dtypes import DTYPES, itemsize
from aclnn_cts.core.errors import nearest
from aclnn_cts.core.formats import FORMATS
from aclnn_cts.core.target import Target

__all__ = ["FUNCTIONS", "UNDEFINED", "Compiled", "Expression", "ExpressionError", "Node", "compile_node", "parse"]

UNDEFINED = (AttributeError, IndexError, KeyError, ZeroDivisionError, TypeError, OverflowError)
"""What an expression raises where it has no value. Names are checked before, so these mean nothing else."""

Compiled: TypeAlias = Callable[[Mapping[str, Any], Target], Any]

MAX_LENGTH = 400
MAX_DEPTH = 24
MAX_EXPONENT = 64

_TOKEN = re.compile(
    r"\s*(?:(?P<float>[0-9]+\.[0-9]+([eE][-+]?[0-9]{1,3})?)|(?P<int>[0-9]{1,40}(?![0-9]))"
    r"|(?P<string>\"[^\"]*\")|(?P<name>[A-Za-z_][A-Za-z_0-9]*(\.[a-z_]+)?)"
    r"|(?P<op>\*\*|//|<=|>=|==|!=|[-+*/%<>(),\[\]:]))"
)


class ExpressionError(ValueError):
    """An expression that cannot be read; the message says what and where, the caller adds file and line."""


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


def _shape(value: Any) -> tuple[int, ...]:  # noqa: ANN401 - a tensor or a run of sizes
    return value if isinstance(value, tuple) else value.shape


def _numel(value: Any) -> int:  # noqa: ANN401
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

_TARGET_FIELDS = frozenset(Target.__struct_fields__)
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _divide(left: Any, right: Any) -> Any:  # noqa: ANN401
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    return Fraction(left, right)


def _multiply(left: Any, right: Any) -> Any:  # noqa: ANN401
    _demand_numbers(left, right)
    return left * right


def _remainder(left: Any, right: Any) -> Any:  # noqa: ANN401
    _demand_numbers(left, right)
    return left % right


def _demand_numbers(left: Any, right: Any) -> None:  # noqa: ANN401
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


class Expression:
    """A cursor over the tokens of one expression (the parser's state; callers use `parse`)."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"{len(text)} characters; an expression has at most {MAX_LENGTH}")
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at]

    def take(self, *words: str) -> str | None:
        """Consume the next token if it is one of `words`."""
        kind, word = self.tokens[self.at]
        if kind in ("op", "name") and word in words:
            self.at += 1
            return word
        return None

    def expect(self, word: str) -> None:
        if self.take(word) is None:
            raise ExpressionError(f"{self.text!r}: expected {word!r} before {self.peek()[1] or 'the end'!r}")

    def disjunction(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"{self.text[:60]!r}: nested deeper than {MAX_DEPTH}; simplify it")
        node = self._chain("or", lambda: self._chain("and", self._negation))
        self.depth -= 1
        return node

    def _chain(self, word: str, inner: Callable[[], Node]) -> Node:
        nodes = [inner()]
        while self.take(word):
            nodes.append(inner())
        return nodes[0] if len(nodes) == 1 else Node(word, None, tuple(nodes))

    def _negation(self) -> Node:
        count = 0
        while self.take("not"):
            count += 1
        node = self._comparison()
        for _ in range(2 - count % 2 if count else 0):
            node = Node("not", None, (node,))
        return node

    def _comparison(self) -> Node:
        operands = [self._sum()]
        operators: list[str] = []
        while word := self.take(*_COMPARISONS):
            operators.append(word)
            operands.append(self._sum())
        return Node("compare", tuple(operators), tuple(operands)) if operators else operands[0]

    def _sum(self) -> Node:
        return self._left(self._product, "+", "-")

    def _product(self) -> Node:
        return self._left(self._unary, "*", "/", "//", "%")

    def _left(self, inner: Callable[[], Node], *words: str) -> Node:
        node = inner()
        while word := self.take(*words):
            node = Node("arithmetic", word, (node, inner()))
        return node

    def _unary(self) -> Node:
        negative = False
        while self.take("-"):
            negative = not negative
        node = self._power()
        return Node("negative", None, (node,)) if negative else node

    def _power(self) -> Node:
        base = self._atom()
        if not self.take("**"):
            return base
        kind, word = self.peek()
        if base.kind != "number" or kind != "int" or int(word) > MAX_EXPONENT or abs(base.value) > MAX_EXPONENT:
            raise ExpressionError(
                f"{self.text[:60]!r}: ** takes a literal base and exponent of at most {MAX_EXPONENT} each"
            )
        self.at += 1
        return Node("number", base.value ** int(word))

    def _atom(self) -> Node:
        kind, word = self.peek()
        if kind == "end":
            raise ExpressionError(f"{self.text!r}: ends too early; expected a value")
        self.at += 1
        if kind == "int":
            return Node("number", int(word))
        if kind == "float":
            return Node("number", float(word))
        if kind == "string":
            return Node("word", word[1:-1])
        if word == "(":
            node = self.disjunction()
            self.expect(")")
            return node
        if kind == "name":
            return self._name(word)
        raise ExpressionError(f"{self.text!r}: {word!r} cannot stand here; expected a value")

    def _name(self, word: str) -> Node:
        if word in ("true", "false"):
            return Node("number", word == "true")
        if word in ("and", "or", "not"):
            raise ExpressionError(f"{self.text!r}: {word!r} cannot stand here; expected a value")
        if "." in word:
            owner, _, fact = word.partition(".")
            if owner != "target" or fact not in _TARGET_FIELDS:
                known = [f"target.{name}" for name in sorted(_TARGET_FIELDS)]
                raise ExpressionError(
                    f"{self.text!r}: {word!r} is not known; expected one of {', '.join(known)}{nearest(word, known)}"
                )
            return Node("target", fact)
        if self.peek() != ("op", "("):
            return Node("constant", word) if word in DTYPES or word in FORMATS else Node("name", word)
        if word not in FUNCTIONS:
            raise ExpressionError(
                f"{self.text!r}: no function {word!r}; expected one of {', '.join(FUNCTIONS)}{nearest(word, FUNCTIONS)}"
            )
        self.at += 1
        operands: list[Node] = []
        while not self.take(")"):
            if operands:
                self.expect(",")
            operands.append(self.disjunction())
        arity = FUNCTIONS[word][0]
        if arity != len(operands) and not (arity < 0 and len(operands) >= 2):
            expected = "at least 2" if arity < 0 else str(arity)
            raise ExpressionError(f"{self.text!r}: {word} takes {expected} arguments, not {len(operands)}")
        return Node("call", word, tuple(operands))


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise ExpressionError(f"{text!r}: {stripped[position:].strip()[:12]!r} cannot be read")
        tokens.append((match.lastgroup or "op", match.group(match.lastgroup or 0)))
        position = match.end()
    tokens.append(("end", ""))
    return tokens


def parse(text: str | float) -> Node:
    """Parse an expression; a number stands for itself."""
    if isinstance(text, (int, float)):
        return Node("number", text)
    cursor = Expression(text)
    node = cursor.disjunction()
    if cursor.peek()[0] != "end":
        raise ExpressionError(f"{text!r}: {cursor.peek()[1]!r} is left over; expected the end")
    return node


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
    return _comparison(tuple(_COMPARISONS[word] for word in value), operands)


def _target_fact(name: str) -> Compiled:
    def fact(_arguments: Mapping[str, Any], target: Target) -> Any:  # noqa: ANN401
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
