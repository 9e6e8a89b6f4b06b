"""What a candidate breaks in its own process is its own fault, and never an error of the harness."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runs.test_run import softmax, written
from tests.support.ran import Ran

Run = Callable[..., Ran]


@pytest.mark.parametrize("name", ["ndarray", "asarray"])
def test_a_candidate_that_replaces_a_function_of_numpy_rejects_its_calls(ran: Run, tmp_path: Path, name: str) -> None:
    cases = written(tmp_path / "cases.jsonl", softmax(2, 3), softmax(2, 4))
    run = ran("run", "--adapter", f"wrong_adapters:Patching,name={name}", "--cases", cases)
    assert run.kinds == ["passed", "failed rejected"]
    assert "this function was replaced" in run.records[1].verdict.message
    assert run.code == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise-surrogate", r"RuntimeError: no kernel \ud800"),
        ("raise-speechless", "_SpeechlessError: its message raises RuntimeError"),
    ],
)
def test_a_message_that_cannot_be_shown_is_a_rejection_all_the_same(
    ran: Run, tmp_path: Path, fault: str, message: str
) -> None:
    cases = written(tmp_path / "case.json", softmax(2, 3))
    run = ran("run", "--adapter", f"wrong_adapters:Wrong,fault={fault}", "--cases", cases)
    assert run.kinds == ["failed rejected"]
    assert message in run.records[0].verdict.message
    assert run.code == 1
