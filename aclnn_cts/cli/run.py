"""`aclnn-cts run`: the conformance run."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from aclnn_cts.cli.options import (
    IntegerWithin,
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
from aclnn_cts.cli.output import begin, console
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import Target
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES
from aclnn_cts.store.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from aclnn_cts.core.case import Case
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.speclang.load import Specs
    from aclnn_cts.trials.plan import Profile


def _with_bindings(context: click.Context, _parameter: click.Parameter, files: tuple[Path, ...]) -> None:
    """Put them among the options of `--adapter`, which is read before."""
    if files:
        # A command prints its first line before it imports what takes time.
        from aclnn_cts.adapters.registry import with_bindings

        context.params["adapter"] = with_bindings(context.params["adapter"], files)


def adapter_option(
    text: str = "reference, torch, ... or package.module:factory, with options behind it as torch:device=npu.",
    *,
    required: bool = True,
) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--adapter`, and `--bindings` as another way to write one of its options."""
    adapter = click.option("--adapter", required=required, metavar="A", is_eager=True, help=text)
    bindings = click.option(
        "--bindings",
        multiple=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=_with_bindings,
        help="File with bindings of your operators on torch or jax; may be given several times.",
    )
    return lambda command: adapter(bindings(command))


call_timeout_option = click.option(
    "--call-timeout",
    "call_seconds",
    type=IntegerWithin(1, 86_400),
    metavar="SECONDS",
    help="Time after which a call counts as a hang (60, or the adapter's longer limit).",
)
strict_limits_option = click.option(
    "--strict-limits",
    is_flag=True,
    help="Count observations as failures: a limit that is not enforced, a status other than 161xxx, "
    "a write to an executor after an error, a write to an excluded output.",
)


