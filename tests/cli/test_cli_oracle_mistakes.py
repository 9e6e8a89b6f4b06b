"""A mistake in a user's oracle ends a command with its file, line, output and call, and accuses nobody."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import OracleInput
from tests.oracles.support import make_call

Call = Callable[..., Any]

PAGE = (Path(__file__).parents[2] / "docs" / "adding-an-operator.md").read_text(encoding="utf-8")
SPEC, FORMULA = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[0] for kind in ("yaml", "python"))
RESULT = '{"gradInput": gradOutput * (1.0 - output) * output}'


def write(folder: Path, text: str) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "logistic_backward.yaml").write_text(SPEC, encoding="utf-8")
    (folder / "mine" / "logistic_backward.py").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("gradOutput.nosuch", "_backward: AttributeError: "),
        ('{"gradInputs": gradOutput}', "_backward: no result 'gradInput'; it has gradInputs"),
    ],
)
def test_oracle_check_names_a_mistake_of_a_formula(call: Call, tmp_path: Path, result: str, message: str) -> None:
    assert FORMULA.count(RESULT) == 1
    write(tmp_path, FORMULA.replace(RESULT, result))
    called = call("oracle", "check", "logistic_backward", "--specs", "mine", "--calls", "10")
    assert called.code == 2
    assert re.search(rf"mine/logistic_backward\.py:[78]: {re.escape(message)}", called.err)
    assert "the call: gradOutput " in called.err
    assert "itself" not in called.err


def test_a_fault_is_told_by_a_worker_too(call: Call, tmp_path: Path) -> None:
    write(tmp_path, FORMULA.replace(RESULT, '{"gradInput": gradOutput * output}'))
    called = call("oracle", "check", "logistic_backward", "tanh_backward", "--specs", "mine", "--calls", "10", "--json")
    found = {line["operator"]: line for line in called.lines}
    faulty = found.pop("aclnnLogisticBackward")
    assert (called.code, [line["faults"] for line in found.values()]) == (1, [[]])
    assert faulty["faults"]
    assert faulty["smallest"][0].startswith("smallest failing call: gradOutput: ")


def question() -> OracleInput:
    return make_call({"x": np.ones((3, 2))}, {"out": Tensor(shape=(3, 2), dtype="FLOAT")})
