"""The reference, wrong in few cases (`--adapter rare_adapter:Rare,fault=tail`): what a campaign has to find."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec


def _first(call: Call) -> Any:
    assert call.buffers is not None
    return next(iter(call.buffers.outputs.values())).view


def _tail(session: RareSession, view: Any) -> None:
    """The last element of an odd number of at least nine, in one dtype."""
    if view.dtype == np.float16 and view.size >= 9 and view.size % 2:
        view[(-1,) * view.ndim] = np.float16(777.0)


def _seldom(session: RareSession, view: Any) -> None:
    """The last element of few numbers of them, in another dtype."""
    if view.dtype == np.float32 and view.size % 13 == 9:
        view[(-1,) * view.ndim] = np.float32(777.0)


def _two(session: RareSession, view: Any) -> None:
    """Two faults, one of them seldom."""
    _tail(session, view)
    _seldom(session, view)


def _sometimes(session: RareSession, view: Any) -> None:
    """Every third such call of all that were ever made, counted in a file."""
    if view.dtype == np.float16 and view.size >= 9:
        with open(os.environ["RARE_COUNTER"], "a+b") as file:  # noqa: PTH123 - nothing but an append
            file.write(b".")
            file.flush()
            if file.tell() % 3:
                _tail(session, view.reshape(-1)[: view.size - 1 + view.size % 2])


def _now_and_then(session: RareSession, view: Any) -> None:
    """The first and every seventh of all calls that were ever made, counted in a file."""
    with open(os.environ["RARE_COUNTER"], "a+b") as file:  # noqa: PTH123 - nothing but an append
        file.write(b".")
        file.flush()
        if file.tell() == 1 or not file.tell() % 7:
            view[(-1,) * view.ndim] = view.dtype.type(777.0)


def _company(session: RareSession, view: Any) -> None:
    """A process that has made many calls."""
    session.calls += 1
    if session.calls > 10:
        _tail(session, view)


def _die(session: RareSession, view: Any) -> None:
    if view.dtype == np.float16 and view.size >= 9 and view.size % 2:
        os.abort()


def _device(session: RareSession, view: Any) -> None:
    if session.device == "1":
        _tail(session, view)


def _slow(session: RareSession, view: Any) -> None:
    time.sleep(0.002)
    _two(session, view)


_FAULTS: Mapping[str, Callable[[RareSession, Any], None]] = {
    "none": lambda _session, _view: None,
    "tail": _tail,
    "two": _two,
    "sometimes": _sometimes,
    "now-and-then": _now_and_then,
    "company": _company,
    "die": _die,
    "device": _device,
    "slow": _slow,
}


class Rare(ReferenceAdapter):
    def __init__(self, fault: str = "none", device: str = "0") -> None:
        self._fault, self._device = fault, device

    def open(self, target: Target, specs: Mapping[str, Spec]) -> RareSession:
        return RareSession(target, specs, self._fault, self._device)


class RareSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], fault: str, device: str) -> None:
        super().__init__(target, specs)
        self._fault, self.device = fault, device
        self.calls = 0

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        outcomes = super().run(calls)
        for call, outcome in zip(calls, outcomes, strict=True):
            if call.buffers is not None and call.buffers.outputs and not outcome.status and _first(call).size:
                _FAULTS[self._fault](self, _first(call))
        return outcomes
