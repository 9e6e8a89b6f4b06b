"""Workers on this machine: processes that are handed jobs, watched and replaced."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

import msgspec

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.sandbox.interrupts import interrupts_held_back, leave_interrupts_to_the_head, worker_context
from aclnn_cts.sandbox.limits import freeze_objects
from aclnn_cts.workers.notes import ProgressNotes, WorkerProgress, read_progress
from aclnn_cts.workers.service import (
    ImplementationGone,
    Service,
    WorkerFailed,
    WorkerOpened,
    answer_decoder,
    encode,
    job_decoder,
)
from aclnn_cts.workers.slots import Event, JobDone, Slot, SlotHealth, WorkerBackoff, WorkerLost

LEASE_SECONDS = 900.0
"""A worker that notes nothing for so long, or is not open by then, is ended: its limits should have let it go on."""

CLOSE_SECONDS = 5.0
"""How long idle workers are waited for that put their device away."""


class Dispatcher(Protocol):
    """Hands jobs to workers. One thread uses it."""

    @property
    def slots(self) -> Sequence[Slot]: ...

    @property
    def progress_by_slot(self) -> Sequence[WorkerProgress | None]:
        """How far each slot's worker is; None where it does nothing, or that cannot be seen from here."""
        ...

    def submit(self, slot: int, job: msgspec.Struct) -> None:
        """Give a ready slot a job."""
        ...

    def wait(self, seconds: float) -> list[Event]:
        """What has happened, at most after so long.

        A slot that cannot be opened is tried again. UsageError where its words are wrong, HarnessError where no slot
        can be opened at first, or for long (`slots.WorkerBackoff`).
        """
        ...

    def close(self) -> None:
        """End all workers at once."""
        ...


@dataclass(slots=True)
class _Worker:
    service: Service
    notes: Path
    process: BaseProcess | None = None
    connection: Connection | None = None
    opened: bool = False
    busy: bool = False
    counter: int = -1
    moved: float = 0.0
    decode: Callable[[bytes], Any] = field(init=False)

    def __post_init__(self) -> None:
        self.decode = answer_decoder(self.service)


