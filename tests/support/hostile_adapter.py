"""An adapter that does to its judge what the call's call mode says: to the memory that they share, to the pipe between
them, to the machine's memory, and by processes that it leaves behind.

What is forbidden to it raises OSError, and the call comes back as if nothing had been tried.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from aclnn_cts.adapters.protocol import Call, Capabilities
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.sandbox.wire import frame
from aclnn_cts.speclang.model import Spec


class Hostile:
    """`--adapter hostile_adapter:Hostile`; `declares=` names one of `DECLARATIONS`.

    A call's call mode says what to do, and in which file to note the ids of processes that it leaves behind.
    """

    def __init__(self, declares: str = "") -> None:
        self._declares = declares

    @property
    def capabilities(self) -> Any:
        return DECLARATIONS[self._declares][0]() if self._declares else _DECLARED

    @property
    def environment(self) -> Any:
        return DECLARATIONS[self._declares][1]() if self._declares else {"pid": str(os.getpid())}

    def open(self, target: Target, specs: Mapping[str, Spec]) -> Hostile:
        del target, specs
        return self

    def run(self, calls: Sequence[Call]) -> list[Any]:
        return [self._one(call) for call in calls]

    def close(self) -> None: ...

    def _one(self, call: Call) -> Any:
        what = str(call.call_mode.get("do", "double"))
        if what in OUTCOMES:
            return OUTCOMES[what]()
        if what in LEAVES:
            LEAVES[what](str(call.call_mode["marker"]))
        else:
            TROUBLE.get(what, lambda: None)()
        if call.buffers is not None and call.buffers.outputs:
            call.buffers.outputs["out"].view[...] = call.buffers.inputs["x"].view * np.float32(2)
        return Outcome(facts={"pid": os.getpid()})


def _descriptors(word: str) -> list[int]:
    """Numbers of open descriptors whose link has the word."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if word in str(entry.readlink()):
                found.append(int(entry.name))
    return found


def _memory(word: str) -> int:
    return _descriptors(f"aclnn-cts-{word}")[0]


def _reply_pipe() -> int:
    """The pipe to the judge: the one that is written to."""
    for descriptor in _descriptors("pipe:"):
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY and descriptor > 2:
            return descriptor
    raise RuntimeError("no pipe")


def _write(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(_reply_pipe(), rest) :]


def _next_number() -> int:
    """The number of the message that the runner sends next, found where the runner keeps it."""
    place: FrameType | None = sys._getframe()
    while place is not None:
        for holder in (place.f_locals.get("replies"), place.f_locals.get("self")):
            number = getattr(getattr(holder, "_replies", holder), "_number", None)
            if number is not None:
                return int(number)
        place = place.f_back
    return 0


def _shorten() -> None:
    for word in ("control", "buffers"):
        with contextlib.suppress(OSError):
            os.ftruncate(_memory(word), 0)


def _lengthen() -> None:
    for word in ("control", "buffers"):
        with contextlib.suppress(OSError):
            os.ftruncate(_memory(word), 1 << 50)
        with contextlib.suppress(OSError):
            fcntl.fcntl(_memory(word), fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | 0x10)


def _punch_holes() -> None:
    for word in ("control", "buffers"):
        with mmap.mmap(_memory(word), 4096) as page:
            page.madvise(mmap.MADV_REMOVE)


def _scribble(*words: int) -> None:
    with mmap.mmap(_memory("control"), 4096) as page:
        page[: 8 * len(words)] = struct.pack(f"<{len(words)}q", *words)


def _scribble_and_die(*words: int) -> None:
    _scribble(*words)
    os.abort()


def _fill_arena() -> None:
    """The first of what was lent, other calls' memory too."""
    with mmap.mmap(_memory("buffers"), 1 << 22) as memory:
        memory[:] = np.random.default_rng(0).bytes(1 << 22)


def _empty_log() -> None:
    os.ftruncate(2, 1 << 60)
    fcntl.fcntl(2, fcntl.F_SETFL, 0)
    os.abort()


def _flood() -> None:
    while True:
        _write(b"junk" * 16384)


def _flood_with_messages() -> None:
    number = _next_number()
    while True:
        _write(frame(b"\x80", number))
        number += 1


def _flood_log() -> None:
    for _ in range(40):
        os.write(1, b"x" * (10 << 20))
        time.sleep(0.05)
    if (held := os.fstat(1).st_blocks * 512) > 300 << 20:
        raise OSError(f"the log holds {held} bytes")


