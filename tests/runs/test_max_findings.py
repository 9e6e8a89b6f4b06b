"""A run that stops after a number of findings: what it tried, what it says of the rest, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.verdict import SkipReason
from aclnn_cts.trials.trial_runner import MOST_ENDED
from tests.runs.test_run import softmax, written
from tests.runs.test_run_faults import wrong
from tests.support.ran import Ran

Run = Callable[..., Ran]
PLAN = ("softmax_backward", "tanh_backward")


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_the_first_finding_ends_a_run(ran: Run, workers: str) -> None:
    run = ran("run", *PLAN, "--adapter", wrong("value"), "--fail-fast", "--workers", workers)
    assert run.code == 1
    assert len(run.directory.failures()) == 1
    assert "found SoftmaxBackward: value of out: " in run.err
    assert "stopped after 1 finding" in run.err
    assert "not tried any more" in run.out
    total = run.directory.summary().total
    assert total.ended == total.cases > 500
    assert total.skipped_by_reason[SkipReason.STOPPED] > 0.9 * total.cases
    assert run.result["judged"] == 0
    bundle = str(run.path.with_suffix(".zip"))
    assert (main(["bundle", str(run.path), "-o", bundle]), main(["verify", bundle])) == (0, 0)


def test_a_limit_that_is_not_reached_changes_nothing(ran: Run) -> None:
    words = ("run", "tanh_backward", "--adapter", "reference", "--max-cases", "5")
    one, two = ran(*words, "--fail-fast"), ran(*words)
    assert {**one.result, "run": ""} == {**two.result, "run": ""}


def test_given_cases_behind_the_last_finding_are_not_tried(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.jsonl", *[softmax(size, 3) for size in range(2, 400)])
    run = ran("run", "--adapter", wrong("value"), "--cases", cases, "--max-findings", "1")
    assert (run.code, run.result["cases"]) == (1, 398)
    assert run.result["failed"] + run.result["skipped"] == 398
    assert run.result["skipped"] > 0


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_an_operator_whose_every_call_ends_the_process_is_given_up(ran: Run, workers: str) -> None:
    exits = "benchmarks.faulty_softmax:Exits"
    run = ran("run", "softmax_backward", "--adapter", exits, "--workers", workers)
    total = run.directory.summary().total
    assert (run.code, run.result["verdict"]) == (1, "fails")
    assert total.ended == total.cases > 500
    assert MOST_ENDED <= total.failed <= 60 * int(workers)
    assert total.skipped_by_reason[SkipReason.STOPPED] > 0.8 * total.cases
    assert "aclnnSoftmaxBackward: every call ended the process" in run.err
