# ruff: noqa: N802 - C functions, by their names in C and with whatever ctypes hands them
"""A runtime, a descriptor interface and operators in Python that keep account of lifetimes, and fail where asked to.

What the real ones leave undefined is a mistake here: memory freed while a kernel may use it, an executor used twice, a
descriptor destroyed before phase two. `mistakes` holds what was done wrong, `alive` what was not given back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from aclnn_cts.adapters.cann.bindings import META, RUNTIME, Functions
from aclnn_cts.adapters.cann.device import Device
from aclnn_cts.adapters.cann.execution import RuntimeApi, available
from aclnn_cts.adapters.cann.library import CFunction, Library, MissingSymbolError, Prototype
from aclnn_cts.adapters.cann.session import CannSession
from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.speclang.load import load_specs

SPECS = load_specs()
EXECUTOR = 0x1000
Kernel = Callable[["RecordingDevice", tuple[Any, ...], int, int], None]


@dataclass(slots=True)
class RecordingDevice:
    """The whole installation: functions by name, in `functions`."""

    fails: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Of a function: which of its calls fails (from 1 on), and with what."""
    lacks: frozenset[str] = frozenset()
    """Functions that this release does not have."""
    workspace: int = 96
    kernel: Kernel = lambda *_: None
    """What phase two does: with the device, phase one's arguments, and address and size of the workspace."""
    waits: int = 0
    """What waiting for a stream comes to."""
    message: bytes = b"the device's own words"
    log: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    alive: dict[str, set[int]] = field(default_factory=dict)
    blocks: dict[int, Any] = field(default_factory=dict)
    tensors: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    held: dict[int, Any] = field(default_factory=dict)
    """What scalars, arrays of bools or floats, and lists were made from, by handle."""
    executors: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    repeatable: set[int] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    queued: list[int] = field(default_factory=list)
    handles: Iterator[int] = field(default_factory=lambda: iter(range(EXECUTOR, 1 << 30, 16)))

    def function(self, name: str) -> Callable[..., Any]:
        own = getattr(self, f"_{name}", None)

        def call(*arguments: Any) -> Any:
            self.log.append(name)
            self.counts[name] = self.counts.get(name, 0) + 1
            number, code = self.fails.get(name, (0, 0))
            if number == self.counts[name]:
                return code
            return own(*arguments) if own is not None else 0

        return call

    def _made(self, kind: str) -> int:
        handle = next(self.handles)
        self.alive.setdefault(kind, set()).add(handle)
        return handle

    def _gone(self, kind: str, handle: int) -> int:
        if handle not in self.alive.get(kind, ()):
            self.mistakes.append(f"{kind} {handle:#x} is given back and is not there")
        self.alive.get(kind, set()).discard(handle)
        return 0

    def _aclrtMalloc(self, out: Any, size: int, policy: int) -> int:
        del policy
        block = ctypes.create_string_buffer(size)
        address = ctypes.addressof(block)
        self.blocks[address] = block
        self.alive.setdefault("memory", set()).add(address)
        out._obj.value = address
        return 0

    def _aclrtFree(self, address: int) -> int:
        if self.queued:
            self.mistakes.append("memory is freed while work is queued")
        return self._gone("memory", address)

    def _aclrtMemcpy(self, target: int, room: int, source: int, size: int, kind: int) -> int:
        if kind == 2 and self.queued:
            self.mistakes.append("read before the stream was waited for")
        if size > room or not size:
            self.mistakes.append(f"a copy of {size} bytes to {room}")
        ctypes.memmove(target, source, size)
        return 0

    def _aclrtMemset(self, target: int, room: int, value: int, size: int) -> int:
        del room
        ctypes.memset(target, value, size)
        return 0

    def _aclrtCreateStream(self, out: Any) -> int:
        out._obj.value = self._made("stream")
        return 0

    def _aclrtDestroyStream(self, handle: int) -> int:
        return self._gone("stream", handle)

    def _aclrtSynchronizeStreamWithTimeout(self, handle: int, milliseconds: int) -> int:
        del milliseconds
        return self._aclrtSynchronizeStream(handle)

    def _aclrtSynchronizeStream(self, handle: int) -> int:
        if handle not in self.alive.get("stream", ()):
            self.mistakes.append("a stream that is not there is waited for")
        self.queued.clear()
        return self.waits

    def _aclGetRecentErrMsg(self) -> bytes:
        text, self.message = self.message, b""
        return text

    def _aclCreateTensor(self, *arguments: Any) -> int:
        handle = self._made("tensor")
        self.tensors[handle] = arguments
        return handle

    def _aclDestroyTensor(self, handle: int) -> int:
        if any(handle in arguments for arguments in self.executors.values()):
            self.mistakes.append("a tensor is destroyed while an executor refers to it")
        return self._gone("tensor", handle)

    def _aclCreateIntArray(self, *_: Any) -> int:
        return self._made("array")

    def _aclDestroyIntArray(self, handle: int) -> int:
        return self._gone("array", handle)

    def _aclCreateBoolArray(self, items: Any, size: int) -> int:
        return self._holding("bool array", list(items)[:size])

    def _aclDestroyBoolArray(self, handle: int) -> int:
        return self._gone("bool array", handle)

    def _aclCreateFloatArray(self, items: Any, size: int) -> int:
        return self._holding("float array", list(items)[:size])

    def _aclDestroyFloatArray(self, handle: int) -> int:
        return self._gone("float array", handle)

    def _aclCreateScalar(self, value: Any, dtype: int) -> int:
        return self._holding("scalar", (dtype, value.raw[:-1]))

    def _aclDestroyScalar(self, handle: int) -> int:
        return self._gone("scalar", handle)

    def _aclCreateTensorList(self, tensors: Any, size: int) -> int:
        return self._holding("tensor list", list(tensors)[:size])

    def _aclDestroyTensorList(self, handle: int) -> int:
        for tensor in self.held.get(handle, ()):
            self._aclDestroyTensor(tensor)
        return self._gone("tensor list", handle)

    def _holding(self, kind: str, content: Any) -> int:
        handle = self._made(kind)
        self.held[handle] = content
        return handle

    def _aclSetAclOpExecutorRepeatable(self, handle: int) -> int:
        self.repeatable.add(handle)
        return 0

    def _aclDestroyAclOpExecutor(self, handle: int) -> int:
        self.executors.pop(handle, None)
        return self._gone("executor", handle)

    def phase_one(self, *arguments: Any) -> int:
        *own, size, executor = arguments
        if size is None or executor is None:
            return 161001
        size._obj.value = self.workspace
        executor._obj.value = handle = self._made("executor")
        self.executors[handle] = tuple(own)
        return 0

    def phase_two(self, workspace: int | None, size: int, executor: int, stream: int) -> int:
        if executor not in self.executors:
            self.mistakes.append("an executor is used that is not there")
            return 561000
        if stream not in self.alive.get("stream", ()):
            self.mistakes.append("work is put on a stream that is not there")
        arguments = self.executors[executor]
        if executor not in self.repeatable:
            del self.executors[executor]
            self._gone("executor", executor)
        if size and workspace is None:
            return 161001
        self.queued.append(executor)
        self.kernel(self, arguments, workspace or 0, size)
        return 0

    def address(self, tensor: int) -> int:
        """The device address that a tensor was made with."""
        return int(self.tensors[tensor][8])


