from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tools.packages import MAY_IMPORT, PACKAGE, ROOT, modules, package_of

MODULES = sorted(modules())

HEAVY = ("torch", "torch_npu", "jax", "matplotlib", "hypothesis", "ray", "acl")
"""Not to be imported before they are used, save by a module that is named after one or lies in a suite."""

RUN_LIMIT, REPORT_LIMIT = 18_900, 12_000
"""Statements that a command may import. Lower a limit whenever a change allows it."""

LINES = 5
"""That the docstring of a package has at most."""


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


def is_allowed(name: str, package: str | None) -> bool:
    """Whether a module of a package may import what has this name below `aclnn_cts`."""
    if name == "__version__":
        return True
    if package is None:
        return False
    if package_of(name) == package:
        return True
    words = name.split(".")
    return any(
        ".".join(words[:end]) in MAY_IMPORT[package] and package_of(name) == package_of(".".join(words[:end]))
        for end in range(1, len(words) + 1)
    )


def forbidden_imports(module: Path, source: str) -> list[str]:
    """What a module imports against the table."""
    parts = module.with_suffix("").parts
    package = package_of(".".join(parts))
    names = imported(ast.parse(source), (PACKAGE, *parts[:-1]))
    ours = [name for name in names if name.split(".")[0] == PACKAGE]
    return [name for name in ours if not is_allowed(name.partition(".")[2], package)]


def heavy_imports(module: Path, source: str) -> list[str]:
    if module.parts[0] == "suites":
        return []
    names = [name.split(".")[0] for name in at_import(ast.parse(source))]
    return [name for name in names if name in HEAVY and name.partition("_")[0] not in module.stem]


def ours(names: Iterator[str], modules: Mapping[str, Path]) -> set[str]:
    """The modules of ours that dotted names lie in: `aclnn_cts.core.case` for `aclnn_cts.core.case.Case`."""
    return {
        found for name in names if (found := next((n for n in (name, name.rpartition(".")[0]) if n in modules), ""))
    }


def dotted(module: Path) -> str:
    return ".".join((PACKAGE, *module.with_suffix("").parts)).removesuffix(".__init__")


NAMES = {dotted(module): module for module in MODULES}
TREES = {name: ast.parse((ROOT / PACKAGE / module).read_bytes()) for name, module in NAMES.items()}


def closure(command: str) -> set[str]:
    """The modules of ours that a command imports.

    Counted are: all imports of the command's module, also in its functions; from there on those that importing a module
    imports, so none in functions and under TYPE_CHECKING; and the packages that hold a module.
    """
    start = f"{PACKAGE}.cli.{command}"
    found: set[str] = set()
    pending = {start}
    while pending:
        name = pending.pop()
        found.add(name)
        tree = TREES[name]
        names = imported(tree, ()) if name == start else at_import(tree)
        packages = {name[:end] for end, letter in enumerate(name) if letter == "."}
        pending |= (ours(names, NAMES) | packages) - found
    return found


CIRCLES = (
    {"runs.campaign.jobs", "runs.campaign.worker"},
    {"store.output_file", "store.run_directory", "store.scratch", "store.store_reader"},
)
"""Modules that still import one another, to be taken apart."""


def reached(start: str, imports: Mapping[str, set[str]]) -> set[str]:
    """The modules that a module imports, those through others too."""
    found: set[str] = set()
    pending = set(imports[start])
    while pending:
        found |= pending
        pending = set().union(*(imports[name] for name in pending)) - found
    return found


def test_no_module_imports_itself_through_others() -> None:
    """All imports count, also those in functions and under TYPE_CHECKING."""
    imports = {name: ours(imported(tree, ()), NAMES) - {name} for name, tree in TREES.items()}
    circular = {name for name in imports if name in reached(name, imports)}
    assert circular == {f"{PACKAGE}.{name}" for circle in CIRCLES for name in circle}


def test_no_two_modules_define_a_public_class_of_one_name() -> None:
    """Templates aside, which are programs of their own."""
    modules: dict[str, list[str]] = {}
    for name, tree in TREES.items():
        for node in tree.body if ".templates." not in name else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules.setdefault(node.name, []).append(name)
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}


@pytest.mark.parametrize(("command", "limit"), [("run", RUN_LIMIT), ("report", REPORT_LIMIT)])
def test_a_command_imports_no_more_statements_than_its_limit(command: str, limit: int) -> None:
    statements = sum(isinstance(node, ast.stmt) for name in closure(command) for node in ast.walk(TREES[name]))
    assert statements <= limit


def test_run_imports_nothing_of_campaigns() -> None:
    assert [name for name in closure("run") if ".campaign" in name] == []


def test_report_imports_nothing_that_calls_or_judges() -> None:
    packages = {name.split(".")[1] for name in closure("report") if "." in name}
    assert packages.isdisjoint({"oracles", "formula", "execution", "sandbox", "repro", "workers", "runs"})