class LocalDispatcher:
    """One process a worker, spawned, since device runtimes and threads do not survive a fork."""

    def __init__(
        self,
        services: Sequence[Service],
        *,
        folder: Path,
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`folder`: where workers note what is under way."""
        self._context = worker_context()
        self._lease = lease_seconds
        self._clock = clock
        self._workers = [_Worker(each, folder / f"worker-{number}") for number, each in enumerate(services)]
        self._slots = [Slot(f"worker {number}", each.device) for number, each in enumerate(services)]
        self._openings = WorkerBackoff(self._slots, clock=clock)
        try:
            self._start_due()
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> Sequence[Slot]:
        """The places, with their health."""
        return self._slots

    @property
    def progress_by_slot(self) -> Sequence[WorkerProgress | None]:
        """How far the workers are, as they note it."""
        return [read_progress(worker.notes) if worker.busy else None for worker in self._workers]

    def submit(self, slot: int, job: msgspec.Struct) -> None:
        """Give a ready slot a job."""
        worker = self._workers[slot]
        worker.busy = True
        worker.moved = self._clock()
        self._slots[slot].health = SlotHealth.BUSY
        with contextlib.suppress(OSError):
            # A worker that has just died is noticed by `wait`.
            self._connection(worker).send_bytes(encode(job))

    def wait(self, seconds: float) -> list[Event]:
        """What has happened."""
        self._openings.check_slots()
        self._start_due()
        live = {
            id(worker.connection): (number, worker.connection)
            for number, worker in enumerate(self._workers)
            if worker.connection is not None
        }
        events: list[Event] = []
        for ready in wait([connection for _, connection in live.values()], self._openings.until_due(seconds)):
            events += self._heard(live[id(ready)][0])
        events += self._overdue()
        return events

    def close(self) -> None:
        """End all workers: at once those that work, and the others when they have put their device away."""
        for worker in self._workers:
            if worker.opened and not worker.busy and worker.connection is not None:
                worker.connection.close()
                worker.connection = None
        until = self._clock() + CLOSE_SECONDS
        for worker in self._workers:
            if worker.process is not None and worker.connection is None:
                worker.process.join(max(until - self._clock(), 0.0))
            self._stop(worker)

    def _heard(self, number: int) -> list[Event]:
        worker = self._workers[number]
        try:
            answer = worker.decode(self._connection(worker).recv_bytes())
        except (EOFError, OSError):
            end = self._end_of(worker)
            opening = f"a worker's process ended while opening {worker.service.opens}: {end}"
            return self._ended(number, end if worker.opened else opening)
        match answer:
            case WorkerOpened():
                return self._open(number)
            case WorkerFailed() if not worker.opened:
                return self._ended(number, answer.message, usage=answer.usage)
            case ImplementationGone():
                return self._ended(number, answer.reason, answer=answer.answer)
        worker.busy = False
        self._slots[number].health = SlotHealth.READY
        return [JobDone(number, answer)]

    def _open(self, number: int) -> list[Event]:
        self._workers[number].opened = True
        self._slots[number].health = SlotHealth.READY
        return self._openings.note_opened(number)

    def _ended(self, number: int, reason: str, *, usage: bool = False, answer: object = None) -> list[Event]:
        """A worker is gone, or could not be opened. Another is started, after a pause where none could be opened."""
        worker, slot = self._workers[number], self._slots[number]
        events: list[Event] = [WorkerLost(number, reason, answer=answer)] if worker.busy else []
        self._stop(worker)
        worker.busy = False
        if worker.opened:
            slot.lost += 1
            self._openings.note_lost(number)
        else:
            events += self._openings.note_failed(number, reason, usage=usage)
        return events

    def _overdue(self) -> list[Event]:
        """Workers that have shown no sign of life for as long as their lease."""
        found: list[Event] = []
        now = self._clock()
        for number, worker in enumerate(self._workers):
            idle = worker.opened and not worker.busy
            if worker.process is None or idle or now - worker.moved < min(self._lease, 5.0):
                continue
            position = read_progress(worker.notes) if worker.opened else None
            if position is not None and position.counter != worker.counter:
                worker.counter, worker.moved = position.counter, now
            elif now - worker.moved >= self._lease:
                found += self._ended(number, f"it has shown no sign of life for {self._lease:.0f} s")
        return found

    def _start_due(self) -> None:
        for number in self._openings.due_slots():
            self._start(number)

    def _start(self, number: int) -> None:
        worker = self._workers[number]
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve, args=(theirs, worker.service, worker.notes, os.getpid()), daemon=True
        )
        with interrupts_held_back():
            process.start()
        theirs.close()
        worker.process, worker.connection = process, ours
        worker.opened = False
        worker.moved = self._clock()

    @staticmethod
    def _end_of(worker: _Worker) -> str:
        process = worker.process
        if process is None:
            return "it is gone"
        process.join(5.0)
        code = process.exitcode
        if code is None:
            return "it has closed its pipe"
        return f"it was ended by {_signal_name(-code)}" if code < 0 else f"it has ended with exit code {code}"

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


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    killed = ", from outside or by the system for want of memory" if number == signal.SIGKILL else ""
    return f"{name}{killed}"


def _serve(connection: Connection, service: Service, notes: Path, parent: int) -> None:
    """The worker's process: opens what it needs and does one job after the other until the pipe ends."""
    leave_interrupts_to_the_head(parent)
    try:
        worker = service.open(ProgressNotes(notes))
    except (UsageError, HarnessError) as error:
        connection.send_bytes(encode(WorkerFailed(str(error), usage=isinstance(error, UsageError))))
        return
    host, decode = worker.host, job_decoder(service)
    freeze_objects()
    nothing = contextlib.nullcontext()
    with host or nothing, worker.benchmark or nothing, contextlib.suppress(EOFError, OSError):
        connection.send_bytes(encode(WorkerOpened()))
        while True:
            job = decode(connection.recv_bytes())
            try:
                answer = worker.do(job)
            except (UsageError, HarnessError) as error:
                answer = WorkerFailed(str(error), usage=isinstance(error, UsageError))
            except Exception as error:  # noqa: BLE001 - a mistake in one job must not end the night
                answer = WorkerFailed(f"{type(error).__name__}: {error}"[:2000])
            if host is not None and (reason := host.gone):
                connection.send_bytes(encode(ImplementationGone(reason.partition("\n")[0], answer)))
                return
            connection.send_bytes(encode(answer))
