"""Workers of a campaign on this machine: processes that are handed jobs, watched, and replaced when they are lost."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.engine.campaign.flight import InFlight, Notes, Position, read_notes, read_position
from aclnn_cts.engine.campaign.jobs import Answer, Failed, Job, Opened, WorkerOptions, decode_answer, decode_job, encode
from aclnn_cts.engine.collector import keep_for_good
from aclnn_cts.engine.interrupts import interrupts_held_back, leave_interrupts_to_the_head

__all__ = ["Dispatcher", "Done", "LocalDispatcher", "Lost", "Slot"]

LEASE_SECONDS = 900.0
"""A worker that notes nothing for so long is ended: its call limits should have let it go on by then."""

OPENINGS = 3
"""Times in a row that a worker may fail to open until its device is taken out."""

_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


class Health:
    """How a slot is (values of `Slot.health`)."""

    OPENING = "opening"
    READY = "ready"
    BUSY = "busy"
    OUT = "out"
    """Its device was taken out."""


@dataclass(slots=True)
class Slot:
    """One place where a worker runs, with a device of its own."""

    name: str
    device: str
    """What tells devices apart: slots of one device may confirm a finding for each other."""
    health: str = Health.OPENING
    lost: int = 0
    """Workers that were lost here."""


@dataclass(frozen=True, slots=True)
class Done:
    """A worker has answered."""

    slot: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker was lost, and its job with it. Another one takes its place."""

    slot: int
    reason: str
    flight: InFlight | None = None


class Dispatcher(Protocol):
    """Hands jobs to workers. One thread uses it."""

    @property
    def slots(self) -> Sequence[Slot]: ...

    @property
    def positions(self) -> Sequence[Position | None]:
        """How far each slot's worker is; None where it does nothing, or that cannot be seen from here."""
        ...

    def submit(self, slot: int, job: Job, *, fresh: bool = False) -> None:
        """Give an idle slot a job; `fresh`: to an implementation that has made no call yet."""
        ...

    def wait(self, seconds: float) -> list[Done | Lost]:
        """What has happened, at most after so long. HarnessError or UsageError where no worker can be opened."""
        ...

    def close(self) -> None:
        """End all workers at once."""
        ...


@dataclass(slots=True)
class _Worker:
    options: WorkerOptions
    notes: Path
    process: BaseProcess | None = None
    connection: Connection | None = None
    opened: bool = False
    isolated: bool = False
    used: bool = False
    waiting: bytes | None = None
    """A job that is sent as soon as the worker is open."""
    busy: bool = False
    failed_openings: int = 0
    counter: int = -1
    moved: float = field(default_factory=time.monotonic)


