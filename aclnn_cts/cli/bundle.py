"""`aclnn-cts bundle` and `aclnn-cts verify`: the evidence of a run in one file, and its check without a device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from aclnn_cts import __version__
from aclnn_cts.cli.options import IntegerWithin, command, json_option, oracles_option, output_file, output_option
from aclnn_cts.cli.output import begin, console
from aclnn_cts.cli.render import Fields, RepeatedView, TextLine, View, render, show
from aclnn_cts.core.errors import UsageError

if TYPE_CHECKING:
    from aclnn_cts.bundle.verify import Verification


@command(example="aclnn-cts bundle runs/night -o evidence.zip")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@output_option(text="The file to write.", required=True)
@click.option(
    "--sign",
    metavar="KEY",
    type=click.Path(path_type=Path),
    help="Sign with this Ed25519 private key (PEM or OpenSSH) in FILE.sig; needs the extra `sign`.",
)
def bundle(*, run: Path, out: Path, sign: Path | None) -> int:
    """Pack a finished run into one file that anybody can check without a device: `aclnn-cts verify FILE`.

    It holds the report, records with their JSON Schema, recorded outputs, and a trial file and programs per finding.
    Specs, waivers and the run's environment are in it too.
    """
    begin(f"packing {run}")
    from aclnn_cts.bundle.signature import Signer, is_signature, signature_path
    from aclnn_cts.bundle.write import BUNDLE, write_bundle
    from aclnn_cts.cli.report import page
    from aclnn_cts.store.run_directory import RunDirectory

    directory = RunDirectory(run)
    output = output_file(out, written_by_us=BUNDLE)
    signer = Signer(sign) if sign is not None else None
    if signer is not None and output.is_stream:
        raise UsageError(f"--sign: {output} is no regular file, so nothing lies beside it; name another file with -o")
    signature = output_file(signature_path(out), written_by_us=is_signature, option="--sign") if signer else None
    written = write_bundle(
        directory,
        output,
        make_report=page,
    )
    if signer is not None and signature is not None:
        signature.write(signer.sign(written.sha256))
    render(
        console(errors=output.is_standard_output),
        _WRITTEN,
        {
            "name": str(output),
            "records": written.records,
            "entries": written.entries,
            "size": written.size,
            "signature": str(signature),
            "key": signer.key_id if signer is not None else "",
            "reasons": _reasons(written.left_out),
            "stream": output.is_stream,
        },
    )
    return 0


def _reasons(left_out: Mapping[str, str]) -> list[Fields]:
    """Why something is not in a bundle, each reason with the first of what it keeps out."""
    names: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        names.setdefault(reason, []).append(name)
    return [{"reason": reason, "first": first, "others": len(rest)} for reason, (first, *rest) in names.items()]


_LEFT_OUT = RepeatedView("reasons", ("left out: {first}[ and {others} more]: {reason}",))
_WRITTEN: View = (
    TextLine(
        "{name}: {records:record} in {entries:entry/entries}, {size} bytes,[ signed in {signature} by the key {key}]"
        "[{!key} not signed]"
    ),
    _LEFT_OUT,
    "{!stream}aclnn-cts verify {name} checks it",
)
_VERIFIED: View = (
    RepeatedView("listed", ("{where}: {what}",), most=50),
    TextLine(
        "{bundle}:[{!good} as the file claims, which is not to be trusted:] a run of {says.adapter} on {says.product}"
        " at {says.started}, judged by {says.harness}: {says.verdict}, {says.totals.cases:case}, {says.totals.passed}"
        " passed, {says.totals.failed} failed ({says.totals.waived} waived), {says.totals.errors} errors,"
        " {says.totals.skipped} skipped, {says.totals.out_of_scope} out of scope"
    ),
    "ran on: {says.ran_on}",
    _LEFT_OUT,
    "{?says}signature: {signature}",
    TextLine(
        "{?says}judged again: {recomputed} of the {eligible:case} whose outputs it holds (seed {seed})[, by {other},"
        " whose oracles and models may be others]"
    ),
    "{?says}{!good}{entries:entry/entries}, {bytes} bytes: {problems:problem}",
    TextLine(
        "{?good}{?unproved}{entries:entry/entries}, {bytes} bytes: consistent, but not proven authentic."
        " No signature was checked, so anybody may have written it. Nothing in it confirms {unproved}"
    ),
    "{?good}{!unproved}{entries:entry/entries}, {bytes} bytes: nothing is wrong",
)


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
    """Check a bundle: every byte, the signature, totals that add up, and cases judged again.

    Nothing in it is unpacked or run. Exit code 1 where anything is wrong.
    """
    begin(f"checking {file}")
    from aclnn_cts.bundle.signature import Verifier
    from aclnn_cts.bundle.verify import verify_bundle

    found = verify_bundle(
        file,
        key=Verifier(key) if key is not None else None,
        recompute=recompute,
        seed=seed,
        spec_folders=folders,
    )
    show(_document(found), _VERIFIED, _words(found), as_json=as_json)
    return 0 if found.good else 1


def _document(found: Verification) -> Fields:
    return {
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
        "says": msgspec.to_builtins(found.says),
    }


def _words(found: Verification) -> Fields:
    """Problems as the text names their places, and what a reader must know where another version judged."""
    judged_by = found.says.harness if found.says is not None else __version__
    return {
        "listed": [
            {"where": found.path if item.where == "file" else item.where, "what": item.what} for item in found.problems
        ],
        "reasons": _reasons(found.says.left_out) if found.says is not None else (),
        "other": "" if judged_by == __version__ else __version__,
    }
