"""`aclnn-cts spec lint` and `aclnn-cts spec draft`: mistakes in spec files, and a first version of one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from aclnn_cts.cli.options import command, edition_option, json_option, output_file, output_option
from aclnn_cts.cli.output import count, emit, note
from aclnn_cts.core.outside import YAML_BYTES, open_outside
from aclnn_cts.core.printable import printable_lines
from aclnn_cts.generate.proof import lint_specs

FOUND = 1

_EXPECTED = "a spec file (.yaml)"
_OPERATOR = re.compile(rb"^operator\s*:", re.MULTILINE)
"""What every spec file has in a line of its own."""
_PLACE = re.compile(r"(?P<file>.*?):(?P<line>\d+): (?P<message>.*)", re.DOTALL)


@command(example="aclnn-cts spec lint mine/logistic_backward.yaml")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path))
@click.option("--skip-others", is_flag=True, help="Leave out files that name no operator, as the pre-commit hook does.")
@edition_option
@json_option
def lint(*, files: tuple[Path, ...], skip_others: bool, edition: str, as_json: bool) -> int:
    """Check spec files: all that ship with the package, every edition among them, where none is named.

    Names, expressions and clauses are checked by reading. A file without a mistake in them is then drawn from.
    Every drawing has to be a valid case. Every size, shape and dtype has to be guarded by a constraint, and every
    constraint has to be breakable alone or with its group. The open places of a draft are listed, and nothing is drawn
    from it. Exits 1 where a mistake was found.
    """
    for file in files:
        _check_readable(file)
    if skip_others:
        named = tuple(file for file in files if _names_operator(file))
        if not named:
            note(f"no spec file of an operator among {count(len(files), 'file')}")
            return 0
        files = named
    report = lint_specs(files, edition=edition)
    for message in (*report.mistakes, *report.open):
        if as_json:
            emit({**_document(message), "open": message in report.open})
        else:
            click.echo(printable_lines(message))
    left = f"; {count(len(report.open), 'open place')}" if report.open else ""
    if report.mistakes:
        note(f"{count(len(report.mistakes), 'mistake')}{left}")
        return FOUND
    note(f"no mistake in {count(len(report.stems), 'operator file')}: {', '.join(report.stems)}{left}")
    return 0


def _check_readable(file: Path) -> None:
    if file.is_fifo():
        # What is opened twice loses what its writer has sent.
        return
    with open_outside(file, expected=_EXPECTED):
        pass


def _names_operator(file: Path) -> bool:
    with open_outside(file, expected=_EXPECTED) as content:
        return _OPERATOR.search(content.read(YAML_BYTES)) is not None


def _document(message: str) -> dict[str, Any]:
    match = _PLACE.fullmatch(message)
    if match is None:
        return {"file": None, "line": None, "message": message}
    return {"file": match["file"], "line": int(match["line"]), "message": match["message"]}


@command(example="aclnn-cts spec draft aclnnTanhBackward.md -o mine/tanh_backward.yaml")
@click.argument("document", metavar="DOC", type=click.Path(path_type=Path))
@output_option(text="The spec file (.yaml), instead of standard output.")
def draft(*, document: Path, out: Path | None) -> int:
    r"""Draft a spec from DOC, an operator's document in Markdown.

    Prototype, products, dtypes, formats, ranks and listed status codes come from the document's tables. What they do
    not say in a usual form is left open, with the statements to read. `aclnn-cts spec lint` lists the open places.
    """
    from aclnn_cts.authoring.draft import HEAD, draft_spec
    from aclnn_cts.authoring.read import read_document
    from aclnn_cts.store.output_file import STANDARD_OUTPUT, begins_with

    output = output_file(out or STANDARD_OUTPUT, written_by_us=begins_with(HEAD.encode()), make_folder=True)
    read = read_document(document)
    made = draft_spec(read)
    output.write(made.text.encode())
    for remark in read.remarks:
        note(f"{document}: {remark}")
    note(f"{read.operator}: {count(len(read.parameters), 'parameter')}, {count(len(made.open), 'open place')}")
    return 0
