"""Which oracles were checked without a fault: `checked.json` beside the specs, which `oracle check -o` writes."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outside import YAML_BYTES, read_outside
from aclnn_cts.core.printable import shown
from aclnn_cts.oracles import registry

FORMAT = "aclnn-cts/checked-oracles/1"
_NAME = "checked.json"
CALLS = 10_000
"""Emulated calls of an operator, and fewest of an oracle that counts as checked."""
_SHARED = "aclnn_cts.oracles._"
"""How the names of modules begin that several oracles read."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """An oracle without a fault."""

    sha256: str
    """Of its file and of what it shares with others: another one is not checked."""
    calls: int
    seed: int


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    oracles: Mapping[str, Checked]


def oracle_digest(stem: str, folders: Sequence[Path] = ()) -> str:
    """SHA-256 of the file of an operator's oracle and of the shared modules that it reads; empty where it has none."""
    sources = {"": _source(stem, folders)}
    waiting = [""]
    while waiting:
        for name in _shared(sources[waiting.pop()]):
            if name not in sources:
                sources[name] = _content(name)
                waiting.append(name)
    return hashlib.sha256(b"".join(sources[name] for name in sorted(sources))).hexdigest() if sources[""] else ""


def _shared(source: bytes) -> list[str]:
    try:
        found = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError):
        return []
    modules = (node.module or "" for node in found if isinstance(node, ast.ImportFrom))
    return [name for name in modules if name.startswith(_SHARED)]


def has_formula(stem: str, folders: Sequence[Path] = ()) -> bool:
    """Whether the file of an operator's oracle defines a formula. Read and not imported: it may be the user's own."""
    try:
        body = ast.parse(_source(stem, folders)).body
    except (SyntaxError, ValueError):
        return False
    plain = (target for item in body if isinstance(item, ast.Assign) for target in item.targets)
    typed = (item.target for item in body if isinstance(item, ast.AnnAssign))
    return any(isinstance(target, ast.Name) and target.id == "FORMULA" for target in (*plain, *typed))


def _source(stem: str, folders: Sequence[Path]) -> bytes:
    """The file of an oracle; nothing where there is none."""
    place = registry.available(folders).get(stem)
    if place is None:
        return b""
    return _content(place)


def _content(place: str) -> bytes:
    """A file, by its path or by the name of its module."""
    found = None if place.endswith(".py") else importlib.util.find_spec(place)
    path = Path(found.origin) if found is not None and found.origin else Path(place)
    return read_outside(path, limit=YAML_BYTES, expected="an oracle", error=UsageError, name=str(path))


def read_record(path: Path) -> Mapping[str, Checked]:
    """The checked oracles by stem; none where there is no file. UsageError for another file."""
    if not path.exists():
        return {}
    raw = read_outside(path, limit=YAML_BYTES, expected="a record of checked oracles", error=UsageError, name=str(path))
    try:
        record = msgspec.json.decode(raw, type=_Record)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}: {shown(str(error))}; expected a file that `oracle check -o` wrote") from None
    if record.format != FORMAT:
        raise UsageError(f"{path}: $.format: {shown(record.format)}; expected {FORMAT!r}")
    return record.oracles


def record_text(oracles: Mapping[str, Checked]) -> str:
    """The file, one line for each oracle in the order of their stems."""
    lines = [f'  "{stem}": {msgspec.json.encode(oracles[stem]).decode()}' for stem in sorted(oracles)]
    return f'{{"format": "{FORMAT}", "oracles": {{\n' + ",\n".join(lines) + "\n}}\n"


def is_checked(stem: str, *, spec_folder: Path, folders: Sequence[Path] = ()) -> bool:
    """Whether the oracle, as it is now, was checked in enough calls without a fault."""
    found = read_record(spec_folder / _NAME).get(stem)
    return found is not None and found.calls >= CALLS and found.sha256 == oracle_digest(stem, folders)
