from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.modules import MODULES, PACKAGE, ROOT

ROOMS: dict[str, frozenset[str]] = {
    "__main__": frozenset({"cli", "engine"}),
    "pip_constraints": frozenset(),
    "core": frozenset(),
    "spec": frozenset({"core"}),
    "generate": frozenset({"core", "spec"}),
    "judge": frozenset({"core", "spec"}),
    "formula": frozenset({"core", "judge"}),
    "oracles": frozenset({"core", "formula"}),
    "adapters": frozenset({"core", "spec", "generate"}),
    "engine": frozenset({"core", "spec", "generate", "judge", "formula", "oracles", "adapters"}),
    "oracle_check": frozenset({"core", "spec", "generate", "judge", "formula", "oracles", "engine"}),
    "reports": frozenset({"core", "spec"}),
    "cli": frozenset({"core", "spec", "engine", "oracle_check", "reports"}),
    "plugin": frozenset({"core", "spec", "generate", "engine"}),
    "suites": frozenset({"core", "plugin"}),
}
"""What each room may import, besides itself and the package's version."""

MORE = {"adapters/reference": frozenset({"oracles"})}
"""Modules that may import more: the reference adapter answers with the oracles."""

HEAVY = ("torch", "torch_npu", "matplotlib", "hypothesis", "ray", "acl")
"""Not to be imported before they are used, save by a module that is named after one or lies in a suite."""


def imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Dotted names that the code imports anywhere, relative ones made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(filter(None, (base, node.module)))
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def at_import(tree: ast.Module) -> Iterator[str]:
    """Dotted names that importing the module imports: all but those in functions and under TYPE_CHECKING."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from imported(node, ())
        pending.extend(ast.iter_child_nodes(node))


def room_of(parts: tuple[str, ...]) -> str:
    return parts[0].removesuffix(".py")


def forbidden_rooms(module: Path, source: str) -> list[str]:
    room = room_of(module.parts)
    if room == "__init__":
        allowed = frozenset[str]()
    else:
        allowed = ROOMS[room] | {room, "__version__"} | MORE.get(str(module.with_suffix("")), frozenset())
    package = (PACKAGE, *module.parts[:-1])
    names = [name.split(".") for name in imported(ast.parse(source), package)]
    return [".".join(name) for name in names if name[0] == PACKAGE and (len(name) == 1 or name[1] not in allowed)]


def heavy_imports(module: Path, source: str) -> list[str]:
    if module.parts[0] == "suites":
        return []
    names = [name.split(".")[0] for name in at_import(ast.parse(source))]
    return [name for name in names if name in HEAVY and name.partition("_")[0] not in module.stem]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_import_rules(module: Path) -> None:
    source = (ROOT / PACKAGE / module).read_text(encoding="utf-8")
    assert forbidden_rooms(module, source) == []
    assert heavy_imports(module, source) == []


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("core/x.py", "from aclnn_cts.spec import model", ["aclnn_cts.spec.model"]),
        ("core/x.py", "from ..spec import model", ["aclnn_cts.spec.model"]),
        ("core/x.py", "from .case import Case", []),
        ("core/x.py", "def f():\n    import aclnn_cts.engine.store", ["aclnn_cts.engine.store"]),
        ("judge/x.py", "from aclnn_cts import oracles", ["aclnn_cts.oracles"]),
        ("judge/x.py", "import aclnn_cts", ["aclnn_cts"]),
        ("oracles/x.py", "from aclnn_cts.spec import model", ["aclnn_cts.spec.model"]),
        ("adapters/other.py", "from aclnn_cts.oracles import x", ["aclnn_cts.oracles.x"]),
        ("adapters/reference.py", "from aclnn_cts.oracles import x", []),
        ("reports/x.py", "from aclnn_cts.judge import bound", ["aclnn_cts.judge.bound"]),
        ("suites/x.py", "from aclnn_cts.engine import store", ["aclnn_cts.engine.store"]),
        ("engine/x.py", "from aclnn_cts.cli import main", ["aclnn_cts.cli.main"]),
    ],
)
def test_the_import_rules_find_what_they_forbid(module: str, source: str, found: list[str]) -> None:
    assert forbidden_rooms(Path(module), source) == found


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("judge/x.py", "import torch.nn", ["torch"]),
        ("judge/x.py", "try:\n    from hypothesis import given\nexcept ImportError:\n    pass", ["hypothesis"]),
        ("judge/x.py", "class A:\n    import matplotlib", ["matplotlib"]),
        ("judge/x.py", "def f():\n    import torch", []),
        ("judge/x.py", "if TYPE_CHECKING:\n    import torch", []),
        ("adapters/torch_kernels.py", "import torch", []),
        ("adapters/torch_kernels.py", "import matplotlib", ["matplotlib"]),
        ("generate/hypothesis_choices.py", "import hypothesis", []),
        ("suites/test_values.py", "import hypothesis", []),
        ("plugin.py", "import hypothesis", ["hypothesis"]),
    ],
)
def test_the_heavy_imports_are_found(module: str, source: str, found: list[str]) -> None:
    assert heavy_imports(Path(module), source) == found


def test_the_rooms_are_all_that_there_is() -> None:
    assert {room_of(module.parts) for module in MODULES} <= {"__init__", *ROOMS}


def test_importing_what_stores_imports_nothing_heavy() -> None:
    script = (
        "import sys; from aclnn_cts.engine import case_files, events, run_directory\n"
        f"print([name for name in {(*HEAVY, 'numpy.random', 'pydantic', 'yaml')!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
