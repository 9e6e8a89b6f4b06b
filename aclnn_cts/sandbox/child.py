"""One runner and all that it starts, seen from the judge: pipes, log, in-flight word, limits, and how it ended.

Whatever a runner does to what it shares with the judge costs the call under way, and never the judge: shared pages
cannot shrink, a message has a limit on its size and on its time, and what comes is checked before it is used.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.sandbox.arena import Arena, sealed_memory
from aclnn_cts.sandbox.control_group import PROCESSES, make_group
from aclnn_cts.sandbox.process_tree import allocated_bytes, descendants, memory_of, processes_of_session
from aclnn_cts.sandbox.wire import (
    CONTROL_SIZE,
    FAULT_ADDRESS,
    IDLE,
    IN_FLIGHT,
    LOG_POSITION,
    MEMORY_ADDRESS,
    MESSAGE_BYTES,
    ChannelError,
    FrameReader,
    frame,
)

_SHORT = 0.002
_TICK = 0.05
"""Seconds between looks at a child's memory, and at whether it still lives where its pipe does not tell."""
_LOOKING = 50.0
"""Times a look's processor time, until the next: many threads make it long, and it is to cost a fiftieth at most."""
_LAST_WORDS = 2000
"""Bytes of the log's end that are kept."""
_LOG_LIMIT = 1 << 24
"""Bytes after which a child's log is emptied."""
_CHUNK = 1 << 16
_MESSAGE_SECONDS = 5.0
"""From a message's first bytes to its last: a runner writes it in one piece."""
_MOST_PROCESSES = 2000
"""That a runner may have below it: the workers of a compiler are as many as the machine has cores."""
_END_SECONDS = 5.0
"""Until the keeper has ended all that the runner had started."""
_SPARE = 4
"""Of the limit, the part beyond it that the kernel admits: what was read from files counts there as well."""
_BROKEN = "the runner broke the rules of its pipe"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """Why nothing more comes from a child."""

    ended: str
    """One of `CallEnd`."""
    message: str
    signal: int | None = None
    in_flight: int | None = None
    """Index of the call, within its batch, that was being made; None: it was between calls."""
    in_answer: bool = False
    """It was ended for what it sent where the next answer had to come, whatever `in_flight` says."""
    seconds: float = 0.0
    fault: int | None = None
    """Where a runner that died by SIGSEGV reached, in bytes from the start of the judge's memory, if that is known."""
    facts: Mapping[str, str] = field(default_factory=dict)

    def outcome(self) -> Outcome:
        """What the call in flight came to."""
        return Outcome(
            ended=self.ended, message=self.message, signal=self.signal, seconds=self.seconds, facts=self.facts
        )


