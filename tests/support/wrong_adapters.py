"""The reference, wrong on purpose (`--adapter wrong_adapters:Wrong,fault=value`): faults that a run must find."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from aclnn_cts.adapters.protocol import Call, Capabilities
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core import hifloat8
from aclnn_cts.core.outcome import BufferState, CallEnd, Outcome
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to, to_dtype, toward_zero, widen
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import EXECUTOR_AFTER_ERROR, WRITTEN
from aclnn_cts.generate.buffers import FILLS
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.expression import UNDEFINED, Compiled, compile_node
from aclnn_cts.speclang.expression_parser import parse
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.model import Spec


def first_output(call: Call) -> Any:
    assert call.buffers is not None
    return next(iter(call.buffers.outputs.values()))


def first_input(call: Call) -> Any:
    assert call.buffers is not None
    return next(iter(call.buffers.inputs.values()))


def _value(call: Call, outcome: Outcome) -> Outcome:
    view = first_output(call).view
    if view.dtype == hifloat8.STORAGE:
        view[...] = to_dtype(widen(view) + 64, "HIFLOAT8")
    else:
        view[...] = view + view.dtype.type(64)
    return outcome


def _halved(convert: Callable[[Any], Any]) -> Callable[[Call, Outcome], Outcome]:
    """aclnnHalvedGrad with another conversion to HIFLOAT8, of values in float64 to codes."""

    def converted(call: Call, outcome: Outcome) -> Outcome:
        assert call.buffers is not None
        grad, factor = (widen(buffer.view) for buffer in call.buffers.inputs.values())
        with np.errstate(all="ignore"):
            first_output(call).view[...] = convert(grad * factor * 0.5)
        return outcome

    return converted


def _away(values: Any) -> Any:
    """Ties away from zero, and the largest finite number instead of infinities that a finite value becomes."""
    found = round_to(values * (1.0 + 2.0**-40), _HIFLOAT8)
    return to_dtype(np.where(np.isfinite(values), np.clip(found, -(2.0**15), 2.0**15), found), "HIFLOAT8")


def _truncated(values: Any) -> Any:
    return to_dtype(toward_zero(values, _HIFLOAT8), "HIFLOAT8")


def _without_denormals(values: Any) -> Any:
    return to_dtype(np.where(np.abs(values) < 2.0**-15, 0.0, values), "HIFLOAT8")


def _with_negative_zero(values: Any) -> Any:
    codes = to_dtype(values, "HIFLOAT8").view(np.uint8)
    return np.where((values < 0.0) & (codes == 0), np.uint8(0x80), codes).view(hifloat8.STORAGE)


def _unwritten(call: Call, outcome: Outcome) -> Outcome:
    view = first_output(call).view
    last = (-1,) * view.ndim
    view.view(f"u{view.itemsize}")[last] = int.from_bytes(bytes([_FILL[0]]) * view.itemsize, "little")
    return outcome


def _first_fill(call: Call, outcome: Outcome) -> Outcome:
    """Writes the bytes of the first fill, on every run: strange values, and written all the same."""
    for buffer in call.buffers.outputs.values() if call.buffers is not None else ():
        view = buffer.view
        view.view(f"u{view.itemsize}")[...] = int.from_bytes(bytes([FILLS[0]]) * view.itemsize, "little")
    return outcome


_CALLS = itertools.count(1)
_SELDOM = 29


def _seldom(call: Call, outcome: Outcome) -> Outcome:
    """Another last bit in one call of 29: right values, and not the same ones."""
    if next(_CALLS) % _SELDOM == 0:
        view = first_output(call).view
        view.view(f"u{view.itemsize}")[(0,) * view.ndim] ^= 1
    return outcome


def _input(call: Call, outcome: Outcome) -> Outcome:
    view = first_input(call).view
    view[(0,) * view.ndim] += view.dtype.type(1)
    return outcome


def _guard(call: Call, outcome: Outcome) -> Outcome:
    assert call.buffers is not None
    call.buffers.memory[-1] ^= 1
    return outcome


def _guard_denied(call: Call, outcome: Outcome) -> Outcome:
    """Writes outside, and says that all memory is as it was."""
    return msgspec.structs.replace(_guard(call, outcome), buffers=dict.fromkeys(call.case.arguments, BufferState()))


def _gap(call: Call, outcome: Outcome) -> Outcome:
    buffer = first_output(call)
    right = buffer.view.copy()
    buffer.storage.view(np.uint8)[:] = 1
    buffer.view[...] = right
    return outcome


def _reads(offset: Callable[[int], int]) -> Callable[[Call, Outcome], Outcome]:
    """Reads one byte at an offset from the start of the last input's storage, which has so many bytes."""

    def read(call: Call, outcome: Outcome) -> Outcome:
        assert call.buffers is not None
        storage: Any = list(call.buffers.inputs.values())[-1]
        ctypes.string_at(storage.octets.ctypes.data + offset(storage.octets.nbytes), 1)
        return outcome

    return read


