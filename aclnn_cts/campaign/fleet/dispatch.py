"""Workers on this machine: processes that are handed jobs, watched and replaced, and the folders that they leave."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from aclnn_cts.adapters.registry import choose
from aclnn_cts.campaign.fleet.jobs import (
    Answer,
    ChunkResult,
    Examined,
    Failed,
    Gone,
    Job,
    Notes,
    Opened,
    PlanResult,
    Position,
    WorkerOptions,
    decode_answer,
    decode_job,
    encode,
    read_notes,
    read_position,
)
from aclnn_cts.campaign.fleet.slots import Done, Event, Health, Lost, Openings, Slot
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.sandbox.interrupts import interrupts_held_back, leave_interrupts_to_the_head, worker_context
from aclnn_cts.sandbox.limits import keep_for_good
from aclnn_cts.store.output_file import storage_failure

LEASE_SECONDS = 900.0
"""A worker that notes nothing for so long, or is not open by then, is ended: its limits should have let it go on."""

CLOSE_SECONDS = 5.0
"""How long idle workers are waited for that put their device away."""


class Dispatcher(Protocol):
    """Hands jobs to workers. One thread uses it."""

    @property
    def slots(self) -> Sequence[Slot]: ...

    @property
    def positions(self) -> Sequence[Position | None]:
        """How far each slot's worker is; None where it does nothing, or that cannot be seen from here."""
        ...

    def submit(self, slot: int, job: Job, *, fresh: bool = False) -> None:
        """Give a ready slot a job; `fresh`: to an implementation that has made no call yet."""
        ...

    def wait(self, seconds: float) -> list[Event]:
        """What has happened, at most after so long.

        A slot that cannot be opened is tried again. UsageError where its words are wrong, HarnessError where no slot
        can be opened at first, or for long (`worker_backoff`).
        """
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
    counter: int = -1
    moved: float = 0.0