class _Named:
    """Some of the device's functions, as `Functions` gives them."""

    def __init__(self, device: RecordingDevice, names: Mapping[str, Prototype]) -> None:
        self._functions = {name: device.function(name) for name in names if name not in device.lacks}

    def __getitem__(self, name: str) -> CFunction:
        return self._functions[name]

    def __contains__(self, name: object) -> bool:
        return name in self._functions


class _Operators(Library):
    def __init__(self, device: RecordingDevice) -> None:
        super().__init__({})
        self._device = device

    def bind(self, name: str, prototype: Prototype) -> CFunction:
        del prototype
        if name in self._device.lacks:
            raise MissingSymbolError(name)
        phase = "phase_one" if name.endswith("GetWorkspaceSize") else "phase_two"
        inner = getattr(self._device, phase)

        def call(*arguments: Any) -> Any:
            counts = self._device.counts
            self._device.log.append(phase)
            counts[phase] = counts.get(phase, 0) + 1
            number, code = self._device.fails.get(phase, (0, 0))
            if number == counts[phase]:
                if phase == "phase_two":
                    # It is used up whatever comes back.
                    inner(*arguments)
                return code
            return inner(*arguments)

        return call


def open_session(device: RecordingDevice, *, hardware: bool = False) -> CannSession:
    """A session on it."""
    runtime, meta = cast("Functions", _Named(device, RUNTIME)), cast("Functions", _Named(device, META))
    capabilities = Capabilities(
        statuses=True, phases=True, in_place=True, hardware=hardware, call_modes=available(runtime, meta)
    )
    return CannSession(
        api=RuntimeApi(runtime, meta),
        library=_Operators(device),
        specs=MappingProxyType(SPECS),
        capabilities=capabilities,
        device=Device(runtime, 0, finalise=True),
        time_limit=2.0,
    )
