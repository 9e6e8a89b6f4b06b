"""Implementations that would like to conform without the work: `--adapter cheap_adapters:Cheap,way=few`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec

Answer = Callable[["CheapSession", Call], Outcome | None]
"""What is answered in place of the reference's outcome; None: that outcome."""


def _refused(why: str) -> Outcome:
    return Outcome(ended=CallEnd.INEXPRESSIBLE, message=why)


def _few(session: CheapSession, call: Call) -> Outcome | None:
    return None if session.number <= 24 else _refused(f"call {session.number} is one too many")


def _zeros(session: CheapSession, call: Call) -> Outcome | None:
    if call.buffers is None:
        return _refused("no outputs, no zeros")
    session.right(call)
    zero = not any(buffer.view.any() for buffer in call.buffers.outputs.values())
    return None if zero else _refused("something else than zeros is right")


def _without_bf16(session: CheapSession, call: Call) -> Outcome | None:
    return _refused("BF16 is for others") if _uses(call, "BF16") else None


def _without_int32(session: CheapSession, call: Call) -> Outcome | None:
    return _refused("indices are INT64") if _uses(call, "INT32") and not _breaks(session, call) else None


def _uses(call: Call, dtype: str) -> bool:
    return any(tensor.dtype == dtype for _, tensor in call.case.tensors())


def _lenient(session: CheapSession, call: Call) -> Outcome | None:
    return _refused("a wrong call is the caller's mistake") if _breaks(session, call) else None


def _breaks(session: CheapSession, call: Call) -> bool:
    return bool(evaluate(session.specs[call.case.operator], call.case).broken)


def _small(session: CheapSession, call: Call) -> Outcome | None:
    large = any(tensor.numel > 4 for _, tensor in call.case.tensors())
    return _refused("the call is too large") if large else None


def _busy(session: CheapSession, call: Call) -> Outcome | None:
    large = any(tensor.numel > 64 for _, tensor in call.case.tensors())
    return Outcome(ended=CallEnd.NOT_RUN, message="the device is out of memory") if large else None


def _half(session: CheapSession, call: Call) -> Outcome | None:
    refused = call.buffers is not None and session.number % 2 and not _breaks(session, call)
    return _refused("every other valid call") if refused else None


_ANSWERS: Mapping[str, Answer] = {
    "few": _few,
    "zeros": _zeros,
    "bf16": _without_bf16,
    "int32": _without_int32,
    "lenient": _lenient,
    "small": _small,
    "busy": _busy,
    "half": _half,
    "nothing": lambda _session, _call: _refused("no words for any call"),
    "errors": lambda _session, _call: Outcome(phase_one=161002),
    "honest": lambda _session, _call: None,
}
_SCOPES: Mapping[str, Mapping[str, object]] = {
    "float": {"dtypes": frozenset({"FLOAT"})},
    "statusless": {
        "statuses": False,
        "call_modes": frozenset({"cache", "order", "repeat", "stream", "times", "workspace"}),
    },
    "no-operator": {"operators": frozenset()},
}


class Cheap(ReferenceAdapter):
    def __init__(self, way: str, mark: str = "") -> None:
        self._way, self._mark = way, mark

    def open(self, target: Target, specs: Mapping[str, Spec]) -> CheapSession:
        return CheapSession(target, specs, self._way, self._mark)


class CheapSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], way: str, mark: str) -> None:
        super().__init__(target, specs)
        self.specs, self.number = specs, 0
        self._answer = _ANSWERS.get(way, _ANSWERS["honest"])
        scope = _SCOPES.get(way, {})
        if way == "shrinking":
            if Path(mark).exists():
                scope, self._answer = _SCOPES["float"], _without_bf16
            Path(mark).touch()
        self.capabilities = dataclasses.replace(self.capabilities, **scope)  # type: ignore[arg-type]  # by name

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [self._one(call) for call in calls]

    def right(self, call: Call) -> Outcome:
        [outcome] = super().run([call])
        return outcome

    def _one(self, call: Call) -> Outcome:
        self.number += 1
        return self._answer(self, call) or self.right(call)
