"""`aclnn-cts spec show` and `aclnn-cts clauses`: a document as tables of parameters, constraints and clauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from aclnn_cts.cli.options import checked_product, command, edition_option, json_option, product_option, specs_option
from aclnn_cts.cli.output import console, count, emit, join_words, note, show_table, table, wrap
from aclnn_cts.cli.render import Fields, RepeatedView, TableView, TextLine, View, render
from aclnn_cts.core.faults import fault_name
from aclnn_cts.core.outcome import ANY_ERROR, SUCCESS
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Clause, Constraint, Modes, Parameter, Spec


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
    document = _parameter_document(spec, chosen)
    if as_json:
        emit(document)
        return
    out = console()
    render(out, _SPEC, _spec_words(spec, chosen), document)
    _show_constraints(out, spec, chosen)


_SPEC: View = (
    TextLine("{operator} on {product}", style="bold"),
    "{file}, after the document {source}; products: {products}",
    "",
    TableView("taken", {"PARAMETER": "{name}", "C TYPE": "{type}\n{role}", "TAKES": "{takes}"}),
    RepeatedView(
        "moded",
        (TextLine("{mode}: {operands}", indent=2),),
        title="The format that operands are rounded to, by {modes.attribute} and the dtype of {modes.by}:",
    ),
    RepeatedView(
        "rows.dtypes",
        (TextLine("{value}", indent=2),),
        title="The dtypes that go together ({rows.dtypes:row}), in the order {rows.parameters}:",
    ),
    "",
)


def _spec_words(spec: Spec, product: str) -> Fields:
    """What the text says in other words than the document."""
    return {
        "source": spec.source,
        "taken": [
            {"name": item.name, "type": item.type, "role": item.role, "takes": "\n".join(_takes(spec, item, product))}
            for item in spec.parameters
        ],
        "moded": list(_moded(spec.modes, product)) if spec.modes is not None else (),
    }


def _moded(modes: Modes, product: str) -> Iterator[Fields]:
    """A mode in each line, with the format that operands of each dtype are rounded to."""
    rows = modes.operand.get(product, {})
    for value, name in modes.names.items():
        operands = [
            f"{dtype} as {row[value]}" if row[value] else f"{dtype} not supported" for dtype, row in rows.items()
        ]
        yield {"mode": f"{value} {name}", "operands": operands}


def _takes(spec: Spec, item: Parameter, product: str) -> list[str]:
    """What a valid argument is, a line each for shape, dtypes, formats and layout."""
    if item.kind == "int_array":
        return [f"items {item.shape.text}" if item.shape is not None else "items"]
    if item.kind != "tensor":
        is_mode = spec.modes is not None and spec.modes.attribute == item.name
        return ["one of the modes below" if is_mode else "within the ranges below"]
    followed = f" (as {item.dtype_as})" if item.dtype_as is not None else ""
    formats = f"as {item.format_as}" if item.format_as is not None else join_words(item.formats.get(product, ()))
    return [
        f"shape {item.shape.text}" if item.shape is not None else "shape",
        f"{join_words(spec.dtypes_of(item, product))}{followed}",
        f"{formats}; {'any layout' if item.strided else 'contiguous'}",
    ]


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
        wrap(out, f"Not stated for {product}: {join_words(elsewhere)}")


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
            "dtypes": list(spec.dtypes_of(item, product)),
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


_CLAUSE: View = (
    TextLine("{at}[ ({how})]", style="bold"),
    TextLine("{wording}", indent=2),
    TextLine("- stated for {products}", indent=2),
    RepeatedView("encoders", (TextLine("- constraint {id}: {strength}, {status}", indent=2),)),
    TextLine("- check {check}[ of {output}][ when {when}][, contradicted only by {names}]", indent=2),
    TextLine("- interface clause {interface}", indent=2),
    TextLine("- example {example}", indent=2),
    TextLine("- untestable: {reason}", indent=2),
    TextLine("- contradicts {contradicts}", indent=2),
)


def _list(
    out: Console | None,
    operator: str,
    path: str,
    statements: Sequence[Clause],
    constraints: Mapping[str, Constraint],
    lang: str,
) -> str:
    """Print the clauses of one document; the line that counts them."""
    if out is not None:
        render(out, (TextLine("{operator} ({path})", style="bold"), ""), {"operator": operator, "path": path})
    for clause in statements:
        document = _document(operator, clause, constraints)
        if out is None:
            emit(document)
        else:
            render(out, _CLAUSE, _words(clause, constraints, lang), document)
    if out is not None:
        out.print()
    encodings = Counter(_encoding(clause) for clause in statements)
    certainties = Counter(clause.certainty for clause in statements)
    how = join_words([f"{encodings[name]} {_ENCODINGS[name]}" for name in _ENCODINGS if encodings[name]])
    sure = join_words([f"{number} {name}" for name, number in certainties.most_common()])
    return f"{operator}: {count(len(statements), 'clause')} ({sure}): {how}"


def _words(clause: Clause, constraints: Mapping[str, Constraint], lang: str) -> Fields:
    """What the text says in one language, or in other words than the document."""
    chinese = lang == "zh"
    return {
        "how": "" if clause.certainty == "stated" else clause.certainty,
        "wording": clause.zh if chinese else clause.en,
        "encoders": [
            {
                "id": identifier,
                "strength": constraints[identifier].strength,
                "status": " or ".join(conforming(constraints[identifier])),
            }
            for identifier in clause.constraints
        ],
        "names": [fault_name(code) for code in clause.faults],
        "reason": clause.untestable[chinese] if clause.untestable is not None else None,
    }


def _encoding(clause: Clause) -> str:
    return next(name for name in _ENCODINGS if getattr(clause, name))


def _document(operator: str, clause: Clause, constraints: Mapping[str, Constraint]) -> Fields:
    always = {
        "operator": operator,
        "at": clause.at,
        "certainty": clause.certainty,
        "en": clause.en,
        "zh": clause.zh,
        "encoded": _encoding(clause),
    }
    sometimes = {
        "products": list(clause.products),
        "constraints": list(clause.constraints),
        "strengths": {identifier: [constraints[identifier].strength] for identifier in clause.constraints},
        "check": clause.check,
        "when": clause.when_text,
        "output": clause.output,
        "interface": clause.interface,
        "example": clause.example,
        "faults": list(clause.faults),
        "untestable": dict(zip(("en", "zh"), clause.untestable, strict=True))
        if clause.untestable is not None
        else None,
        "contradicts": list(clause.contradicts),
    }
    return {**always, **{key: value for key, value in sometimes.items() if value}}
