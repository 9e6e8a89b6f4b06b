"""Mistakes of a formula name its file, the line, the output and the call; none looks like one of the harness."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aclnn_cts.core.errors import UsageError
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from tests.formula.test_bounds import reals, say

HERE = Path(__file__).name


def raises(f: F, x: Array) -> Outputs:
    raise KeyError("nosuch \ud800")


def ends(f: F, x: Array) -> Outputs:
    sys.exit(3)


def recurs(f: F, x: Array) -> Outputs:
    return recurs(f, x)


def calls_another(f: F, x: Array) -> Outputs:
    return {"out": _divided(x)}


def _divided(x: Array) -> Array:
    return x * (1 / len(()))


def nothing(f: F, x: Array) -> Any:
    return None


def misnamed(f: F, x: Array) -> Outputs:
    return {"result": x}


def numpys(f: F, x: Array) -> Any:
    return {"out": np.zeros(3)}


def condition(f: F, x: Array) -> Any:
    return {"out": x > 0.0}


def smaller(f: F, x: Array) -> Outputs:
    return {"out": x.sum(0)}


def asks(f: F, y: Array) -> Outputs:
    return {"out": y}


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (raises, "raises: KeyError: 'nosuch \\ud800'"),
        (ends, "ends: SystemExit: 3"),
        (recurs, "recurs: RecursionError: "),
        (calls_another, "calls_another: ZeroDivisionError: "),
        (nothing, "nothing: returned NoneType, expected a dict of results by output"),
        (misnamed, "misnamed: no result 'out'; it has result"),
        (numpys, "numpys: out is ndarray, not an array of the backend nor a list of them"),
        (condition, "condition: out is "),
        (smaller, "smaller: out has the shape [3], expected [2, 3]"),
        (asks, "asks: asks for y; the operator has x, out"),
    ],
    ids=lambda item: getattr(item, "__name__", None),
)
def test_mistake_of_a_formula_names_file_line_output_and_call(formula: Callable[..., Any], message: str) -> None:
    with pytest.raises(UsageError) as found:
        say(formula, x=reals(2, 3))
    text = str(found.value)
    line = text.partition(f"{HERE}:")[2].partition(":")[0]
    assert formula.__code__.co_firstlineno <= int(line) <= formula.__code__.co_firstlineno + 8
    assert message in text
    assert text.endswith("the call: x FLOAT [2, 3], out FLOAT [2, 3]")


def test_exception_of_a_helper_is_named_at_the_helper() -> None:
    with pytest.raises(UsageError, match=rf"{HERE}:{_divided.__code__.co_firstlineno + 1}: calls_another: "):
        say(calls_another, x=reals(2, 3))


@pytest.mark.parametrize(
    ("gradients", "wrt", "message"),
    [
        ({"grad": "out"}, {"out": "x"}, "gradients of the derivative: misnamed has no grad; it has x"),
        ({"x": "out"}, {"out": "self"}, "wrt of the derivative: smaller has no self; it has x"),
    ],
)
def test_derivative_by_unknown_parameters_is_refused(
    gradients: dict[str, str], wrt: dict[str, str], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Operator.of(misnamed, derivative=Derivative(forward=smaller, gradients=gradients, wrt=wrt))


def test_operator_without_a_formula_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a formula"):
        Operator.of()
