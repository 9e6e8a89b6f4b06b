"""`aclnn-cts oracle check`: emulations, mutants and derivative of a formula, compared with the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from aclnn_cts.cli.options import command, json_option, specs_option
from aclnn_cts.cli.output import count, note
from aclnn_cts.cli.render import Fields, RepeatedView, TextLine, View, show
from aclnn_cts.selftest.checked_oracles import CALLS, Checked, checked_path, is_checked
from aclnn_cts.selftest.oracle_check import OracleReport, check_oracle
from aclnn_cts.selftest.oracle_code import has_formula, oracle_digest
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import folder_of
from aclnn_cts.store.output_file import write_atomically
from aclnn_cts.workers.pool import Surroundings, spread

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
@click.option(
    "--changed",
    is_flag=True,
    help="Check only oracles whose code is not that of their record, and record them.",
)
@click.option("--record", is_flag=True, help="Record oracles without a fault in checked/ beside the specs, for `ops`.")
@specs_option
@json_option
def check(
    *,
    operators: tuple[str, ...],
    calls: int,
    seed: int,
    workers: int,
    changed: bool,
    record: bool,
    folders: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Check the oracle of each operator: all of them where none is named.

    Emulations of the formula in FLOAT, BF16 and FLOAT16 must conform, in five orders of summation. Mutants of its
    operations must be found, 99 % of those that can be. The formula must be the derivative of the forward operator.
    Its bound must be tight. Exits 1 where any of this does not hold.
    """
    specs = load_specs(folders)
    chosen = [spec for spec in specs.select(operators) if not changed or _is_changed(spec, folders)]
    tasks = [_Task(stem=spec.stem, folders=folders, calls=calls, seed=seed) for spec in chosen]
    faulty = 0
    for spec, report in zip(chosen, _reports(tasks, folders, workers=workers), strict=True):
        faulty += bool(report.faults)
        show(_document(report), _REPORT, _words(report), as_json=as_json)
        if record or changed:
            path = checked_path(folder_of(spec.path, folders), spec.stem)
            _record(path, report, Checked(sha256=oracle_digest(spec.stem, folders), calls=calls, seed=seed))
    note(f"{count(len(chosen), 'oracle')} checked, {faulty or 'none'} with faults")
    return FOUND if faulty else 0


def _is_changed(spec: Spec, folders: Sequence[Path]) -> bool:
    """Whether an oracle that can be checked is not the one of its record."""
    is_known = is_checked(spec.stem, spec_folder=folder_of(spec.path, folders), folders=folders)
    return not is_known and has_formula(spec.stem, folders)


def _record(path: Path, report: OracleReport, checked: Checked) -> None:
    """Write the record of an oracle; one with faults has none."""
    if report.faults:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, checked.text().encode())


_REPORT: View = (
    TextLine("{operator}: [{?faults}faults][{!faults}no fault], {seconds:.1f} s", style="bold"),
    TextLine(
        "emulations  {emulations.calls:call}, {emulations.alarms:alarm}; the median error is {emulations.median:.1e} of"
        " the bound",
        indent=2,
    ),
    TextLine(
        "mutants     {mutants.found} of {real} found ({share:.1%})[; {mutants.unchanged} change no bit]"
        "[; {mutants.equivalent} are equivalent]",
        indent=2,
    ),
    TextLine("derivative  none: {derivative.none}", indent=2),
    TextLine(
        "{!derivative.none}derivative  {agreeing} of {derivative.elements:element} agree with differences of forward",
        indent=2,
    ),
    RepeatedView("faults", (TextLine("{value}", indent=2, style="red"),)),
    RepeatedView("shown", (TextLine("{value}", indent=2, style="red"),)),
    RepeatedView("smallest", (TextLine("{value}", indent=2),)),
)


def _words(report: OracleReport) -> Fields:
    """Figures that follow from those of the document, and the mutants that nothing finds."""
    mutants, derivative = report.mutants, report.derivative
    return {
        "real": mutants.found + len(mutants.missed),
        "share": mutants.share,
        "agreeing": derivative.elements - derivative.differ,
        "shown": (*mutants.missed, *mutants.hidden) if report.faults else (),
    }


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
        yield from (_report(task, specs) for task in tasks)
        return
    # What takes longest is begun first: it must not be what one worker has left to do in the end.
    first = sorted(tasks, key=lambda task: (*_LONGEST, task.stem).index(task.stem))
    made = spread(
        _work,
        first,
        workers=workers,
        lost=lambda task: f"{task.stem}: check it with --workers 1 to see of what",
        folders=folders,
    )
    ready: dict[str, OracleReport] = {}
    with closing(made):
        for task in tasks:
            while task.stem not in ready:
                stem, report = next(made)
                ready[stem] = report
            yield ready.pop(task.stem)


def _work(task: _Task, given: Surroundings) -> tuple[str, OracleReport]:
    return task.stem, _report(task, given.specs)


def _report(task: _Task, specs: Specs) -> OracleReport:
    [spec] = specs.select([task.stem])
    own = tuple(folder for folder in task.folders if Path(spec.path).parent == folder)
    return check_oracle(spec, folders=own, calls=task.calls, seed=task.seed)


def _document(report: OracleReport) -> dict[str, Any]:
    return {
        "operator": report.operator,
        "faults": list(report.faults),
        "emulations": {
            "calls": report.emulations.calls,
            "alarms": report.emulations.alarms,
            "skipped": report.emulations.skipped,
            "median": report.emulations.median,
        },
        "mutants": {
            "mutants": report.mutants.mutants,
            "found": report.mutants.found,
            "unchanged": report.mutants.unchanged,
            "equivalent": report.mutants.equivalent,
            "missed": report.mutants.missed,
            "hidden": report.mutants.hidden,
        },
        "derivative": {
            "elements": report.derivative.elements,
            "differ": report.derivative.differ,
            "none": report.derivative.reason,
        },
        "smallest": list(report.smallest),
        "seconds": report.seconds,
    }
