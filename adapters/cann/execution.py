"""One call on a device: its memory with guard bands, its steps, and the ways to depart from the ordinary life cycle.

What may be released when: descriptors once phase two has returned, device memory and workspace once the stream was
waited for, an executor only where phase two has not used it up. After a device fault, or a wait that ran out, nothing
is released: the device may still be writing, and the process is given up.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.cann.bindings import RUNTIME_ERRORS, SUCCESS, Functions, OperatorFunctions, ended_by, error_name
from aclnn_cts.adapters.cann.descriptors import Descriptors
from aclnn_cts.adapters.cann.device import recent_message
from aclnn_cts.adapters.protocol import Call, Inexpressible
from aclnn_cts.core.outcome import ADDRESSES, EARLIER_FAULT, BufferState, CallEnd, Outcome, StrayWrite
from aclnn_cts.core.verdict import EXECUTOR_AFTER_ERROR, WRITTEN
from aclnn_cts.generate.buffers import GUARD, CallBuffers, TensorPlace, block_layout
from aclnn_cts.speclang.model import Spec

_TO_DEVICE = 1
_TO_HOST = 2
_SIDES = {_TO_DEVICE: "device", _TO_HOST: "host"}
_HUGE_FIRST = 0
_BAND = 0x5C
_STALE = 0xD7
"""What a workspace holds before the call: nobody promises zeros, so a kernel that counts on them should fail here."""

WORKSPACE = "workspace"
"""The name under which `Outcome.buffers` tells of it."""

Bytes = NDArray[np.uint8]


class RuntimeFailure(Exception):  # noqa: N818 - it carries a code that says whether it is anybody's error
    """The runtime returned an error where the harness uses it: the code, and what was asked for."""

    def __init__(self, code: int, what: str) -> None:
        super().__init__(f"{what} returned {error_name(code)}")
        self.code = code


def raise_on_error(code: int, what: str) -> None:
    """Raise RuntimeFailure for every code but success."""
    if code != SUCCESS:
        raise RuntimeFailure(code, what)


class DeviceTensors:
    """Copies of the places of a host block on the device."""

    __slots__ = ("_block", "_places", "_regions", "_runtime")

    def __init__(self, runtime: Functions, block: Bytes, places: Mapping[str, TensorPlace]) -> None:
        self._runtime = runtime
        self._block = block
        self._places = places
        self._regions: dict[str, int] = {}
        try:
            for name, place in places.items():
                self._regions[name] = _allocate(runtime, place.stop - place.start)
            self.fill()
        except BaseException:
            self.release()
            raise

    @property
    def addresses(self) -> dict[str, int]:
        """The device address at which each tensor's storage starts."""
        places = self._places
        return {name: start + places[name].offset - places[name].start for name, start in self._regions.items()}

    def fill(self) -> None:
        """Make the device's memory what the host's is."""
        self._copy(_TO_DEVICE)

    def read_back(self) -> None:
        """Make the host's memory what the device's is, guards and inputs included."""
        self._copy(_TO_HOST)

    def _copy(self, direction: int) -> None:
        base = _address(self._block)
        copy = self._runtime["aclrtMemcpy"]
        for name, start in self._regions.items():
            place = self._places[name]
            size = place.stop - place.start
            target, source = base + place.start, start
            if direction == _TO_DEVICE:
                target, source = source, target
            raise_on_error(copy(target, size, source, size, direction), f"aclrtMemcpy to the {_SIDES[direction]}")

    def release(self) -> None:
        """Free everything. May be called again."""
        free = self._runtime["aclrtFree"]
        while self._regions:
            free(self._regions.popitem()[1])


