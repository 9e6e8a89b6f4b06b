"""The packages and what each may import: one table, which a test holds the imports to. Run, it prints their sizes."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from tools.markdown import head, table

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "aclnn_cts"

_ROWS = {
    "core": "",
    "pip_constraints": "",
    "speclang": "core",
    "generate": "core speclang",
    "authoring": "core speclang generate",
    "judgement": "core speclang",
    "formula": "core judgement",
    "oracles": "core formula",
    "adapters": "core speclang generate",
    "adapters.reference": "core speclang oracles adapters.protocol adapters.results",
    "store": "core speclang adapters.protocol",
    "sandbox": "core speclang generate adapters.protocol adapters.registry adapters.results",
    "workers": "core speclang adapters.registry store sandbox",
    "execution": "core speclang generate judgement formula oracles adapters.protocol adapters.results store sandbox",
    "trials.plan": "core speclang generate.corner_list",
    "trials.checks": "core speclang generate judgement adapters.protocol store sandbox execution trials.plan",
    "findings": "core speclang generate store trials.plan trials.checks",
    "findings.waivers": "core speclang generate store execution trials.checks findings",
    "trials": (
        "core speclang generate judgement adapters.protocol store sandbox execution trials.plan trials.checks findings"
    ),
    "repro": "core speclang generate judgement store sandbox execution trials.checks findings",
    "triage": "repro core speclang generate store sandbox execution trials.checks findings trials",
    "selftest": (
        "core speclang generate judgement formula oracles adapters.protocol adapters.registry store sandbox workers "
        "execution trials.plan trials.checks findings trials"
    ),
    "bundle": "core speclang generate store execution trials.checks findings",
    "candidates": (
        "core speclang generate judgement adapters.protocol adapters.registry adapters.results "
        "adapters.loopback_build adapters.cann.library store.run_verdict sandbox execution trials.plan trials.checks "
        "findings trials"
    ),
    "bridges": "core sandbox candidates",
    "training": "core generate adapters.bindings candidates",
    "runs": (
        "core speclang generate adapters.protocol adapters.registry store sandbox workers execution trials.plan "
        "trials.checks findings findings.waivers trials repro triage"
    ),
    "runs.campaign.corpus": "core speclang generate store trials.plan trials.checks",
    "runs.campaign": (
        "core speclang generate adapters.protocol adapters.registry store workers execution "
        "trials.checks findings findings.waivers trials repro triage runs.beginning runs.possible runs.programs "
        "runs.campaign.corpus"
    ),
    "reports.model": (
        "core speclang judgement.model adapters.protocol adapters.results store trials.plan findings findings.waivers "
        "triage selftest"
    ),
    "reports": "core authoring store.counts store.scratch reports.model",
    "cli": (
        "core speclang authoring generate adapters.registry store sandbox workers execution trials.plan trials.checks "
        "findings findings.waivers trials repro triage selftest bundle candidates training runs runs.campaign.corpus "
        "runs.campaign reports.model"
    ),
    "plugin": "core speclang store sandbox trials.plan findings.waivers runs",
    "suites": "plugin",
    "__init__": "",
    "__main__": "sandbox cli",
}

MAY_IMPORT: Mapping[str, frozenset[str]] = MappingProxyType(
    {package: frozenset(words.split()) for package, words in _ROWS.items()}
)
"""By package, from the ground up: the packages, and the modules of a package, that its modules may import.

A package stands below all that import it. A package within another is a row of its own where other rules are its.
"""


def modules() -> Iterator[Path]:
    """The modules of the package by their paths below its folder, linked folders included; templates are none."""
    for folder, _, names in os.walk(ROOT / PACKAGE, followlinks=True):
        if Path(folder).name == "templates":
            continue
        yield from (Path(folder, name).relative_to(ROOT / PACKAGE) for name in names if name.endswith(".py"))


def package_of(module: str) -> str | None:
    """The row that a module (`triage.shrink`) belongs to; None for what belongs to none."""
    words = module.split(".")
    names = (".".join(words[:end]) for end in range(len(words), 0, -1))
    return next((name for name in names if name in MAY_IMPORT), None)


def _statements(module: Path) -> int:
    """AST statements of a module: a size that neither comments nor line breaks change."""
    tree = ast.parse((ROOT / PACKAGE / module).read_bytes())
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


def sizes() -> Mapping[str, int]:
    """Statements by package, subpackages not counted in."""
    found = dict.fromkeys(MAY_IMPORT, 0)
    for module in modules():
        package = package_of(_name(module))
        if package is not None:
            found[package] += _statements(module)
    return found


def packages_page() -> Iterator[str]:
    """The lines of the page with the table of packages."""
    yield from head("tools/packages.py and the packages' docstrings")
    yield "# Packages"
    yield ""
    yield "Every package is below all that import it. [Architecture](architecture.md) says what the rules are for."
    yield ""
    yield from _table()


def _table() -> Iterator[str]:
    rows = [
        (
            f"`{package}`",
            _holds(package),
            ", ".join(f"`{name}`" for name in sorted(allowed, key=_place)) or "nothing of ours",
        )
        for package, allowed in MAY_IMPORT.items()
    ]
    yield from table(("package", "holds", "may import"), rows)


def size_lines() -> Iterator[str]:
    """The statements of each package and its share, the largest first."""
    found = sizes()
    total = sum(found.values())
    for package, number in sorted(found.items(), key=lambda item: -item[1]):
        yield f"{number:>7,} {number / total:>6.1%}  {package}"
    yield f"{total:>7,}         all"


def _place(name: str) -> tuple[int, str]:
    return list(MAY_IMPORT).index(package_of(name) or ""), name


def _holds(package: str) -> str:
    """The first sentence of its docstring."""
    place = ROOT / PACKAGE / Path(*package.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_bytes())) or ""
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def _name(module: Path) -> str:
    return ".".join(module.with_suffix("").parts).removesuffix(".__init__")


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in size_lines())
