"""Builds the software device from its C++ sources into a cache, with g++ and nothing else.

One shared object stands in for the runtime (`libascendcl.so`), the descriptor interface (`libnnopbase.so`) and the
operators (`libopapi.so`): the three names are links to one file, since their state is one. The folder that holds them
is laid out as a toolkit is (`lib64`, `include`), so that `ASCEND_HOME_PATH` may name it. So is `host` in it, where the
runtime is missing.

`python -m aclnn_cts.adapters.loopback_build` builds it and prints that folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.core.errors import HarnessError

_ROOT = Path(__file__).resolve().parent / "loopback"
INCLUDE = _ROOT / "include"
SOURCES = tuple(sorted((_ROOT / "src").glob("*.cpp")))

LIBRARY = "libloopback.so"
LINKS = ("libascendcl.so", "libnnopbase.so", "libopapi.so")
HOST_LIBRARY = "libloopback_host.so"
"""The same without the runtime: it checks and executes nothing, as a host build of operators does."""
HOST_LINKS = LINKS[1:]

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
FLAGS = (
    "-std=c++17",
    "-O2",
    # Each step of a kernel rounds by itself: a fused multiply-add would round once for two.
    "-ffp-contract=off",
    "-fPIC",
    "-pthread",
    "-fvisibility=hidden",
    *WARNINGS,
)
# Its threads may outlive whoever closes it.
_LINK_FLAGS = ("-shared", "-pthread", "-Wl,-z,nodelete")


@dataclass(frozen=True, slots=True)
class BuildFolder:
    """The folder of one build."""

    folder: Path

    @property
    def library(self) -> Path:
        return self.folder / "lib64" / LIBRARY

    @property
    def lib64(self) -> Path:
        return self.folder / "lib64"

    @property
    def host(self) -> Path:
        """A toolkit without a runtime, for first phases alone."""
        return self.folder / "host"

    @property
    def include(self) -> Path:
        return self.folder / "include"


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/aclnn-cts`, or `~/.cache/aclnn-cts`."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "aclnn-cts"


def build(*, cache: Path | None = None) -> BuildFolder:
    """The build of these sources with this compiler: from the cache, or made now.

    Any number of processes may ask at once; one builds, and the others wait for it. `$CXX` names another compiler than
    g++. Raises HarnessError where there is no compiler, or it fails.
    """
    folder = (cache_folder() if cache is None else cache) / "loopback" / build_key((*FLAGS, *_LINK_FLAGS))
    return BuildFolder(build_once(folder, _make))


def build_key(flags: Sequence[str], files: Sequence[Path] = ()) -> str:
    """SHA-256 of the compiler's version, the flags, the library's sources and headers, and more files."""
    digest = hashlib.sha256()
    for part in (_run([_compiler(), "--version"]), *flags):
        digest.update(part.encode() + b"\0")
    own = (path for path in _ROOT.rglob("*") if path.suffix in {".cpp", ".h", ".map"})
    for path in (*sorted(own), *files):
        digest.update(os.path.relpath(path, _ROOT).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, filled by `make` where it does not exist yet.

    `make` is given another folder, which moves to its place at the end: who finds a folder finds all of it. Of several
    processes that ask at once, one makes it. Raises HarnessError where the disk does not allow it.
    """
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as name:
                    made = Path(name) / "made"
                    made.mkdir()
                    make(made)
                    made.rename(folder)
    except OSError as error:
        raise HarnessError(
            f"{folder}: the software device cannot be built there: {error}; "
            f"make room, or let XDG_CACHE_HOME name another folder"
        ) from error
    return folder


def compile_objects(sources: Sequence[Path], folder: Path, flags: Sequence[str]) -> list[Path]:
    """Compile each source into `folder`, as many at a time as there are processors.

    The standard headers that they share are compiled first, which halves the work. Raises HarnessError.
    """
    command = [_compiler(), *flags, f"-I{INCLUDE}", f"-I{_ROOT / 'src'}"]
    prelude = folder / "prelude.h"
    shutil.copyfile(_ROOT / "src" / prelude.name, prelude)
    _run([*command, "-x", "c++-header", str(prelude), "-o", f"{prelude}.gch"])

    def compile_one(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        _run([*command, "-include", str(prelude), "-c", str(source), "-o", str(target)])
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, sources))


def main() -> int:
    """Build, and print the folder."""
    try:
        home = build()
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    sys.stdout.write(f"{home.folder}\n")
    return 0


def _compiler() -> str:
    name = os.environ.get("CXX") or "g++"
    found = shutil.which(name)
    if found is None:
        raise HarnessError(
            f"{name}: no such compiler; the software device is built from C++ sources; "
            f"install g++ 8 or newer (Debian: apt-get install g++), or let CXX name one"
        )
    return found


def _make(folder: Path) -> None:
    home = BuildFolder(folder)
    with tempfile.TemporaryDirectory() as objects:
        compiled = compile_objects(SOURCES, Path(objects), FLAGS)
        _link(compiled, home.library, "exports.map", LINKS)
        _link(compiled, home.host / "lib64" / HOST_LIBRARY, "exports_host.map", HOST_LINKS)
    shutil.copytree(INCLUDE, home.include)


def _link(objects: Sequence[Path], library: Path, exports: str, links: Sequence[str]) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    names = [f"-Wl,-soname,{library.name}", f"-Wl,--version-script={_ROOT / exports}"]
    _run([_compiler(), *_LINK_FLAGS, *names, *map(str, objects), "-o", str(library)])
    for link in links:
        (library.parent / link).symlink_to(library.name)


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")  # noqa: S603 - a compiler
    if done.returncode != 0:
        raise HarnessError(
            f"the compiler failed ({' '.join(command)}, exit code {done.returncode}):\n{done.stderr}\n"
            f"expected g++ 8 or newer with C++17; the software device cannot be built without it"
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
