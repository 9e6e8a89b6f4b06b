"""`aclnn-cts import-atk`: the ecosystem's case files as ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click
from rich.console import Console

from aclnn_cts.cli.options import (
    checked_product,
    checked_target,
    command,
    json_option,
    output_file,
    output_option,
    product_option,
    specs_option,
)
from aclnn_cts.cli.output import console, count, emit, joined, wrap
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.interop.import_atk import AtkEntry
from aclnn_cts.interop.import_atk import import_atk as entries_of
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.case_files import write_case_file
from aclnn_cts.store.output_file import begins

_IMPORTED = begins(rb'\Z|\{"format":"aclnn-cts/case/[^\n]*"origin":\{"kind":"atk"')
"""An empty file too: of some files no case can be carried over."""


@command("import-atk", example="aclnn-cts import-atk cases.json -o cases")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@output_option(text="The case file to write (.jsonl).", required=True)
@product_option
@json_option
@specs_option
def import_atk(
    *, files: tuple[Path, ...], out: Path, product: str | None, as_json: bool, folders: tuple[Path, ...]
) -> int:
    """Turn ATK case files into a case file for `run --cases`, and say what cannot be carried over and why.

    Names are mapped to the C prototype, value ranges to recipes; what the executors put in place of an input is put
    there, and outputs follow from the spec.
    """
    output = output_file(out, written_by_us=_IMPORTED)
    if not output.is_stream and out.suffix != ".jsonl":
        raise UsageError(f"-o {out}: expected a name that ends in .jsonl, since it holds one case a line")
    if output.is_standard_output and as_json:
        raise UsageError(f"-o {out}: standard output holds what --json prints; name a file, or leave --json out")
    specs = load_specs(folders)
    checked_target(product)
    left: list[AtkEntry] = []
    totals = {str(file): Counter[bool]() for file in files}

    def contents() -> Iterator[Trial | Case]:
        for file in files:
            for entry in entries_of(file, specs, product_of=lambda spec: checked_product(product, spec)):
                totals[entry.file][entry.content is not None] += 1
                if entry.content is not None:
                    yield entry.content
                else:
                    left.append(entry)

    written = write_case_file(output, contents())
    if as_json:
        _emit(left, totals)
    else:
        screen = console(errors=output.is_standard_output)
        _show(screen, left, totals)
        wrap(
            screen,
            f"{output}: {count(written, 'case')}; aclnn-cts run --cases {output} --adapter A judges them",
        )
    return 0


def _emit(left: Iterable[AtkEntry], totals: Mapping[str, Counter[bool]]) -> None:
    for entry in left:
        emit({"file": entry.file, "id": entry.id, "reason": entry.reason})
    for file, number in totals.items():
        emit({"file": file, "cases": number.total(), "imported": number[True], "not_carried_over": number[False]})


def _show(out: Console, left: Iterable[AtkEntry], totals: Mapping[str, Counter[bool]]) -> None:
    """Every case that was left, those of one reason together, and the totals by file."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for entry in left:
        reasons.setdefault((entry.file, entry.reason), []).append(entry.id)
    for (file, reason), ids in reasons.items():
        wrap(out, f"not carried over: {file}, id {joined(ids)}: {reason}")
    for file, number in totals.items():
        wrap(out, f"{file}: {count(number.total(), 'case')}, {number[True]} imported, {number[False]} not carried over")
