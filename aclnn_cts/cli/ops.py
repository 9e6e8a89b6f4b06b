"""`aclnn-cts ops`: the operators, and how far each is encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import click

from aclnn_cts.cli.options import command, json_option, specs_option
from aclnn_cts.cli.output import console, count, emit, joined, note, wrap
from aclnn_cts.cli.spec_show import dtypes_of
from aclnn_cts.document.catalogue import CatalogueEntry, catalogue, family_of
from aclnn_cts.document.claims import Claims, claims_path, edition_of, read_claims
from aclnn_cts.oracle_check.record import has_formula, is_checked
from aclnn_cts.speclang.load import Specs, load_specs, package_folder
from aclnn_cts.speclang.model import Spec


@command(example="aclnn-cts ops")
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="List every public document of a backward operator: complete, partial with a percentage, or draft.",
)
@specs_option
@json_option
def ops(*, is_all: bool, folders: tuple[Path, ...], as_json: bool) -> None:
    """List the operators, their products and dtypes, and how many constraints and clauses each has.

    A complete operator has a spec whose document is audited to 100 %, a formula, and an oracle that `oracle check`
    found no fault in. JSON says what is missing, and the last line counts.
    """
    specs = load_specs(folders)
    if is_all:
        _list_all(specs, folders, as_json=as_json)
        return
    if as_json:
        states = _states(specs, folders)
        for spec in specs.values():
            emit(_document(spec) | _state(states[spec.operator]))
        note(_summary(states, len(specs)))
        return
    out = console()
    for spec in specs.values():
        wrap(out, f"{spec.operator} ({spec.stem})", style="bold")
        wrap(
            out,
            f"{count(len(spec.constraints), 'constraint')}, {count(len(spec.clauses), 'clause')}; {spec.path}",
            indent=2,
        )
        widest = max(len(product) for product in spec.products)
        for product in spec.products:
            wrap(out, f"{product:<{widest}}  {joined(_dtypes(spec, product))}", indent=2)
        out.print()
    note(f"{count(len(specs), 'operator')}; `aclnn-cts spec show OP` shows what the document of one demands")


def _states(specs: Specs, folders: tuple[Path, ...]) -> Mapping[str, Completeness]:
    return {spec.operator: completeness_of(spec, folders) for spec in specs.values()}


def _state(found: Completeness) -> dict[str, Any]:
    return {
        "status": "complete" if found.is_complete else "partial",
        "audited": found.audited,
        "untestable": found.untestable,
        "missing": [demand.value for demand in found.missing],
    }


def _summary(states: Mapping[str, Completeness], number: int) -> str:
    complete = sum(item.is_complete for item in states.values())
    return f"{count(number, 'operator')}: {complete} complete, {len(states) - complete} partial" + (
        f", {number - len(states)} draft" if number > len(states) else ""
    )


def _list_all(specs: Specs, folders: tuple[Path, ...], *, as_json: bool) -> None:
    """Every document of the catalogue, and operators that it lacks, by family."""
    states = _states(specs, folders)
    known = catalogue()
    names = sorted({*known, *specs}, key=lambda name: (family_of(name), name))
    out, family = console(), ""
    for name in names:
        if as_json:
            emit(_listed(name, known.get(name), specs.get(name), states.get(name)))
            continue
        if family != family_of(name):
            family = family_of(name)
            wrap(out, family, style="bold")
        wrap(out, f"{name}: {_status_text(known.get(name), states.get(name))}", indent=2)
    note(_summary(states, len(names)))


def _status_text(entry: CatalogueEntry | None, found: Completeness | None) -> str:
    if found is not None:
        lacks = ", ".join(demand.value for demand in found.missing)
        return "complete" if found.is_complete else f"partial, {found.audited:.0%} audited; missing: {lacks}"
    if entry is None:
        raise TypeError("an operator is in the catalogue, or has a spec")
    return f"draft; {count(entry.parameters, 'parameter')}, {count(entry.open, 'open place')}"


def _listed(name: str, entry: CatalogueEntry | None, spec: Spec | None, found: Completeness | None) -> dict[str, Any]:
    made: dict[str, Any] = {"operator": name, "family": family_of(name), "file": spec.path if spec else None}
    made |= _state(found) if found is not None else {"status": "draft"}
    if entry is not None:
        made["document"] = {
            "products": list(entry.products),
            "parameters": entry.parameters,
            "statements": entry.statements,
            "open": entry.open,
        }
    return made


def _dtypes(spec: Spec, product: str) -> list[str]:
    """Every dtype that a tensor of the operator may have on a product, in the order of the file."""
    return list(dict.fromkeys(dtype for item in spec.parameters for dtype in dtypes_of(spec, item, product)))


def _document(spec: Spec) -> dict[str, Any]:
    return {
        "operator": spec.operator,
        "stem": spec.stem,
        "file": spec.path,
        "document": spec.document,
        "products": list(spec.products),
        "dtypes": {product: _dtypes(spec, product) for product in spec.products},
        "constraints": len(spec.constraints),
        "clauses": len(spec.clauses),
    }


MOST_UNTESTABLE = 0.25
"""The largest share of statements with a reason why nothing can be tested."""


class Demand(str, Enum):
    """What a complete operator meets."""

    AUDITED = "audited"
    TESTABLE = "testable"
    FORMULA = "formula"
    CHECKED = "oracle check"


@dataclass(frozen=True, slots=True)
class Completeness:
    """How far one operator is."""

    audited: float
    """Share of the statements that are claimed or have a reason; 0 without a claims file."""
    untestable: float
    """Share of the statements that have a reason."""
    missing: tuple[Demand, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every demand is met."""
        return not self.missing


def completeness_of(spec: Spec, folders: Sequence[Path] = ()) -> Completeness:
    """Read the claims, the record of checked oracles and the oracle's file; nothing runs. `folders`: the user's own."""
    home = next((folder for folder in folders if (folder / f"{spec.stem}.yaml").exists()), package_folder())
    claims = _claims(spec, home, folders)
    number = len(claims.claims) if claims is not None else 0
    left = sum(claim.is_open for claim in claims.claims) if claims is not None else 0
    reasons = sum(claim.reason is not None for claim in claims.claims) if claims is not None else 0
    met = {
        Demand.AUDITED: bool(number) and not left,
        Demand.TESTABLE: bool(number) and reasons <= MOST_UNTESTABLE * number,
        Demand.FORMULA: has_formula(spec.stem, folders),
        Demand.CHECKED: is_checked(spec.stem, spec_folder=home, folders=folders),
    }
    missing = tuple(demand for demand, is_met in met.items() if not is_met)
    return Completeness((number - left) / number if number else 0.0, reasons / number if number else 0.0, missing)


def _claims(spec: Spec, home: Path, folders: Sequence[Path]) -> Claims | None:
    path = claims_path(home, spec.stem)
    if not path.exists():
        return None
    edition = edition_of(path)
    return read_claims(path, load_specs(folders, edition=edition).find(spec.stem) if edition else spec)
