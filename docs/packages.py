"""The packages, what each may import, and how large each is: one table, which a test holds the imports to."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from docs.markdown import between, table

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "aclnn_cts"

_ROWS = {
    "core": "",
    "pip_constraints": "",
    "speclang": "core",
    "document": "core speclang",
    "generate": "core speclang",
    "judgement": "core speclang",
    "formula": "core judgement",
    "oracles": "core formula",
    "adapters": "core speclang generate",
    "adapters.reference": "core speclang oracles adapters.protocol adapters.results",
    "store": "core speclang adapters.protocol",
    "sandbox": "core speclang generate adapters.protocol adapters.registry adapters.results",
    "execution": "core speclang generate judgement formula oracles adapters.protocol adapters.results store sandbox",
    "checks": "core speclang generate judgement oracles adapters.protocol store sandbox execution",
    "oracle_check": "core speclang generate judgement formula oracles execution checks",
    "findings": "core speclang generate store checks",
    "findings.waivers": "core speclang generate store execution checks findings",
    "trials": "core speclang generate judgement adapters.protocol store sandbox execution checks findings",
    "repro": "core speclang generate judgement store sandbox execution checks",
    "triage": "core speclang generate adapters.results store sandbox execution checks findings trials",
    "clauses": "core speclang judgement store checks findings triage",
    "mutants": (
        "core speclang generate formula oracles adapters.protocol adapters.registry store sandbox execution checks "
        "oracle_check findings trials"
    ),
    "bundle": "core speclang generate store execution checks findings repro",
    "interop": "core speclang generate",
    "campaign.corpus": "core speclang generate store checks",
    "campaign.fleet": (
        "core speclang judgement adapters.protocol adapters.registry store sandbox execution checks findings "
        "findings.waivers trials triage campaign.corpus"
    ),
    "runs": (
        "core speclang adapters.protocol adapters.registry store sandbox execution checks findings "
        "findings.waivers trials triage campaign.corpus campaign.fleet"
    ),
    "campaign": (
        "core speclang generate adapters.protocol adapters.registry store execution checks findings findings.waivers "
        "trials repro campaign.corpus campaign.fleet"
    ),
    "reports.model": (
        "core speclang generate judgement.figures judgement.compare judgement.model "
        "judgement.tolerances adapters.protocol adapters.results store execution checks findings "
        "findings.waivers repro triage clauses mutants"
    ),
    "reports": "core document store.counts triage.comparison reports.model",
    "cli": (
        "core speclang document generate adapters.registry store sandbox execution checks oracle_check findings "
        "findings.waivers trials repro triage mutants bundle interop runs campaign.corpus campaign.fleet campaign "
        "reports.model"
    ),
    "plugin": "core speclang store sandbox checks findings.waivers runs",
    "suites": "plugin",
    "__main__": "sandbox cli",
}

MAY_IMPORT: Mapping[str, frozenset[str]] = MappingProxyType(
    {package: frozenset(words.split()) for package, words in _ROWS.items()}
)
"""By package, from the ground up: the packages, and the modules of a package, that its modules may import.

A package stands below all that import it. A package within another is a row of its own where other rules are its.
"""

_START = "<!-- packages: made from docs/packages.py and the packages' docstrings by `make docs`; type nothing here -->"
_END = "<!-- packages: end -->"


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


def packages_page(page: str) -> str:
    """A page with the table of packages between its marks."""
    return between(page, _START, _END, "\n".join([_START, *_table(), _END]))


def _table() -> Iterator[str]:
    found = sizes()
    total = sum(found.values())
    rows = [
        (
            f"`{package}`",
            _holds(package),
            ", ".join(f"`{name}`" for name in sorted(allowed, key=_place)) or "nothing of ours",
            f"{found[package]:,}",
            f"{found[package] / total:.1%}",
        )
        for package, allowed in MAY_IMPORT.items()
    ]
    rows.append(("all", "", "", f"{total:,}", ""))
    yield from table(("package", "holds", "may import", "statements", "share"), rows)


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
