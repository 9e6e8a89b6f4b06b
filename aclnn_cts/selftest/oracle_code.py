"""The code that an operator's oracle consists of: its own file, and of shared modules what it calls, transitively.

Files are read and not imported: they may be the user's own. Comments, docstrings and line breaks are no code.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.core.outside import YAML_BYTES, read_outside
from aclnn_cts.oracles import registry

_PACKAGE = "aclnn_cts.oracles"
"""Whose modules an oracle's file may import from."""


def oracle_digest(stem: str, folders: Sequence[Path] = ()) -> str:
    """SHA-256 of an oracle's file and of the shared functions that it calls; empty where it has no file."""
    own = _source(stem, folders)
    if not own:
        return ""
    used = [f"{module}.{name}: {code}" for (module, name), code in sorted(_used(own).items())]
    checked = [item for item in _body(own) if not _NOT_CHECKED.issuperset(_defined(item) or "?")]
    return hashlib.sha256("\n".join([_code(checked) or own.decode(errors="replace"), *used]).encode()).hexdigest()


def has_formula(stem: str, folders: Sequence[Path] = ()) -> bool:
    """Whether the file of an operator's oracle defines a formula."""
    return any("FORMULA" in _defined(item) for item in _body(_source(stem, folders)))


@dataclass(frozen=True, slots=True)
class _Module:
    """The top level of a shared module."""

    body: Sequence[ast.stmt]
    definitions: Mapping[str, Sequence[ast.stmt]]
    imports: Mapping[str, tuple[str, str]]
    """By local name: where a name of another shared module comes from."""


@functools.cache
def _module(source: bytes) -> _Module:
    body = _body(source)
    definitions: dict[str, list[ast.stmt]] = {}
    for item in body:
        for name in _defined(item):
            definitions.setdefault(name, []).append(item)
    return _Module(body, definitions, dict(_imported(body)))


def _used(own: bytes) -> dict[tuple[str, str], str]:
    """The code of every shared definition that a file uses, by module and name."""
    found: dict[tuple[str, str], str] = {}
    waiting = list(_module(own).imports.values())
    while waiting:
        place = waiting.pop()
        if place in found:
            continue
        path, name = place
        module = _module(_content(path))
        if name in module.imports:
            items, used = [], {name}
        elif name in module.definitions:
            items = list(module.definitions[name])
            used = {node.id for item in items for node in ast.walk(item) if isinstance(node, ast.Name)}
        else:
            # A whole module was imported.
            items, used = list(module.body), set(module.imports)
        found[place] = _code(items)
        waiting += [(path, other) for other in used if other in module.definitions]
        waiting += [module.imports[other] for other in used if other in module.imports]
    return found


def _body(source: bytes) -> Sequence[ast.stmt]:
    """The statements of a file; none where it is no Python."""
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError):
        return ()


def _code(value: object) -> str:
    """Syntax as a text that is the same in every Python: without positions, docstrings and what is left out."""
    if isinstance(value, ast.AST):
        fields = ((name, item) for name, item in ast.iter_fields(value) if name not in _NO_CODE)
        given = (f"{name}={_code(item)}" for name, item in fields if item is not None and item != [])
        return f"{type(value).__name__}({', '.join(given)})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_code(item) for item in value if not _is_text(item))}]" if value else ""
    return repr(value)


_NOT_CHECKED = frozenset({"LEADING"})
"""What does not change the answers of an oracle: how a large call is cut (`formula.slices`)."""
_NO_CODE = ("ctx", "kind", "type_comment")


def _is_text(item: object) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)


def _defined(item: ast.stmt) -> tuple[str, ...]:
    """The names that a statement at the top of a module defines."""
    if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (item.name,)
    targets = item.targets if isinstance(item, ast.Assign) else [item.target] if isinstance(item, ast.AnnAssign) else []
    return tuple(node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def _imported(body: Sequence[ast.stmt]) -> Iterator[tuple[str, tuple[str, str]]]:
    """The names that come from modules of oracles, and where each is defined."""
    for item in body:
        if not isinstance(item, ast.ImportFrom) or item.module is None:
            continue
        if item.module == _PACKAGE:
            yield from ((alias.asname or alias.name, (f"{_PACKAGE}.{alias.name}", "*")) for alias in item.names)
        elif item.module.startswith(f"{_PACKAGE}."):
            yield from ((alias.asname or alias.name, (item.module, alias.name)) for alias in item.names)


def _source(stem: str, folders: Sequence[Path]) -> bytes:
    """The file of an oracle; nothing where there is none."""
    place = registry.available(folders).get(stem)
    return _content(place) if place is not None else b""


def _content(place: str) -> bytes:
    """A file, by its path or by the name of its module."""
    found = None if place.endswith(".py") else importlib.util.find_spec(place)
    path = Path(found.origin) if found is not None and found.origin else Path(place)
    return read_outside(path, limit=YAML_BYTES, expected="an oracle")
