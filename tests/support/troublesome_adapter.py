"""An adapter that does what the call's call mode says: doubles its input, or comes to grief in the way asked for."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from aclnn_cts.adapters.protocol import Call, Capabilities, Inexpressible
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec

OPERATOR = "aclnnDouble"


class Troublesome:
    capabilities = Capabilities(description="trouble", phases=True, call_modes=frozenset({"do"}))

    def __init__(self, opening: str = "ready") -> None:
        self._opening = opening
        self._calls = 0

    @property
    def environment(self) -> Mapping[str, str]:
        return {"pid": str(os.getpid())}

    def open(self, target: Target, specs: Mapping[str, Spec]) -> Troublesome:
        del target
        _OPENINGS[self._opening](specs)
        return self

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        self._calls += 1
        outcomes = [self._one(call, len(calls)) for call in calls]
        return outcomes[: len(outcomes) - sum(call.call_mode.get("do") == "lose" for call in calls)]

    def close(self) -> None: ...

    def _one(self, call: Call, together: int) -> Outcome:
        what = str(call.call_mode.get("do", "double"))
        if what in _TROUBLE:
            _TROUBLE[what]()
        if what == "fault":
            return Outcome(ended=CallEnd.DEVICE_FAULT, message="507015")
        if call.buffers is not None and call.buffers.outputs:
            call.buffers.outputs["out"].view[...] = call.buffers.inputs["x"].view * np.float32(2)
        facts = {"pid": os.getpid(), "calls": self._calls, "together": together, "buffers": call.buffers is not None}
        return Outcome(facts=facts)


def _read_null() -> None:
    ctypes.string_at(0)


def _abort() -> None:
    os.write(2, b"check failed: everything is lost\n")
    os.abort()


def _hang() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    os.write(1, b"waiting for the device\n")
    time.sleep(3600)


def _nap() -> None:
    time.sleep(0.3)


def _swallow() -> None:
    kept = []
    while True:
        kept.append(np.ones(1 << 24, np.uint8))
        time.sleep(0.01)


_LEAKED: list[object] = []


def _leak() -> None:
    _LEAKED.append(np.ones(1 << 22, np.uint8))
    time.sleep(0.002)


def _leave_a_child() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    os._exit(3)


def _refuse() -> None:
    raise ValueError("dim is out of range")


def _speechless() -> None:
    raise Inexpressible("no word for it")


def _talk() -> None:
    os.write(1, b"x" * 100_000 + b"\n")


def _talk_and_abort() -> None:
    _talk()
    _abort()


def _exit_soon() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.05)


_TROUBLE: Mapping[str, Callable[[], object]] = {
    "read null": _read_null,
    "abort": _abort,
    "exit": lambda: os._exit(7),
    "sys.exit": lambda: sys.exit(4),
    "hang": _hang,
    "nap": _nap,
    "swallow": _swallow,
    "leak": _leak,
    "leave a child": _leave_a_child,
    "refuse": _refuse,
    "speechless": _speechless,
    "talk": _talk,
    "talk and abort": _talk_and_abort,
    "die later": _exit_soon,
    "close the pipe": lambda: os.closerange(3, 64),
}


def _fail(specs: Mapping[str, Spec]) -> None:
    del specs
    raise RuntimeError("no such device")


_OPENINGS: Mapping[str, Callable[[Mapping[str, Spec]], object]] = {
    "ready": lambda _: None,
    "fail": _fail,
    "crash": lambda _: _abort(),
    "specs": len,
}
