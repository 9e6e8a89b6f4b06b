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


def until_stopped(task: int, worker: Worker) -> int:
    while task and not worker.stopped():
        time.sleep(0.01)
    return task


def test_results_come_in_the_order_of_the_tasks_where_that_is_asked_for() -> None:
    found = list(spread(slowest_first, range(4), workers=2, advice="", folders=(SPECS,), in_order=True))
    assert found == [(number, True) for number in range(4)]


def test_a_worker_that_dies_is_said_with_advice() -> None:
    with pytest.raises(HarnessError, match="a worker died; look at it"):
        list(spread(dies, [1], workers=1, advice="look at it"))


def test_what_is_not_wanted_any_more_is_stopped() -> None:
    results = spread(until_stopped, [0, 1], workers=2, advice="", in_order=True)
    assert next(results) == 0
    results.close()
