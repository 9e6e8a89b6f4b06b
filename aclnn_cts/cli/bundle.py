"""`aclnn-cts bundle`: the evidence of a run in one file."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from aclnn_cts.cli.output import console, count, wrap
from aclnn_cts.core.errors import HarnessError

__all__ = ["bundle"]


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "out", required=True, metavar="FILE", type=click.Path(path_type=Path), help="The file to write."
)
@click.option(
    "--sign",
    metavar="KEY",
    type=click.Path(path_type=Path),
    help="Sign with this Ed25519 private key (PEM or OpenSSH); needs the extra `sign`.",
)
def bundle(*, run: Path, out: Path, sign: Path | None) -> int:
    """Put a finished run into one file that anybody can check without a device: `aclnn-cts verify FILE`.

    It holds the report, records with their JSON Schema, recorded outputs, a trial file and programs for each finding,
    specs, waivers, what the run says of its surroundings, and a manifest of SHA-256 sums.
    """
    from aclnn_cts.engine.bundle.keys import Signer  # noqa: PLC0415 - not for --help
    from aclnn_cts.engine.bundle.write import write_bundle  # noqa: PLC0415
    from aclnn_cts.engine.run_directory import RunDirectory  # noqa: PLC0415

    directory = RunDirectory(run)
    signer = Signer(sign) if sign is not None else None
    written = write_bundle(directory, out, signer=signer, make_report=_report)
    shown = console()
    signed = f"signed by the key {written.signer}" if written.signer else "not signed"
    wrap(
        shown,
        f"{written.path}: {count(written.records, 'record')} in {count(written.entries, 'entry', 'entries')},"
        f" {written.size} bytes, {signed}",
    )
    for name, reason in written.left_out.items():
        wrap(shown, f"left out: {name}: {reason}")
    wrap(shown, f"aclnn-cts verify {written.path} checks it")
    return 0


def _report(run: Path) -> bytes:
    """The run's report as one HTML page; HarnessError where what makes it is not installed."""
    try:
        build = importlib.import_module("aclnn_cts.engine.acceptance.build")
        trials = importlib.import_module("aclnn_cts.engine.acceptance.trials")
        html = importlib.import_module("aclnn_cts.reports.html")
        importlib.import_module("matplotlib")
    except ModuleNotFoundError as error:
        raise HarnessError(f"needs {error.name}, which is not installed; pip install 'aclnn-cts[report]'") from None
    content: bytes = html.html_bytes(build.acceptance((run,)), lambda: trials.trial_rows((run,)), "en")
    return content
