"""`aclnn-cts oracle check`, end to end: right oracles pass, wrong ones are named with what is wrong."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.expected import Expected, Oracle, OracleInput
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.expectation import FormulaOracle

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "specs"
FORMULA = """
from aclnn_cts.formula.definition import Derivative, Operator

def backward(f, gradOutput, output):
    return {"gradInput": gradOutput * (1.0 - output) * output}

def forward(f, self):
    return {"output": f.sigmoid(self)}

FORMULA = Operator.of(
    backward,
    derivative=Derivative(
        forward=forward, gradients={"gradOutput": "output"}, wrt={"gradInput": "self"}, saved=("output",)
    ),
)
"""


def checked(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str], *, product: str = "atlas-a2"
) -> tuple[int, dict[str, Any]]:
    folder = tmp_path / "mine"
    folder.mkdir()
    spec = (FIXTURES / "logistic_backward.yaml").read_text(encoding="utf-8")
    (folder / "logistic_backward.yaml").write_text(spec.replace("atlas-a2", product), encoding="utf-8")
    (folder / "logistic_backward.py").write_text(source, encoding="utf-8")
    code = main(["oracle", "check", "logistic_backward", "--specs", str(folder), "--calls", "100", "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("product", ["atlas-a2", "ascend-950"])
def test_a_right_formula_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str], product: str) -> None:
    code, report = checked(tmp_path, FORMULA, capsys, product=product)
    assert (code, report["faults"]) == (0, [])
    assert report["emulations"]["calls"] >= 100
    assert report["mutants"]["found"] > 10
    assert report["derivative"]["elements"] > 10


def narrowed(operator: Operator) -> Oracle:
    """An oracle whose bound is far too narrow."""

    def oracle(call: OracleInput) -> Expected:
        outputs = FormulaOracle(operator)(call)
        return {
            name: msgspec.structs.replace(output, error=np.asarray(output.error) * 0.01)
            for name, output in outputs.items()
        }

    return oracle


@pytest.mark.parametrize(("part", "count"), [("derivative", "differ"), ("emulations", "alarms")])
def test_a_wrong_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, part: str, count: str
) -> None:
    source = FORMULA
    if part == "derivative":
        source = FORMULA.replace("gradOutput * (1.0 - output)", "gradOutput * (1.0 + output)")
    else:
        monkeypatch.setattr("aclnn_cts.selftest.oracle_check.FormulaOracle", narrowed)
    code, report = checked(tmp_path, source, capsys)
    assert code == 1
    assert report["faults"]
    assert report[part][count] > 0
    call, element, *terms = report["smallest"]
    assert call.startswith("smallest failing call: gradOutput: ")
    assert element.startswith("gradInput[")
    assert terms[0].strip().startswith(("gradOutput[", "output["))
    assert "gradInput[" in terms[-1]


def test_mutants_that_change_open_elements_alone_are_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # All elements are open, so that no number of calls finds any.
    monkeypatch.setattr("aclnn_cts.selftest.oracle_check._MUTANT_ROUNDS", 1)
    source = FORMULA.replace(
        "gradOutput * (1.0 - output) * output", "f.undecided(gradOutput * (1.0 - output) * output, where=True)"
    )
    code, report = checked(tmp_path, source, capsys)
    assert code == 1
    mutants = report["mutants"]
    assert (mutants["found"], mutants["missed"]) == (0, [])
    assert any(text.startswith("other sign") for text in mutants["hidden"])
    # What is only rounded otherwise is no wrong operation.
    assert not any(text.startswith("result") for text in mutants["hidden"])


def test_an_oracle_without_a_formula_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(FIXTURES / "logistic_backward.yaml", folder)
    (folder / "logistic_backward.py").write_text("def expected(call): return {}\n", encoding="utf-8")
    assert main(["oracle", "check", "logistic_backward", "--specs", str(folder), "--calls", "1"]) == 2
    assert "backward(f, …)" in capsys.readouterr().err


def test_a_shipped_oracle_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oracle", "check", "softmax_backward", "--calls", "100"]) == 0
    assert "no fault" in capsys.readouterr().out


def test_terms_of_a_formula_lead_to_the_value_that_it_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, report = checked(tmp_path, FORMULA.replace("gradOutput * (1.0 - output)", "gradOutput * (1.0 + output)"), capsys)
    _, element, *terms = report["smallest"]
    said = re.search(r"the formula gives (\S+),", element)
    assert said is not None
    assert terms[-1].endswith(f" = {said[1]}")
    [grad, output] = [float(line.rpartition(" = ")[2]) for line in terms[:2]]
    values = {"gradOutput": grad, "output": output}
    assert float(said[1]) == pytest.approx(values["gradOutput"] * (1 + values["output"]) * values["output"], rel=1e-6)
