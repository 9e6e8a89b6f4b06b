"""Predicates over a case: expressions of the spec language that hold of a call or do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from aclnn_cts.core.case import Case
from aclnn_cts.speclang.expression import UNDEFINED, compile_node
from aclnn_cts.speclang.expression_parser import parse

__all__ = ["CompilePredicate", "Predicate", "compile_predicate"]

Predicate: TypeAlias = Callable[[Case], bool]
CompilePredicate: TypeAlias = Callable[[str], Predicate]


def compile_predicate(text: str) -> Predicate:
    """A predicate over a case's arguments; where the expression is undefined it does not hold."""
    return _Predicate(text)


class _Predicate:
    """A compiled predicate. It goes to another process as its text, since what it is compiled to cannot."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._compiled = compile_node(parse(text))

    def __call__(self, case: Case) -> bool:
        try:
            return self._compiled(case.arguments, case.target) is True
        except UNDEFINED:
            return False

    def __reduce__(self) -> tuple[type[_Predicate], tuple[str]]:
        return _Predicate, (self._text,)