class Workspace:
    """A workspace of `size` bytes at `address`, between guard bands unless they are not wanted."""

    __slots__ = ("_band", "_region", "_runtime", "address", "size")

    def __init__(self, runtime: Functions, size: int, *, guarded: bool = True) -> None:
        self._runtime = runtime
        self._band = GUARD if guarded else 0
        self.size = size
        self._region = _allocate(runtime, size + 2 * self._band)
        self.address = self._region + self._band
        try:
            whole = size + 2 * self._band
            if self._band:
                raise_on_error(runtime["aclrtMemset"](self._region, whole, _BAND, whole), "aclrtMemset")
            raise_on_error(runtime["aclrtMemset"](self.address, size, _STALE, size), "aclrtMemset")
        except BaseException:
            self.release()
            raise

    def inspect(self) -> BufferState | None:
        """What became of the bands; None where nothing did."""
        if not self._band:
            return None
        bands = {start: self._changed(start) for start in (self._region, self.address + self.size)}
        before, after = (len(offsets) for offsets, _ in bands.values())
        if not before and not after:
            return None
        start, (offsets, band) = next((start, found) for start, found in bands.items() if len(found[0]))
        first = int(offsets[0])
        stray = StrayWrite(
            offset=start + first - self.address,
            before=bytes((_BAND,)).hex(),
            after=band[first : first + 1].tobytes().hex(),
            address=f"{start + first:#x}",
        )
        return BufferState(guard_before=before, guard_after=after, stray=stray)

    def release(self) -> None:
        """Free it. May be called again."""
        if self._region:
            self._runtime["aclrtFree"](self._region)
            self._region = 0

    def _changed(self, start: int) -> tuple[Any, Bytes]:
        """Offsets of the changed bytes of a band, and the band."""
        band: Bytes = np.empty(self._band, np.uint8)
        copy: Any = self._runtime["aclrtMemcpy"]
        raise_on_error(copy(_address(band), self._band, start, self._band, _TO_HOST), "aclrtMemcpy to the host")
        return np.flatnonzero(band != _BAND), band


def _allocate(runtime: Functions, size: int) -> int:
    pointer = ctypes.c_void_p()
    raise_on_error(runtime["aclrtMalloc"](ctypes.byref(pointer), size, _HUGE_FIRST), f"aclrtMalloc of {size} bytes")
    return int(pointer.value or 0)


def _address(block: Bytes) -> int:
    return int(block.__array_interface__["data"][0])


_UNTOUCHED_SIZE = 0xA5A5_5A5A_A5A5_5A5A
_UNTOUCHED_EXECUTOR = 0x5EED_0BAD_5EED_0BAD
"""What stands where phase one writes; no executor has this address on any machine that CANN runs on."""

_FRESH_SLACK = 4096

GIVEN_UP = frozenset({CallEnd.DEVICE_FAULT, CallEnd.TIME_LIMIT, CallEnd.DEVICE_LOST})
"""Ends after which the device may still be at work in this process's memory."""


@dataclass(frozen=True, slots=True)
class RuntimeApi:
    """The functions of an installation. `runtime` may lack everything where it answers first phases alone."""

    runtime: Functions
    meta: Functions

    def message(self) -> str:
        """What the libraries last said on this thread."""
        return recent_message(self.runtime)


