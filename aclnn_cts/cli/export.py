"""`aclnn-cts export`: a test of one operator for a repository that does not depend on this project."""

from __future__ import annotations

from pathlib import Path

import click

from aclnn_cts.cli.options import (
    IntegerWithin,
    OutputPath,
    command,
    edition_option,
    force_option,
    output_file,
    product_option,
)
from aclnn_cts.cli.output import note
from aclnn_cts.generate.listing import SEED_LIMIT
from aclnn_cts.store.output_file import begins_with

_MOST_CASES, _MOST_ELEMENTS = 10_000, 1 << 20


@command(example="aclnn-cts export softmax_backward --format pytest -o tests")
@click.argument("operator", metavar="OP")
@click.option("--format", "form", type=click.Choice(["pytest"]), default="pytest", show_default=True, help="The test.")
@click.option(
    "--arrays",
    "library",
    type=click.Choice(["numpy", "torch"]),
    default="numpy",
    show_default=True,
    help="Whose tensors the function gets and returns.",
)
@click.option(
    "-n", "number", type=IntegerWithin(1, _MOST_CASES), default=40, show_default=True, metavar="N", help="Calls."
)
@click.option(
    "--max-elements",
    type=IntegerWithin(1, _MOST_ELEMENTS),
    default=4096,
    show_default=True,
    metavar="N",
    help="Most elements of an array.",
)
@click.option(
    "--seed",
    type=IntegerWithin(0, SEED_LIMIT - 1),
    default=0,
    show_default=True,
    metavar="S",
    help="The same seed gives the same calls.",
)
@product_option
@edition_option
@click.option("-o", "--output", "out", required=True, metavar="DIR", type=OutputPath(), help="The folder.")
@force_option
def export(  # noqa: PLR0913 - one parameter an option
    *,
    operator: str,
    form: str,
    library: str,
    number: int,
    max_elements: int,
    seed: int,
    product: str | None,
    edition: str,
    out: Path,
) -> None:
    """Write a test of an operator that needs numpy, pytest and, for torch's tensors, torch: nothing of this project.

    It holds calls of the document with their data, golden values, and the bound of each element.
    IMPLEMENTATION=module:function names what it tests.
    """
    from aclnn_cts.candidates.export import export_pytest
    from aclnn_cts.speclang.load import load_specs

    stem = load_specs().find(operator, where="OP").stem
    module = output_file(out / f"test_{stem}.py", written_by_us=begins_with(rb'"""aclnn\w+ on '), make_folder=True)
    data = output_file(out / f"{stem}.npz", written_by_us=begins_with(b"PK"), make_folder=True)
    made = export_pytest(
        operator,
        seed=seed,
        n=number,
        max_elements=max_elements,
        product=product,
        edition=edition or None,
        library=library,
    )
    module.write(made.module)
    data.write(made.data)
    note(f"{module}: {made.number} calls; IMPLEMENTATION=module:function pytest {module}")