def _announce(length: int) -> None:
    _write(frame(b"", _next_number())[:8] + struct.pack("<Q", length))


def _begin_message() -> None:
    _announce(1000)
    _write(b"x" * 10)


def _nested() -> None:
    _write(frame(b"\x91" * 500_000, _next_number()))


def _forge() -> None:
    import msgspec  # noqa: PLC0415 - as the runner has it

    _write(frame(msgspec.msgpack.encode(Outcome()), _next_number()))


def _later(deed: Callable[[], object]) -> None:
    def wait_and_do() -> None:
        time.sleep(0.1)
        deed()

    threading.Thread(target=wait_and_do, daemon=True).start()


_KEPT: list[object] = []


def _memfds() -> None:
    while True:
        descriptor = os.memfd_create("mine")
        os.write(descriptor, bytes(1 << 24))
        time.sleep(0.01)


def _shared_map() -> None:
    while True:
        memory = mmap.mmap(-1, 1 << 24)
        memory[:] = bytes(1 << 24)
        _KEPT.append(memory)
        time.sleep(0.01)


def _deleted_file() -> None:
    path = Path("/dev/shm") / f"hostile-{os.getpid()}"  # noqa: S108 - it is taken away at once
    with path.open("wb", buffering=0) as file:
        path.unlink()
        while True:
            file.write(bytes(1 << 24))
            time.sleep(0.01)


def _beyond_arena() -> None:
    descriptor = _memory("buffers")
    start = 1 << 30
    while True:
        start += os.pwrite(descriptor, bytes(1 << 24), start)
        time.sleep(0.01)


def _child_swallows() -> None:
    if os.fork() == 0:
        while True:
            _KEPT.append(np.ones(1 << 24, np.uint8))
            time.sleep(0.01)
    time.sleep(3600)


def _note(marker: str) -> None:
    with Path(marker).open("a") as file:
        file.write(f"{os.getpid()}\n")


def _daemon(marker: str, body: Callable[[], object] = lambda: time.sleep(3600)) -> None:
    """The classic: fork, setsid, fork; nothing of the pipes is kept."""
    if (first := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.closerange(0, 256)
            _note(marker)
            body()
        os._exit(0)
    os.waitpid(first, 0)
    while not Path(marker).exists():
        time.sleep(0.01)


def _daemon_and_exit(marker: str) -> None:
    _daemon(marker)
    os._exit(9)


def _hop(marker: str) -> None:
    """A process that is another one a moment later."""

    def body() -> None:
        for _ in range(10_000):
            if os.fork():
                os._exit(0)
            os.setsid()
            time.sleep(0.002)

    _daemon(marker, body)


def _stop_keeper(marker: str) -> None:
    _note(marker)
    os.kill(os.getppid(), signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGABRT)


def _kill_keeper(marker: str) -> None:
    ctypes.CDLL(None).prctl(1, 0)
    _note(marker)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)


TROUBLE: Mapping[str, Callable[[], object]] = {
    "scribble far and die": lambda: _scribble_and_die(10**6, -7),
    "scribble below and die": lambda: _scribble_and_die(-5, 10**9),
    "scribble huge and die": lambda: _scribble_and_die(2**63 - 1, -(2**63)),
    "scribble an earlier call and die": lambda: _scribble_and_die(0, 0),
    "empty the log and die": _empty_log,
    "flood": _flood,
    "flood with messages": _flood_with_messages,
    "junk": lambda: _write(b"junk" * 25),
    "a little junk": lambda: _write(b"junk!"),
    "announce 300 MB": lambda: _announce(300 << 20),
    "announce 2^63": lambda: _announce(1 << 63),
    "begin a message": _begin_message,
    "nested": _nested,
    "memfds": _memfds,
    "shared map": _shared_map,
    "deleted file": _deleted_file,
    "beyond arena": _beyond_arena,
    "child swallows": _child_swallows,
    "close all": lambda: os.closerange(0, 256),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "shorten": _shorten,
    "lengthen and seal": _lengthen,
    "punch holes": _punch_holes,
    "fill the arena": _fill_arena,
    "scribble": lambda: _scribble(10**6, -7),
    "flood the log": _flood_log,
    "read standard input": lambda: _later(lambda: os.read(0, 1 << 20)),
}
"""To what is shared with the judge, and to the machine."""

