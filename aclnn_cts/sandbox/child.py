"""One child process seen from its parent: its pipes, its log, its in-flight word, and how it ended."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from aclnn_cts.core.outcome import Ended, Outcome
from aclnn_cts.sandbox.wire import CONTROL_SIZE, IDLE, IN_FLIGHT, LOG_POSITION, Frames, frame

__all__ = ["Child", "Ending"]

_SHORT = 0.002
_TICK = 0.05
"""Seconds between looks at a child's memory, and at whether it still lives where its pipe does not tell."""
_LAST_WORDS = 2000
"""Bytes of the log's end that are kept."""
_LOG_LIMIT = 1 << 24
"""Bytes after which an idle child's log is emptied."""
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why nothing more comes from a child."""

    ended: str
    """One of `Ended`."""
    message: str
    signal: int | None = None
    in_flight: int | None = None
    """Index of the call, within its batch, that was being made; None: it was between calls."""
    seconds: float = 0.0

    def outcome(self) -> Outcome:
        """What the call in flight came to."""
        return Outcome(ended=self.ended, message=self.message, signal=self.signal, seconds=self.seconds)


class Child:
    """A runner process, started by exec with three inherited descriptors and a log of its own."""

    def __init__(self, memory: int) -> None:
        self._log = os.memfd_create("aclnn-cts-log", os.MFD_CLOEXEC)
        # Appending, so that emptying the log moves the child's writes too.
        fcntl.fcntl(self._log, fcntl.F_SETFL, os.O_APPEND)
        control = os.memfd_create("aclnn-cts-control", os.MFD_CLOEXEC)
        os.ftruncate(control, CONTROL_SIZE)
        self._control_map = mmap.mmap(control, CONTROL_SIZE)
        self._control = memoryview(self._control_map).cast("q")
        self._control[IN_FLIGHT] = IDLE
        self._replies, write_end = os.pipe2(os.O_CLOEXEC)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [
                    sys.executable,
                    "-u",
                    "-m",
                    "aclnn_cts.sandbox.runner",
                    *map(str, (memory, control, write_end, os.getpid())),
                ],
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(memory, control, write_end),
                # Ctrl-C on the terminal is the parent's to handle; what the child starts can be ended with it.
                start_new_session=True,
                env=_environment(),
                bufsize=0,
            )
        finally:
            os.close(control)
            os.close(write_end)
        os.set_blocking(self._input(), False)
        self._parent = os.getpid()
        self._frames = Frames()
        self._poll = select.poll()
        self._poll.register(self._replies, select.POLLIN)
        self._closed = False
        self._next_look = 0.0
        self._given_up: tuple[str, str] | None = None

    def send(self, body: bytes, *, seconds: float) -> Ending | None:
        """Write a frame to an idle child; how it ended where it does not read within this time, or no longer."""
        if self._log_size() > _LOG_LIMIT:
            os.ftruncate(self._log, 0)
        self._control[IN_FLIGHT] = IDLE
        self._control[LOG_POSITION] = self._log_size()
        rest = memoryview(frame(body))
        room = select.poll()
        room.register(self._input(), select.POLLOUT)
        start = time.monotonic()
        while rest:
            left = seconds - (time.monotonic() - start)
            if left <= 0 or not room.poll(left * 1000):
                return self._end(Ended.TIME_LIMIT, f"the runner read nothing for {seconds:g} s", seconds)
            try:
                rest = rest[os.write(self._input(), rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return self._dead(time.monotonic() - start)
        return None

    def receive(self, *, seconds: float, memory_bytes: int, note: str = "") -> bytes | Ending:
        """The next frame, or how the child ended; it is ended where it takes longer or more memory than this.

        `note` is said beside the time limit where that is reached.
        """
        start = time.monotonic()
        while True:
            body = self._frames.take()
            self._watch(start if body is None else None, seconds=seconds, memory_bytes=memory_bytes, note=note)
            if body is not None:
                return body
            if self._poll.poll(_TICK * 1000):
                chunk = os.read(self._replies, _CHUNK)
                if not chunk:
                    return self._dead(time.monotonic() - start)
                self._frames.feed(chunk)
            elif self._has_ended() and not self._poll.poll(0):
                # Something that it started still holds the pipe, so that its end does not show.
                return self._dead(time.monotonic() - start)

    def _watch(self, start: float | None, *, seconds: float, memory_bytes: int, note: str) -> None:
        """End a child beyond its limits. What it had answered before can still be read."""
        now = time.monotonic()
        if now < self._next_look or self._given_up is not None:
            return
        self._next_look = now + _TICK
        if start is not None and now - start > seconds:
            self._given_up = (Ended.TIME_LIMIT, f"no answer within {seconds:g} s{note}")
        elif (resident := self.resident_bytes()) > memory_bytes:
            message = f"{resident} bytes of resident memory; the limit is {memory_bytes}"
            self._given_up = (Ended.MEMORY_LIMIT, message)
        if self._given_up is not None:
            self._kill_group()

    def resident_bytes(self) -> int:
        """Resident anonymous memory: neither the shared buffers nor mapped files count."""
        try:
            with open(f"/proc/{self._process.pid}/statm", "rb") as file:  # noqa: PTH123 - twenty times a second
                _, resident, shared, *_ = file.read().split()
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return 0
        return (int(resident) - int(shared)) * mmap.PAGESIZE

    def end(self, reason: str) -> Ending:
        """End it now, for a reason of the parent's own."""
        return self._end(Ended.NOT_RUN, reason, 0.0)

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
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End it and all that it started, and let go of everything. May be called again."""
        if self._closed or os.getpid() != self._parent:
            return
        self._closed = True
        self._kill_group()
        self.close_input()
        os.close(self._replies)
        os.close(self._log)
        self._control.release()
        self._control_map.close()

    def _has_ended(self) -> bool:
        """Without taking its status: until that is taken its id, and so its group's, cannot be another's."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _kill_group(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _end(self, ended: str, message: str, seconds: float) -> Ending:
        self._given_up = (ended, message)
        self._kill_group()
        return self._dead(seconds)

    def _dead(self, seconds: float) -> Ending:
        # Its end of the pipe is closed; a moment passes until the system has its status.
        by_itself = self.wait(1.0) and self._given_up is None
        self._kill_group()
        code, number = self._process.returncode, None
        if self._given_up is not None:
            ended, message = self._given_up
        elif not by_itself:
            ended, message = Ended.EXIT, "the runner closed its pipe"
        elif code < 0:
            ended, message, number = Ended.SIGNAL, f"the runner died by {_signal_name(-code)}", -code
        else:
            ended, message = Ended.EXIT, f"the runner exited with code {code}"
        return Ending(
            ended=ended,
            message=message + self._last_words(),
            signal=number,
            in_flight=self._in_flight(),
            seconds=seconds,
        )

    def _in_flight(self) -> int | None:
        index = self._control[IN_FLIGHT]
        return None if index == IDLE else index

    def _last_words(self) -> str:
        size = self._log_size()
        start = self._control[LOG_POSITION] if self._control[LOG_POSITION] <= size else 0
        start = max(start, size - _LAST_WORDS)
        text = os.pread(self._log, size - start, start).decode(errors="replace").strip()
        # The last line stands in the first line of the message, which is what a screen has room for.
        *before, last = text.splitlines() or [""]
        return f"; its last words: {last}" + (f"\n{text}" if before else "") if text else ""

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