def test_modules_import_what_the_table_allows() -> None:
    sources = {module: (ROOT / PACKAGE / module).read_text(encoding="utf-8") for module in MODULES}
    assert {module: found for module in MODULES if (found := forbidden_imports(module, sources[module]))} == {}
    assert {module: found for module in MODULES if (found := heavy_imports(module, sources[module]))} == {}


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("core/x.py", "from aclnn_cts.speclang import model", ["aclnn_cts.speclang.model"]),
        ("core/x.py", "from ..speclang import model", ["aclnn_cts.speclang.model"]),
        ("core/x.py", "from .case import Case", []),
        ("core/x.py", "from aclnn_cts import __version__", []),
        ("core/x.py", "def f():\n    import aclnn_cts.store.store", ["aclnn_cts.store.store"]),
        ("judgement/x.py", "from aclnn_cts import oracles", ["aclnn_cts.oracles"]),
        ("judgement/x.py", "import aclnn_cts", ["aclnn_cts"]),
        ("oracles/x.py", "from aclnn_cts.speclang import model", ["aclnn_cts.speclang.model"]),
        ("adapters/other.py", "from aclnn_cts.oracles import x", ["aclnn_cts.oracles.x"]),
        ("adapters/reference.py", "from aclnn_cts.oracles import x", []),
        ("sandbox/x.py", "from aclnn_cts.adapters.registry import load", []),
        ("sandbox/x.py", "from aclnn_cts.adapters.cann import session", ["aclnn_cts.adapters.cann.session"]),
        ("trials/x.py", "from aclnn_cts.runs.campaign.head import Head", ["aclnn_cts.runs.campaign.head.Head"]),
        (
            "runs/campaign/corpus/x.py",
            "from aclnn_cts.runs.campaign.head import Head",
            ["aclnn_cts.runs.campaign.head.Head"],
        ),
        ("runs/campaign/x.py", "from aclnn_cts.runs.campaign.head import Head", []),
        ("runs/x.py", "from aclnn_cts.runs.campaign.head import Head", ["aclnn_cts.runs.campaign.head.Head"]),
        ("reports/x.py", "from aclnn_cts.judgement import bound", ["aclnn_cts.judgement.bound"]),
        ("reports/model/x.py", "from aclnn_cts.judgement.bound import bound", ["aclnn_cts.judgement.bound.bound"]),
        ("reports/model/x.py", "from aclnn_cts.judgement.model import load_precision", []),
        ("reports/x.py", "from aclnn_cts.triage.compare import Comparison", ["aclnn_cts.triage.compare.Comparison"]),
        ("reports/x.py", "from aclnn_cts.triage.shrink import shrink", ["aclnn_cts.triage.shrink.shrink"]),
        ("suites/x.py", "from aclnn_cts.store import store", ["aclnn_cts.store.store"]),
        ("runs/x.py", "from aclnn_cts.cli import main", ["aclnn_cts.cli.main"]),
        ("__init__.py", "from aclnn_cts.core import case", ["aclnn_cts.core.case"]),
        ("__main__.py", "from aclnn_cts.cli.main import main", []),
    ],
)
def test_the_import_rules_find_what_they_forbid(module: str, source: str, found: list[str]) -> None:
    assert forbidden_imports(Path(module), source) == found


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("judgement/x.py", "import torch.nn", ["torch"]),
        ("judgement/x.py", "try:\n    from hypothesis import given\nexcept ImportError:\n    pass", ["hypothesis"]),
        ("judgement/x.py", "class A:\n    import matplotlib", ["matplotlib"]),
        ("judgement/x.py", "def f():\n    import torch", []),
        ("judgement/x.py", "if TYPE_CHECKING:\n    import torch", []),
        ("adapters/torch_functions.py", "import torch", []),
        ("adapters/torch_functions.py", "import matplotlib", ["matplotlib"]),
        ("generate/hypothesis_choices.py", "import hypothesis", []),
        ("suites/test_values.py", "import hypothesis", []),
        ("plugin.py", "import hypothesis", ["hypothesis"]),
    ],
)
def test_the_heavy_imports_are_found(module: str, source: str, found: list[str]) -> None:
    assert heavy_imports(Path(module), source) == found


def test_the_table_names_every_package_and_no_other() -> None:
    folders = {".".join(module.parts[:-1]) for module in MODULES if module.name == "__init__.py"} - {""}
    known = folders | {".".join(module.with_suffix("").parts) for module in MODULES}
    assert {*MAY_IMPORT, *(name for names in MAY_IMPORT.values() for name in names)} <= known
    without = {module for module in MODULES if package_of(".".join(module.with_suffix("").parts)) is None}
    assert without == set()


def test_the_table_has_no_cycle() -> None:
    below: set[str | None] = set()
    for package, allowed in MAY_IMPORT.items():
        assert {package_of(name) for name in allowed} <= below, f"{package} may import what stands above it"
        below.add(package)


def test_the_table_allows_no_more_than_is_used() -> None:
    used: dict[str, set[str]] = {package: set() for package in MAY_IMPORT}
    for module in MODULES:
        parts = module.with_suffix("").parts
        package = package_of(".".join(parts))
        if package is not None:
            source = (ROOT / PACKAGE / module).read_text(encoding="utf-8")
            used[package] |= {name.partition(".")[2] for name in imported(ast.parse(source), (PACKAGE, *parts[:-1]))}
    for package, allowed in MAY_IMPORT.items():
        unused = {word for word in allowed if not any(f"{name}.".startswith(f"{word}.") for name in used[package])}
        assert unused == set(), f"{package} imports nothing of {unused}"


@pytest.mark.parametrize("module", [module for module in MODULES if module.name == "__init__.py"], ids=str)
def test_a_package_says_in_few_lines_what_it_is(module: Path) -> None:
    text = ast.get_docstring(ast.parse((ROOT / PACKAGE / module).read_bytes()))
    assert text is not None
    assert len(text.splitlines()) <= LINES
    if ".".join(module.parts[:-1]) in MAY_IMPORT:
        assert "May import" in text
        [start] = re.findall(r"Start (?:reading )?(?:at|with|in) `([a-z_0-9]+)`", text)
        folder = ROOT / PACKAGE / module.parent
        assert (folder / f"{start}.py").exists() or (folder / start).is_dir()


def test_importing_what_stores_imports_nothing_heavy() -> None:
    script = (
        "import sys; from aclnn_cts.store import case_files, events, run_directory\n"
        f"print([name for name in {(*HEAVY, 'numpy.random', 'yaml')!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