class LocalDispatcher:
    """One process a worker, spawned, since device runtimes and threads do not survive a fork."""

    def __init__(self, options: Sequence[WorkerOptions], *, folder: Path, lease_seconds: float = LEASE_SECONDS) -> None:
        """`folder`: where workers note what is under way."""
        self._context = multiprocessing.get_context("spawn")
        self._lease = lease_seconds
        self._workers = [_Worker(each, folder / f"worker-{number}") for number, each in enumerate(options)]
        self._slots = [Slot(f"worker {number}", each.settings.adapter) for number, each in enumerate(options)]
        try:
            for number in range(len(self._workers)):
                self._start(number)
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> Sequence[Slot]:
        """The places, with their health."""
        return self._slots

    @property
    def positions(self) -> Sequence[Position | None]:
        """How far the workers are, as they note it."""
        return [read_position(worker.notes) if worker.busy else None for worker in self._workers]

    def submit(self, slot: int, job: Job, *, fresh: bool = False) -> None:
        """Give an idle slot a job."""
        worker = self._workers[slot]
        worker.busy = True
        self._slots[slot].health = Health.BUSY
        worker.moved = time.monotonic()
        content = encode(job)
        # The worker has the implementation's process replaced itself, where that is one of its own.
        if fresh and worker.used and not worker.isolated:
            self._stop(worker)
            worker.waiting = content
            self._start(slot)
        elif worker.opened:
            worker.used = True
            with contextlib.suppress(OSError):
                # A worker that has just died is noticed by `wait`.
                self._connection(worker).send_bytes(content)
        else:
            worker.waiting = content

    def wait(self, seconds: float) -> list[Done | Lost]:
        """What has happened."""
        connections = {
            id(worker.connection): number
            for number, worker in enumerate(self._workers)
            if worker.connection is not None
        }
        live = [worker.connection for worker in self._workers if worker.connection is not None]
        if not live:
            raise HarnessError("no worker is left: every device was taken out; see the notices above")
        events: list[Done | Lost] = []
        for ready in wait(live, timeout=seconds):
            number = connections[id(ready)]
            event = self._heard(number)
            if event is not None:
                events.append(event)
        events += self._overdue()
        return events

    def close(self) -> None:
        """End all workers at once."""
        for worker in self._workers:
            self._stop(worker)

    def _heard(self, number: int) -> Done | Lost | None:
        worker = self._workers[number]
        try:
            answer = decode_answer(self._connection(worker).recv_bytes())
        except (EOFError, OSError):
            return self._replace(number, self._end_of(worker))
        if isinstance(answer, Opened):
            self._open(number, isolated=answer.isolated)
            return None
        if isinstance(answer, Failed) and not worker.opened:
            return self._refused(number, answer)
        worker.busy = False
        self._slots[number].health = Health.READY
        return Done(number, answer)

    def _open(self, number: int, *, isolated: bool) -> None:
        worker = self._workers[number]
        worker.opened = True
        worker.isolated = isolated
        worker.failed_openings = 0
        self._slots[number].health = Health.BUSY if worker.busy else Health.READY
        if worker.waiting is not None:
            content, worker.waiting = worker.waiting, None
            worker.used = True
            worker.moved = time.monotonic()
            with contextlib.suppress(OSError):
                self._connection(worker).send_bytes(content)

    def _refused(self, number: int, answer: Failed) -> Lost | None:
        if answer.usage:
            raise UsageError(answer.message)
        if not any(worker.used for worker in self._workers):
            raise HarnessError(answer.message)
        return self._replace(number, answer.message)

    def _replace(self, number: int, reason: str) -> Lost | None:
        """Start another worker, unless its device fails to open again and again."""
        worker, slot = self._workers[number], self._slots[number]
        flight = read_notes(worker.notes)
        busy, opened = worker.busy, worker.opened
        self._stop(worker)
        slot.lost += 1
        worker.busy, worker.waiting = False, None
        worker.failed_openings = 0 if opened else worker.failed_openings + 1
        if worker.failed_openings >= OPENINGS:
            slot.health = Health.OUT
            if not any(each.opened for each in self._workers):
                raise HarnessError(f"{slot.name} cannot be opened: {reason}")
        else:
            self._start(number)
        return Lost(number, reason, flight) if busy else None

    def _overdue(self) -> list[Lost]:
        """Workers that have shown no sign of life for as long as their lease."""
        found: list[Lost] = []
        now = time.monotonic()
        for number, worker in enumerate(self._workers):
            if not worker.busy or now - worker.moved < min(self._lease, 5.0):
                continue
            notes = read_notes(worker.notes)
            if notes is not None and notes.counter != worker.counter:
                worker.counter, worker.moved = notes.counter, now
            elif now - worker.moved >= self._lease:
                lost = self._replace(number, f"it has shown no sign of life for {self._lease:.0f} s")
                found += [lost] if lost is not None else []
        return found

    def _start(self, number: int) -> None:
        worker = self._workers[number]
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve, args=(theirs, worker.options, worker.notes, os.getpid()), daemon=True
        )
        with interrupts_held_back():
            process.start()
        theirs.close()
        worker.process, worker.connection = process, ours
        worker.opened = worker.used = False
        worker.moved = time.monotonic()
        self._slots[number].health = Health.BUSY if worker.busy else Health.OPENING

    @staticmethod
    def _end_of(worker: _Worker) -> str:
        process = worker.process
        if process is None:
            return "it is gone"
        process.join(5.0)
        code = process.exitcode
        if code is None:
            return "it has closed its pipe"
        return f"it was ended by signal {-code}" if code < 0 else f"it has ended with exit code {code}"

    @staticmethod
    def _stop(worker: _Worker) -> None:
        if worker.connection is not None:
            worker.connection.close()
            worker.connection = None
        if worker.process is not None:
            worker.process.kill()
            worker.process.join()
            worker.process.close()
            worker.process = None

    @staticmethod
    def _connection(worker: _Worker) -> Connection:
        if worker.connection is None:
            raise HarnessError("a worker was asked for work after its end")
        return worker.connection


def _serve(connection: Connection, options: WorkerOptions, notes: Path, parent: int) -> None:
    """The worker's process: opens an implementation and does one job after the other until the pipe ends."""
    leave_interrupts_to_the_head(endings=True)
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        return
    from aclnn_cts.engine.campaign.worker import open_worker  # noqa: PLC0415 - the head needs none of it

    try:
        worker = open_worker(options, Notes(notes))
    except (UsageError, HarnessError) as error:
        connection.send_bytes(encode(Failed(str(error), usage=isinstance(error, UsageError))))
        return
    keep_for_good()
    with worker.bench.host, contextlib.suppress(EOFError, OSError):
        connection.send_bytes(encode(Opened(worker.bench.host.isolated)))
        while True:
            job = decode_job(connection.recv_bytes())
            try:
                answer: Answer = worker.do(job)
            except Exception as error:  # noqa: BLE001 - a mistake in one job must not end the night
                answer = Failed(f"{type(error).__name__}: {error}"[:2000])
            connection.send_bytes(encode(answer))
