"""The libraries of a CANN installation: where they lie, and their C functions as one name space."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aclnn_cts.core.errors import HarnessError, UsageError

CFunction = Any
"""A ctypes function with explicit argument types; ctypes has no public type for it."""


@dataclass(frozen=True, slots=True)
class Prototype:
    """A C function: its result and its arguments as ctypes types."""

    result: Any
    arguments: tuple[Any, ...]


class MissingSymbolError(Exception):
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
        raise MissingSymbolError(f"none of the loaded libraries ({', '.join(self.handles)}) has {name}")

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


RUNTIME = ("libacl_rt.so", "libascendcl.so")
"""The runtime under its new and its classic name; an installation that has both means the first."""
META = ("libnnopbase.so",)
CLASSIC = ("libopapi.so",)
SPLIT = (
    "libopapi_math.so",
    "libopapi_nn.so",
    "libopapi_cv.so",
    "libopapi_transformer.so",
    "libopapi_oam.so",
    "libopapi_legacy.so",
)
"""What replaced the classic library: one a family. The second needs the first, hence the order."""
_BETWEEN = (
    "libaclnn_math.so",
    "libaclnn_ops_infer.so",
    "libaclnn_ops_train.so",
    "libaclnn_sparse.so",
    "libaclnn_fft.so",
    "libaclnn_rand.so",
)
"""The names of the releases between the two."""
_CUSTOM = "libcust_opapi.so"

_PREFIXES = ("/usr/local/Ascend/cann", "/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/latest")
_OLD_OPERATORS = "built-in/op_impl/ai_core/tbe/op_api/lib/linux"


@dataclass(frozen=True, slots=True)
class LibraryFiles:
    """What to load, in this order: file paths, or bare names that the loader is left to find."""

    runtime: str
    meta: str
    operators: tuple[str, ...]
    custom: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """All of them. Custom operators stand before the built-in ones, whose symbols they may replace."""
        return (self.runtime, self.meta, *self.custom, *self.operators)


def library_folders(environment: Mapping[str, str], *, prefixes: Sequence[str] = _PREFIXES) -> tuple[Path, ...]:
    """The folders that may hold the runtime and the built-in operators, the first that has a library decides."""
    names = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH")
    found = [Path(environment[name]) for name in names if environment.get(name)]
    if environment.get("ASCEND_OPP_PATH"):
        packages = Path(environment["ASCEND_OPP_PATH"]).parent
        # The machine's own first: a package made for several carries them side by side.
        machines = sorted(("x86_64", "aarch64"), key=lambda name: name != platform.machine())
        found += [packages / f"{machine}-linux" for machine in machines]
    found += map(Path, prefixes)
    return tuple(dict.fromkeys(folder / "lib64" for folder in found))


def custom_folders(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders of custom operators: those named outright, then the vendors in the order of their own list."""
    found = [Path(place) for place in environment.get("ASCEND_CUSTOM_OPP_PATH", "").split(":") if place]
    if environment.get("ASCEND_OPP_PATH"):
        vendors = Path(environment["ASCEND_OPP_PATH"]) / "vendors"
        found += [vendors / vendor for vendor in _load_priority(vendors / "config.ini")]
    return tuple(dict.fromkeys(folder / "op_api" / "lib" for folder in found))


def find_libraries(environment: Mapping[str, str], *, prefixes: Sequence[str] = _PREFIXES) -> LibraryFiles:
    """What an installation offers. A library that is in no folder is left to the loader, by its name alone."""
    places = library_folders(environment, prefixes=prefixes)
    return LibraryFiles(
        runtime=next(_present(places, RUNTIME), RUNTIME[-1]),
        meta=next(_present(places, META), META[-1]),
        operators=_operators(environment, places),
        custom=tuple(_present(custom_folders(environment), (_CUSTOM,))),
    )


def named_libraries(files: Sequence[str]) -> tuple[str, ...]:
    """The libraries that were named, in the order of their names; a bare name may be of one in the current folder.

    Raises UsageError where the classic library stands beside the split ones: both register the same operators, and a
    process that holds the two answers with either.
    """
    names = {Path(file).name for file in files}
    split = sorted(names.intersection(SPLIT))
    if names.intersection(CLASSIC) and split:
        raise UsageError(
            f"library={','.join(files)}: {CLASSIC[0]} and {split[0]} register the same operators and must never be "
            f"loaded together; name the one or the other"
        )
    for file in files:
        if "/" in file and not Path(file).is_file():
            raise UsageError(f"library={file}: there is no such file; expected a shared library")
    # The loader does not look for a bare name in the current folder.
    return tuple(f"./{file}" if "/" not in file and Path(file).is_file() else file for file in files)


def _operators(environment: Mapping[str, str], places: Sequence[Path]) -> tuple[str, ...]:
    for place in places:
        for family in (SPLIT, CLASSIC, _BETWEEN):
            if found := tuple(_present((place,), family)):
                return found
    if environment.get("ASCEND_OPP_PATH"):
        old = Path(environment["ASCEND_OPP_PATH"]) / _OLD_OPERATORS / platform.machine()
        if found := tuple(_present((old,), CLASSIC)):
            return found
    return CLASSIC


def _present(places: Sequence[Path], names: Sequence[str]) -> Iterator[str]:
    for place in places:
        for name in names:
            if (place / name).is_file():
                yield str(place / name)


def _load_priority(file: Path) -> list[str]:
    """The vendors of `load_priority=a,b`; none where there is no such file or line."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        key, equals, value = line.partition("=")
        if equals and key.strip() == "load_priority":
            return [vendor.strip() for vendor in value.split(",") if vendor.strip()]
    return []
