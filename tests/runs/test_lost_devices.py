"""After a fault of the device, only calls that had succeeded before tell whether a device is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runs.test_run import softmax, written
from tests.support.ran import Ran

Run = Callable[..., Ran]
WIDTHS = (9, 10, 11, 5, 12, 13)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return Path(written(tmp_path / "cases.jsonl", *(softmax(2, width) for width in WIDTHS)))


def test_a_device_that_fails_what_succeeded_before_is_taken_out(ran: Run, tmp_path: Path, cases: Path) -> None:
    run = ran("run", "--adapter", f"wrong_adapters:Breaking,elements=10,mark={tmp_path / 'mark'}", "--cases", cases)
    assert run.kinds == ["passed"] * 3 + ["failed crash"] + ["error"] * 2
    message = run.records[-1].verdict.message
    assert "the device is taken out: after device fault (" in message
    assert "it also fails every call that succeeded before, such as one of aclnnSoftmaxBackward: phase one" in message


def test_a_fault_after_rejections_alone_costs_no_other_call(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.jsonl", *(softmax(2, width) for width in (3, 4, 5, 6, 7)))
    run = ran("run", "--adapter", "wrong_adapters:Breaking,elements=10", "--cases", cases)
    assert run.kinds == ["failed rejected"] * 2 + ["failed crash"] + ["passed"] * 2
