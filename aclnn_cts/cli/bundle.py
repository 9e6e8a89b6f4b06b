"""`aclnn-cts bundle`: the evidence of a run in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from aclnn_cts.cli.options import command, oracles_option, output_file, output_option
from aclnn_cts.cli.output import begin, console, count, wrap


@command(example="aclnn-cts bundle runs/night -o evidence.zip")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@output_option(text="The file to write.", required=True)
@click.option(
    "--sign",
    metavar="KEY",
    type=click.Path(path_type=Path),
    help="Sign with this Ed25519 private key (PEM or OpenSSH); needs the extra `sign`.",
)
@oracles_option
def bundle(*, run: Path, out: Path, sign: Path | None, folders: tuple[Path, ...]) -> int:
    """Pack a finished run into one file that anybody can check without a device: `aclnn-cts verify FILE`.

    It holds the report, records with their JSON Schema, recorded outputs, and a trial file and programs per finding.
    Specs, waivers, the run's environment and a manifest of SHA-256 sums are in it too.
    """
    begin(f"packing {run}")
    from aclnn_cts.bundle.keys import Signer
    from aclnn_cts.bundle.write import BUNDLE, write_bundle
    from aclnn_cts.cli.report import page
    from aclnn_cts.store.run_directory import RunDirectory

    directory = RunDirectory(run)
    output = output_file(out, written_by_us=BUNDLE)
    signer = Signer(sign) if sign is not None else None
    written = write_bundle(
        directory,
        output,
        signer=signer,
        make_report=lambda path: page(path, spec_folders=folders),
        spec_folders=folders,
    )
    shown = console(errors=output.is_standard_output)
    signed = f"signed by the key {written.signer}" if written.signer else "not signed"
    wrap(
        shown,
        f"{output}: {count(written.records, 'record')} in {count(written.entries, 'entry', 'entries')},"
        f" {written.size} bytes, {signed}",
    )
    for line in left_out(written.left_out):
        wrap(shown, line)
    if not output.is_stream:
        wrap(shown, f"aclnn-cts verify {output} checks it")
    return 0


def left_out(reasons: Mapping[str, str]) -> Iterator[str]:
    """A line for each reason why something is not in a bundle, with the first of what it keeps out."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    for reason, found in names.items():
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield f"left out: {found[0]}{more}: {reason}"
