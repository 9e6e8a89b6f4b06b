"""What becomes of a failure that is run again: always, sometimes, only in company, only on one device, or deadly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.engine.campaign.finding import Confirmed
from aclnn_cts.engine.run_directory import failure_name
from tests.engine.campaign.test_campaigns import findings, fuzz
from tests.engine.conftest import Ran

Run = Callable[..., Ran]


def test_only_in_company(ran: Run) -> None:
    run = fuzz(ran, "company", "--chunks", "4")
    found = [item for item in findings(run) if item.signature.kind == "value"]
    assert found
    assert {item.confirmed for item in found} == {Confirmed.COMPANY}
    assert all(item.alone[0] == 0 and item.alone[1] >= 3 for item in found)
    shown = [item for item in found if item.trial is not None and item.trial.after]
    assert shown
    for item in shown:
        assert "alone it conforms; it fails again after " in item.note
        assert item.shrunk
    file = run.path / "failures" / failure_name(shown[0].signature)
    again = ran("replay", str(file), "--adapter", "rare_adapter:Rare,fault=company", "-v")
    assert again.code == 1
    assert "made first" in again.out
    assert [record.trial for record in again.records] == [shown[0].trial]


def test_sometimes(ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RARE_COUNTER", str(tmp_path / "counter"))
    run = fuzz(ran, "sometimes", "--chunks", "4")
    found = {item.confirmed for item in findings(run) if item.signature.kind == "value"}
    assert found == {Confirmed.SOMETIMES}


def test_only_on_one_device(ran: Run) -> None:
    run = fuzz(ran, "device", "--chunks", "6", "--devices", "0,1")
    found = [item for item in findings(run) if item.signature.kind == "value"]
    assert found
    assert {item.confirmed for item in found} == {Confirmed.DEVICE}
    assert {item.elsewhere for item in found} == {(0, 3)}
    assert "it fails on worker 1, and not on " in found[0].note


def test_a_crash_is_a_finding(ran: Run) -> None:
    run = fuzz(ran, "die", "--chunks", "2")
    assert run.code == 1
    found = [item for item in findings(run) if item.signature.kind == "crash"]
    assert found
    assert {item.signature.symptom for item in found} == {"signal 6"}
    assert {item.confirmed for item in found} == {Confirmed.ALWAYS}
