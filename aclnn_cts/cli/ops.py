"""`aclnn-cts ops`: the operators, and how far each is encoded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import click

from aclnn_cts.authoring.catalogue import CatalogueEntry, catalogue, family_of
from aclnn_cts.authoring.claims import Claims, claims_path, edition_of, read_claims
from aclnn_cts.cli.options import command, json_option, specs_option
from aclnn_cts.cli.output import count, note
from aclnn_cts.cli.render import RepeatedView, TextLine, View, show
from aclnn_cts.generate.corner_list import read_corner_list
from aclnn_cts.selftest.checked_oracles import is_checked
from aclnn_cts.selftest.oracle_code import has_formula
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.speclang.package import folder_of, package_folder
from aclnn_cts.speclang.spec_claims import NotTestable


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
    states = {spec.operator: completeness_of(spec, folders) for spec in specs.values()} if is_all or as_json else {}
    if is_all:
        _list_all(specs, states, as_json=as_json)
        return
    for spec in specs.values():
        document = _document(spec)
        widest = max(len(product) for product in spec.products)
        rows = [{"product": f"{product:<{widest}}", "dtypes": dtypes} for product, dtypes in document["dtypes"].items()]
        show(document | (_state(states[spec.operator]) if as_json else {}), _OPERATOR, {"rows": rows}, as_json=as_json)
    shown = "`aclnn-cts spec show OP` shows what the document of one demands"
    note(_summary(states, len(specs)) if as_json else f"{count(len(specs), 'operator')}; {shown}")


_OPERATOR: View = (
    TextLine("{operator} ({stem})", style="bold"),
    TextLine("{constraints:constraint}, {clauses:clause}; {file}", indent=2),
    RepeatedView("rows", (TextLine("{product}  {dtypes|none}", indent=2),)),
    "",
)
_LISTED: View = (
    TextLine("{heading}", style="bold"),
    TextLine("{?complete}{operator}: complete", indent=2),
    TextLine("{?missing}{operator}: partial{share}; missing: {missing}", indent=2),
    RepeatedView("lacks", (TextLine("{at}: {en}", indent=4),)),
    TextLine("{?draft}{operator}: draft; {document.parameters:parameter}, {document.open:open place}", indent=2),
)


def _state(found: Completeness) -> dict[str, Any]:
    return {
        "status": "complete" if found.is_complete else "partial",
        "audited": found.audited,
        "untestable": found.untestable,
        "missing": [demand.value for demand in found.missing],
        "lacks": [{"at": clause.at, "en": clause.en, "zh": clause.zh} for clause in found.lacks],
    }


def _summary(states: Mapping[str, Completeness], number: int) -> str:
    complete = sum(item.is_complete for item in states.values())
    return f"{count(number, 'operator')}: {complete} complete, {len(states) - complete} partial" + (
        f", {number - len(states)} draft" if number > len(states) else ""
    )


def _list_all(specs: Specs, states: Mapping[str, Completeness], *, as_json: bool) -> None:
    """Every document of the catalogue, and operators that it lacks, by family."""
    known = catalogue()
    family = ""
    names = sorted({*known, *specs}, key=lambda name: (family_of(name), name))
    for name in names:
        document = _listed(name, known.get(name), specs.get(name), states.get(name))
        heading, family = document["family"] if document["family"] != family else "", document["family"]
        share = _share_text(states.get(name))
        show(document, _LISTED, {"heading": heading, "share": share, document["status"]: True}, as_json=as_json)
    note(_summary(states, len(names)))
    if not known:
        note(
            "documents without a spec are not listed: a clone of the repository has the catalogue, and a wheel has none"
        )


def _share_text(found: Completeness | None) -> str:
    """What of the document is audited, where that is known or missing: a wheel's operators are."""
    if found is None or (found.audited is None and Demand.AUDITED not in found.missing):
        return ""
    if found.audited is None:
        return ", no claims file (see `aclnn-cts spec audit`)"
    return f", {math.floor(100 * found.audited)}% audited"


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
    return list(dict.fromkeys(dtype for item in spec.parameters for dtype in spec.dtypes_of(item, product)))


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
    CORNERS = "list of corners"
    DOCUMENT = "sentences of the document"


@dataclass(frozen=True, slots=True)
class Completeness:
    """How far one operator is."""

    audited: float | None
    """Share of the statements that are claimed or have a reason; None without a claims file."""
    untestable: float | None
    """Share of the statements that have a reason; None without a claims file."""
    missing: tuple[Demand, ...]
    lacks: tuple[Clause, ...] = ()
    """What the document does not say and the formula would need."""

    @property
    def is_complete(self) -> bool:
        """Whether every demand is met."""
        return not self.missing


def completeness_of(spec: Spec, folders: Sequence[Path] = ()) -> Completeness:
    """Read the records of an operator and its oracle's file; nothing runs. `folders`: the user's own."""
    home = folder_of(spec.path, folders)
    claims, unread = _claims(spec, home, folders)
    found = claims.claims if claims is not None else ()
    # A wheel has no claims: `make release-check` has read them.
    is_released = home == package_folder() and not (home / "claims").is_dir()
    left = sum(claim.is_open or claim.is_unread or not unread.isdisjoint(claim.clauses) for claim in found)
    reasons = sum(claim.reason is not None for claim in found)
    met = {
        Demand.AUDITED: is_released or (bool(found) and not left),
        Demand.TESTABLE: is_released or (bool(found) and reasons <= MOST_UNTESTABLE * len(found)),
        Demand.FORMULA: has_formula(spec.stem, folders),
        Demand.CHECKED: is_checked(spec.stem, spec_folder=home, folders=folders),
        Demand.CORNERS: read_corner_list(spec, home) is not None,
        Demand.DOCUMENT: not spec.lacks,
    }
    missing = tuple(demand for demand, is_met in met.items() if not is_met)
    if not found:
        return Completeness(None, None, missing, spec.lacks)
    return Completeness((len(found) - left) / len(found), reasons / len(found), missing, spec.lacks)


def _claims(spec: Spec, home: Path, folders: Sequence[Path]) -> tuple[Claims | None, frozenset[str]]:
    """The claims file of a spec, and the clauses of its edition that say that a part is not encoded yet."""
    path = claims_path(home, spec.stem)
    if not path.exists():
        return None, frozenset()
    edition = edition_of(path)
    read = load_specs(folders, edition=edition).find(spec.stem) if edition else spec
    return read_claims(path, read), frozenset(
        clause.at for clause in read.clauses if clause.reason == NotTestable.UNREAD
    )