@dataclass(slots=True)
class Execution:
    """A call in progress. Make it, take the steps, and `release` in any case."""

    api: RuntimeApi
    functions: OperatorFunctions
    spec: Spec
    call: Call
    _began: float = field(default_factory=time.perf_counter)
    _tensors: DeviceTensors | None = None
    _descriptors: Descriptors | None = None
    _workspace: Workspace | None = None
    _executor: int = 0
    _needed: int | None = None
    _status_one: int | None = None
    _status_two: int | None = None
    _synchronised: int | None = None
    _ended: str = CallEnd.RETURNED
    _message: str = ""
    _states: dict[str, BufferState] = field(default_factory=dict)
    facts: dict[str, str | int | float | bool] = field(default_factory=dict)
    """Recorded with the outcome."""

    @property
    def goes_on(self) -> bool:
        """Whether phase one has succeeded and phase two is to follow."""
        return self.accepted and self._ended == CallEnd.RETURNED and self.wants_phase_two

    @property
    def wants_phase_two(self) -> bool:
        """Whether the call is of both phases and has memory to work on."""
        return self.call.buffers is not None and self.call.case.call.phases != 1

    @property
    def accepted(self) -> bool:
        """Whether phase one returned success."""
        return self._status_one == SUCCESS

    @property
    def is_queued(self) -> bool:
        """Whether phase two was called and its stream has not been waited for since."""
        return self._status_two is not None and self._synchronised is None

    @property
    def stream_number(self) -> int:
        """Which of the session's streams the call runs on."""
        return whole_number(self.call, "stream", default=0)

    def prepare(self) -> None:
        """Bring the buffers to the device and make the descriptors."""
        buffers = self.call.buffers
        addresses = {}
        if buffers is not None and self.wants_phase_two:
            plan = (
                buffers.layout
                if isinstance(buffers, CallBuffers)
                else block_layout(self.call.case, frozenset(buffers.outputs))
            )
            self._tensors = DeviceTensors(self.api.runtime, buffers.memory, plan.places)
            addresses = self._tensors.addresses
            self.facts[ADDRESSES] = ",".join(f"{name}={start:#x}" for name, start in addresses.items())
        self._descriptors = Descriptors(self.api.meta, self.spec, self.call.case, addresses=addresses)

    def phase_one(self) -> None:
        """Ask for the workspace's size and the executor."""
        if self._descriptors is None:
            raise RuntimeError("prepare() comes before phase_one()")
        size = ctypes.c_uint64(_UNTOUCHED_SIZE)
        executor = ctypes.c_void_p(_UNTOUCHED_EXECUTOR)
        null = self.call.case.call.null
        self._status_one = status = self.functions.phase_one(
            *self._descriptors.arguments,
            None if "workspaceSize" in null else ctypes.byref(size),
            None if "executor" in null else ctypes.byref(executor),
        )
        if status in RUNTIME_ERRORS:
            self._end(status, f"phase one returned {error_name(status)}")
            return
        if status != SUCCESS:
            self._message = self.api.message()
            self.facts["workspaceSize after the error"] = "untouched" if size.value == _UNTOUCHED_SIZE else size.value
            self.facts[EXECUTOR_AFTER_ERROR] = _executor_fact(executor.value)
            return
        if "executor" not in null:
            if executor.value is None or executor.value == _UNTOUCHED_EXECUTOR:
                self._refused(f"phase one returned success, and executor is {_executor_fact(executor.value)}")
                return
            self._executor = executor.value
        if "workspaceSize" not in null:
            if size.value == _UNTOUCHED_SIZE:
                self._refused("phase one returned success and did not write workspaceSize")
                return
            self._needed = size.value

    def allocate_workspace(self) -> None:
        """As much as phase one asked for, between guard bands, or as its call mode says."""
        wanted = self.call.call_mode.get("workspace")
        size = self._needed or 0
        if wanted == "larger":
            size = 2 * size + _FRESH_SLACK
        if size:
            self._workspace = Workspace(self.api.runtime, size, guarded=wanted != "exact")

    def phase_two(self, stream: int, *, repeatable: bool = False) -> None:
        """Queue the work. The executor is used up, whatever comes back, unless it was made repeatable."""
        workspace = self._workspace
        missing = "workspace" in self.call.case.call.null
        address = workspace.address if workspace is not None and not missing else None
        size = workspace.size if workspace is not None else 0
        executor = self._executor
        if not repeatable:
            self._executor = 0
        self._synchronised = None
        self._status_two = self.functions.phase_two(address, size, executor, stream)
        if self._status_two in RUNTIME_ERRORS:
            self._end(self._status_two, f"phase two returned {error_name(self._status_two)}")
        elif self._status_two != SUCCESS:
            self._message = self.api.message()

    def make_repeatable(self) -> None:
        """Let the executor be used more than once. Raises Inexpressible where the library will not."""
        status = self.api.meta["aclSetAclOpExecutorRepeatable"](self._executor)
        if status != SUCCESS:
            raise Inexpressible(f"aclSetAclOpExecutorRepeatable returned {status}: this plan cannot be repeated")

    def synchronised(self, code: int) -> None:
        """What waiting for the stream came to."""
        self._synchronised = code
        if code != SUCCESS:
            self._end(code, f"waiting for the stream returned {error_name(code)}")
            if self._ended == CallEnd.NOT_RUN:
                # Nobody knows whether the work is done: its memory must stay, and the process be given up.
                self._ended = CallEnd.DEVICE_LOST

    def failed(self, failure: RuntimeFailure, *, outranks: bool = False) -> None:
        """The runtime refused what the harness asked of it; `outranks` puts it before what was said already."""
        if self._ended == CallEnd.RETURNED or outranks:
            self._end(failure.code, str(failure))

    def refill(self) -> None:
        """Make the device's buffers what they were before the call."""
        if self._tensors is not None:
            self._tensors.fill()

    def read_back(self) -> None:
        """Bring the buffers back, and look at what lies around the workspace."""
        if self._tensors is not None:
            self._tensors.read_back()
        if self._workspace is not None and (state := self._workspace.inspect()) is not None:
            self._states[WORKSPACE] = state

    def release(self) -> None:
        """Give everything back, in the order that lifetimes ask for. May be called again."""
        if self._ended in GIVEN_UP:
            return
        if self._executor and "aclDestroyAclOpExecutor" in self.api.meta:
            self.api.meta["aclDestroyAclOpExecutor"](self._executor)
        self._executor = 0
        if self._descriptors is not None:
            self._descriptors.release()
        if self._workspace is not None:
            self._workspace.release()
        if self._tensors is not None:
            self._tensors.release()

    def outcome(self) -> Outcome:
        """What came of it."""
        return Outcome(
            ended=self._ended,
            phase_one=self._status_one,
            phase_two=self._status_two,
            synchronised=self._synchronised,
            message=self._message,
            workspace_size=self._needed,
            seconds=time.perf_counter() - self._began,
            buffers=self._states,
            facts=self.facts,
        )

    def _refused(self, message: str) -> None:
        self._ended, self._message = CallEnd.RAISED, message

    def _end(self, code: int, what: str) -> None:
        self._ended = ended_by(code)
        if self._ended in (CallEnd.DEVICE_FAULT, CallEnd.TIME_LIMIT) and self._status_two is None:
            # Nothing of this call has reached the device yet: the fault is of one before it.
            self._ended = CallEnd.DEVICE_LOST
            self.facts[EARLIER_FAULT] = what
        said = self.api.message()
        self._message = f"{what}{': ' + said if said else ''}"


