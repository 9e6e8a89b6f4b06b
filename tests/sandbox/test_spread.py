"""Tasks spread over processes: their order, what each process has, what ends them early."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.sandbox.spread import Worker, spread

SPECS = Path(__file__).parents[1] / "fixtures" / "specs"


def slowest_first(task: int, worker: Worker) -> tuple[int, bool]:
    time.sleep(1.0 if task == 0 else 0.0)
    return task, "aclnnLogisticBackward" in worker.specs


def dies(task: int, _worker: Worker) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return task


def dies_once(task: Path, _worker: Worker) -> str:
    try:
        task.touch(exist_ok=False)
    except FileExistsError:
        return task.name
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def until_stopped(task: int, worker: Worker) -> int:
    while task and not worker.stopped():
        time.sleep(0.01)
    return task


def test_results_come_in_the_order_of_the_tasks_where_that_is_asked_for() -> None:
    found = list(spread(slowest_first, range(4), workers=2, advice="", folders=(SPECS,), in_order=True))
    assert found == [(number, True) for number in range(4)]


def test_workers_that_die_one_after_the_other_are_said_with_advice() -> None:
    with pytest.raises(HarnessError, match="a worker died, and so did another that took its place; look at it"):
        list(spread(dies, [1], workers=1, advice="look at it"))


def test_a_worker_that_dies_once_costs_no_result(tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    assert sorted(spread(dies_once, [tmp_path / name for name in "ab"], workers=1, advice="")) == ["a", "b"]


def test_what_is_not_wanted_any_more_is_stopped() -> None:
    results = spread(until_stopped, [0, 1], workers=2, advice="", in_order=True)
    assert next(results) == 0
    results.close()
