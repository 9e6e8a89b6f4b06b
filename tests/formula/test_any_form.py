"""An implementation may evaluate any of the forms where the operator says so; and what overflows in a form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.verdict import Result
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judges
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.load import load_specs

LARGE = 3e38


def _distributed(f: F, x: Array, y: Array) -> Outputs:
    return {"out": x * y - x}


def _factored(f: F, x: Array, y: Array) -> Outputs:
    return {"out": x * (y - 1.0)}


def _open(f: F, x: Array, y: Array) -> Outputs:
    return {"out": f.undecided(x * y - x, where=np.array([True, False]))}


def question(x: list[float], y: list[float], **more: Any) -> OracleInput:
    tensor = Tensor((len(x),), "FLOAT")
    tensors = {"x": np.array(x), "y": np.array(y)}
    return OracleInput(tensors=tensors, arguments=dict.fromkeys(("x", "y", "out"), tensor), **more)


def by(call: OracleInput, *forms: Any, place: int | None = None) -> ExpectedOutput:
    return FormulaOracle(Operator.of(*forms, any_form=True), place)(call)["out"]


def test_the_bound_is_that_of_the_loosest_form_around_the_value_of_the_first() -> None:
    call = question([3.0, 5.0], [1.0 + 2.0**-20, 7.1])
    first, second = (by(call, _distributed, _factored, place=place) for place in (0, 1))
    both = by(call, _distributed, _factored)
    assert both.value.tolist() == first.value.tolist()
    apart = np.abs(first.value - second.value)
    assert np.asarray(both.error).tolist() == np.maximum(first.error, second.error + apart).tolist()
    # What is subtracted first cancels before anything is rounded.
    assert (np.asarray(both.error) >= np.asarray(second.error)).all()


def test_one_form_alone_judges_without_the_word() -> None:
    call = question([3.0], [7.1])
    alone = FormulaOracle(Operator.of(_distributed, _factored))(call)["out"]
    assert np.asarray(alone.error).tolist() == np.asarray(by(call, _distributed, place=0).error).tolist()


def test_what_overflows_in_one_form_may_overflow() -> None:
    def product(f: F, x: Array, y: Array) -> Outputs:
        return {"out": x * y}

    def doubled(f: F, x: Array, y: Array) -> Outputs:
        return {"out": (x + x) * (y * 0.5)}

    call = question([LARGE], [1.0])
    first, both = by(call, product, doubled, place=0), by(call, product, doubled)
    assert first.partial is None
    assert both.partial is not None
    assert both.partial[0] > np.finfo(np.float32).max


def test_what_one_form_leaves_open_is_open() -> None:
    both = by(question([3.0, 5.0], [2.0, 7.1]), _distributed, _open)
    assert both.open is not None
    assert both.open.tolist() == [True, False]


def test_exact_is_what_is_exact_in_each_form() -> None:
    call = question([3.0, 5.0], [2.0, 7.0], lattices={"x": 1.0, "y": 1.0})
    assert by(call, _distributed, _factored).exact is True
    assert by(question([3.0, 5.0], [2.0, 7.1]), _distributed, _factored).exact is False


@pytest.mark.parametrize(("grouped", "overflows"), [(True, False), (False, True)])
def test_factors_of_a_group_meet_no_others(grouped: bool, overflows: bool) -> None:
    def formula(f: F, x: Array, y: Array) -> Outputs:
        small = f.grouped(x * y * y) if grouped else x * y * y
        return {"out": small * small}

    partial = by(question([LARGE], [1e-18]), formula).partial
    assert (partial is not None and partial[0] > np.finfo(np.float32).max) == overflows


def test_a_contraction_overflows_where_its_own_products_do() -> None:
    def rows(f: F, x: Array, y: Array) -> Outputs:
        return {"out": f.einsum("ij,j->i", x, y)}

    shapes = {"x": (2, 2), "y": (2,), "out": (2,)}
    call = OracleInput(
        tensors={"x": np.array([[LARGE, LARGE], [1.0, 2.0]]), "y": np.array([1.0, 1.0])},
        arguments={name: Tensor(shape, "FLOAT") for name, shape in shapes.items()},
    )
    partial = by(call, rows).partial
    assert partial is not None
    assert (partial > np.finfo(np.float32).max).tolist() == [True, False]


def test_an_input_beside_factors_below_1_overflows_nowhere() -> None:
    largest = float(np.finfo(np.float32).max)
    partial = by(question([largest, 1e-30], [0.5, largest]), lambda f, x, y: {"out": x * y}).partial
    assert partial is None or (partial <= largest).all()


def softmax(rows: int, *, wrong: bool) -> PerformedCall:
    """A call as y (g - s) gives it in FLOAT: g - s overflows where y is 0, and y g - y s does not."""
    shape = (rows, 4)
    arguments: dict[str, Argument] = {
        "gradOutput": Tensor(shape, "FLOAT", data=Data(recipe="zeros")),
        "output": Tensor(shape, "FLOAT", data=Data(recipe="zeros")),
        "dim": -1,
        "out": Tensor(shape, "FLOAT"),
    }
    y = np.tile(np.array([1.0, 0.0, 0.0, 0.0], np.float32), (rows, 1))
    g = np.tile(np.array([2e38, -2e38, 1.0, 1.0], np.float32), (rows, 1))
    with np.errstate(all="ignore"):
        got = y * (g - (y * g).sum(1, keepdims=True))
    assert np.isnan(got[0, 1])
    got[0, 0] += np.float32(1e37 if wrong else 0.0)
    case = Case("aclnnSoftmaxBackward", arguments)
    outcome = Outcome(phase_one=0, phase_two=0)
    return PerformedCall(case=case, outcome=outcome, arrays={"gradOutput": g, "output": y}, got={"out": got})


@pytest.mark.parametrize("rows", [2, 1 << 16])
def test_small_and_large_calls_of_either_form_conform(rows: int) -> None:
    judge = Judges(has_statuses=True).of(load_specs()["aclnnSoftmaxBackward"])
    assert judge.values(softmax(rows, wrong=False)).result == Result.PASSED
    assert judge.values(softmax(rows, wrong=True)).result == Result.FAILED


def test_forms_that_conform_explain_no_failure() -> None:
    assert registry.load_forms("softmax_backward") == ()
    assert len(registry.load_forms("conv_tbc_backward")) == 1
