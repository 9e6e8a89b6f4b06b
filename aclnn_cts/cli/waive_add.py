"""`aclnn-cts waive add`: a waiver drafted from a finding."""

from __future__ import annotations

from pathlib import Path

import click

from aclnn_cts.cli.options import command, output_file, output_option
from aclnn_cts.cli.output import joined, note
from aclnn_cts.core.errors import UsageError
from aclnn_cts.findings.waivers.draft import UNFILLED_DRAFT, draft_waiver
from aclnn_cts.store.output_file import STANDARD_OUTPUT


@command(example="aclnn-cts waive add runs/night/failures/0a1b2c3d.json -o waivers.yaml")
@click.argument("finding", metavar="FINDING", type=click.Path(path_type=Path))
@output_option(
    text="The waiver file (.yaml), with the finding's trial in `cases` beside it; standard output where left out."
)
def add(*, finding: Path, out: Path | None) -> int:
    """Draft a waiver for FINDING, a trial file in a run's folder `failures`.

    Scope and pinned case follow from the run. Reason, owner and expiry are left for a person: until they are filled in,
    `run --waivers FILE` refuses the file.
    """
    output = output_file(out or STANDARD_OUTPUT, written_by_us=UNFILLED_DRAFT, make_folder=True)
    if out is None or output.is_stream:
        draft = draft_waiver(finding, pinned=str(finding.absolute()))
        output.write(draft.text.encode())
    else:
        if out.suffix != ".yaml":
            raise UsageError(f"-o {out}: expected a name that ends in .yaml")
        draft = draft_waiver(finding, pinned="cases/{name}")
        pinned = output_file(
            out.parent / "cases" / draft.case_name,
            written_by_us=lambda file: file.read() == draft.case,
            make_folder=True,
        )
        pinned.write(draft.case)
        output.write(draft.text.encode())
        note(f"{output}: drafted, its pinned case in {pinned}")
    if draft.waived_by:
        note(f"failures of this finding are waived already, by {joined(draft.waived_by)}")
    note("fill in reason, owner and expiry, and narrow the scope where other cases must not hide behind it")
    return 0
