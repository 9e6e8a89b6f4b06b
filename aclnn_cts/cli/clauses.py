"""`aclnn-cts clauses`: every statement of the documents, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from aclnn_cts.cli.facts import conforming
from aclnn_cts.cli.options import command, edition_option, json_option, specs_option
from aclnn_cts.cli.output import console, count, emit, joined, note, wrap
from aclnn_cts.core.fault_words import fault_name
from aclnn_cts.speclang.kinds import Constraint
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Clause

INTERFACE = "interface"
"""Stands where an operator's name stands, for the clauses that hold for every operator."""

_ENCODINGS = {
    "constraints": "encoded by constraints",
    "check": "by a check",
    "interface": "by the interface",
    "example": "by an example",
    "untestable": "untestable",
}


@command(example="aclnn-cts clauses softmax_backward")
@click.argument("operators", nargs=-1, metavar="[OP]...")
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="The language of the wording."
)
@specs_option
@edition_option
@json_option
def clauses(*, operators: tuple[str, ...], lang: str, folders: tuple[Path, ...], edition: str, as_json: bool) -> None:
    """List every clause of the documents (all operators where none is named) and what encodes it, or why nothing can.

    The clauses of the two-phase interface, which hold for every operator, come last.
    """
    specs = load_specs(folders, edition=edition)
    chosen = specs.select(operators)
    shared = _interface_constraints(specs)
    out = None if as_json else console()
    totals: list[str] = []
    for spec in chosen:
        own = {item.id: item for item in spec.constraints}
        totals.append(_list(out, spec.operator, spec.path, spec.clauses, own, lang))
    if specs.interface_clauses:
        totals.append(_list(out, INTERFACE, "specs/interface.yaml", specs.interface_clauses, shared, lang))
    for total in totals:
        if out is None:
            note(total)
        else:
            wrap(out, total)


def _interface_constraints(specs: Specs) -> Mapping[str, Constraint]:
    """The interface's constraints by their ids there."""
    return {
        item.id.removeprefix(f"{INTERFACE}."): item
        for spec in specs.values()
        for item in spec.constraints
        if item.id.startswith(f"{INTERFACE}.")
    }


def _list(
    out: Console | None,
    operator: str,
    path: str,
    statements: Sequence[Clause],
    constraints: Mapping[str, Constraint],
    lang: str,
) -> str:
    """Print the clauses of one document; the line that counts them."""
    if out is None:
        for clause in statements:
            emit(_document(operator, clause, constraints))
    else:
        wrap(out, f"{operator} ({path})", style="bold")
        out.print()
        for clause in statements:
            _show(out, clause, constraints, lang)
        out.print()
    encodings = Counter(_encoding(clause) for clause in statements)
    certainties = Counter(clause.certainty for clause in statements)
    how = joined([f"{encodings[name]} {_ENCODINGS[name]}" for name in _ENCODINGS if encodings[name]])
    sure = joined([f"{number} {name}" for name, number in certainties.most_common()])
    return f"{operator}: {count(len(statements), 'clause')} ({sure}): {how}"


def _encoding(clause: Clause) -> str:
    return next(name for name in _ENCODINGS if getattr(clause, name))


def _show(out: Console, clause: Clause, constraints: Mapping[str, Constraint], lang: str) -> None:
    head = clause.at if clause.certainty == "stated" else f"{clause.at} ({clause.certainty})"
    wrap(out, head, style="bold")
    wrap(out, clause.zh if lang == "zh" else clause.en, indent=2)
    if clause.products:
        wrap(out, f"- stated for {joined(clause.products)}", indent=2)
    for identifier in clause.constraints:
        item = constraints[identifier]
        wrap(out, f"- constraint {identifier}: {item.strength}, {' or '.join(conforming(item))}", indent=2)
    if clause.check is not None:
        condition = f" when {clause.when_text}" if clause.when_text is not None else ""
        about = f" of {clause.output}" if clause.output is not None else ""
        names = joined([fault_name(code) for code in clause.faults])
        faults = f", contradicted only by {names}" if names else ""
        wrap(out, f"- check {clause.check}{about}{condition}{faults}", indent=2)
    if clause.interface is not None:
        wrap(out, f"- interface clause {clause.interface}", indent=2)
    if clause.example is not None:
        wrap(out, f"- example {clause.example}", indent=2)
    if clause.untestable is not None:
        wrap(out, f"- untestable: {clause.untestable[1 if lang == 'zh' else 0]}", indent=2)
    if clause.contradicts:
        wrap(out, f"- contradicts {', '.join(clause.contradicts)}", indent=2)


def _document(operator: str, clause: Clause, constraints: Mapping[str, Constraint]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "operator": operator,
        "at": clause.at,
        "certainty": clause.certainty,
        "en": clause.en,
        "zh": clause.zh,
        "encoded": _encoding(clause),
    }
    if clause.products:
        document["products"] = list(clause.products)
    if clause.constraints:
        document["constraints"] = list(clause.constraints)
        document["strengths"] = {identifier: [constraints[identifier].strength] for identifier in clause.constraints}
    others = {
        "check": clause.check,
        "when": clause.when_text,
        "output": clause.output,
        "interface": clause.interface,
        "example": clause.example,
    }
    document |= {key: value for key, value in others.items() if value is not None}
    if clause.faults:
        document["faults"] = list(clause.faults)
    if clause.untestable is not None:
        document["untestable"] = {"en": clause.untestable[0], "zh": clause.untestable[1]}
    if clause.contradicts:
        document["contradicts"] = list(clause.contradicts)
    return document