class LocalDispatcher:
    """One process a worker, spawned, since device runtimes and threads do not survive a fork."""

    def __init__(
        self,
        options: Sequence[WorkerOptions],
        *,
        folder: Path,
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`folder`: where workers note what is under way."""
        self._context = worker_context()
        self._lease = lease_seconds
        self._clock = clock
        self._workers = [_Worker(each, folder / f"worker-{number}") for number, each in enumerate(options)]
        self._slots = [Slot(f"worker {number}", device_of(each)) for number, each in enumerate(options)]
        self._openings = Openings(self._slots, clock=clock)
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
    def positions(self) -> Sequence[Position | None]:
        """How far the workers are, as they note it."""
        return [read_position(worker.notes) if worker.busy else None for worker in self._workers]

    def submit(self, slot: int, job: Job, *, fresh: bool = False) -> None:
        """Give a ready slot a job."""
        worker = self._workers[slot]
        worker.busy = True
        self._slots[slot].health = Health.BUSY
        worker.waiting = encode(job)
        # The worker has the implementation's process replaced itself, where that is one of its own.
        if fresh and worker.used and not worker.isolated:
            self._stop(worker)
            self._start(slot)
        else:
            self._send_waiting(worker)

    def wait(self, seconds: float) -> list[Event]:
        """What has happened."""
        self._openings.check()
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
            answer = decode_answer(self._connection(worker).recv_bytes())
        except (EOFError, OSError):
            end = self._end_of(worker)
            opening = f"a worker's process ended while opening --adapter {worker.options.settings.adapter}: {end}"
            return self._ended(number, end if worker.opened else opening)
        match answer:
            case Opened():
                return self._open(number, isolated=answer.isolated)
            case Failed() if not worker.opened:
                return self._ended(number, answer.message, usage=answer.usage)
            case Gone():
                return self._ended(number, answer.reason, answer=answer.answer)
        worker.busy = False
        self._slots[number].health = Health.READY
        return [Done(number, answer)]

    def _open(self, number: int, *, isolated: bool) -> list[Event]:
        worker = self._workers[number]
        worker.opened = True
        worker.isolated = isolated
        self._slots[number].health = Health.BUSY if worker.busy else Health.READY
        self._send_waiting(worker)
        return self._openings.opened(number)

    def _send_waiting(self, worker: _Worker) -> None:
        if worker.waiting is None:
            return
        content, worker.waiting = worker.waiting, None
        worker.used = True
        worker.moved = self._clock()
        with contextlib.suppress(OSError):
            # A worker that has just died is noticed by `wait`.
            self._connection(worker).send_bytes(content)

    def _ended(self, number: int, reason: str, *, usage: bool = False, answer: Answer | None = None) -> list[Event]:
        """A worker is gone, or could not be opened. Another is started, after a pause where none could be opened."""
        worker, slot = self._workers[number], self._slots[number]
        busy, opened = worker.busy, worker.opened
        flight = read_notes(worker.notes) if opened else None
        self._stop(worker)
        worker.busy, worker.waiting = False, None
        events: list[Event] = [Lost(number, reason, flight, begun=opened, answer=answer)] if busy else []
        if opened:
            slot.lost += 1
            self._openings.lost(number)
        else:
            events += self._openings.failed(number, reason, usage=usage)
        return events

    def _overdue(self) -> list[Event]:
        """Workers that have shown no sign of life for as long as their lease."""
        found: list[Event] = []
        now = self._clock()
        for number, worker in enumerate(self._workers):
            idle = worker.opened and not worker.busy
            if worker.process is None or idle or now - worker.moved < min(self._lease, 5.0):
                continue
            position = read_position(worker.notes) if worker.opened else None
            if position is not None and position.counter != worker.counter:
                worker.counter, worker.moved = position.counter, now
            elif now - worker.moved >= self._lease:
                found += self._ended(number, f"it has shown no sign of life for {self._lease:.0f} s")
        return found

    def _start_due(self) -> None:
        for number in self._openings.due():
            self._start(number)

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


def device_of(options: WorkerOptions) -> str:
    """A worker's device in words; empty where its adapter was given none."""
    name = choose(options.settings.adapter).options.get("device", "")
    return f"device {name}" if name else ""


def _serve(connection: Connection, options: WorkerOptions, notes: Path, parent: int) -> None:
    """The worker's process: opens an implementation and does one job after the other until the pipe ends."""
    leave_interrupts_to_the_head(parent)
    from aclnn_cts.campaign.fleet.worker import open_worker  # noqa: PLC0415 - the head needs none of it

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
                answer: ChunkResult | PlanResult | Examined | Failed = worker.do(job)
            except (UsageError, HarnessError) as error:
                answer = Failed(str(error), usage=isinstance(error, UsageError))
            except Exception as error:  # noqa: BLE001 - a mistake in one job must not end the night
                answer = Failed(f"{type(error).__name__}: {error}"[:2000])
            if reason := worker.bench.host.gone:
                connection.send_bytes(encode(Gone(reason.partition("\n")[0], answer)))
                return
            connection.send_bytes(encode(answer))


_PREFIX = "aclnn-cts-"
_LOCK = ".lock"
"""The file in a folder that its process holds locked: the system lets go of it whatever ends the process, and tells so
to processes of other containers too, in which that process's id means nothing."""


def memory_folder() -> Path:
    """Where a file lies in memory, if there is such a file system: a full disk must not end who only takes notes."""
    shared = Path("/dev/shm")  # noqa: S108 - the folders made in it are private
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


@contextlib.contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A private folder, removed at the end. What killed processes have left in `parent` is removed first.

    Raises HarnessError where it cannot be made.
    """
    sweep(parent)
    try:
        # Under another name until it is locked, so that nobody takes it for one that was left.
        made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=parent))
        lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = made.rename(made.with_name(made.name[1:]))
    except OSError as error:
        raise storage_failure(parent, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep(parent: Path) -> None:
    """Remove the folders of ours whose process is gone. Those of other users, and without a lock, stay."""
    with contextlib.suppress(OSError):
        for folder in parent.glob(f"{_PREFIX}*"):
            if _left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _left(folder: Path) -> bool:
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return False
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(lock)
