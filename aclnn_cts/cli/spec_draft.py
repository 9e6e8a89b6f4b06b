"""`aclnn-cts spec draft`: a spec drafted from an operator's document."""

from __future__ import annotations

from pathlib import Path

import click

from aclnn_cts.cli.options import command, output_file, output_option
from aclnn_cts.cli.output import count, note


@command(example="aclnn-cts spec draft aclnnTanhBackward.md -o mine/tanh_backward.yaml")
@click.argument("document", metavar="DOC", type=click.Path(path_type=Path))
@output_option(text="The spec file (.yaml), instead of standard output.")
def draft(*, document: Path, out: Path | None) -> int:
    r"""Draft a spec from DOC, an operator's document in Markdown.

    Prototype, products, dtypes, formats, ranks and listed status codes come from the document's tables. What they do
    not say in a usual form is left open, with the statements to read. `aclnn-cts spec lint` lists the open places.
    """
    from aclnn_cts.document.draft import HEAD, draft_spec
    from aclnn_cts.document.read import read_document
    from aclnn_cts.store.output_file import STANDARD_OUTPUT, begins

    output = output_file(out or STANDARD_OUTPUT, written_by_us=begins(HEAD.encode()), make_folder=True)
    read = read_document(document)
    made = draft_spec(read)
    output.write(made.text.encode())
    for remark in read.remarks:
        note(f"{document}: {remark}")
    note(f"{read.operator}: {count(len(read.parameters), 'parameter')}, {count(len(made.open), 'open place')}")
    return 0
