"""Expressions of a built spec: text that is compiled when it is first evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import Compiled
from aclnn_cts.speclang.expression_parser import compile_text
from aclnn_cts.speclang.shape import compile_shape, parse_shape


class Evaluator:
    """A right expression, or a right shape expression in brackets: called, it gives a value or a shape.

    Most of a spec's expressions are never evaluated in a process.
    """

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str | float) -> None:
        self.text = text
        self._compiled: Compiled | None = None

    @property
    def compiled(self) -> Compiled:
        """The function of `(arguments, target)`."""
        if self._compiled is None:
            is_shape = isinstance(self.text, str) and self.text.startswith("[")
            self._compiled = compile_shape(parse_shape(str(self.text))) if is_shape else compile_text(self.text)
        return self._compiled

    def __call__(self, arguments: Mapping[str, Any], target: Target) -> Any:  # noqa: ANN401 - what it gives
        """The value over these arguments; one of `UNDEFINED` where it has none."""
        return (self._compiled or self.compiled)(arguments, target)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evaluator) and (type(self.text), self.text) == (type(other.text), other.text)

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Evaluator({self.text!r})"
