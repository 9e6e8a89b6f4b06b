"""The answers to a sequence of jobs, by workers of this machine; jobs whose worker is lost are done again.

`run_jobs` asks any service. `spread` asks workers that hold nothing but specs, with a function of a module.
"""

from __future__ import annotations

import contextlib
import math
import pickle
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

import msgspec

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.store.scratch import memory_folder, scratch_folder
from aclnn_cts.workers.dispatch import LEASE_SECONDS, LocalDispatcher
from aclnn_cts.workers.notes import ProgressNotes
from aclnn_cts.workers.schedule import schedule
from aclnn_cts.workers.service import Service, Worker, WorkerFailed
from aclnn_cts.workers.slots import Event, JobDone, WorkerLost

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 3
"""Jobs a worker whose answers may come before an earlier one's: bounds what waits in memory."""
TRIES = 2
"""Workers that a job may cost."""
_WAIT_SECONDS = 0.5


@dataclass(slots=True, kw_only=True)
class _Sequence:
    """A plan (`schedule.JobPlan`) of jobs that are known from the start: which are under way, and what was answered."""

    jobs: Sequence[msgspec.Struct]
    most: int
    """Jobs that may be begun and not told."""
    lost: Callable[[int, str], str]
    """What is said of a job that has cost too many workers, the last for a reason."""
    next: int = 0
    """To be handed out."""
    told: int = 0
    again: list[int] = field(default_factory=list)
    working: dict[int, int] = field(default_factory=dict)
    """Number of the job by slot."""
    tries: Counter[int] = field(default_factory=Counter)
    answers: dict[int, Any] = field(default_factory=dict)

    def is_finished(self) -> bool:
        """Whether all answers are told."""
        return self.told == len(self.jobs)

    def next_for(self, slot: int) -> msgspec.Struct | None:
        """The next job; None where there is none now."""
        if self.again:
            number = self.again.pop()
        elif self.next < min(len(self.jobs), self.told + self.most):
            number, self.next = self.next, self.next + 1
        else:
            return None
        self.working[slot] = number
        return self.jobs[number]

    def handle_event(self, event: Event) -> None:
        """Take an answer, or hand a job out again whose worker was lost."""
        if isinstance(event, JobDone):
            number = self.working.pop(event.slot)
            if isinstance(event.answer, WorkerFailed):
                raise (UsageError if event.answer.usage else HarnessError)(event.answer.message)
            self.answers[number] = event.answer
        elif isinstance(event, WorkerLost):
            number = self.working.pop(event.slot)
            self.tries[number] += event.begun
            if self.tries[number] >= TRIES:
                raise HarnessError(self.lost(number, event.reason))
            self.again.append(number)

    def ready(self, *, in_order: bool) -> Iterator[Any]:
        """The answers that are next in turn, or all of them."""
        while self.answers and (not in_order or self.told in self.answers):
            yield self.answers.pop(self.told if in_order else next(iter(self.answers)))
            self.told += 1


def run_jobs(
    service: Service,
    jobs: Sequence[msgspec.Struct],
    *,
    workers: int,
    lost: Callable[[int, str], str],
    in_order: bool = False,
    lease_seconds: float = LEASE_SECONDS,
) -> Generator[Any, None, None]:
    """The answers as they come, or in the order of the jobs.

    A job whose worker is lost is done by another. HarnessError, in the words of `lost`, where it costs that one too;
    UsageError or HarnessError as a job raises it, and where no worker can be opened. Close the iterator where not all
    answers are wanted: the workers are ended.
    """
    plan = _Sequence(jobs=jobs, most=AHEAD * workers if in_order else len(jobs), lost=lost)
    with (
        scratch_folder(memory_folder()) as folder,
        contextlib.closing(
            LocalDispatcher([service] * min(workers, len(jobs)), folder=folder, lease_seconds=lease_seconds)
        ) as pool,
    ):
        for _ in schedule(plan, pool, seconds=_WAIT_SECONDS):
            yield from plan.ready(in_order=in_order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a worker has for all of its tasks."""

    specs: Specs
    workers: int
    """Those that share the machine."""


class _Task(msgspec.Struct, frozen=True, tag="task"):
    """A task, pickled: it comes from the head and goes to a function of ours."""

    content: bytes


class _Result(msgspec.Struct, frozen=True, tag="done"):
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function(Generic[T, R]):
    """Opens workers that hold specs."""

    jobs: ClassVar = _Task
    answers: ClassVar = _Result
    opens: ClassVar[str] = "specs"
    device: ClassVar[str] = ""

    work: Callable[[T, Surroundings], R]
    workers: int
    folders: tuple[Path, ...]

    def open(self, notes: ProgressNotes) -> Worker:
        del notes
        given = Surroundings(specs=load_specs(self.folders), workers=self.workers)

        def do(job: _Task) -> _Result:
            return _Result(pickle.dumps(self.work(pickle.loads(job.content), given)))  # noqa: S301 - `_Task`

        return Worker(do)


def spread(
    work: Callable[[T, Surroundings], R],
    tasks: Sequence[T],
    *,
    workers: int,
    lost: Callable[[T], str],
    folders: tuple[Path, ...] = (),
) -> Generator[R, None, None]:
    """Results of a module's function as they are ready. `lost`: a task in words, and what to do where it is lost.

    As `run_jobs`. A task may take as long as it takes.
    """
    service = _Function(work=work, workers=workers, folders=folders)
    made = run_jobs(
        service,
        [_Task(pickle.dumps(task)) for task in tasks],
        workers=workers,
        lost=lambda number, reason: f"{TRIES} workers were lost, the last since {reason}, with {lost(tasks[number])}",
        lease_seconds=math.inf,
    )
    with contextlib.closing(made):
        for result in made:
            yield cast("R", pickle.loads(cast("_Result", result).content))  # noqa: S301 - from a worker of ours
