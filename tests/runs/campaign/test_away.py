"""Devices that go away in the middle of a campaign: for a moment, for good, one of them or all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.workers import slots
from aclnn_cts.workers.slots import Event, WorkerBackoff
from tests.runs.campaign.test_campaigns import chunks
from tests.support.ran import Ran

Run = Callable[..., Ran]
GOOD = "1000000"
"""Openings that are refused of a device that is gone for good."""


@pytest.fixture(name="away")
def make_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder by which devices are sent away; pauses are short."""
    folder = tmp_path / "away"
    folder.mkdir()
    monkeypatch.setenv("AWAY", str(folder))
    monkeypatch.setattr(slots, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(slots, "OUT_SECONDS", 0.5)
    return folder


def fuzz(ran: Run, *arguments: str, devices: str = "0,1", **options: Path) -> Ran:
    words = ("softmax_backward", "--chunk-trials", "64", "--adapter", "away_adapter:Away", "--devices", devices)
    return ran("fuzz", *words, *arguments, **options)


@pytest.mark.slow
def test_a_device_that_goes_away_costs_nothing_while_there_is_another(ran: Run, away: Path) -> None:
    (away / "worker-1").write_text(GOOD)
    run = fuzz(ran, "--chunks", "12")
    assert run.code == 0, run.err
    assert [entry["index"] for entry in chunks(run)] == list(range(12))
    assert run.result["errors"] == 0
    assert "note: worker 1 (device 1) was lost: it was ended by SIGKILL" in run.err
    refused = "note: worker 1 (device 1) cannot be opened, and is tried again: device 1: it does not answer"
    assert run.err.count(refused) <= 1, "it is said once"
    assert "given up" not in run.err


@pytest.mark.slow
def test_only_the_implementation_dies_and_cannot_be_opened(ran: Run, away: Path) -> None:
    (away / "runner-0").write_text("3")
    run = fuzz(ran, "--chunks", "4", devices="0")
    assert run.code == 0, run.err
    assert run.result["errors"] == 0, "nothing was left out since the device was away"
    assert "worker 0 (device 0) was lost: no runner could be started: device 0: it does not answer" in run.err
    assert "; failures that it had met (1) count if they come again" in run.err
    assert "worker 0 (device 0) is open again, after " in run.err


@pytest.mark.slow
def test_when_no_device_opens_for_long_it_ends_and_goes_on_later(
    ran: Run, away: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    (away / "worker-0").write_text(GOOD)
    failed = WorkerBackoff.note_failed

    def failed_for_long(self: WorkerBackoff, number: int, reason: str, *, usage: bool = False) -> list[Event]:
        patch.setattr(slots, "PATIENCE_SECONDS", -1.0)
        return failed(self, number, reason, usage=usage)

    with monkeypatch.context() as patch:
        patch.setattr(WorkerBackoff, "note_failed", failed_for_long)
        run = fuzz(ran, "--chunks", "4", devices="0", out=path)
    assert run.code == 3
    assert "no worker could be opened for " in run.err
    assert "go on with --resume\n  worker 0 (device 0): device 0: it does not answer" in run.err
    assert "given up" not in run.err
    (away / "down-0").unlink()
    run = fuzz(ran, "--chunks", "4", "--resume", devices="0", out=path)
    assert run.code == 0, run.err
    assert run.result["errors"] == 0


def test_where_none_can_be_opened_at_first_it_is_the_end(ran: Run, away: Path) -> None:
    (away / "down-0").write_text(GOOD)
    run = fuzz(ran, "--chunks", "16", devices="0")
    assert run.code == 3
    assert "device 0: it does not answer" in run.err
    assert not (run.path / "manifest.json").exists()
