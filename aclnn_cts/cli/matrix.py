"""`aclnn-cts matrix`: what several runs say of each operator, as a folder of pages."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click

from aclnn_cts.cli.options import OutputPath, command, force_option, output_file
from aclnn_cts.cli.output import begin, note
from aclnn_cts.cli.report import FORMS, page_of
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.store.output_file import begins_with


@command(example="aclnn-cts matrix runs/reference runs/torch -o build/matrix")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, metavar="DIR", type=OutputPath(), help="The folder of the pages.")
@force_option
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="The language of the matrix."
)
def matrix(*, runs: tuple[Path, ...], out: Path, lang: str) -> int:
    """Write a matrix of runs: implementations and versions by operator, each cell a verdict that opens its evidence.

    Runs of one adapter, version, product and profile share a column: the newest counts, and the others are its
    history. index.html opens without a server; matrix.json has the same for programs.
    """
    begin(f"matrix of {', '.join(map(str, runs))}")
    try:
        pages = importlib.import_module("aclnn_cts.reports.matrix")
    except ModuleNotFoundError as error:
        raise HarnessError(
            f"matrix: needs {error.name}, which is not installed; pip install 'aclnn-cts[report]'"
        ) from None
    from aclnn_cts.reports.model.runs import directories

    index = begins_with(rb'<!DOCTYPE html>\n<html lang="..">.{0,200}?content="aclnn-cts matrix">')
    front = output_file(out / "index.html", written_by_us=index, make_folder=True)
    data = output_file(
        out / "matrix.json", written_by_us=begins_with(rb'\{\n "format": "aclnn-cts/matrix/'), make_folder=True
    )
    earlier = {path for path in out.glob("[0-9][0-9]*-*.html") if _is_evidence(path)}
    found = []
    for number, run in enumerate(directories(runs), start=1):
        name = f"{number:02d}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', run.path.resolve().name)[:60]}.html"
        evidence = output_file(out / name, written_by_us=FORMS["html"].written_by_us, make_folder=True)
        report, page = page_of(run.path, lang)
        evidence.write(page)
        earlier.discard(out / name)
        found.append(pages.MatrixRun(run=report.runs[0], page=name))
    # The matrix would not name them any more.
    for path in earlier:
        path.unlink(missing_ok=True)
    made = pages.matrix_of(found)
    front.write(pages.matrix_bytes(made, "zh" if lang == "zh" else "en"))
    data.write(pages.matrix_json(made))
    note(f"{front}: operators {len(made.operators)}, implementations {len(made.columns)}, runs {len(found)}")
    return 0


def _is_evidence(path: Path) -> bool:
    """Whether a page is one that this command wrote beside a matrix."""
    with path.open("rb") as file:
        return FORMS["html"].written_by_us(file)
