"""`aclnn-cts ops`: the operators and how much of their documents is encoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aclnn_cts.cli.command import command
from aclnn_cts.cli.facts import dtypes_of
from aclnn_cts.cli.options import json_option, specs_option
from aclnn_cts.cli.output import console, count, emit, joined, note, wrap
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec


@command(example="aclnn-cts ops")
@specs_option
@json_option
def ops(*, folders: tuple[Path, ...], as_json: bool) -> None:
    """List the operators, their products and dtypes, and how many constraints and clauses each has."""
    specs = load_specs(folders)
    if as_json:
        for spec in specs.values():
            emit(_document(spec))
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
