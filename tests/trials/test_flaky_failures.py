"""A failure that does not repeat is flaky, with its rate; only a reproduced order makes one order-dependent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.reports.model.build import acceptance
from tests.runs.test_run import softmax, written
from tests.support.ran import Ran

Run = Callable[..., Ran]


@pytest.mark.slow
def test_a_failure_that_does_not_repeat_is_flaky_with_its_rate(
    ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RARE_COUNTER", str(tmp_path / "counter"))
    adapter = "rare_adapter:Rare,fault=now-and-then"
    run = ran("run", "--adapter", adapter, "--cases", written(tmp_path / "case.json", softmax(2, 3)))
    [failed] = run.records
    assert (run.code, run.kinds) == (1, ["failed value"])
    assert failed.verdict.facts["alone"] == "conforms"
    failures, repetitions = failed.verdict.facts["flaky"]
    assert repetitions == 20
    assert 0 < failures < 20
    assert failed.verdict.message.endswith(f"conforms; flaky: it failed in {failures} of 20 repetitions")
    assert "order-dependent" not in failed.verdict.message
    assert failed.after == ()
    assert acceptance([run.path]).findings[0].alone == {"conforms": 1}
    assert main(["bundle", str(run.path), "-o", str(tmp_path / "bundle.zip")]) == 0
    again = ran("replay", str(run.path), "--adapter", adapter)
    assert len(again.records) == 20


@pytest.mark.slow
def test_what_fails_after_other_calls_is_order_dependent_and_not_flaky(
    ran: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RARE_COUNTER", str(tmp_path / "counter"))
    cases = [softmax(1, 9, dtype="FLOAT16", kind=str(number), dim=number % 2) for number in range(12)]
    run = ran("run", "--adapter", "rare_adapter:Rare,fault=company", "--cases", written(tmp_path / "c.jsonl", *cases))
    failed = next(record for record in run.records if record.verdict.result == "failed")
    assert failed.after
    assert "order-dependent: it fails again after" in failed.verdict.message
    assert "flaky" not in failed.verdict.facts
