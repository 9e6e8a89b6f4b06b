"""In a runner: pages around inputs that cannot be read, and the address at which a call died that read one.

Python's own handlers cannot tell that address: they run later, in the main thread. The handler here is a few machine
instructions, which store it in shared memory. It is for x86-64; elsewhere a read outside an input is a plain crash.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import platform
import signal
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from aclnn_cts.generate.buffers import CallBuffers

_NO_ACCESS = 0
"""PROT_NONE of mprotect(2), which mmap does not name."""

_SA_SIGINFO = 4
_SA_RESETHAND = 0x80000000
"""From the second signal on the default holds, which ends the process."""

_STORE = "f30f1efa 488b4610 48b9 {word} 488901"
"""endbr64; rax = siginfo->si_addr (at 16 of the second argument); rcx = an address; *rcx = rax."""
_SIGNAL_AGAIN = "b827000000 0f05 89c7 b8ba000000 0f05 89c6 ba0b000000 b8ea000000 0f05 c3"
"""tgkill(getpid(), gettid(), SIGSEGV), delivered with the return from the handler; return."""


class _Action(ctypes.Structure):
    """struct sigaction of the C library on 64-bit Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_uint),
        ("restorer", ctypes.c_void_p),
    )


def record_faults(words: memoryview, place: int) -> None:
    """From now on a SIGSEGV of this process leaves its address in a word of shared memory before it ends the process.

    Nothing changes where the implementation handles that signal itself, or the system maps no code for it.
    """
    if platform.machine() != "x86_64":
        return
    sigaction = ctypes.CDLL(None).sigaction
    known = _Action()
    sigaction(signal.SIGSEGV, None, ctypes.byref(known))
    if known.handler:
        return
    word = ctypes.addressof(ctypes.c_int64.from_buffer(words[place : place + 1].cast("B")))
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return
    code.write(bytes.fromhex(_STORE.format(word=struct.pack("<Q", word).hex()) + _SIGNAL_AGAIN))
    action = _Action(handler=ctypes.addressof(ctypes.c_char.from_buffer(code)), flags=_SA_SIGINFO | _SA_RESETHAND)
    sigaction(signal.SIGSEGV, ctypes.byref(action), None)
    # For the life of the process: nothing may unmap what the handler is.
    _KEPT.append(code)


_KEPT: list[mmap.mmap] = []


@contextlib.contextmanager
def closed_pages(buffers: CallBuffers) -> Iterator[None]:
    """Nobody can read or write the guard pages of a call's inputs meanwhile."""
    plan = buffers.layout
    stretches: list[slice] = []
    for name, place in plan.places.items():
        if plan.has_pages(place):
            before, after = plan.guard_pages(name)
            if stretches and stretches[-1].stop == before.start:
                # One call of the system for the pages between two inputs.
                before = slice(stretches.pop().start, before.stop)
            stretches += (before, after)
    if not stretches:
        yield
        return
    base = int(buffers.memory.__array_interface__["data"][0])
    for stretch in stretches:
        _mprotect()(base + stretch.start, stretch.stop - stretch.start, _NO_ACCESS)
    try:
        yield
    finally:
        _mprotect()(base, stretches[-1].stop, mmap.PROT_READ | mmap.PROT_WRITE)


@functools.cache
def _mprotect() -> Callable[[int, int, int], int]:
    """mprotect(2). Where the system has no room for another mapping it fails, and the page stays readable."""
    function = ctypes.CDLL(None).mprotect
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return cast("Callable[[int, int, int], int]", function)