def _no_stream(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    if path == STANDARD_OUTPUT:
        raise UsageError("-o -: a run is a directory, which standard output cannot take; name a directory")
    return path


benchmark_option = click.option(
    "--benchmark",
    default="",
    metavar="A",
    help="Adapter of a second implementation, for criteria that compare errors (default: the operator's formula in the "
    "same precision on the CPU).",
)


def limits_options(command: click.decorators.FC) -> click.decorators.FC:
    """The options of every command that makes calls."""
    for option in (
        click.option(
            "--max-bytes",
            callback=byte_size(),
            default=str(DEFAULT_MAX_BYTES),
            metavar="SIZE",
            help="Maximum size of one call's arguments, such as 64MiB; default: 1GiB. A number alone is in bytes.",
        ),
        call_timeout_option,
        strict_limits_option,
        click.option(
            "--unsafe", is_flag=True, help="Also make calls that must never reach a device (software devices only)."
        ),
        click.option(
            "--waivers",
            multiple=True,
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Further waiver files; may be given several times.",
        ),
        click.option(
            "--tolerance",
            "tolerances",
            multiple=True,
            metavar="NAME,...",
            help="Acceptance criteria that values must meet besides the derived bound, such as mixed.",
        ),
        click.option(
            "-o",
            "--output",
            "out",
            metavar="DIR",
            type=OutputPath(),
            callback=_no_stream,
            help="The run's directory (a new one under runs/; `replay` keeps one only with it).",
        ),
    ):
        command = option(command)
    return command


@command(example="aclnn-cts run softmax_backward --adapter torch -o runs/softmax")
@click.argument("operators", nargs=-1, metavar="[OP]...")
@adapter_option(required=False)
@product_option
@click.option(
    "--profile",
    "profile_name",
    default="quick",
    show_default=True,
    metavar="NAME",
    help="quick, standard, thorough, or a standard of the vendor: cann-standard, cann-l0, cann-l1, cann-l2.",
)
@click.option(
    "--max-cases",
    type=IntegerWithin(1),
    metavar="N",
    help="At most N cases of each kind, fewer than the profile asks for; the report says so.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=IntegerWithin(0, 2**64 - 1),
    metavar="S",
    help="The same seed makes the same plan.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=IntegerWithin(1, 256),
    metavar="N",
    help="Judges at once, each with its own implementation.",
)
@phases_option(default="both", text="one: statuses alone.")
@click.option(
    "--cases",
    "case_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Case files instead of generated cases.",
)
@click.option(
    "--recorded",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Check the calls of a training that `watch` kept; nothing is called.",
)
@click.option("--json", "as_json", is_flag=True, help="With --recorded: print one JSON object.")
@click.option(
    "--min-judged",
    type=IntegerWithin(1, 100),
    default=90,
    show_default=True,
    metavar="PERCENT",
    help="Share of an operator's valid calls that must be judged on values to conform.",
)
@click.option(
    "--batch-invariance",
    is_flag=True,
    help="Also check that rows keep their bits when part of their batch is computed. No document promises it.",
)
@click.option(
    "--max-findings",
    type=IntegerWithin(1),
    metavar="N",
    help="Stop after N findings that no waiver accepts.",
)
@click.option("--fail-fast", is_flag=True, help="Stop after the first finding, as --max-findings 1.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also show what is open, by dtype and check, and the calls of each size regime.",
)
@benchmark_option
@click.option("--progress", type=OutputPath(), metavar="FILE", help="Write progress as JSON, anew each second.")
@force_option
@limits_options
@specs_option
@edition_option
def run(  # noqa: PLR0913 - one parameter an option
    *,
    operators: tuple[str, ...],
    adapter: str | None,
    product: str | None,
    profile_name: str,
    max_cases: int | None,
    seed: int,
    workers: int,
    phases: str,
    case_files: tuple[Path, ...],
    recorded: Path | None,
    as_json: bool,
    progress: Path | None,
    benchmark: str,
    min_judged: int,
    batch_invariance: bool,
    max_findings: int | None,
    fail_fast: bool,
    verbose: bool,
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
    """Run the conformance tests of the operators (default: all) on an implementation."""
    if recorded is not None:
        # By its name: what a run imports is counted, and this imports none of it.
        return int(importlib.import_module("aclnn_cts.cli.recorded").check_recorded(recorded, as_json=as_json))
    if adapter is None:
        raise click.MissingParameter(param_hint="'--adapter'", param_type="option")
    if as_json:
        raise UsageError("--json: expected --recorded too; the last line of a run is for programs")
    begin(f"{', '.join(operators) or 'all operators'} on {adapter}")
    from aclnn_cts.cli.progress_line import PROGRESS_FILE, ProgressFile
    from aclnn_cts.cli.screen import Screen, show_end, show_openness, show_regimes
    from aclnn_cts.execution.measuring import Measuring, chosen_tolerances
    from aclnn_cts.execution.settings import RunnerSettings
    from aclnn_cts.findings.waivers.file import waivers_beside_shipped
    from aclnn_cts.runs.run import RunOptions
    from aclnn_cts.runs.run import run as run_engine
    from aclnn_cts.sandbox.limits import freeze_objects
    from aclnn_cts.speclang.load import load_specs
    from aclnn_cts.store.manifest import file_hashes
    from aclnn_cts.store.run_directory import SUMMARY, RunDirectory, default_run_path

    watched = output_file(progress, written_by_us=PROGRESS_FILE, option="--progress") if progress is not None else None
    chosen_profile = _chosen_profile(profile_name, max_cases=max_cases, batch_invariance=batch_invariance)
    gate = chosen_tolerances((*tolerances, *(() if case_files else chosen_profile.tolerances)), benchmark=benchmark)
    specs = load_specs(folders, edition=edition)
    trials = read_trials(case_files, specs)
    target = _target_of(trials, product, case_files) if trials else checked_target(product)
    # Specs are built on demand: of case files alone, only those of their operators.
    of_trials = dict.fromkeys(case_of(item).operator for item in trials)
    chosen = specs.select(operators or tuple(of_trials))
    path = out if out is not None else default_run_path("run", adapter)
    options = RunOptions(
        command="run",
        arguments=tuple(sys.argv[2:]),
        specs=specs,
        operators=chosen,
        settings=RunnerSettings(
            adapter=adapter,
            target=target,
            spec_folders=folders,
            edition=edition,
            max_bytes=max_bytes,
            phases=number_of_phases(phases),
            call_seconds=call_seconds,
            strict_limits=strict_limits,
            unsafe=unsafe,
            measuring=Measuring(gate=gate),
            benchmark=benchmark,
            workers=workers,
        ),
        out=path,
        seed=seed,
        profile=None if case_files else chosen_profile,
        trials=trials,
        workers=workers,
        min_judged=min_judged,
        named=tuple(spec.operator for spec in chosen) if operators else (),
        waivers=waivers_beside_shipped(waivers, adapter=adapter),
        max_findings=1 if fail_fast else max_findings,
        inputs=file_hashes((*case_files, *waivers)),
    )
    freeze_objects()
    screen = Screen(ProgressFile(watched, path) if watched is not None else None, run=path)
    try:
        summary = run_engine(options, [screen])
    except KeyboardInterrupt:
        screen.close()
        # A terminal that was closed takes no more words; what it was told of is kept all the same.
        with contextlib.suppress(HarnessError, OSError):
            if (path / SUMMARY).is_file():
                show_end(console(), RunDirectory(path).summary(), path, specs)
        raise
    finally:
        screen.close()
    if verbose:
        show_openness(console(), summary)
        show_regimes(console(), summary)
    show_end(console(), summary, path, specs)
    return summary.exit_code


def _chosen_profile(name: str, *, max_cases: int | None, batch_invariance: bool) -> Profile:
    """The profile of that name, with fewer cases or more checks where they are asked for."""
    from aclnn_cts.trials.plan import ON_REQUEST, profile

    found = profile(name, standards=True)
    chosen = found if max_cases is None else found.limited(max_cases)
    return msgspec.structs.replace(chosen, requested=ON_REQUEST) if batch_invariance else chosen


def _target_of(trials: tuple[Trial | Case, ...], product: str | None, files: tuple[Path, ...]) -> Target:
    """The target that all cases of the files name; UsageError where it is not one, or not the product asked for."""
    targets = dict.fromkeys(case_of(item).target for item in trials)
    products = sorted({target.product for target in targets})
    shown = ", ".join(str(file) for file in files)
    if product is not None and products != [product]:
        raise UsageError(f"--product {product}: {shown}: cases of {', '.join(products)}; leave it out")
    if len(products) != 1:
        raise UsageError(f"{shown}: cases of {', '.join(products)}; a run takes those of one product")
    return next(iter(targets)) if len(targets) == 1 else Target(product=products[0])


def case_of(item: Trial | Case) -> Case:
    """The case of a trial, or the bare case that stands for one."""
    from aclnn_cts.core.trial import Trial

    return item.case if isinstance(item, Trial) else item


def read_trials(files: tuple[Path, ...], specs: Specs, *, regular: bool = False) -> tuple[Trial | Case, ...]:
    """The trials and cases of files, each bound to its operator's prototype; UsageError for the first that is wrong.

    `regular`: they lie in a directory that anybody may have made, and a pipe is wrong too.
    """
    from aclnn_cts.store.case_files import read_case_file
    from aclnn_cts.trials.checks.registry import fitted_trial

    found: list[Trial | Case] = []
    for file in files:
        for entry in read_case_file(file, regular=regular):
            case = case_of(entry.content)
            spec = fitted_trial(specs, entry.content, where=entry.where)
            if case.product not in spec.products:
                raise UsageError(
                    f"{entry.where}: $.product: {quote(case.product)} is not supported by {spec.operator}; "
                    f"its document names {', '.join(spec.products)}"
                )
            found.append(_chosen(entry.content))
    return tuple(found)


def _chosen(item: Trial | Case) -> Trial | Case:
    """A trial of a file counts as any other, where a waiver pins it too."""
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.store.counts import PINNED

    case = case_of(item)
    if case.origin.kind != PINNED:
        return item
    case = msgspec.structs.replace(case, origin=msgspec.structs.replace(case.origin, kind=""))
    return msgspec.structs.replace(item, case=case) if isinstance(item, Trial) else case
