"""Verdicts as flashinfer-bench reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aclnn_cts import judge
from aclnn_cts.bridges.flashinfer_bench import (
    EXTRA,
    BoundEvaluator,
    FlashInferStatus,
    check_solution,
    correctness_fields,
    evaluation,
    operator_of,
)
from aclnn_cts.candidates.verdict import CandidateFinding, Judgement
from tests.candidates import kernels

FILE = Path(kernels.__file__)
VERSION = "flashinfer-bench==0.1.2"
PROGRAM = """
import json, sys, types
sys.path[:0] = [sys.argv[1]]
# Its packages import what its dependencies bring; its data model alone does not.
for name in ("flashinfer_bench", "flashinfer_bench.data"):
    module = types.ModuleType(name)
    module.__path__ = [sys.argv[1] + "/" + name.replace(".", "/")]
    sys.modules[name] = module
from flashinfer_bench.data.trace import Evaluation
for line in sys.stdin:
    print(Evaluation.model_validate_json(line).status.value)
"""


def definition(name: str = "softmax_backward", tags: tuple[str, ...] = ()) -> Any:
    inputs = dict.fromkeys(("grad_output", "output", "dim"))
    return SimpleNamespace(name=name, tags=list(tags), inputs=inputs, outputs={"out": None})


def judgement(verdict: str, fault: str = "") -> Judgement:
    findings = (CandidateFinding(fault=fault, sentence="it is wrong", clause="function.1", error_ratio=7.5),)
    return Judgement(
        verdict=verdict,
        candidate="k.py:f",
        operator="aclnnSoftmaxBackward",
        product="atlas-a2",
        seed=5,
        reason="it is wrong" if fault else "",
        findings=findings if fault else (),
        planned=10,
        passed=9,
        failed=1 if fault else 0,
        call_seconds=0.5,
    )


@pytest.mark.parametrize(
    ("verdict", "fault", "status"),
    [
        ("conforms", "", "PASSED"),
        ("fails", "value", "INCORRECT_NUMERICAL"),
        ("fails", "special-value", "INCORRECT_NUMERICAL"),
        ("fails", "shape", "INCORRECT_SHAPE"),
        ("fails", "dtype", "INCORRECT_DTYPE"),
        ("fails", "crash", "RUNTIME_ERROR"),
        ("fails", "hang", "TIMEOUT"),
        ("inconclusive", "", "RUNTIME_ERROR"),
    ],
)
def test_a_judgement_has_a_status(verdict: str, fault: str, status: str) -> None:
    made = evaluation(judgement(verdict, fault))
    assert made["status"] == status
    assert ("correctness" in made) == (status in ("PASSED", "INCORRECT_NUMERICAL"))
    assert ("performance" in made) == (status == "PASSED")


def test_ratio_clause_and_seed_stand_in_extra() -> None:
    extra = evaluation(judgement("fails", "value"))["correctness"]["extra"][EXTRA]
    assert (extra["error_ratio"], extra["clause"], extra["seed"]) == (7.5, "function.1", 5)


def test_conforming_judgement_claims_no_error_that_was_not_measured() -> None:
    found = evaluation(judgement("conforms"))["correctness"]
    assert (found["max_relative_error"], found["max_absolute_error"]) == ("NaN", "NaN")
    assert "error_ratio" not in found["extra"][EXTRA]


@pytest.mark.parametrize(("verdict", "fault"), [("fails", "crash"), ("fails", "shape"), ("inconclusive", "")])
def test_status_without_correctness_has_the_seed_in_its_log(verdict: str, fault: str) -> None:
    log = evaluation(judgement(verdict, fault))["log"]
    assert json.loads(log.splitlines()[-1])[EXTRA]["seed"] == 5


def test_a_definition_names_its_operator_by_name_or_tag() -> None:
    assert operator_of(definition()) == "aclnnSoftmaxBackward"
    assert operator_of(definition("my_softmax", ("aclnn:softmax_backward",))) == "aclnnSoftmaxBackward"
    assert operator_of(definition("gemm_n4096")) == ""
    assert BoundEvaluator.can_evaluate(definition())
    assert not BoundEvaluator.can_evaluate(definition("gemm_n4096"))


def test_a_call_of_a_solution_is_held_to_the_bound() -> None:
    rng = np.random.default_rng(0)
    y = np.exp(rng.standard_normal((8, 16), np.float32))
    y /= y.sum(-1, keepdims=True)
    grad = rng.standard_normal((8, 16), np.float32)
    right = y * (grad - (grad * y).sum(-1, keepdims=True))
    good, bad = (
        check_solution("softmax_backward", definition(), [grad, y, -1], [out]) for out in (right, right * 1.001)
    )
    assert good.ok
    assert not bad.ok
    found = correctness_fields(bad)
    assert found["max_relative_error"] == pytest.approx(0.001, rel=0.1)
    assert found["extra"][EXTRA]["error_ratio"] > 1


class Correctness(SimpleNamespace):
    pass


@pytest.fixture(name="bench")
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its modules give an evaluator, without a device."""
    status = Enum("EvaluationStatus", {item.name: item.value for item in FlashInferStatus}, type=str)  # type: ignore[misc]
    utils = ModuleType("flashinfer_bench.bench.utils")
    utils.normalize_result = lambda _definition, result, _device: [result]  # type: ignore[attr-defined]
    utils.allocate_outputs = None  # type: ignore[attr-defined]
    utils.make_eval = SimpleNamespace  # type: ignore[attr-defined]
    data = ModuleType("flashinfer_bench.data")
    data.Correctness, data.EvaluationStatus = Correctness, status  # type: ignore[attr-defined]
    for name, module in (("bench.utils", utils), ("data", data), ("bench", ModuleType("bench"))):
        monkeypatch.setitem(sys.modules, f"flashinfer_bench.{name}", module)
    monkeypatch.setitem(sys.modules, "flashinfer_bench", ModuleType("flashinfer_bench"))


