"""`aclnn-cts cases`: generated cases as a file that every command reads."""

from __future__ import annotations

from pathlib import Path

import click

from aclnn_cts.cli.options import (
    IntegerWithin,
    checked_product,
    command,
    edition_option,
    output_file,
    output_option,
    product_option,
    specs_option,
)
from aclnn_cts.cli.output import joined, note
from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.core.target import Target
from aclnn_cts.generate.listing import KINDS, SEED_LIMIT, Generation, Kind
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.case_files import write_case_file
from aclnn_cts.store.output_file import STANDARD_OUTPUT, begins

_GENERATED = begins(rb'\{"format":"aclnn-cts/case/[^\n]*"origin":\{"kind":"(valid|invalid|boundary)"')


@command(example="aclnn-cts cases softmax_backward --kind valid,invalid")
@click.argument("operator", metavar="OP")
@click.option(
    "--kind",
    "kinds",
    default=",".join(KINDS),
    show_default=True,
    metavar="KIND,...",
    help="Which kinds of case, in this order.",
)
@product_option
@click.option(
    "-n",
    "number",
    type=IntegerWithin(1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many of each kind.",
)
@click.option(
    "--seed",
    type=IntegerWithin(0, SEED_LIMIT - 1),
    default=0,
    show_default=True,
    metavar="S",
    help="The same seed gives the same bytes.",
)
@specs_option
@edition_option
@output_option(text="Where to write them, instead of standard output.")
def cases(
    *,
    operator: str,
    kinds: str,
    product: str | None,
    number: int,
    seed: int,
    folders: tuple[Path, ...],
    edition: str,
    out: Path | None,
) -> None:
    """Write generated cases of an operator, one JSON object a line, N of each kind.

    valid: hold every constraint. invalid: break one constraint each (or one group of inseparable ones), in turn.
    boundary: on every limit and one step to both sides, fewer than N where the document has fewer.
    """
    chosen = _kinds(kinds)
    output = output_file(out or STANDARD_OUTPUT, written_by_us=_GENERATED)
    specs = load_specs(folders, edition=edition)
    spec = specs.find(operator, where="OP")
    target = Target(product=checked_product(product, spec))
    found = Generation(spec=spec, target=target, kinds=chosen, seed=seed, count=number)
    write_case_file(output, found)
    numbers = joined([f"{found.written[kind]} {kind}" for kind in chosen])
    note(f"{spec.operator} on {target.product}: {numbers}{f' in {output}' if out is not None else ''}")
    which = joined([f"{identifier} ({times})" for identifier, times in found.unproved.most_common()])
    note(f"{found.unproved.total()} could not be proved{f': {which}' if found.unproved else ''}")


def _kinds(text: str) -> list[Kind]:
    """The kinds named, each once, in their order."""
    chosen: list[Kind] = []
    for word in text.split(","):
        kind = next((item for item in KINDS if item == word.strip()), None)
        if kind is None:
            known = ", ".join(KINDS)
            advice = nearest(word, KINDS)
            raise UsageError(f"--kind: {word.strip()!r}; expected any of {known}, with commas between them{advice}")
        if kind not in chosen:
            chosen.append(kind)
    return chosen
