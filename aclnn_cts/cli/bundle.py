"""`aclnn-cts bundle` and `aclnn-cts verify`: the evidence of a run in one file, and its check without a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from aclnn_cts import __version__
from aclnn_cts.cli.options import IntegerWithin, command, json_option, oracles_option, output_file, output_option
from aclnn_cts.cli.output import begin, console, count, emit, joined, wrap

if TYPE_CHECKING:
    from aclnn_cts.bundle.verify import Verification


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
    from aclnn_cts.bundle.statement import Signer
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


_SHOWN = 50


@command(example="aclnn-cts verify evidence.zip --recompute 20")
@click.argument("file", metavar="BUNDLE", type=click.Path(path_type=Path))
@click.option(
    "--key",
    metavar="PUB",
    type=click.Path(path_type=Path),
    help="The Ed25519 public key that must have signed it (PEM or OpenSSH); needs the extra `sign`.",
)
@click.option(
    "--recompute",
    type=IntegerWithin(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Judge N cases again from their recorded outputs.",
)
@click.option(
    "--seed", type=IntegerWithin(0, 2**64 - 1), metavar="S", help="Chooses these cases (a new one each time)."
)
@oracles_option
@json_option
def verify(
    *, file: Path, key: Path | None, recompute: int, seed: int | None, folders: tuple[Path, ...], as_json: bool
) -> int:
    """Check a bundle: every byte, sums, the signature, totals that add up, and cases judged again.

    Nothing in it is unpacked or run. Exit code 1 where anything is wrong.
    """
    begin(f"checking {file}")
    from aclnn_cts.bundle.statement import Verifier
    from aclnn_cts.bundle.verify import verify_bundle

    found = verify_bundle(
        file,
        key=Verifier(key) if key is not None else None,
        recompute=recompute,
        seed=seed,
        spec_folders=folders,
    )
    if as_json:
        _emit(found)
    else:
        _show(found)
    return 0 if found.good else 1


def _emit(found: Verification) -> None:
    emit(
        {
            "bundle": found.path,
            "good": found.good,
            "bytes": found.size,
            "entries": found.entries,
            "problems": [{"where": item.where, "what": item.what} for item in found.problems],
            "signature": found.signature,
            "unproved": list(found.unproved),
            "recomputed": found.recomputed,
            "eligible": found.eligible,
            "seed": found.seed,
            "says": msgspec.to_builtins(found.predicate) if found.predicate is not None else None,
        }
    )


def _other_version(found: Verification) -> str:
    """What a reader must know where other code judged than judges again."""
    judged_by = found.predicate.harness if found.predicate is not None else __version__
    return "" if judged_by == __version__ else f", by {__version__}, whose oracles and models may be others"


def _show(found: Verification) -> None:
    out = console()
    for item in found.problems[:_SHOWN]:
        wrap(out, f"{found.path if item.where == 'file' else item.where}: {item.what}")
    if len(found.problems) > _SHOWN:
        out.print(f"and {len(found.problems) - _SHOWN} more; --json has all")
    if found.predicate is None:
        # Without a manifest there is nothing to tell but what is wrong.
        return
    says, totals = found.predicate, found.predicate.totals
    trusted = "" if found.good else " as the file claims, which is not to be trusted:"
    wrap(
        out,
        f"{found.path}:{trusted} a run of {says.adapter} on {says.product} at {says.started}, judged by {says.harness}:"
        f" {says.verdict},"
        f" {count(totals.cases, 'case')}, {totals.passed} passed, {totals.failed} failed ({totals.waived} waived),"
        f" {totals.errors} errors, {totals.skipped} skipped, {totals.out_of_scope} out of scope",
    )
    if says.ran_on:
        wrap(out, f"ran on: {says.ran_on}")
    wrap(out, f"report: {says.report}")
    for line in left_out(says.left_out):
        wrap(out, line)
    wrap(out, f"signature: {found.signature}")
    wrap(
        out,
        f"judged again: {found.recomputed} of the {count(found.eligible, 'case')} whose outputs it holds"
        f" (seed {found.seed}){_other_version(found)}",
    )
    what = f"{count(found.entries, 'entry', 'entries')}, {found.size} bytes"
    if not found.good:
        wrap(out, f"{what}: {count(len(found.problems), 'problem')}")
    elif found.unproved:
        wrap(
            out,
            f"{what}: nothing contradicts itself, which proves nothing: without a signature that was checked anybody"
            f" may have written it, {joined(found.unproved)} above all",
        )
    else:
        wrap(out, f"{what}: nothing is wrong")
