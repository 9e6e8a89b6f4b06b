"""What becomes of a failure that is run again: always, sometimes, after its batch, on one device alone, or deadly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.finding import Confirmation
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.findings import merge_findings
from aclnn_cts.runs.campaign import head
from aclnn_cts.runs.campaign.jobs import CampaignService, TriageJob
from aclnn_cts.runs.campaign.worker import open_worker
from tests.runs.campaign.test_campaigns import findings, fuzz
from tests.runs.campaign.test_triage import examined
from tests.support.ran import Ran

Run = Callable[..., Ran]


@pytest.mark.slow
def test_only_in_company(ran: Run) -> None:
    run = fuzz(ran, "company", "--chunks", "3")
    found = [item for item in findings(run) if item.key.fault == "value"]
    assert found
    assert {item.confirmed for item in found} == {Confirmation.ORDER}
    assert all(item.alone[0] == 0 and item.alone[1] >= 3 for item in found)
    shown = [item for item in found if item.trial is not None and item.trial.after]
    assert shown
    assert all("alone it conforms; it fails again after " in item.note for item in shown)
    [stands] = merge_findings(found)
    assert stands.trial is not None
    assert stands.trial.after
    assert stands.shrunk
    assert stands.failures == sum(item.failures for item in found)
    file = run.path / "failures" / stands.file
    again = ran("replay", str(file), "--adapter", "rare_adapter:Rare,fault=company", "-v")
    assert again.code == 1
    assert "made first" in again.out
    assert [record.trial for record in again.records] == [stands.trial]


@pytest.mark.slow
def test_sometimes(ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RARE_COUNTER", str(tmp_path / "counter"))
    run = fuzz(ran, "sometimes", "--chunks", "4")
    found = {item.confirmed for item in findings(run) if item.key.fault == "value"}
    assert found == {Confirmation.FLAKY}


@pytest.mark.slow
def test_only_on_one_device(ran: Run) -> None:
    run = fuzz(ran, "device", "--chunks", "16", "--devices", "0,1")
    found = [item for item in findings(run) if item.key.fault == "value"]
    assert found
    assert {item.confirmed for item in found} == {Confirmation.DEVICE}
    assert {item.elsewhere for item in found} == {(0, 3)}
    assert {item.note for item in found} == {"it fails on device 1, and not on device 0"}


@pytest.mark.slow
def test_a_crash_is_a_finding(ran: Run) -> None:
    run = fuzz(ran, "die", "--chunks", "2")
    assert run.code == 1
    found = [item for item in findings(run) if item.key.fault == "crash"]
    assert found
    assert {item.key.answer for item in found} == {"signal 6"}
    assert {item.confirmed for item in found} == {Confirmation.ALWAYS}


@pytest.mark.slow
def test_what_there_was_no_time_for_is_said_and_comes_with_the_next_session(
    ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(head, "LEAST_GRACE", 0.0)
        run = fuzz(ran, "tail", "--time", "0.1s", out=path)
    assert run.code == 1, run.err
    [waiting] = [item for item in findings(run) if item.key.fault == "value"]
    assert waiting.confirmed == Confirmation.WAITING
    assert waiting.note == "not run again: its time is over; --resume does that"
    assert "not confirmed, since its time is over; --resume does that" in run.err
    run = fuzz(ran, "tail", "--chunks", "1", "--resume", out=path)
    [done] = [item for item in findings(run) if item.key.fault == "value"]
    assert (done.confirmed, done.note) == (Confirmation.ALWAYS, "")


@pytest.mark.slow
def test_other_devices_are_asked_by_the_session_that_has_some(ran: Run, tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = fuzz(ran, "device", "--chunks", "2", "--devices", "1", out=path)
    [found] = [item for item in findings(run) if item.key.fault == "value"]
    assert (found.confirmed, found.elsewhere, found.device) == (Confirmation.ALWAYS, (0, 0), "device 1")
    run = fuzz(ran, "device", "--chunks", "2", "--devices", "0,1", "--resume", out=path)
    [found] = [item for item in findings(run) if item.key.fault == "value"]
    assert (found.confirmed, found.elsewhere) == (Confirmation.DEVICE, (0, 3))
    assert found.note == "it fails on device 1, and not on device 0"


@pytest.mark.slow
def test_a_finding_takes_no_longer_than_it_may(ran: Run) -> None:
    run = fuzz(ran, "tail", "--chunks", "2")
    found = next(item for item in findings(run) if item.key.fault == "value")
    assert found.trial is not None
    settings = RunnerSettings(adapter="rare_adapter:Rare,fault=tail", target=run.directory.manifest.target)
    worker = open_worker(CampaignService(settings=settings, waivers=(), chunk_seconds=600.0), None)
    with worker.runner.host:
        job = TriageJob(key=found.key, trials=(found.trial,), chunk=None, seconds=0.0)
        answer = examined(worker, job)
        assert answer.confirmed == Confirmation.WAITING
        assert answer.note == "not confirmed: running it again was broken off after 0 s; --resume tries it again"
        answer = examined(worker, msgspec.structs.replace(job, seconds=None))
        assert answer.confirmed == Confirmation.ALWAYS
