"""The streams of a session, made when first used."""

from __future__ import annotations

import ctypes

from aclnn_cts.adapters.cann.bindings import Functions
from aclnn_cts.adapters.cann.memory import checked

__all__ = ["Streams"]


class Streams:
    """Streams by number; 0 is the one that ordinary calls run on."""

    __slots__ = ("_handles", "_runtime")

    def __init__(self, runtime: Functions) -> None:
        self._runtime = runtime
        self._handles: dict[int, int] = {}

    def handle(self, number: int) -> int:
        """The stream of that number. Raises RuntimeFailure where it cannot be made."""
        if number not in self._handles:
            stream = ctypes.c_void_p()
            checked(self._runtime["aclrtCreateStream"](ctypes.byref(stream)), "aclrtCreateStream")
            self._handles[number] = stream.value or 0
        return self._handles[number]

    def wait(self, number: int, seconds: float) -> int:
        """Wait until a stream has done all; the runtime's code, which says so where the time ran out."""
        if "aclrtSynchronizeStreamWithTimeout" in self._runtime:
            code: int = self._runtime["aclrtSynchronizeStreamWithTimeout"](self.handle(number), int(seconds * 1000))
            return code
        # An old release waits for ever; then the limit of whoever watches this process ends it.
        waited: int = self._runtime["aclrtSynchronizeStream"](self.handle(number))
        return waited

    def close(self) -> None:
        """Destroy all."""
        while self._handles:
            self._runtime["aclrtDestroyStream"](self._handles.popitem()[1])
