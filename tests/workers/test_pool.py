"""Jobs done by several workers: their order, what each worker has, what becomes of a worker that dies."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.workers.notes import ProgressNotes
from aclnn_cts.workers.pool import AHEAD, Surroundings, run_jobs, spread
from aclnn_cts.workers.service import Worker

SPECS = Path(__file__).parents[1] / "fixtures" / "specs"


class Number(msgspec.Struct, frozen=True, tag="number"):
    value: int
    folder: str


class Square(msgspec.Struct, frozen=True, tag="square"):
    value: int


@dataclass(frozen=True)
class Squares:
    """Opens workers that square numbers, 0 last of all that may come before it."""

    jobs: ClassVar = Number
    answers: ClassVar = Square
    opens: ClassVar[str] = "nothing"
    device: ClassVar[str] = ""

    def open(self, notes: ProgressNotes | None) -> Worker:
        assert notes is not None
        return Worker(square)


def square(job: Number) -> Square:
    Path(job.folder, str(job.value)).touch()
    while not job.value and len(list(Path(job.folder).iterdir())) < 2 * AHEAD:
        time.sleep(0.01)
    return Square(job.value**2)


@pytest.mark.parametrize("in_order", [True, False])
def test_answers_come_as_they_are_ready_or_in_the_order_of_the_jobs(tmp_path: Path, *, in_order: bool) -> None:
    jobs = [Number(value, str(tmp_path)) for value in range(2 * AHEAD + 3)]
    found = [item.value for item in run_jobs(Squares(), jobs, workers=2, lost=lambda _n, _r: "", in_order=in_order)]
    assert sorted(found) == [job.value**2 for job in jobs]
    assert (found == sorted(found)) is in_order


def test_no_job_is_done_far_ahead_of_one_that_is_not_told(tmp_path: Path) -> None:
    jobs = [Number(value, str(tmp_path)) for value in range(4 * AHEAD)]
    made = run_jobs(Squares(), jobs, workers=2, lost=lambda _number, _reason: "", in_order=True)
    assert next(made).value == 0
    # Job 0 waited for the last of those that may be begun before it.
    assert len(list(tmp_path.iterdir())) == 2 * AHEAD
    made.close()


def knows_the_specs(task: int, given: Surroundings) -> tuple[int, bool, int]:
    return task, "aclnnLogisticBackward" in given.specs, given.workers


def dies(_task: int, _given: Surroundings) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_once(task: Path, _given: Surroundings) -> str:
    try:
        task.touch(exist_ok=False)
    except FileExistsError:
        return task.name
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def is_refused(_task: int, _given: Surroundings) -> None:
    raise UsageError("no such thing")


def is_wrong(_task: int, _given: Surroundings) -> None:
    raise ZeroDivisionError("by nothing")


def waits_unless_first(task: Path, _given: Surroundings) -> int:
    if task.name == "first":
        return 0
    task.write_text(str(os.getpid()))
    time.sleep(600.0)
    raise AssertionError


def test_a_task_has_the_specs_and_knows_how_many_workers_there_are() -> None:
    found = list(spread(knows_the_specs, range(3), workers=2, lost=str, folders=(SPECS,)))
    assert sorted(found) == [(number, True, 2) for number in range(3)]


def test_a_task_that_costs_two_workers_ends_it_with_its_name() -> None:
    with pytest.raises(HarnessError, match=r"2 workers were lost, the last since .*SIGKILL.*, with task 1: look at it"):
        list(spread(dies, [1], workers=1, lost=lambda task: f"task {task}: look at it"))


def test_a_worker_that_dies_once_costs_no_result(tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    assert sorted(spread(dies_once, [tmp_path / name for name in "ab"], workers=1, lost=str)) == ["a", "b"]


def test_what_a_task_raises_ends_it() -> None:
    with pytest.raises(UsageError, match="no such thing"):
        list(spread(is_refused, [1], workers=1, lost=str))
    with pytest.raises(HarnessError, match="ZeroDivisionError: by nothing"):
        list(spread(is_wrong, [1], workers=1, lost=str))


def test_workers_are_ended_where_no_more_results_are_wanted(tmp_path: Path) -> None:
    results = spread(waits_unless_first, [tmp_path / "second", tmp_path / "first"], workers=2, lost=str)
    assert next(results) == 0
    while not (tmp_path / "second").exists() or not (tmp_path / "second").read_text():
        time.sleep(0.01)
    results.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "second").read_text()), 0)
