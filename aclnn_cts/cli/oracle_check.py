"""`aclnn-cts oracle check`: emulations, mutants, derivative and laws of a formula, held against the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from aclnn_cts.cli.options import command, json_option, output_file, output_option, specs_option
from aclnn_cts.cli.output import console, count, emit, note, wrap
from aclnn_cts.oracle_check.check import OracleReport, check_oracle
from aclnn_cts.oracle_check.record import CALLS, FORMAT, Checked, oracle_digest, read_record, record_text
from aclnn_cts.sandbox.spread import Worker, spread
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.store.output_file import begins

FOUND = 1
_LONGEST = (
    "swiglu_backward_mx_quant_with_dual_axis",
    "gru_backward",
    "flash_attention_unpadding_score_grad",
    "deformable_conv2d_backward",
    "upsample_bilinear2d_backward_v2",
)
"""Operators whose check takes several times as long as that of others, the longest first."""


@command(example="aclnn-cts oracle check softmax_backward")
@click.argument("operators", nargs=-1, metavar="[OP]...")
@click.option(
    "--calls",
    default=CALLS,
    show_default=True,
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help="Emulated calls of each operator.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63), metavar="S", help="Seed.")
@click.option(
    "--workers", default=2, show_default=True, type=click.IntRange(1, 256), metavar="N", help="Operators at once."
)
@specs_option
@output_option(text="Record which oracles have no fault (checked.json beside the specs), for `ops`.")
@json_option
def check(
    *,
    operators: tuple[str, ...],
    calls: int,
    seed: int,
    workers: int,
    folders: tuple[Path, ...],
    out: Path | None,
    as_json: bool,
) -> int:
    """Check the oracle of each operator: all of them where none is named.

    Emulations of the formula in FLOAT, BF16 and FLOAT16 must conform, in five orders of summation. Mutants of its
    operations must be found, 99 % of those that can be. The formula must be the derivative of the forward operator
    and keep the operator's laws. Its bound must be tight. Exits 1 where any of this does not hold.
    """
    specs = load_specs(folders)
    stems = [spec.stem for spec in specs.select(operators)]
    record = _record(out)
    sound: list[str] = []
    tasks = [_Task(stem=stem, folders=folders, calls=calls, seed=seed) for stem in stems]
    for stem, report in zip(stems, _reports(tasks, folders, workers=workers), strict=True):
        sound += [] if report.faults else [stem]
        if as_json:
            emit(_document(report))
        else:
            _show(console(), report)
    faulty = len(stems) - len(sound)
    if record is not None:
        record(stems, {stem: Checked(sha256=oracle_digest(stem, folders), calls=calls, seed=seed) for stem in sound})
    note(f"{count(len(stems), 'oracle')} checked, {faulty or 'none'} with faults")
    return FOUND if faulty else 0


def _record(path: Path | None) -> Callable[[Sequence[str], Mapping[str, Checked]], None] | None:
    """What adds to the record at a path: oracles that were not checked now stay in it."""
    if path is None:
        return None
    output = output_file(path, written_by_us=begins(rf'\{{"format": "{FORMAT}"'.encode()), make_folder=True)
    kept = read_record(path)

    def write(stems: Sequence[str], sound: Mapping[str, Checked]) -> None:
        others = {stem: entry for stem, entry in kept.items() if stem not in stems}
        output.write(record_text({**others, **sound}).encode())

    return write


def _show(screen: Console, report: OracleReport) -> None:
    emulations, mutants, laws = report.emulations, report.mutants, report.laws
    real = mutants.found + len(mutants.missed)
    others = [
        f"{number} {what}"
        for number, what in ((mutants.unchanged, "change no bit"), (mutants.equivalent, "are equivalent"))
        if number
    ]
    lines = {
        "emulations": f"{count(emulations.calls, 'call')}, {count(emulations.alarms, 'alarm')}; the median error is "
        f"{emulations.median:.1e} of the bound",
        "mutants": "; ".join([f"{mutants.found} of {real} found ({100.0 * mutants.share:.1f} %)", *others]),
        "derivative": _derivative(report),
        "laws": f"{laws.trials - laws.broken} of {count(laws.trials, 'trial')} hold: {', '.join(laws.laws) or 'none'}",
    }
    wrap(
        screen, f"{report.operator}: {'faults' if report.faults else 'no fault'}, {report.seconds:.1f} s", style="bold"
    )
    for name, text in lines.items():
        wrap(screen, f"{name:<10}  {text}", indent=2)
    for text in (*report.faults, *_examples(report)):
        wrap(screen, text, indent=2, style="red")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    stem: str
    folders: tuple[Path, ...]
    calls: int
    seed: int


def _reports(tasks: Sequence[_Task], folders: tuple[Path, ...], *, workers: int) -> Iterator[OracleReport]:
    """The reports in the order of the operators, made in processes of their own where there are several."""
    if len(tasks) == 1 or workers == 1:
        specs = load_specs(folders)
        yield from (_report(task, specs, lambda: False) for task in tasks)
        return
    # What takes longest is begun first: it must not be what one worker has left to do in the end.
    first = sorted(tasks, key=lambda task: (*_LONGEST, task.stem).index(task.stem))
    made = spread(
        _work,
        first,
        workers=min(workers, len(tasks)),
        advice="run with --workers 1 to see at which operator",
        folders=folders,
    )
    ready: dict[str, OracleReport] = {}
    with closing(made):
        for task in tasks:
            while task.stem not in ready:
                stem, report = next(made)
                ready[stem] = report
            yield ready.pop(task.stem)


def _work(task: _Task, worker: Worker) -> tuple[str, OracleReport]:
    return task.stem, _report(task, worker.specs, worker.stopped)


def _report(task: _Task, specs: Specs, stopped: Callable[[], bool]) -> OracleReport:
    [spec] = specs.select([task.stem])
    own = tuple(folder for folder in task.folders if Path(spec.path).parent == folder)
    return check_oracle(spec, folders=own, calls=task.calls, seed=task.seed, stopped=stopped)


def _derivative(report: OracleReport) -> str:
    found = report.derivative
    if found.reason:
        return f"none: {found.reason}"
    return f"{found.elements - found.differ} of {count(found.elements, 'element')} agree with differences of forward"


def _examples(report: OracleReport) -> Iterator[str]:
    yield from report.emulations.examples
    if report.faults:
        yield from report.mutants.missed
    yield from report.derivative.examples
    yield from report.laws.examples


def _document(report: OracleReport) -> dict[str, Any]:
    return {
        "operator": report.operator,
        "oracle": report.oracle,
        "faults": list(report.faults),
        "emulations": {
            "calls": report.emulations.calls,
            "alarms": report.emulations.alarms,
            "skipped": report.emulations.skipped,
            "median": report.emulations.median,
            "examples": report.emulations.examples,
        },
        "mutants": {
            "mutants": report.mutants.mutants,
            "found": report.mutants.found,
            "unchanged": report.mutants.unchanged,
            "equivalent": report.mutants.equivalent,
            "missed": report.mutants.missed,
        },
        "derivative": {
            "elements": report.derivative.elements,
            "differ": report.derivative.differ,
            "none": report.derivative.reason,
            "examples": list(report.derivative.examples),
        },
        "laws": {
            "laws": list(report.laws.laws),
            "trials": report.laws.trials,
            "broken": report.laws.broken,
            "examples": report.laws.examples,
        },
        "seconds": report.seconds,
    }
