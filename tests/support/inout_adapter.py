"""The reference, wrong in what it does to tensors that are input and output (`inout_adapter:Inout,fault=former`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec

Run = Callable[[Call], Outcome]


def _both(call: Call) -> list[Any]:
    if call.buffers is None:
        return []
    return [buffer for name, buffer in call.buffers.outputs.items() if name in call.buffers.inputs]


def _former(call: Call, run: Run) -> Outcome:
    """Takes what the memory holds for zeros."""
    for buffer in _both(call):
        buffer.view[...] = 0
    return run(call)


def _unwritten(call: Call, run: Run) -> Outcome:
    """Computes, and leaves the memory as it was."""
    before = [buffer.view.copy() for buffer in _both(call)]
    outcome = run(call)
    for buffer, contents in zip(_both(call), before, strict=True):
        buffer.view[...] = contents
    return outcome


def _beside(call: Call, run: Run) -> Outcome:
    """Writes a byte behind the storage."""
    outcome = run(call)
    for buffer in _both(call):
        buffer.memory[buffer.place.end] ^= 1
    return outcome


def _gap(call: Call, run: Run) -> Outcome:
    """Writes the whole storage of a view."""
    outcome = run(call)
    for buffer in _both(call):
        right = buffer.view.copy()
        buffer.octets[...] = 1
        buffer.view[...] = right
    return outcome


def _twice(call: Call, run: Run) -> Outcome:
    """Makes the call two times."""
    run(call)
    return run(call)


_FAULTS: Mapping[str, Callable[[Call, Run], Outcome]] = {
    "none": lambda call, run: run(call),
    "former": _former,
    "unwritten": _unwritten,
    "beside": _beside,
    "gap": _gap,
    "twice": _twice,
}


class Inout(ReferenceAdapter):
    def __init__(self, fault: str) -> None:
        self._fault = fault

    def open(self, target: Target, specs: Mapping[str, Spec]) -> InoutSession:
        return InoutSession(target, specs, self._fault)


class InoutSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], fault: str) -> None:
        super().__init__(target, specs)
        self._fault = fault

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [_FAULTS[self._fault](call, lambda one: super(InoutSession, self).run([one])[0]) for call in calls]
