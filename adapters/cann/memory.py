"""Device memory of one call: each tensor with its guard bands as one allocation, copied in and back whole."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.cann.bindings import SUCCESS, Functions, error_name
from aclnn_cts.core.outcome import BufferState, StrayWrite
from aclnn_cts.generate.placement import GUARD, Place

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


def checked(code: int, what: str) -> None:
    """Raise RuntimeFailure for every code but success."""
    if code != SUCCESS:
        raise RuntimeFailure(code, what)


class DeviceTensors:
    """Copies of the places of a host block on the device."""

    __slots__ = ("_block", "_places", "_regions", "_runtime")

    def __init__(self, runtime: Functions, block: Bytes, places: Mapping[str, Place]) -> None:
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
            checked(copy(target, size, source, size, direction), f"aclrtMemcpy to the {_SIDES[direction]}")

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
                checked(runtime["aclrtMemset"](self._region, whole, _BAND, whole), "aclrtMemset")
            checked(runtime["aclrtMemset"](self.address, size, _STALE, size), "aclrtMemset")
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
        checked(copy(_address(band), self._band, start, self._band, _TO_HOST), "aclrtMemcpy to the host")
        return np.flatnonzero(band != _BAND), band


def _allocate(runtime: Functions, size: int) -> int:
    pointer = ctypes.c_void_p()
    checked(runtime["aclrtMalloc"](ctypes.byref(pointer), size, _HUGE_FIRST), f"aclrtMalloc of {size} bytes")
    return int(pointer.value or 0)


def _address(block: Bytes) -> int:
    return int(block.__array_interface__["data"][0])
