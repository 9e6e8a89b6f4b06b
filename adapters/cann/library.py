"""Loaded libraries as one name space of C functions, which remembers from which file each came."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aclnn_cts.adapters.cann.search import RUNTIME
from aclnn_cts.core.errors import HarnessError

CFunction = Any
"""A ctypes function with explicit argument types; ctypes has no public type for it."""


@dataclass(frozen=True, slots=True)
class Prototype:
    """A C function: its result and its arguments as ctypes types."""

    result: Any
    arguments: tuple[Any, ...]


class Missing(Exception):  # noqa: N818 - most often it is no error: releases differ in what they export
    """No library here has this symbol."""


class _DlInfo(ctypes.Structure):
    """What dladdr(3) fills in."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


@dataclass(slots=True)
class Library:
    """Several shared objects, asked one after the other for each symbol."""

    handles: Mapping[str, ctypes.CDLL]
    """By the name under which each was loaded, in the order in which they are asked."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why a file that may be missing was not loaded, by file."""
    _files: dict[str, str] = field(default_factory=dict)

    def bind(self, name: str, prototype: Prototype) -> CFunction:
        """The function of that name with its argument types. Raises Missing where no library has it."""
        for loaded, handle in self.handles.items():
            # By subscript each look-up makes an object of its own, so that no other user of it changes our types.
            try:
                function = handle[name]
            except AttributeError:
                continue
            function.restype = prototype.result
            function.argtypes = prototype.arguments
            self._files[name] = _file_of(function) or loaded
            return function
        raise Missing(f"none of the loaded libraries ({', '.join(self.handles)}) has {name}")

    @property
    def symbols(self) -> Mapping[str, str]:
        """The file that each bound symbol came from, links resolved."""
        return dict(self._files)

    @property
    def hashes(self) -> Mapping[str, str]:
        """SHA-256 of each file that a bound symbol came from."""
        return {file: _sha256(file) for file in sorted(set(self._files.values()))}


def load_library(files: Sequence[str], *, optional: frozenset[str] = frozenset()) -> Library:
    """Load the files in order, their symbols visible to those after them.

    One of `optional` may be absent. Raises HarnessError with the loader's own words for another that cannot be loaded:
    on a machine with the toolkit and without a driver that is how a missing device shows.
    """
    handles: dict[str, ctypes.CDLL] = {}
    failures: dict[str, str] = {}
    for file in files:
        try:
            handles[file] = ctypes.CDLL(file, mode=ctypes.RTLD_GLOBAL | os.RTLD_NOW)
        except OSError as error:
            if file not in optional:
                raise HarnessError(_not_loaded(file, str(error))) from None
            failures[file] = str(error)
    return Library(handles, failures)


def _not_loaded(file: str, reason: str) -> str:
    if os.sep in file and Path(file).name not in RUNTIME:
        return f"{file} cannot be loaded: {reason}; name the libraries that it needs before it (cann:library=FILE,FILE)"
    what = "the CANN runtime" if Path(file).name in RUNTIME else file
    return (
        f"{what} cannot be loaded: {reason}; source the toolkit's set_env.sh (it sets ASCEND_HOME_PATH and "
        f"LD_LIBRARY_PATH), see that the driver is installed, or name the libraries (cann:library=FILE,...)"
    )


def _file_of(function: CFunction) -> str:
    info = _DlInfo()
    lookup = ctypes.CDLL(None)["dladdr"]
    lookup.restype = ctypes.c_int
    lookup.argtypes = (ctypes.c_void_p, ctypes.POINTER(_DlInfo))
    if not lookup(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info)) or not info.file:
        return ""
    return os.path.realpath(os.fsdecode(info.file))


@functools.cache
def _sha256(file: str) -> str:
    digest = hashlib.sha256()
    try:
        with Path(file).open("rb") as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        return f"unknown: {error.strerror}"
    return digest.hexdigest()
