"""The page of what oracles share: the helper modules, from their docstrings and signatures."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.markdown import head, table

ORACLES = Path(__file__).resolve().parent.parent / "oracles"

_BEFORE = """# Helpers of oracles

What several oracles share lies in `oracles/_NAME.py`, by subject. An oracle imports it from `aclnn_cts.oracles._NAME`.

| you want | do |
| --- | --- |
| arithmetic, sums, moves, functions | call the backend `f` and the arrays: see [formulas](formula.md) |
| places, windows, neighbours, groups | look below before you write it |
| what one other oracle has | move it into a helper module, with its docstring, and import it in both |
| to change a helper | change it, then `aclnn-cts oracle check --changed` checks the oracles that call it |

A helper works on tracked arrays (`Array`) or on NumPy arrays of whole numbers, and knows no operator. Its docstring
states the shapes. `make docs` puts it on this page. A new module needs no list."""


def oracle_helpers_page() -> Iterator[str]:
    """The lines of `docs/oracle-helpers.md`."""
    yield from head("oracles/_*.py")
    yield from _BEFORE.splitlines()
    for path in sorted(ORACLES.glob("_[a-z]*.py")):
        body = ast.parse(path.read_bytes())
        yield ""
        yield f"## {path.stem}"
        yield ""
        yield from (ast.get_docstring(body) or "").splitlines()
        rows = [(f"`{_signature(item)}`", _said(item)) for item in body.body if _is_public(item)]
        if rows:
            yield ""
            yield from table(("helper", "gives"), rows)


def _is_public(item: ast.stmt) -> bool:
    return isinstance(item, (ast.FunctionDef, ast.ClassDef)) and not item.name.startswith("_")


def _signature(item: ast.stmt) -> str:
    if isinstance(item, ast.ClassDef):
        return item.name
    if not isinstance(item, ast.FunctionDef):
        raise TypeError(f"{type(item).__name__} has no signature")
    arguments = [argument.arg for argument in (*item.args.posonlyargs, *item.args.args)]
    named = ["*", *(argument.arg for argument in item.args.kwonlyargs)] if item.args.kwonlyargs else []
    return f"{item.name}({', '.join([*arguments, *named])})"


def _said(item: ast.stmt) -> str:
    """The first paragraph of a docstring."""
    if not isinstance(item, (ast.FunctionDef, ast.ClassDef)):
        raise TypeError(f"{type(item).__name__} has no docstring")
    return " ".join((ast.get_docstring(item) or "").split("\n\n")[0].split())
