"""`aclnn-cts fuzz`: a campaign."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aclnn_cts.cli.given import given_options
from aclnn_cts.cli.options import (
    OutputPath,
    byte_size,
    checked_target,
    command,
    edition_option,
    force_option,
    number_of_phases,
    output_file,
    phases_option,
    product_option,
    specs_option,
)
from aclnn_cts.cli.output import begin, console, count, span
from aclnn_cts.cli.run import adapter_option, limits_options
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import quote

if TYPE_CHECKING:
    from aclnn_cts.runs.campaign.resuming import CampaignOptions
    from aclnn_cts.runs.campaign.status import CampaignStatus, Watcher


class _Span(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """A span of time in seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a word of the command line."""
        from aclnn_cts.runs.campaign.session import seconds_of

        try:
            return seconds_of(str(value))
        except (ValueError, KeyError):
            self.fail(f"{quote(value)}; expected a span of time such as 90s, 15m, 8h or 2d", param, ctx)


@command(example="aclnn-cts fuzz --adapter cann --devices 0,1 --time 8h -o runs/night")
@click.argument("operators", nargs=-1, metavar="[OP]...")
@adapter_option()
@product_option
@click.option("--time", "seconds", type=_Span(), metavar="T", help="Stop this session after 90s, 15m, 8h, 2d.")
@click.option("--chunks", type=click.IntRange(min=1), metavar="N", help="Stop after N chunks of the whole campaign.")
@click.option(
    "--max-findings", "findings", type=click.IntRange(min=1), metavar="N", help="Stop after N distinct findings."
)
@click.option(
    "--stop-after-idle", "quiet", type=_Span(), metavar="T", help="Stop after T without a new finding or new coverage."
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0, 2**64 - 1),
    metavar="S",
    help="The same seed makes the same chunks.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Workers, each with its own implementation (one, or one per device).",
)
@click.option(
    "--devices", metavar="D,...", help="Devices assigned to workers in turn, as the adapter's option `device`."
)
@click.option("--cluster", metavar="C", help="Ray's address (ray://HOST:PORT, auto) or local; needs the extra `ray`.")
@click.option("--resource", default="", metavar="NAME", help="Ray resource each worker reserves: NPU, GPU or CPU.")
@click.option(
    "--chunk-trials",
    "size",
    type=click.IntRange(8, 100_000),
    metavar="N",
    help="Trials per chunk (2000).",
)
@click.option(
    "--max-disk",
    callback=byte_size(alone="MiB"),
    default="2GiB",
    show_default=True,
    metavar="SIZE",
    help="Maximum size of the run directory; a number alone is in MiB.",
)
@click.option("--progress", type=OutputPath(), metavar="FILE", help="Write progress as one JSON object, every second.")
@phases_option(default="both", text="one: statuses alone.")
@force_option
@click.option("--resume", is_flag=True, help="Continue the campaign in -o DIR.")
@limits_options
@specs_option
@edition_option
def fuzz(  # noqa: PLR0913 - one parameter an option
    *,
    operators: tuple[str, ...],
    adapter: str,
    product: str | None,
    seconds: float | None,
    chunks: int | None,
    findings: int | None,
    quiet: float | None,
    seed: int,
    workers: int | None,
    devices: str | None,
    cluster: str | None,
    resource: str,
    size: int | None,
    max_disk: int,
    progress: Path | None,
    phases: str,
    resume: bool,
    max_bytes: int,
    call_seconds: int | None,
    strict_limits: bool,
    unsafe: bool,
    waivers: tuple[Path, ...],
    tolerances: tuple[str, ...],
    out: Path | None,
    folders: tuple[Path, ...],
    edition: str,
) -> int:
    """Run a campaign on the operators (default: all): hours of trials, one finding per fault."""
    begin(f"{', '.join(operators) or 'all operators'} on {adapter}")
    from aclnn_cts.cli.campaign_screen import ProgressJson, show_campaign_end
    from aclnn_cts.cli.progress_line import PROGRESS_FILE
    from aclnn_cts.execution.measuring import Measuring, chosen_tolerances
    from aclnn_cts.execution.settings import RunnerSettings
    from aclnn_cts.findings.waivers.file import waivers_beside_shipped
    from aclnn_cts.runs.campaign.head import StopLimits
    from aclnn_cts.runs.campaign.resuming import CHUNK_TRIALS, CampaignOptions, earlier_campaign
    from aclnn_cts.speclang.load import load_specs
    from aclnn_cts.store.manifest import file_hashes
    from aclnn_cts.store.run_directory import default_run_path

    if seconds is None and chunks is None and findings is None and quiet is None:
        raise UsageError("a campaign needs an end: give --time T, --chunks N, --max-findings N or --stop-after-idle T")
    if resume and out is None:
        raise UsageError("--resume: give the directory of the campaign that is to go on with -o DIR")
    if resource and cluster is None:
        raise UsageError(
            f"--resource {resource}: it is what workers take of a cluster; name the cluster with --cluster C, or give "
            "the devices of this machine with --devices"
        )
    path = out if out is not None else default_run_path("fuzz", adapter)
    watchers: list[Watcher] = []
    if progress is not None:
        watchers.append(ProgressJson(output_file(progress, written_by_us=PROGRESS_FILE, option="--progress"), path))
    measuring = Measuring(gate=chosen_tolerances(tolerances))
    specs = load_specs(folders, edition=edition)
    chosen = specs.select(operators)
    places = tuple(dict.fromkeys(word.strip() for word in devices.split(","))) if devices else ()
    options = CampaignOptions(
        arguments=tuple(sys.argv[2:]),
        specs=specs,
        operators=chosen,
        settings=RunnerSettings(
            adapter=adapter,
            target=checked_target(product),
            spec_folders=folders,
            edition=edition,
            max_bytes=max_bytes,
            phases=number_of_phases(phases),
            call_seconds=call_seconds,
            strict_limits=strict_limits,
            unsafe=unsafe,
            measuring=measuring,
        ),
        out=path,
        stop=StopLimits(seconds=seconds, chunks=chunks, findings=findings, quiet=quiet, disk_bytes=max_disk),
        seed=seed,
        size=size if size is not None else CHUNK_TRIALS,
        workers=workers if workers is not None else max(len(places), 1),
        devices=places,
        cluster=cluster,
        cluster_resource=resource,
        waivers=waivers_beside_shipped(waivers, adapter=adapter),
        inputs=file_hashes(waivers),
        resume=resume,
        given=given_options(),
    )
    if resume:
        # Before anything is said to go on.
        earlier_campaign(options)
    status = _fuzzed(options, watchers)
    show_campaign_end(console(), status, path, specs)
    return status.summary.exit_code


def _fuzzed(options: CampaignOptions, watchers: Sequence[Watcher]) -> CampaignStatus:
    """Run the campaign with its screen; whatever ends it says how to go on, and Ctrl-C shows the findings so far."""
    from aclnn_cts.cli.campaign_screen import CampaignScreen
    from aclnn_cts.cli.screen import show_findings
    from aclnn_cts.findings.finding_text import finding_texts
    from aclnn_cts.runs.campaign.session import fuzz as fuzz_engine
    from aclnn_cts.sandbox.interrupts import annotate_interrupt
    from aclnn_cts.store.run_directory import FAILURES, MANIFEST, RunDirectory

    path = options.out
    words = sys.argv[1:] if sys.argv[1:2] == ["fuzz"] else ["fuzz", "--adapter", options.settings.adapter]
    again = resume_command(words, path)
    screen = CampaignScreen(path)
    try:
        screen.begin(f"{_begins(options)}; kept in {path}")
        return fuzz_engine(options, [screen, *watchers])
    except KeyboardInterrupt as error:
        if not (path / MANIFEST).is_file():
            raise annotate_interrupt(error, f"nothing was begun, and {path} was not made") from None
        screen.close()
        with contextlib.suppress(HarnessError, OSError):
            show_findings(console(), finding_texts(RunDirectory(path), options.specs), where=str(path / FAILURES))
        raise annotate_interrupt(error, f"what had finished is kept in {path}; go on with\n  {again}") from None
    except HarnessError as error:
        if not (path / MANIFEST).is_file():
            raise
        raise HarnessError(
            f"{error}\nwhat had finished is kept in {path}; when this is mended, go on with\n  {again}"
        ) from None
    finally:
        screen.close()


def _begins(options: CampaignOptions) -> str:
    """What begins, in a line."""
    stop = options.stop
    names = [spec.operator.removeprefix("aclnn") for spec in options.operators]
    ends = (
        f"{span(stop.seconds)}" if stop.seconds is not None else "",
        f"{count(stop.chunks, 'chunk')}" if stop.chunks is not None else "",
        f"{count(stop.findings, 'finding')}" if stop.findings is not None else "",
        f"{span(stop.quiet)} without news" if stop.quiet is not None else "",
    )
    what = names[0] if len(names) == 1 else f"{len(names)} operators"
    return (
        f"{'goes on with' if options.resume else 'begins'} {what} on {options.settings.adapter}, "
        f"{count(options.workers, 'worker')}, ends after {' or '.join(filter(None, ends))}"
    )


def resume_command(words: Sequence[str], path: Path) -> str:
    """The command that goes on with a campaign, made from the one that began it."""
    kept = [word for word in words if word != "--resume"]
    if str(path) not in kept and f"--output={path}" not in kept:
        kept += ["-o", str(path)]
    return shlex.join(["aclnn-cts", *kept, "--resume"])
