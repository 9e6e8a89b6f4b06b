"""The syntax of expressions: from the text to its tree, within limits of length and depth."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.core.errors import did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import (
    COMPARISONS,
    CONTENTS,
    FUNCTIONS,
    SIZES,
    VALUE_WORDS,
    Compiled,
    ExpressionNode,
    compile_node,
)

MAX_LENGTH = 1000
MAX_DEPTH = 24
MAX_EXPONENT = 64

_ARITHMETIC = (("+", "-"), ("*", "/", "//", "%"))
_RESERVED = frozenset({"and", "or", "not", "if", "else"})
_TARGET_FIELDS = frozenset(Target.__struct_fields__)
_TOKEN = re.compile(
    r"\s*(?:(?P<float>[0-9]+\.[0-9]+([eE][-+]?[0-9]{1,3})?)|(?P<int>[0-9]{1,40}(?![0-9]))"
    r"|(?P<string>\"[^\"]*\")|(?P<name>[A-Za-z_][A-Za-z_0-9]*(\.[a-z_]+)?)"
    r"|(?P<op>\*\*|//|<=|>=|==|!=|[-+*/%<>(),\[\]:]))"
)


class ExpressionError(ValueError):
    """An expression that cannot be read; the message says what and where, the caller adds file and line."""


class ExpressionParser:
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
            raise ExpressionError(f"{quote(self.text)}: expected {quote(word)} before {self.peek()[1] or 'the end'!r}")

    def sizes(self, word: str) -> ExpressionNode:
        """What gives sizes, after its first word: a name, or a call of `broadcast` or `sums`."""
        return self._call(word) if word in SIZES and self.peek() == ("op", "(") else ExpressionNode("name", word)

    def disjunction(self) -> ExpressionNode:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"{quote(self.text[:60])}: nested deeper than {MAX_DEPTH}; simplify it")
        node = self._chain("or", lambda: self._chain("and", self._negation))
        if self.take("if"):
            condition = self._chain("or", lambda: self._chain("and", self._negation))
            self.expect("else")
            node = ExpressionNode("if", None, (condition, node, self.disjunction()))
        self.depth -= 1
        return node

    def _chain(self, word: str, inner: Callable[[], ExpressionNode]) -> ExpressionNode:
        nodes = [inner()]
        while self.take(word):
            nodes.append(inner())
        return nodes[0] if len(nodes) == 1 else ExpressionNode(word, None, tuple(nodes))

    def _negation(self) -> ExpressionNode:
        count = 0
        while self.take("not"):
            count += 1
        node = self._comparison()
        for _ in range(2 - count % 2 if count else 0):
            node = ExpressionNode("not", None, (node,))
        return node

    def _comparison(self) -> ExpressionNode:
        operands = [self._arithmetic()]
        operators: list[str] = []
        while word := self.take(*COMPARISONS):
            operators.append(word)
            operands.append(self._arithmetic())
        return ExpressionNode("compare", tuple(operators), tuple(operands)) if operators else operands[0]

    def _arithmetic(self, level: int = 0) -> ExpressionNode:
        """Operators of a level and of those that bind tighter, from left to right."""
        if level == len(_ARITHMETIC):
            return self._unary()
        node = self._arithmetic(level + 1)
        while word := self.take(*_ARITHMETIC[level]):
            node = ExpressionNode("arithmetic", word, (node, self._arithmetic(level + 1)))
        return node

    def _unary(self) -> ExpressionNode:
        negative = False
        while self.take("-"):
            negative = not negative
        node = self._power()
        return ExpressionNode("negative", None, (node,)) if negative else node

    def _power(self) -> ExpressionNode:
        base = self._atom()
        if not self.take("**"):
            return base
        kind, word = self.peek()
        if base.kind != "number" or kind != "int" or int(word) > MAX_EXPONENT or abs(base.value) > MAX_EXPONENT:
            raise ExpressionError(
                f"{quote(self.text[:60])}: ** takes a literal base and exponent of at most {MAX_EXPONENT} each"
            )
        self.at += 1
        return ExpressionNode("number", base.value ** int(word))

    def _atom(self) -> ExpressionNode:
        kind, word = self.peek()
        if kind == "end":
            raise ExpressionError(f"{quote(self.text)}: ends too early; expected a value")
        self.at += 1
        if kind == "int":
            return ExpressionNode("number", int(word))
        if kind == "float":
            return ExpressionNode("number", float(word))
        if kind == "string":
            return ExpressionNode("word", word[1:-1])
        if word == "(":
            node = self.disjunction()
            self.expect(")")
            return node
        if kind == "name":
            return self._name(word)
        raise ExpressionError(f"{quote(self.text)}: {quote(word)} cannot stand here; expected a value")

    def _name(self, word: str) -> ExpressionNode:
        if word in ("true", "false"):
            return ExpressionNode("number", word == "true")
        if word in _RESERVED:
            raise ExpressionError(f"{quote(self.text)}: {quote(word)} cannot stand here; expected a value")
        if "." in word:
            owner, _, fact = word.partition(".")
            if owner != "target" or fact not in _TARGET_FIELDS:
                known = [f"target.{name}" for name in sorted(_TARGET_FIELDS)]
                raise ExpressionError(
                    f"{quote(self.text)}: {quote(word)} is not known; expected one of "
                    f"{', '.join(known)}{did_you_mean(word, known)}"
                )
            return ExpressionNode("target", fact)
        if self.peek() == ("op", "("):
            return self._call(word)
        node = ExpressionNode("constant", word) if word in DTYPES or word in FORMATS else ExpressionNode("name", word)
        if node.kind == "name" and self.take("["):
            node = ExpressionNode("call", "item", (node, self.disjunction()))
            self.expect("]")
        return node

    def _call(self, word: str) -> ExpressionNode:
        if word not in FUNCTIONS:
            raise ExpressionError(
                f"{quote(self.text)}: no function {quote(word)}; expected one of "
                f"{', '.join(FUNCTIONS)}{did_you_mean(word, FUNCTIONS)}"
            )
        self.at += 1
        operands: list[ExpressionNode] = []
        while not self.take(")"):
            if operands:
                self.expect(",")
            operands.append(self.disjunction())
        arity = FUNCTIONS[word][0]
        if arity != len(operands) and not (arity < 0 and len(operands) >= 2):
            expected = "at least 2" if arity < 0 else str(arity)
            noun = "argument" if expected == "1" else "arguments"
            raise ExpressionError(f"{quote(self.text)}: {word} takes {expected} {noun}, not {len(operands)}")
        if word in CONTENTS:
            self._check_contents(word, operands)
        return ExpressionNode("call", word, tuple(operands))

    def _check_contents(self, word: str, operands: list[ExpressionNode]) -> None:
        if operands[0].kind != "name":
            raise ExpressionError(f"{quote(self.text)}: {word} takes a tensor by its name first")
        if word == "holds" and operands[1].kind == "word" and operands[1].value not in VALUE_WORDS:
            raise ExpressionError(
                f"{quote(self.text)}: {quote(operands[1].value)}; holds takes a number or one of "
                f"{', '.join(VALUE_WORDS)}{did_you_mean(operands[1].value, VALUE_WORDS)}"
            )


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise ExpressionError(f"{quote(text)}: {stripped[position:].strip()[:12]!r} cannot be read")
        tokens.append((match.lastgroup or "op", match.group(match.lastgroup or 0)))
        position = match.end()
    tokens.append(("end", ""))
    return tokens


def substitute_names(text: str, meanings: Mapping[str, str]) -> str:
    """The text with names replaced by what they stand for; a text that cannot be read is left as it is."""
    try:
        _tokens(text)
    except ExpressionError:
        return text
    return _TOKEN.sub(lambda match: _meaning(match, meanings), text)


def _meaning(match: re.Match[str], meanings: Mapping[str, str]) -> str:
    name = match.group("name")
    if name not in meanings:
        return match.group(0)
    meaning = meanings[name]
    is_whole = match.group(0) == match.string
    closed = is_whole or parse(meaning).kind in ("number", "name", "constant", "call")
    return match.group(0).replace(name, meaning if closed else f"({meaning})")


@functools.lru_cache(maxsize=4096, typed=True)
def parse(text: str | float) -> ExpressionNode:
    """Parse an expression; a number stands for itself. Kept, since the rules of one file repeat each other's parts."""
    if isinstance(text, (int, float)):
        return ExpressionNode("number", text)
    cursor = ExpressionParser(text)
    node = cursor.disjunction()
    if cursor.peek()[0] != "end":
        raise ExpressionError(f"{quote(text)}: {cursor.peek()[1]!r} is left over; expected the end")
    return node


def compile_text(text: str | float) -> Compiled:
    """An expression that is known to be right, compiled."""
    return compile_node(parse(text))