def _executor_fact(value: int | None) -> str:
    if value == _UNTOUCHED_EXECUTOR:
        return "untouched"
    return "null" if value is None else WRITTEN


FIRST_PHASE = ("cache", "times")
"""`cache`: `cold`, the call meets a library that has not accepted it before in this process. `times`: how often phase
one is made in a row, with what the process grew by."""

BOTH_PHASES = ("order", "stream", "workspace")
"""`stream`: number of the stream that a call of a group runs on. `order`: `interleaved`, the phases of a group's calls
alternate. `workspace`: `exact` (an allocation of just that size) or `larger`."""

_REPEAT = "repeat"
"""How often an executor that was made repeatable is run."""


def available(runtime: Functions, meta: Functions) -> frozenset[str]:
    """The words that an installation can be asked for."""
    words = set(FIRST_PHASE)
    if "aclrtMalloc" in runtime:
        words.update(BOTH_PHASES)
        if "aclSetAclOpExecutorRepeatable" in meta and "aclDestroyAclOpExecutor" in meta:
            words.add(_REPEAT)
    return frozenset(words)


def whole_number(call: Call, word: str, *, default: int) -> int:
    """The number of a word in a call's call mode."""
    value = call.call_mode.get(word, default)
    return value if isinstance(value, int) else default


def times_of(calls: Sequence[Call]) -> int:
    """How often the first phase of a lone call is made."""
    return whole_number(calls[0], "times", default=1) if len(calls) == 1 else 1
