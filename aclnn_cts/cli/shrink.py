"""`aclnn-cts shrink`: the smallest trial that fails the same way."""

from __future__ import annotations

import json
from pathlib import Path

import click

from aclnn_cts.cli.options import specs_option
from aclnn_cts.cli.output import console, count, wrap
from aclnn_cts.cli.run import adapter_option, read_trials
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.trial import Trial, trial_to_json
from aclnn_cts.engine.limits import DEFAULT_MAX_BYTES
from aclnn_cts.spec.load import load_specs

__all__ = ["shrink"]


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@adapter_option
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where the smallest trial is written.",
)
@click.option(
    "--executions", default=200, show_default=True, type=click.IntRange(min=1), metavar="N", help="Most executions."
)
@click.option(
    "--max-bytes", type=click.IntRange(min=1), metavar="N", help="Most bytes of one call's arguments (1 GiB)."
)
@click.option("--unsafe", is_flag=True, help="Make calls that must never reach a device too (software devices only).")
@specs_option
def shrink(
    *,
    file: Path,
    adapter: str,
    out: Path,
    executions: int,
    max_bytes: int | None,
    unsafe: bool,
    folders: tuple[Path, ...],
) -> int:
    """Make the failing trial of FILE smaller: exit code 1 where it fails (and OUT is written), 0 where it conforms."""
    from aclnn_cts.core.verdict import Record, Result  # noqa: PLC0415 - after the checks of the words
    from aclnn_cts.engine.bench import Bench  # noqa: PLC0415
    from aclnn_cts.engine.campaign.finding import bucketed  # noqa: PLC0415
    from aclnn_cts.engine.campaign.shrink import shrink as shrink_trial  # noqa: PLC0415
    from aclnn_cts.engine.files import write_atomically  # noqa: PLC0415
    from aclnn_cts.engine.promises import as_trial  # noqa: PLC0415
    from aclnn_cts.engine.settings import BenchSettings  # noqa: PLC0415

    specs = load_specs(folders)
    entries = read_trials((file,), specs)
    if len(entries) != 1:
        raise UsageError(f"{file}: {len(entries)} trials; shrinking takes one: give a file with one")
    if not out.parent.is_dir() or out.is_dir():
        raise UsageError(f"-o {out}: expected the name of a file in a folder that exists")
    entry = entries[0]
    case = entry.case if isinstance(entry, Trial) else entry
    spec = specs[case.operator]
    trial = as_trial(spec, entry)
    settings = BenchSettings(
        adapter=adapter,
        target=case.target,
        spec_folders=folders,
        max_bytes=max_bytes if max_bytes is not None else DEFAULT_MAX_BYTES,
        unsafe=unsafe,
    )
    screen = console()
    with settings.open_host(specs) as host:
        bench = Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True)

        def execute(tried: Trial) -> Record:
            return next(record for judged in bench.run([tried]) for record in judged.records)

        first = execute(trial)
        if first.verdict.result == Result.PASSED:
            wrap(screen, f"{file}: the trial conforms, so there is nothing to shrink; {out} is not written")
            return 0
        if first.verdict.result != Result.FAILED:
            raise HarnessError(f"{file}: {first.verdict.result} ({first.verdict.kind}): {first.verdict.message}")
        wanted = bucketed(first).signature
        found = shrink_trial(
            trial,
            sampler=bench.sampler(spec),
            execute=execute,
            same=lambda record: record.verdict.result == Result.FAILED and bucketed(record).signature == wanted,
            executions=executions,
        )
    write_atomically(out, json.dumps(trial_to_json(found.trial), indent=2).encode() + b"\n")
    record = found.record or first
    wrap(screen, f"{record.verdict.kind}: {record.verdict.message}")
    size = f"{_elements(trial)} elements before, {_elements(found.trial)} now"
    rest = "" if found.complete else "; the limit was reached before everything was tried (--executions)"
    wrap(screen, f"{out}: {size}, after {count(found.executions, 'execution')}{rest}")
    return 1


def _elements(trial: Trial) -> int:
    return sum(tensor.numel for _, tensor in trial.case.tensors())
