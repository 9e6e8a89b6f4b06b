"""`aclnn-cts spec show` and `aclnn-cts clauses`: a document as tables of parameters, constraints and clauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from aclnn_cts.cli.options import checked_product, command, edition_option, json_option, product_option, specs_option
from aclnn_cts.cli.output import console, count, emit, joined, note, show_rows, show_table, table, wrap
from aclnn_cts.core.faults import fault_name
from aclnn_cts.core.outcome import ANY_ERROR, SUCCESS
from aclnn_cts.speclang.kinds import Constraint
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Clause, Modes, Parameter, Spec


@command(example="aclnn-cts spec show softmax_backward --product atlas-a2")
@click.argument("operator", metavar="OP")
@product_option
@specs_option
@edition_option
@json_option
def show(*, operator: str, product: str | None, folders: tuple[Path, ...], edition: str, as_json: bool) -> None:
    """Show the parameters, modes and constraints of an operator on one product, and the clauses they come from."""
    specs = load_specs(folders, edition=edition)
    spec = specs.find(operator, where="OP")
    chosen = checked_product(product, spec)
    if as_json:
        emit(_parameter_document(spec, chosen))
        return
    out = console()
    wrap(out, f"{spec.operator} on {chosen}", style="bold")
    wrap(out, f"{spec.path}, after the document {spec.source}; products: {joined(spec.products)}")
    out.print()
    _show_parameters(out, spec, chosen)
    if spec.modes is not None:
        out.print()
        _show_modes(out, spec.modes, chosen)
    if spec.rows is not None:
        out.print()
        _show_rows(out, spec, chosen)
    out.print()
    _show_constraints(out, spec, chosen)


def _show_parameters(out: Console, spec: Spec, product: str) -> None:
    rows = [
        (item.name, f"{item.type}\n{item.role}", "\n".join(_takes(spec, item, product))) for item in spec.parameters
    ]
    show_rows(out, ("PARAMETER", "C TYPE", "TAKES"), rows)


def _takes(spec: Spec, item: Parameter, product: str) -> list[str]:
    """What a valid argument is, a line each for shape, dtypes, formats and layout."""
    if item.kind == "int_array":
        return [f"items {item.shape.text}" if item.shape is not None else "items"]
    if item.kind != "tensor":
        is_mode = spec.modes is not None and spec.modes.attribute == item.name
        return ["one of the modes below" if is_mode else "within the ranges below"]
    followed = f" (as {item.dtype_as})" if item.dtype_as is not None else ""
    formats = f"as {item.format_as}" if item.format_as is not None else joined(item.formats.get(product, ()))
    return [
        f"shape {item.shape.text}" if item.shape is not None else "shape",
        f"{joined(dtypes_of(spec, item, product))}{followed}",
        f"{formats}; {'any layout' if item.strided else 'contiguous'}",
    ]


def _show_modes(out: Console, modes: Modes, product: str) -> None:
    rows = modes.operand.get(product, {})
    wrap(out, f"The format that operands are rounded to, by {modes.attribute} and the dtype of {modes.by}:")
    lines = [
        (f"{value} {name}", *(row[value] or "not supported" for row in rows.values()))
        for value, name in modes.names.items()
    ]
    show_rows(out, (modes.attribute, *rows), lines)


def _show_rows(out: Console, spec: Spec, product: str) -> None:
    rows = (spec.rows or {}).get(product, ())
    order = ", ".join(spec.row_parameters)
    wrap(out, f"The dtypes that go together ({count(len(rows), 'row')}), in the order {order}:")
    for row in rows:
        wrap(out, ", ".join(row), indent=2)


def _show_constraints(out: Console, spec: Spec, product: str) -> None:
    constraints = spec.constraints_for(product)
    rows = [
        (
            "\n".join((item.id, *(f"  {clause}" for clause in item.clauses))),
            _rule(item, product),
            "\n".join((item.strength, *conforming(item))),
        )
        for item in constraints
    ]
    made = table("CONSTRAINT", "RULE", "WHEN BROKEN")
    # Names and statuses are read whole as far as there is room; the rule is running text and wraps.
    first = min(_widest(row[0] for row in rows), out.width * 2 // 5)
    last = min(_widest(row[2] for row in rows), out.width // 3)
    gaps = 8 if out.is_terminal else 4
    for column, width in zip(made.columns, (first, out.width - first - last - gaps, last), strict=True):
        column.width = width
    for row in rows:
        made.add_row(*row)
    show_table(out, made)
    wrap(out, f"{count(len(constraints), 'constraint')} on {product}; below each stand its clauses in the document")
    if elsewhere := [item.id for item in spec.constraints if item not in constraints]:
        wrap(out, f"Not stated for {product}: {joined(elsewhere)}")


def _widest(texts: Iterable[str]) -> int:
    return max((len(line) for text in texts for line in text.splitlines()), default=1)


def _rule(item: Constraint, product: str) -> str:
    text = rule_text(item, product)
    return f"{text}; never on a real device: {item.unsafe}" if item.unsafe is not None else text


def _parameter_document(spec: Spec, product: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "operator": spec.operator,
        "stem": spec.stem,
        "file": spec.path,
        "sha256": spec.sha256,
        "document": spec.document,
        "edition": spec.edition or None,
        "products": list(spec.products),
        "product": product,
        "parameters": [_parameter(spec, item, product) for item in spec.parameters],
    }
    if spec.modes is not None:
        document["modes"] = {
            "attribute": spec.modes.attribute,
            "by": spec.modes.by,
            "names": {str(value): name for value, name in spec.modes.names.items()},
            "operand": {dtype: list(row) for dtype, row in spec.modes.operand.get(product, {}).items()},
        }
    if spec.rows is not None:
        rows = [list(row) for row in spec.rows.get(product, ())]
        document["rows"] = {"parameters": list(spec.row_parameters), "dtypes": rows}
    document["constraints"] = [_constraint(item, product) for item in spec.constraints_for(product)]
    return document


def _parameter(spec: Spec, item: Parameter, product: str) -> dict[str, Any]:
    document: dict[str, Any] = {"name": item.name, "type": item.type, "kind": item.kind, "role": item.role}
    if item.shape is not None:
        document["shape" if item.kind == "tensor" else "items"] = item.shape.text
    if item.kind == "tensor":
        document |= {
            "dtypes": list(dtypes_of(spec, item, product)),
            "formats": list(item.formats.get(product, ())),
            "strided": item.strided,
        }
    return document


def _constraint(item: Constraint, product: str) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "rule": item.rule.describe(product).en,
        "when": item.when_text,
        "strength": item.strength,
        "status": list(conforming(item)),
        "clauses": list(item.clauses),
        "requires": list(item.requires),
        "group": item.group,
        "unsafe": item.unsafe,
    }


def dtypes_of(spec: Spec, item: Parameter, product: str) -> tuple[str, ...]:
    """The dtypes of a tensor on a product: its own list, its column of the rows, or those of what it follows."""
    while item.dtype_as is not None and item.name not in spec.row_parameters:
        item = spec.parameter(item.dtype_as)
    if item.name in spec.row_parameters and spec.rows is not None:
        column = spec.row_parameters.index(item.name)
        return tuple(dict.fromkeys(row[column] for row in spec.rows.get(product, ())))
    return item.dtypes.get(product, ())


def rule_text(constraint: Constraint, product: str) -> str:
    """The rule in words, with the condition under which it is stated."""
    text = constraint.rule.describe(product).en
    return f"{text} (when {constraint.when_text})" if constraint.when_text is not None else text


def conforming(constraint: Constraint) -> tuple[str, ...]:
    """The statuses that conform where this constraint alone is broken."""
    return constraint.statuses or (ANY_ERROR, SUCCESS)


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
        faults = f", contradicted only by {names}" if clause.faults else ""
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
