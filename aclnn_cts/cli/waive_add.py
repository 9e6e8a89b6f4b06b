"""`aclnn-cts waive add`: a waiver drafted from a finding."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from aclnn_cts.cli.output import joined, note
from aclnn_cts.core.errors import UsageError

__all__ = ["add"]


@click.command()
@click.argument("finding", metavar="FINDING", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The waiver file (.yaml), with the finding's trial in `cases` beside it; standard output where left out.",
)
def add(*, finding: Path, out: Path | None) -> int:
    """Draft a waiver for FINDING, a trial file in a run's folder `failures`.

    Scope and pinned case follow from the run. Reason, owner and expiry are left for a person: until they are filled in,
    `run --waivers FILE` refuses the file.
    """
    from aclnn_cts.engine.files import storage_failure, write_atomically
    from aclnn_cts.engine.waiver_draft import draft_waiver

    if out is None:
        draft = draft_waiver(finding, pinned=str(finding.absolute()))
        sys.stdout.write(draft.text)
    else:
        if out.suffix != ".yaml":
            raise UsageError(f"-o {out}: expected a name that ends in .yaml")
        if out.exists():
            raise UsageError(
                f"-o {out}: exists; name another file, or leave -o out and put the draft into that one yourself"
            )
        draft = draft_waiver(finding, pinned="cases/{name}")
        cases = out.parent / "cases"
        try:
            cases.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_failure(cases, error) from error
        write_atomically(cases / draft.case_name, draft.case)
        write_atomically(out, draft.text.encode())
        note(f"{out}: drafted, its pinned case in {cases / draft.case_name}")
    if draft.waived_by:
        note(f"failures of this finding are waived already, by {joined(draft.waived_by)}")
    note("fill in reason, owner and expiry, and narrow the scope where other cases must not hide behind it")
    return 0
