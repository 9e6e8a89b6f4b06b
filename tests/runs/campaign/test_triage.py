"""What a worker makes of a finding that something else than its own check met."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Confirmation
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.runs.campaign.jobs import CampaignService, TriageJob, TriageResult
from aclnn_cts.runs.campaign.worker import CampaignWorker, open_worker
from tests.triage.test_shrink import softmax

VALUES = Fingerprint(operator="aclnnSoftmaxBackward", check="", fault=Fault.VALUE, output="out")


def examined(worker: CampaignWorker, job: TriageJob) -> TriageResult:
    answer = worker.do(job)
    assert isinstance(answer, TriageResult)
    return answer


@pytest.fixture(name="worker")
def make_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[CampaignWorker]:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "support"))
    settings = RunnerSettings(adapter="rare_adapter:Rare,fault=tail", target=Target(product="atlas-a2"))
    worker = open_worker(CampaignService(settings=settings, waivers=(), chunk_seconds=60.0), None)
    yield worker
    worker.runner.host.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["life-cycle/phase-one-alone", "determinism"])
def test_a_call_that_fails_by_itself_stands_for_what_met_it(worker: CampaignWorker, name: str) -> None:
    met = Trial(name, softmax((3, 5)).case)
    found = examined(worker, TriageJob(key=VALUES, trials=(met,), chunk=None))
    assert (found.confirmed, found.alone, found.shrunk) == (Confirmation.ALWAYS, (3, 3), True)
    assert found.trial is not None
    assert found.trial.check == "values"
    assert dict(found.trial.case.tensors())["out"].numel == 9


def test_a_shrunk_case_fails_like_its_finding(worker: CampaignWorker) -> None:
    # Nothing fails like this: the call is wrong, and equal calls give equal results.
    unlike = Fingerprint(
        operator=VALUES.operator, check="determinism", fault=Fault.NONDETERMINISTIC, output="out", dtype="FLOAT16"
    )
    found = examined(worker, TriageJob(key=unlike, trials=(Trial("determinism", softmax((3, 5)).case),), chunk=None))
    assert (found.confirmed, found.alone, found.shrunk) == (Confirmation.UNKNOWN, (0, 3), False)
