"""What operands may be used as: of calls together as of each alone, and with which questions to the oracle."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.expected import Expected, OracleInput
from aclnn_cts.core.target import Target
from aclnn_cts.judgement.model import ComputeModel, load_precision
from aclnn_cts.judgement.operands import OperandValues, known_operands, operand_rule, operand_values
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
        tensors={"left": left, "index": np.arange(3), "right": np.ones(left.shape)}, arguments={}, lattices={}
    )


def told(values: OperandValues) -> object:
    tensors = [
        None if found is None else {name: (array.shape, array.tolist()) for name, array in found.items()}
        for found in (values.middles, values.largest)
    ]
    return repr((values.facts, tensors))


@pytest.mark.parametrize("operand", [None, "FLOAT16", "BF16", "HFLOAT32", "FLOAT"])
def test_operands_of_calls_together_are_what_they_are_alone(operand: str | None) -> None:
    questions = [question(row) for row in ROWS.values()]
    together = operand_values(questions, operand_rule([model(operand)]))
    assert [told(values) for values in together] == [
        told(operand_values([asked], operand_rule([model(operand)]))[0]) for asked in questions
    ]


def test_which_operands_change() -> None:
    found = dict(
        zip(
            ROWS,
            operand_values([question(row) for row in ROWS.values()], operand_rule([model("FLOAT16")])),
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


def test_nothing_but_flushing_is_left_without_a_format() -> None:
    found = dict(
        zip(ROWS, operand_values([question(row) for row in ROWS.values()], operand_rule([model(None)])), strict=True)
    )
    assert all(values.facts.exact and not values.facts.overflows for values in found.values())
    assert {name for name, values in found.items() if values.middles is not None} == {"flushed"}
    assert found["flushed"].questions(question(ROWS["flushed"]))[1].tensors["left"].tolist() == [
        [1.0, 2.0**-140, 2.0**-149, 0.0]
    ]


@pytest.mark.parametrize(
    ("operand", "row", "asked"),
    [
        ("FLOAT16", "exact", [1]),
        ("FLOAT16", "inexact", [3]),
        (None, "inexact", [1]),
        (None, "flushed", [1, 2]),
    ],
)
def test_the_oracle_is_asked_at_once_where_a_mode_rounds(operand: str | None, row: str, asked: list[int]) -> None:
    numbers: list[int] = []

    def ask(calls: Sequence[OracleInput]) -> list[Expected]:
        numbers.append(len(calls))
        return [dot_oracle(call) for call in calls]

    models = {"out": model(operand)}
    known_operands(ask, question(ROWS[row]), models)
    assert numbers == asked


def test_values_by_another_rule_are_not_used() -> None:
    asked, models = question(ROWS["inexact"]), {"out": model("FLOAT16")}

    def ask(calls: Sequence[OracleInput]) -> list[Expected]:
        return [dot_oracle(call) for call in calls]

    [wrong] = operand_values([asked], operand_rule([model("BF16")]))
    right = known_operands(ask, asked, models)[1]["out"]
    found = known_operands(ask, asked, models, values=wrong)[1]["out"]
    assert found.span is not None
    assert right.span is not None
    assert msgspec.structs.astuple(found)[:2] == msgspec.structs.astuple(right)[:2]
    np.testing.assert_array_equal(found.span.lower, right.span.lower)