@pytest.mark.usefixtures("bench")
@pytest.mark.parametrize(
    ("spoiled", "status"),
    [
        (lambda out: out, "PASSED"),
        (lambda out: out * 1.001, "INCORRECT_NUMERICAL"),
        (lambda out: out[1:], "INCORRECT_SHAPE"),
        (lambda out: out.astype(np.int32), "INCORRECT_DTYPE"),
    ],
)
def test_a_later_call_that_is_wrong_fails_the_solution(spoiled: Any, status: str) -> None:
    y = np.full((8, 16), np.float32(1 / 16))
    grad = np.random.default_rng(0).standard_normal((8, 16), np.float32)
    right = y * (grad - (grad * y).sum(-1, keepdims=True))
    answers = iter([right, spoiled(right)])
    solution = SimpleNamespace(metadata=SimpleNamespace(destination_passing_style=False))
    runnable = type("Solution", (), {"__call__": lambda _self, *_: next(answers), "metadata": solution.metadata})()
    inputs = [[grad, y, -1]] * 2
    made, failed = BoundEvaluator.check_correctness(definition(), runnable, inputs, [[], []], None, "", "cpu")
    assert ("PASSED" if failed is None else failed.status.value) == status
    assert (made is None) == (status not in ("PASSED", "INCORRECT_NUMERICAL"))


@pytest.mark.slow
def test_its_own_model_takes_our_evaluations(tmp_path: Path) -> None:
    target = tmp_path / "packages"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--target", str(target)]
    for words in (["--no-deps", VERSION], ["pydantic>=2"]):
        done = subprocess.run([*pip, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{words[-1]} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    made = [evaluation(judge(f"{FILE}:{name}", "softmax_backward", seed=1)) for name in ("right", "wrong", "raises")]
    lines = "\n".join(map(json.dumps, made))
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(target)], input=lines, capture_output=True, text=True, check=False
    )
    assert ran.stdout.split() == ["PASSED", "INCORRECT_NUMERICAL", "RUNTIME_ERROR"], ran.stderr