LEAVES: Mapping[str, Callable[[str], object]] = {
    "daemon": _daemon,
    "daemon and exit": _daemon_and_exit,
    "hop": _hop,
    "stop the keeper": _stop_keeper,
    "kill the keeper": _kill_keeper,
}
"""What leaves a process behind, whose id is in the marker."""

OUTCOMES: Mapping[str, Callable[[], Any]] = {
    "long message": lambda: Outcome(message="x" * 5_000_000),
    "unknown end": lambda: Outcome(ended="splendid"),
    "nan seconds": lambda: Outcome(seconds=float("nan")),
    "endless seconds": lambda: Outcome(seconds=float("inf")),
    "seconds of text": lambda: Outcome(seconds="soon"),  # type: ignore[arg-type]
    "status beyond int32": lambda: Outcome(phase_one=2**40),
    "status beyond 64 bits": lambda: Outcome(phase_one=2**70),
    "endless fact": lambda: Outcome(facts={"grown": float("inf")}),
    "fact that is a list": lambda: Outcome(facts={"grown": [1]}),  # type: ignore[dict-item]
    "fact without end": lambda: Outcome(facts={"x" * 3_000_000: 1}),
    "half a character": lambda: Outcome(message="\ud800"),
}
"""What is no outcome."""

_DECLARED = Capabilities(call_modes=frozenset({"do", "marker"}), phases=True)

DECLARATIONS: Mapping[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "endless seconds": (lambda: Capabilities(call_seconds=float("inf")), dict, r"capabilities\.call_seconds is inf"),
    "nan seconds": (lambda: Capabilities(call_seconds=float("nan")), dict, r"capabilities\.call_seconds is nan"),
    "negative seconds": (lambda: Capabilities(call_seconds=-1.0), dict, r"capabilities\.call_seconds is -1\.0"),
    "text for a flag": (
        lambda: Capabilities(statuses="yes"),  # type: ignore[arg-type]
        dict,
        r"capabilities\.statuses is 'yes'; expected `bool`",
    ),
    "number for names": (
        lambda: Capabilities(operators=5),  # type: ignore[arg-type]
        dict,
        r"capabilities\.operators is 5; expected `array",
    ),
    "too many names": (
        lambda: Capabilities(call_modes=frozenset(map(str, range(5000)))),
        dict,
        r"capabilities\.call_modes is .{0,200}; expected `array` of length <= 1000",
    ),
    "long description": (
        lambda: Capabilities(description="x" * 10**7),
        dict,
        r"capabilities\.description is .{0,200}\(10000000 characters\); expected `str`",
    ),
    "no capabilities": (lambda: "all", dict, r"capabilities is 'all'; expected Capabilities"),
    "50 MB environment": (
        lambda: _DECLARED,
        lambda: {"version": "x" * (50 << 20)},
        r"environment\['version'\] is .{0,200}\(52428800 characters\); expected text of at most 10000 characters",
    ),
    "many small ones": (
        lambda: _DECLARED,
        lambda: {str(number): "x" for number in range(100_000)},
        "environment is '100000 names'; expected at most 1000",
    ),
    "large altogether": (
        lambda: _DECLARED,
        lambda: {str(number): "x" * 9000 for number in range(900)},
        r"environment is '\d+ bytes'; expected at most 500000",
    ),
    "number in environment": (lambda: _DECLARED, lambda: {"a": 1}, r"environment\['a'\] is 1; expected text"),
    "environment that is none": (lambda: _DECLARED, lambda: ["a"], r"environment is \['a'\]; expected a mapping"),
    "half a character": (lambda: _DECLARED, lambda: {"a": "\ud800"}, r"environment\['a'\] is .*UTF-8"),
    "flood": (_flood, dict, "broke the rules of its pipe"),
    "announce": (lambda: _announce(300 << 20), dict, "its message has 314572800 bytes; the limit is 1048576"),
    "forged": (
        lambda: _write(
            frame(b"\x83\xa4type\xa6opened\xaccapabilities\x81\xaccall_seconds\xa4soon\xabenvironment\x80", 0)
        ),
        dict,
        r"capabilities\.call_seconds is 'soon'",
    ),
    "nested": (lambda: _write(frame(b"\x91" * 500_000, 0)), dict, "its message cannot be read"),
}
"""By name: capabilities and environment, and what the error says."""
