"""`aclnn-cts replay`: recorded trials once more."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from aclnn_cts.cli.options import product_option, specs_option
from aclnn_cts.cli.output import console, show_table, table, wrap
from aclnn_cts.cli.run import adapter_option, limits_options, read_trials
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import RulerVerdict, Verdict
from aclnn_cts.spec.load import Specs, load_specs

__all__ = ["replay"]


@click.command()
@click.argument("source", metavar="FILE|DIR", type=click.Path(path_type=Path))
@adapter_option
@click.option(
    "-v", "--verbose", is_flag=True, help="Tell each trial whole: case, rules, outcome, worst elements, rulers."
)
@limits_options
@product_option
@specs_option
def replay(  # noqa: PLR0913 - one parameter an option
    *,
    source: Path,
    adapter: str,
    verbose: bool,
    product: str | None,
    max_bytes: int,
    unsafe: bool,
    waivers: tuple[Path, ...],
    rulers: tuple[str, ...],
    out: Path | None,
    folders: tuple[Path, ...],
) -> int:
    """Run the trials of a case or trial file again, or all findings of a run, and say what became of each."""
    from aclnn_cts.cli.screen import Screen, show_end
    from aclnn_cts.engine.measuring import Measuring, chosen_rulers
    from aclnn_cts.engine.run import RunOptions
    from aclnn_cts.engine.run import run as run_engine
    from aclnn_cts.engine.run_directory import default_run_path
    from aclnn_cts.engine.settings import BenchSettings
    from aclnn_cts.engine.waiver_file import read_waivers, shipped_waivers

    measuring = Measuring(gate=chosen_rulers(rulers), always=verbose)
    specs = load_specs(folders)
    files = _files(source)
    trials = read_trials(files, specs)
    cases = [item.case if isinstance(item, Trial) else item for item in trials]
    products = sorted({case.product for case in cases})
    if product is not None and products != [product]:
        raise UsageError(f"--product {product}: {source} holds cases of {', '.join(products)}; leave it out")
    if len(products) != 1:
        raise UsageError(f"{source}: cases of {', '.join(products) or 'no product'}; replay takes those of one product")
    names = {case.operator for case in cases}
    path = out if out is not None else default_run_path("replay", adapter)
    options = RunOptions(
        command="replay",
        arguments=tuple(sys.argv[2:]),
        specs=specs,
        operators=tuple(spec for spec in specs.values() if spec.operator in names),
        settings=BenchSettings(
            adapter=adapter,
            target=cases[0].target,
            spec_folders=folders,
            max_bytes=max_bytes,
            unsafe=unsafe,
            measuring=measuring,
        ),
        out=path,
        trials=trials,
        waivers=read_waivers([*shipped_waivers(), *waivers]),
    )
    screen = Screen()
    try:
        summary = run_engine(options, [screen])
    finally:
        screen.close()
    if verbose:
        _tell(path, specs)
    if source.is_dir():
        _answer(source, files, trials, path)
    show_end(console(), summary, path)
    return summary.exit_code


def _files(source: Path) -> tuple[Path, ...]:
    if not source.is_dir():
        return (source,)
    from aclnn_cts.engine.answers import failures_in

    files = failures_in(source)
    if not files:
        raise UsageError(f"{source}: holds no findings to replay; give a run with some, or a case or trial file")
    return files


def _answer(source: Path, files: tuple[Path, ...], trials: tuple[Trial | Case, ...], path: Path) -> None:
    """What became of each finding of a directory."""
    from aclnn_cts.engine.answers import Answer, answer, recorded_signatures
    from aclnn_cts.engine.run_directory import RunDirectory

    known = [(file, item) for file, item in zip(files, trials, strict=True) if isinstance(item, Trial)]
    wanted = {trial.id for _, trial in known}
    with RunDirectory(path).results() as results:
        records = {record.trial_id: record for record in results.records() if record.trial_id in wanted}
    answers = answer(known, recorded_signatures(source), records)
    made = table("finding", "answer", "because")
    made.columns[0].max_width = 44
    styles = {Answer.FIXED: "green", Answer.SAME: "red", Answer.OTHER: "red", Answer.FAILS: "red"}
    for entry in answers:
        waived = entry.record is not None and entry.record.waiver
        word = f"{entry.answer} (waived)" if waived else entry.answer
        made.add_row(entry.file.stem, Text(word, style=styles.get(entry.answer, "")), entry.message)
    out = console()
    show_table(out, made)
    counts = Counter(entry.answer for entry in answers)
    wrap(out, ", ".join(f"{number} {word}" for word, number in counts.items()))
    out.print()


def _tell(path: Path, specs: Specs) -> None:
    from aclnn_cts.engine.explain import explain
    from aclnn_cts.engine.run_directory import RunDirectory

    out = console()
    with RunDirectory(path).results() as results:
        for record in results.records():
            for line in explain(record, specs[record.trial.case.operator]):
                wrap(out, line.lstrip(), indent=len(line) - len(line.lstrip()))
            if record.verdict.rulers:
                out.print()
                _show_rulers(out, record.verdict)
            out.print()


def _show_rulers(out: Console, verdict: Verdict) -> None:
    """The derived bound and all rulers, each with what is left of its limit."""
    made = table("ruler", "output", "says", "headroom", "because")
    made.columns[3].justify = "right"
    for number, deviation in enumerate(verdict.deviations):
        word = RulerVerdict.FAIL if deviation.beyond else RulerVerdict.PASS
        text = f"largest error {deviation.share:.3g} of its bound"
        made.add_row("" if number else "derived bound", deviation.output, word, _percent(1.0 - deviation.share), text)
    benchmarks: dict[str, None] = {}
    for name, outputs in verdict.rulers.items():
        for number, (output, result) in enumerate(outputs.items()):
            judged = result.verdict != RulerVerdict.NOT_APPLICABLE
            left = _percent(float(result.headroom)) if judged else "-"
            word = result.verdict if judged else "n/a"
            made.add_row("" if number else name, output, word, left, result.message)
            benchmarks |= {f"{output}: {result.benchmark}": None} if result.benchmark else {}
    show_table(out, made)
    for text in benchmarks:
        wrap(out, f"benchmark of {text}")


def _percent(headroom: float) -> str:
    """Of the limit; far beyond it the number says no more than that."""
    return f"{headroom:.0%}" if headroom >= -99.0 else "< -9900%"
