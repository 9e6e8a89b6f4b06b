"""The parts of this package that have a say in what a run finds, each with its hash.

`manifest.sources_hash` is of everything, words of a report included; these tell which part of a harness is another one.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

_PACKAGE = Path(__file__).resolve().parent.parent
_NAME = _PACKAGE.name

_ROOTS = (f"{_NAME}.selftest.power", f"{_NAME}.sandbox.child", f"{_NAME}.adapters.cann.adapter")
"""What measures, what a runner does, and the adapter that it opens: they and all that they import judge."""
_FOLDERS = (
    ("specs", "specs", (".yaml",)),
    ("oracles", "oracles", (".py",)),
    ("software device", "adapters/loopback", (".cpp", ".h", ".map", ".yaml")),
)
"""What is found by its place and not imported by name, with the suffixes that count."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^(\n#]*)|import[ \t]+([^\n#]*))", re.MULTILINE
)
"""An import as this package writes it; to parse every module takes half a second, which each run would wait for."""


@functools.cache
def harness_parts() -> Mapping[str, str]:
    """SHA-256 of each part's files, by the part's name.

    A part is a package (docs/architecture.md), of which those modules count that can take part in planning, generating,
    calling and judging, or the software device with the faults that are seeded in it.
    """
    parts: dict[str, set[Path]] = {name: set(_files(folder, suffixes)) for name, folder, suffixes in _FOLDERS}
    oracles = (f"{_NAME}.oracles.{path.stem}" for path in parts["oracles"])
    for path in _imported((*_ROOTS, *oracles)):
        package = path.relative_to(_PACKAGE).parts[0]
        parts.setdefault(package if package != path.name else "core", set()).add(path)
    return MappingProxyType({name: files_hash(parts[name]) for name in sorted(parts)})


def judging_hash(parts: Mapping[str, str] | None = None) -> str:
    """SHA-256 of all parts together, those of this harness if none are given: whether two harnesses judge alike."""
    given = harness_parts() if parts is None else parts
    return hashlib.sha256("".join(f"{name}\0{sha}\0" for name, sha in sorted(given.items())).encode()).hexdigest()


def differing_parts(other: Mapping[str, str]) -> tuple[str, ...]:
    """The parts in which another harness is not this one, as far as hashes tell."""
    mine = harness_parts()
    return tuple(name for name in sorted({*mine, *other}) if mine.get(name) != other.get(name))


def _files(folder: str, suffixes: Sequence[str]) -> Iterator[Path]:
    yield from (path for path in (_PACKAGE / folder).rglob("*") if path.suffix in suffixes)


def _imported(roots: Sequence[str]) -> set[Path]:
    """The files of our own modules that these import, wherever in a module the statement stands."""
    found: set[Path] = set()
    seen, todo = set(roots), list(roots)
    while todo:
        path = _file(todo.pop())
        if path is not None and path not in found:
            found.add(path)
            new = set(_names(path)) - seen
            seen |= new
            todo += new
    return found


def _file(module: str) -> Path | None:
    """The file of a module of ours; None for others, and for what is no module (a name that one holds)."""
    top, *rest = module.split(".")
    if top != _NAME:
        return None
    place = _PACKAGE.joinpath(*rest)
    package, alone = place / "__init__.py", place.with_suffix(".py")
    return package if package.is_file() else alone if rest and alone.is_file() else None


def _names(path: Path) -> Iterator[str]:
    """What a module imports, and names in it that may be modules."""
    for source, names, modules in _IMPORT.findall(path.read_text(encoding="utf-8")):
        if source:
            yield source
        for item in (names or modules).strip("()").split(","):
            name = item.partition(" as ")[0].strip()
            yield f"{source}.{name}" if source else name


def files_hash(paths: Iterable[Path]) -> str:
    """SHA-256 of files of this package, their names included."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(_PACKAGE).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