class Child:
    """A runner process below its keeper, started by exec with three inherited descriptors and a log of its own."""

    def __init__(self, arena: Arena, *, memory_bytes: int, memory_note: str = "", plan: str = "") -> None:
        """`memory_bytes`: most that it and all that it starts may take; the note is said beside it.

        `plan`: of `confinement.ConfinementPlan`; empty for a runner of ours.
        """
        self._arena = arena
        self._memory_bytes = memory_bytes
        self._memory_note = memory_note
        # Without seals, which nobody can add later.
        self._log = os.memfd_create("aclnn-cts-log", os.MFD_CLOEXEC)
        # Appending, so that emptying the log moves the child's writes too.
        fcntl.fcntl(self._log, fcntl.F_SETFL, os.O_APPEND)
        control = sealed_memory("aclnn-cts-control", CONTROL_SIZE)
        self._control_map = mmap.mmap(control, CONTROL_SIZE)
        self._control = memoryview(self._control_map).cast("q")
        self._control[IN_FLIGHT] = IDLE
        self._known = {os.fstat(descriptor).st_ino for descriptor in (arena.descriptor, control, self._log)}
        self._replies, write_end = os.pipe2(os.O_CLOEXEC)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [
                    sys.executable,
                    "-u",
                    "-m",
                    "aclnn_cts.sandbox.keeper",
                    *map(str, (arena.descriptor, control, write_end, os.getpid())),
                    *([plan] if plan else []),
                ],
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(arena.descriptor, control, write_end),
                # Ctrl-C on the terminal is the parent's to handle; what the child starts can be ended with it.
                start_new_session=True,
                env=_environment(),
                bufsize=0,
            )
        finally:
            os.close(control)
            os.close(write_end)
        # Before it forks: the group is that of all that it starts.
        self._group = make_group(memory_bytes + memory_bytes // _SPARE, processes=PROCESSES if plan else None)
        if self._group is not None:
            self._group.add(self._process.pid)
        self.limits_processes = os.geteuid() != 0 or (self._group is not None and self._group.limits_processes)
        with contextlib.suppress(OSError):
            # A system without memory is to end it, and all that it will start, before a judge.
            Path(f"/proc/{self._process.pid}/oom_score_adj").write_text("1000")
        os.set_blocking(self._input(), False)
        self._parent = os.getpid()
        self._frames = FrameReader(limit=MESSAGE_BYTES)
        self._sent = 0
        self._poll = select.poll()
        self._poll.register(self._replies, select.POLLIN)
        self._closed = False
        self._next_look = 0.0
        self._given_up: tuple[str, str] | None = None

    def send(self, body: bytes, *, seconds: float) -> ChildEnd | None:
        """Write a frame to an idle child; how it ended where it does not read within this time, or no longer."""
        self._bound_log()
        self._control[IN_FLIGHT] = IDLE
        self._control[LOG_POSITION] = self._log_size()
        self._control[FAULT_ADDRESS] = 0
        start = time.monotonic()
        # What it took since the last call is no other call's doing.
        self._watch(None)
        if self._frames.waiting or self._poll.poll(0):
            if self._frames.waiting or os.read(self._replies, _CHUNK):
                return self.end(f"{_BROKEN}: it wrote into its pipe while no call was under way")
            return self._dead(0.0)
        rest = memoryview(frame(body, self._sent))
        self._sent += 1
        room = select.poll()
        room.register(self._input(), select.POLLOUT)
        while rest:
            left = seconds - (time.monotonic() - start)
            if left <= 0 or not room.poll(left * 1000):
                return self._end(CallEnd.TIME_LIMIT, f"the runner read nothing for {seconds:g} s", seconds)
            try:
                rest = rest[os.write(self._input(), rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return self._dead(time.monotonic() - start)
        return None

    def receive(self, *, seconds: float, note: str = "") -> bytes | ChildEnd:
        """The next frame, or how the child ended; it is ended where it takes longer than this, or too much memory.

        `note` is said beside the time limit where that is reached.
        """
        start = time.monotonic()
        most = min(_MESSAGE_SECONDS, seconds / 2)
        began: float | None = None
        """When the first bytes of a message were there, and not the whole."""
        while True:
            try:
                body = self._frames.take()
            except ChannelError as error:
                return self.end_as_broken(str(error))
            self._watch(start if body is None else None, seconds=seconds, note=note)
            if body is not None:
                return body
            if not self._frames.waiting:
                began = None
            elif began is None:
                began = time.monotonic()
            elif time.monotonic() - began > most:
                return self.end_as_broken(f"a message was begun and not finished within {most:g} s")
            if self._poll.poll(_TICK * 1000):
                chunk = os.read(self._replies, _CHUNK)
                if not chunk:
                    return self._dead(time.monotonic() - start)
                self._frames.feed(chunk)
            elif self._has_ended() and not self._poll.poll(0):
                # Something that it started still holds the pipe, so that its end does not show.
                return self._dead(time.monotonic() - start)

    def end_as_broken(self, why: str) -> ChildEnd:
        """End it, since what it sent in place of an answer is none."""
        return replace(self.end(f"{_BROKEN}: {why}"), in_answer=True)

    def _watch(self, start: float | None, *, seconds: float = math.inf, note: str = "") -> None:
        """End a child beyond its limits. What it had answered before can still be read."""
        now = time.monotonic()
        if now < self._next_look or self._given_up is not None:
            return
        began = time.thread_time()
        if start is not None and now - start > seconds:
            self._given_up = (CallEnd.TIME_LIMIT, f"no answer within {seconds:g} s{note}")
        else:
            self._given_up = self._beyond()
        if self._given_up is not None:
            self._kill_all()
        self._next_look = time.monotonic() + max(_TICK, _LOOKING * (time.thread_time() - began))

    def _beyond(self) -> tuple[str, str] | None:
        """Why it is to be ended, where it and all that it has started take more than they may."""
        self._bound_log()
        processes = descendants(self._process.pid)
        if len(processes) > _MOST_PROCESSES:
            return CallEnd.MEMORY_LIMIT, f"{len(processes)} processes; the limit is {_MOST_PROCESSES}"
        limit = f"the limit is {self._memory_bytes}{self._memory_note}"
        if self._group is not None and self._group.has_killed:
            return CallEnd.MEMORY_LIMIT, f"the kernel ended a process of it for its memory; {limit}"
        lent = allocated_bytes(self._arena.descriptor)
        stray = self._arena.stray_bytes
        used = stray + memory_of(processes, known=self._known, known_bytes=lent, enough=self._memory_bytes - stray)
        # What was lent between both looks is not its own.
        used -= max(allocated_bytes(self._arena.descriptor) - lent, 0)
        if used <= self._memory_bytes:
            return None
        several = f" in {len(processes)} processes" if len(processes) > 1 else ""
        return CallEnd.MEMORY_LIMIT, f"{used} bytes of resident memory{several}; {limit}"

    def end(self, reason: str) -> ChildEnd:
        """End it now, for a reason of the parent's own."""
        return self._end(CallEnd.NOT_RUN, reason, 0.0)

    def close_input(self) -> None:
        """Ask it to end: an idle child does so when its input ends."""
        stream = self._process.stdin
        if stream is not None and not stream.closed:
            with contextlib.suppress(OSError):
                stream.close()

    def wait(self, seconds: float) -> bool:
        """Wait for it to end by itself; whether it did."""
        end = time.monotonic() + seconds
        while not self._has_ended():
            if time.monotonic() >= end:
                return False
            time.sleep(_SHORT)
        return True

    def strike(self) -> None:
        """End it while another thread reads from it, which sees that end."""
        if not self._closed and os.getpid() == self._parent and self._process.returncode is None:
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and all that it started, and let go of everything. May be called again."""
        if self._closed or os.getpid() != self._parent:
            return
        self._closed = True
        self._kill_all()
        self.close_input()
        os.close(self._replies)
        os.close(self._log)
        self._control.release()
        self._control_map.close()

    def _has_ended(self) -> bool:
        """Without taking its status: until that is taken its id, and so its session's, cannot be another's."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            # Nobody keeps statuses where SIGCHLD is ignored.
            return True

    def _kill_all(self) -> None:
        """The keeper ends what there is; where that was ended or stopped itself, its session is."""
        if self._process.returncode is not None:
            return
        self._signal(signal.SIGTERM)
        if not self.wait(_END_SECONDS):
            self._signal(signal.SIGKILL)
            self.wait(_END_SECONDS)
        if self._keeper_was_killed():
            for process in processes_of_session(self._process.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
        # What hangs in a driver does not end, and is not waited for any longer.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        if self._group is not None:
            self._group.remove()

    def _keeper_was_killed(self) -> bool:
        """Or may have been: it ends by SIGKILL where its runner did, too."""
        try:
            status = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return status is None or (status.si_code == os.CLD_KILLED and status.si_status == signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._process.pid, number)

    def _end(self, ended: str, message: str, seconds: float) -> ChildEnd:
        self._given_up = (ended, message)
        self._kill_all()
        return self._dead(seconds)

    def _dead(self, seconds: float) -> ChildEnd:
        # Its end of the pipe is closed; a moment passes until the system has its status.
        by_itself = self.wait(1.0) and self._given_up is None
        if by_itself and self._group is not None and self._group.has_killed:
            self._given_up = self._beyond()
        self._kill_all()
        code, number = self._process.returncode, None
        if self._given_up is not None:
            ended, message = self._given_up
        elif not by_itself:
            ended, message = CallEnd.EXIT, "the runner closed its pipe"
        elif code is None:
            ended, message = CallEnd.EXIT, "the runner cannot be ended; something hangs in the system"
        elif code < 0:
            ended, message, number = CallEnd.SIGNAL, f"the runner died by {_signal_name(-code)}", -code
        else:
            ended, message = CallEnd.EXIT, f"the runner exited with code {code}"
        return ChildEnd(
            ended=ended,
            message=message + self._last_words(),
            signal=number,
            in_flight=None if self._control[IN_FLIGHT] == IDLE else self._control[IN_FLIGHT],
            seconds=seconds,
            fault=self._fault() if number == signal.SIGSEGV else None,
        )

    def _fault(self) -> int | None:
        address = self._control[FAULT_ADDRESS]
        return address - self._control[MEMORY_ADDRESS] if address else None

    def _last_words(self) -> str:
        size, start = self._log_size(), self._control[LOG_POSITION]
        if not 0 <= start <= size:
            start = 0
        start = max(start, size - _LAST_WORDS)
        text = os.pread(self._log, size - start, start).decode(errors="replace").strip()
        # The last line stands in the first line of the message, which is what a screen has room for.
        *before, last = text.splitlines() or [""]
        return f"; its last words: {last}" + (f"\n{text}" if before else "") if text else ""

    def _bound_log(self) -> None:
        if allocated_bytes(self._log) > _LOG_LIMIT:
            # A file that is executed cannot be emptied; it does not grow either.
            with contextlib.suppress(OSError):
                os.ftruncate(self._log, 0)

    def _log_size(self) -> int:
        return os.fstat(self._log).st_size

    def _input(self) -> int:
        if self._process.stdin is None:
            raise BrokenPipeError
        return self._process.stdin.fileno()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _environment() -> dict[str, str]:
    """Ours, with modules found where we find them, so that both sides run the same code."""
    places = [os.path.abspath(place) if place else os.getcwd() for place in sys.path]  # noqa: PTH100, PTH109 - text
    return os.environ | {"PYTHONPATH": os.pathsep.join(places), "PYTHONSAFEPATH": "1"}
