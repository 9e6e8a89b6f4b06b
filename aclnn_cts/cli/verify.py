"""`aclnn-cts verify`: a bundle checked without a device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from aclnn_cts import __version__
from aclnn_cts.cli.bundle import left_out
from aclnn_cts.cli.options import IntegerWithin, command, json_option, oracles_option
from aclnn_cts.cli.output import begin, console, count, emit, joined, wrap

if TYPE_CHECKING:
    from aclnn_cts.bundle.verify import Verification

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
    from aclnn_cts.bundle.keys import Verifier
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
