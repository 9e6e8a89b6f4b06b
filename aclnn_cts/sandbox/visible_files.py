"""What a candidate sees of the file system: the system, Python, its packages and its own folder, and no copy of ours.

All else is hidden: the folders of users, other folders at the root, and every copy of the suite at places where Python
packages lie or near the candidate.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from aclnn_cts.sandbox.confinement import SCRATCH

_PACKAGE = Path(__file__).resolve().parent.parent
_SCRATCHES = (SCRATCH, "/var/tmp", "/dev/shm")  # noqa: S108 - they are hidden, and not used
SYSTEM = frozenset(
    {"bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "sbin", "sys", "usr"}
)
"""Folders at the root that stay visible."""
_NAMING = ("PATH", "LD_LIBRARY_PATH", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "CUDA_HOME", "CUDA_PATH")
"""Variables of the environment whose folders programs and libraries need."""
_PREFIXES = ("usr", "usr/local", "opt/*", "opt/*/envs/*")
"""Where else a Python may have its packages."""
_IN_PREFIX = f"lib*/python3*/*-packages/{_PACKAGE.name}"
_NEAR = ("", "*/", "*/*/")
"""How far below a folder of the candidate's a copy is looked for."""


class VisibleFiles(NamedTuple):
    """What a process sees."""

    path: Sequence[str]
    """The folders of modules."""
    hidden: Sequence[str]
    """Folders that are empty inside, outer ones first."""
    kept: Sequence[str]
    """Folders and files below hidden ones that are visible all the same."""


def visible_files_of(folder: Path | None) -> VisibleFiles:
    """What a candidate sees whose file lies in this folder; None: its module is on the path."""
    folders = [*([str(folder)] if folder else []), *sys.path]
    found = dict.fromkeys(os.path.realpath(place or os.curdir) for place in folders)
    places = [place for place in found if Path(place).exists()]
    homes = {os.path.realpath(Path.home())} - {"/"}
    closed = {*_SCRATCHES, os.path.realpath(tempfile.gettempdir()), *homes}
    copies = [_PACKAGE, *_copies(places, closed)]
    roots = set(map(_root, copies))
    path = [place for place in places if Path(place) not in roots]
    kept = list(_kept(path, copies))
    others = {str(item) for item in Path("/").iterdir() if _is_hidden(item)} - set(kept)
    kept += [entry for place in path if place in closed for entry in _importable(Path(place))]
    hidden = {*closed, *map(str, roots), *others}
    return VisibleFiles(path, sorted(hidden, key=len), sorted(dict.fromkeys(kept), key=len))


def _is_hidden(item: Path) -> bool:
    return item.is_dir() and not item.is_symlink() and item.name not in SYSTEM


def _copies(path: Collection[str], closed: Collection[str]) -> Iterator[Path]:
    """Copies of this package in Python installations and near the candidate; of a closed folder little is visible."""
    prefixes = {Path(sys.prefix), Path(sys.base_prefix)}
    outside = (Path(place) for place in path if place not in closed)
    own = [place for place in outside if not any(map(place.is_relative_to, prefixes))]
    prefixes |= {found for pattern in _PREFIXES for found in Path("/").glob(pattern)}
    prefixes |= {found for prefix in (sys.prefix, sys.base_prefix) for found in Path(prefix).glob("envs/*")}
    places = [(prefix, _IN_PREFIX) for prefix in prefixes]
    places += [(Path(place), _PACKAGE.name) for place in path]
    places += [(place, near + below) for place in own for near in _NEAR for below in (_PACKAGE.name, _IN_PREFIX)]
    for folder, pattern in places:
        for item in folder.glob(pattern):
            with contextlib.suppress(PermissionError):
                if (item / "speclang").is_dir():
                    yield item.resolve()


def _root(package: Path) -> Path:
    """What is hidden with a copy: of a clone the whole of it, with the history and the tests."""
    clone = package.parent
    return clone if (clone / "pyproject.toml").is_file() else package


def _kept(path: Collection[str], copies: Collection[Path]) -> Iterator[str]:
    """Python, its modules, the candidate's folder and what the environment names; nothing of a copy of the package."""
    parts = {
        part for copy in copies for part in (copy, *(item.resolve() for item in copy.iterdir() if item.is_symlink()))
    }
    named = [place for name in _NAMING for place in os.environ.get(name, "").split(os.pathsep) if os.path.isabs(place)]  # noqa: PTH117
    # A prefix is found by its own name too, which may be a link.
    prefixes = [place for prefix in (sys.base_prefix, sys.prefix) for place in (prefix, os.path.realpath(prefix))]
    for place in dict.fromkeys((*prefixes, *path, *map(os.path.realpath, named))):
        if place != "/" and not parts & {Path(place), *Path(place).parents}:
            yield place


def _importable(folder: Path) -> Iterator[str]:
    """Modules and packages in a folder that is hidden itself."""
    for item in folder.iterdir():
        with contextlib.suppress(PermissionError):
            if item.suffix in (".py", ".so") if item.is_file() else (item / "__init__.py").is_file():
                yield str(item)
