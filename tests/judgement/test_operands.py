"""What operands may be used as: of calls together as of each alone, and with which questions to the oracle."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import Expected, OracleInput
from aclnn_cts.core.target import Target
from aclnn_cts.judgement.model import ComputeModel, load_precision
from aclnn_cts.judgement.operands import OperandRule, OperandValues, known_operands, operand_rule, operand_values
from tests.judgement.emulation import dot_oracle

INF, NAN = np.inf, np.nan

ROWS = {
    "exact": [1.0, -2.0, 0.0, -0.0],
    "inexact": [1.0, 1.0 + 2.0**-20, 3.0, 2.0**-10],
    "a tie": [1.0, 1.0 + 2.0**-11, 1.0 + 3 * 2.0**-11, 0.5],
    "flushed": [1.0, 2.0**-140, -(2.0**-149), 0.0],
    "beyond": [1.0, 3e38, -70000.0, 0.5],
    "special": [INF, -INF, NAN, 1.0],
    "special and inexact": [INF, 1.0 + 2.0**-20, NAN, 1.0],
    "empty": [],
}


def model(operand: str | None, *, dtype: str = "FLOAT") -> ComputeModel:
    return load_precision().model(
        operator="aclnnConvTbcBackward",
        output="gradWeight",
        dtype=dtype,
        operand=operand,
        target=Target(product="atlas-a2"),
    )


def question(row: Sequence[float]) -> OracleInput:
    left = np.array([row], np.float64)
    return OracleInput(
        tensors={"left": left, "index": np.arange(3), "right": np.ones(left.shape)},
        arguments={"out": Tensor((1,), "FLOAT")},
    )


def rule(operand: str) -> OperandRule:
    found = operand_rule([model(operand)])
    assert found is not None
    return found


def told(values: OperandValues) -> object:
    tensors = [
        None if found is None else {name: (array.shape, array.tolist()) for name, array in found.items()}
        for found in (values.middles, values.largest)
    ]
    return repr((values.facts, tensors))


@pytest.mark.parametrize("operand", ["FLOAT16", "BF16", "HFLOAT32"])
def test_operands_of_calls_together_are_what_they_are_alone(operand: str) -> None:
    questions = [question(row) for row in ROWS.values()]
    together = operand_values(questions, rule(operand))
    assert [told(values) for values in together] == [
        told(operand_values([asked], rule(operand))[0]) for asked in questions
    ]


def test_which_operands_change() -> None:
    found = dict(
        zip(
            ROWS,
            operand_values([question(row) for row in ROWS.values()], rule("FLOAT16")),
            strict=True,
        )
    )
    assert {name for name, values in found.items() if values.facts.exact} == {"exact", "special", "empty"}
    assert {name for name, values in found.items() if values.facts.overflows} == {"beyond"}
    # Of what overflows nothing is asked: it leaves the output open.
    unasked = {"exact", "special", "empty", "beyond"}
    assert {name for name, values in found.items() if values.middles is None} == unasked
    middles = found["special and inexact"].middles
    assert middles is not None
    assert list(middles) == ["left", "right"]
    np.testing.assert_array_equal(middles["left"], [[INF, 1.0 + 2.0**-21, NAN, 1.0]])


def test_no_operand_changes_without_a_format() -> None:
    assert operand_rule([model(None)]) is None
    asked = question(ROWS["flushed"])
    [facts] = known_operands(dot_oracle, asked, {"out": model(None)})[1].values()
    assert (facts.exact, facts.overflows, facts.span) == (True, False, None)


@pytest.mark.parametrize(
    ("operand", "row", "asked"), [("FLOAT16", "exact", 1), ("FLOAT16", "inexact", 2), (None, "inexact", 1)]
)
def test_the_oracle_is_asked_again_where_a_mode_rounds(operand: str | None, row: str, asked: int) -> None:
    questions: list[OracleInput] = []

    def ask(call: OracleInput) -> Expected:
        questions.append(call)
        return dot_oracle(call)

    known_operands(ask, question(ROWS[row]), {"out": model(operand)})
    assert [bool(call.radii) for call in questions] == [False, True][:asked]


def test_an_operand_that_nothing_changes_keeps_its_lattice() -> None:
    asked = msgspec.structs.replace(question(ROWS["inexact"]), lattices={"left": 2.0**-20, "right": 1.0})
    [values] = operand_values([asked], rule("FLOAT16"))
    doubted = values.in_doubt(asked)
    assert doubted is not None
    assert (list(doubted.radii), doubted.lattices) == (["left"], {"right": 1.0})