def _status(call: Call, outcome: Outcome) -> Outcome:
    del call
    return Outcome(phase_one=161002 if outcome.phase_one == 161001 else outcome.phase_one, phase_two=outcome.phase_two)


def _executor(call: Call, outcome: Outcome) -> Outcome:
    del call
    if not outcome.phase_one:
        return outcome
    return msgspec.structs.replace(outcome, facts={EXECUTOR_AFTER_ERROR: WRITTEN})


def _inner(call: Call, outcome: Outcome) -> Outcome:
    del call
    return msgspec.structs.replace(outcome, phase_one=561002) if outcome.phase_one == 161002 else outcome


def _crash(call: Call, outcome: Outcome) -> Outcome:
    if first_output(call).view.shape[0] == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    return outcome


def _raise(call: Call, outcome: Outcome) -> Outcome:
    raise RuntimeError("no such kernel")


def _raise_surrogate(call: Call, outcome: Outcome) -> Outcome:
    raise RuntimeError("no kernel \ud800")


class _SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def _raise_speechless(call: Call, outcome: Outcome) -> Outcome:
    raise _SpeechlessError


def _slow(call: Call, outcome: Outcome) -> Outcome:
    time.sleep(0.05)
    return outcome


def _excluded(call: Call, outcome: Outcome) -> Outcome:
    """Writes zeros into every output that the call does not ask for: what the reference left alone."""
    for buffer in call.buffers.outputs.values() if call.buffers is not None else ():
        view = buffer.view
        if (view.view(f"u{view.itemsize}") == int.from_bytes(bytes([_FILL[0]]) * view.itemsize, "little")).all():
            view[...] = 0
    return outcome


_HIFLOAT8 = BINARY_FORMATS["HIFLOAT8"]
_FILL = [FILLS[0]]
"""The fill of the run that is going on: what was there before the reference wrote over it."""
_FAULTS: Mapping[str, Callable[[Call, Outcome], Outcome]] = {
    "none": lambda _call, outcome: outcome,
    "value": _value,
    "hifloat8-away": _halved(_away),
    "hifloat8-truncates": _halved(_truncated),
    "hifloat8-flushes": _halved(_without_denormals),
    "hifloat8-negative-zero": _halved(_with_negative_zero),
    "unwritten": _unwritten,
    "first-fill": _first_fill,
    "seldom": _seldom,
    "input": _input,
    "guard": _guard,
    "guard-denied": _guard_denied,
    "gap": _gap,
    "excluded": _excluded,
    "reads-last": _reads(lambda size: size - 1),
    "reads-behind": _reads(lambda size: size),
    "reads-before": _reads(lambda _size: -1),
    "crash": _crash,
    "raise-surrogate": _raise_surrogate,
    "raise-speechless": _raise_speechless,
    "raise": _raise,
}
_ALWAYS: Mapping[str, Callable[[Call, Outcome], Outcome]] = {
    "status": _status,
    "slow": _slow,
    "executor": _executor,
    "inner": _inner,
}


class Wrong(ReferenceAdapter):
    def __init__(self, fault: str = "none") -> None:
        self._fault = fault

    def open(self, target: Target, specs: Mapping[str, Spec]) -> WrongSession:
        return WrongSession(target, specs, self._fault)


class WrongSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], fault: str) -> None:
        super().__init__(target, specs)
        self._fault = fault

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [self._wrong(call) for call in calls]

    def _wrong(self, call: Call) -> Outcome:
        if call.buffers is not None and call.buffers.outputs and first_output(call).view.size:
            _FILL[0] = int(first_output(call).view.reshape(-1)[:1].view(np.uint8)[0])
        (outcome,) = super().run([call])
        if self._fault in _ALWAYS:
            return _ALWAYS[self._fault](call, outcome)
        if call.buffers is None or outcome.status or not first_output(call).view.size:
            return outcome
        return _FAULTS[self._fault](call, outcome)


class Refusing(ReferenceAdapter):
    """The reference, which refuses each call that meets an expression (`Refusing,when=dtype(self) == BF16`)."""

    def __init__(self, when: str) -> None:
        self._when = compile_node(parse(when))

    def open(self, target: Target, specs: Mapping[str, Spec]) -> RefusingSession:
        return RefusingSession(target, specs, self._when)


class RefusingSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], when: Compiled) -> None:
        super().__init__(target, specs)
        self._when = when

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [
            Outcome(phase_one=161002) if self._refuses(call) else super(RefusingSession, self).run([call])[0]
            for call in calls
        ]

    def _refuses(self, call: Call) -> bool:
        try:
            return bool(self._when(call.case.arguments, call.case.target))
        except UNDEFINED:
            return False


class Lenient(ReferenceAdapter):
    """The reference, which enforces no limit."""

    def open(self, target: Target, specs: Mapping[str, Spec]) -> LenientSession:
        return LenientSession(target, specs)


class LenientSession(ReferenceSession):
    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [
            Outcome(phase_one=0)
            if evaluate(self._specs[call.case.operator], call.case).strength == Strength.LIMIT
            else super(LenientSession, self).run([call])[0]
            for call in calls
        ]


class Patching(ReferenceAdapter):
    """The reference, which replaces a function of NumPy by one that raises as soon as it has made its first call."""

    def __init__(self, name: str) -> None:
        self._name = name

    def open(self, target: Target, specs: Mapping[str, Spec]) -> PatchingSession:
        return PatchingSession(target, specs, self._name)


class PatchingSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], name: str) -> None:
        super().__init__(target, specs)
        self._name = name

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        outcomes = super().run(calls)
        setattr(np, self._name, _patched)
        return outcomes


def _patched(*_words: Any, **_options: Any) -> Any:
    raise TypeError("this function was replaced")


class Breaking(ReferenceAdapter):
    """The reference, whose device breaks at outputs of so many elements; it rejects those of fewer.

    `mark=FILE`: from then on, which makes the file, all processes reject every call.
    """

    def __init__(self, elements: str, mark: str = "") -> None:
        self._elements = int(elements)
        self._mark = Path(mark) if mark else None

    def open(self, target: Target, specs: Mapping[str, Spec]) -> BreakingSession:
        return BreakingSession(target, specs, self._elements, self._mark)


class BreakingSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], elements: int, mark: Path | None) -> None:
        super().__init__(target, specs)
        self._elements, self._mark = elements, mark

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [self._break(call) for call in calls]

    def _break(self, call: Call) -> Outcome:
        elements = first_output(call).view.size
        if elements < self._elements or (self._mark is not None and self._mark.exists()):
            return Outcome(phase_one=561000)
        if elements == self._elements:
            if self._mark is not None:
                self._mark.touch()
            return Outcome(ended=CallEnd.DEVICE_FAULT, message="the device broke")
        (outcome,) = super().run([call])
        return outcome


class Late(ReferenceAdapter):
    """The reference, which writes each output some milliseconds after its call has returned.

    Until then an output holds what it held before the call or, `first=zeros`, zeros. `milliseconds=next`: it is written
    when the next call is made.
    """

    def __init__(self, milliseconds: str = "2", first: str = "nothing") -> None:
        self._seconds = None if milliseconds == "next" else float(milliseconds) / 1e3
        self._first = first

    def open(self, target: Target, specs: Mapping[str, Spec]) -> LateSession:
        return LateSession(target, specs, self._seconds, zeros=self._first == "zeros")


class LateSession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], seconds: float | None, *, zeros: bool) -> None:
        super().__init__(target, specs)
        self._seconds, self._zeros = seconds, zeros
        self._waiting: Callable[[], None] = lambda: None

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [self._late(call) for call in calls]

    def _late(self, call: Call) -> Outcome:
        self._waiting()
        assert call.buffers is not None
        views = [buffer.view for buffer in call.buffers.outputs.values()]
        before = [np.zeros_like(view) if self._zeros else view.copy() for view in views]
        (outcome,) = super().run([call])
        right = [view.copy() for view in views]
        _write(views, before)
        self._waiting = lambda: None
        if self._seconds is None:
            self._waiting = lambda: _write(views, right)
        else:
            threading.Timer(self._seconds, _write, (views, right)).start()
        return outcome


def _write(views: Sequence[Any], contents: Sequence[Any]) -> None:
    for view, content in zip(views, contents, strict=True):
        view[...] = content


class Faithful:
    """Answers what it is told for the sixth operator and knows no oracle: for tests of the oracle's own mistakes."""

    environment: Mapping[str, str] = {}

    def open(self, target: Target, specs: Mapping[str, Spec]) -> Faithful:
        return self

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(description="writes zeros", statuses=True, phases=True, in_place=True)

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        for call in calls:
            for buffer in call.buffers.outputs.values() if call.buffers is not None else ():
                buffer.view[...] = 0
        return [Outcome(phase_one=0, phase_two=0) for _ in calls]

    def close(self) -> None: ...
