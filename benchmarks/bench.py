"""`make bench`: how fast the harness is, as figures beside the goals and as ratios against doing without it.

A benchmark and no gate: the exit code is 0 whatever the figures are. `make bench ARGS=--store` keeps them for
docs/speed.md (then: `make docs`). Run as `python -m benchmarks.bench [--rounds N]` from the checkout.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from aclnn_cts.cli.output import console, wrap
from aclnn_cts.core.target import Target
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.waivers.file import read_waivers, shipped_waivers
from aclnn_cts.findings.waivers.matching import waivers_of_run
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import BUDGETS
from aclnn_cts.sandbox.limits import freeze_objects
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.trial_runner import TrialRunner
from benchmarks.bench_works import MOST_ELEMENTS, STARTS, Counter, as_plain, descriptions, judged
from benchmarks.hypothesis_driver import descriptions_by_hypothesis, plain_examples
from benchmarks.measure import Figure, interleave, stay_on_one_core
from benchmarks.shown import Row, row, show_rows
from benchmarks.stored import Rounds, figures_of, start, store, write_rounds
from benchmarks.tables import Column, mean, mean_ratio, show_operators

NAME = "bench"
"""Of the stored figures."""

STREAM, BY_HYPOTHESIS = "descriptions by the stream", "descriptions by Hypothesis"
REFERENCE = "judged on the reference"
TORCH, PLAIN, FILLED = "judged on torch", "plain way on torch", "filled plain way on torch"

EXAMPLES, JUDGED, PIPELINE, PLAIN_EXAMPLES = 100, 400, 500, 100
"""Things done in a turn."""
TURNS = 3
"""Of the pipelines in a round: they differ by what they happen to draw, and by what else the machine does meanwhile."""


def shown(rounds: Rounds) -> Iterator[Row]:
    """The figures that have a goal, and those beside them; what was not measured is left out."""
    yield row("case descriptions a second, all constraints evaluated on each", mean(rounds, STREAM), least=15_000)
    yield row("fully judged cases a second, reference adapter", mean(rounds, REFERENCE), least=1_500)
    if figures_of(rounds, TORCH):
        yield row(
            "whole pipeline on torch over the same work with Hypothesis' arrays, each element drawn, and assert_close",
            mean_ratio(rounds, TORCH, PLAIN),
            ".1f",
            unit="times",
            least=10,
        )
        yield row(
            "the same, where Hypothesis makes most elements equal (its default)",
            mean_ratio(rounds, TORCH, FILLED),
            ".1f",
            unit="times",
        )
    for name, most in (("all specs loaded", 150), ("aclnn-cts --help", 300), ("the interpreter alone", None)):
        milliseconds = Figure(tuple(value * 1e3 for value in rounds[name]))
        yield row(f"`{name}`" if most == 300 else name, milliseconds, ".0f", unit="ms", most=most)


def _generation(out: Console, chosen: Sequence[Spec], target: Target, rounds: int, *, alone: bool) -> Rounds:
    found = {}
    for spec in chosen:
        sampler = Sampler(spec, target)
        works = {STREAM: descriptions(spec, sampler)}
        if not alone:
            works[BY_HYPOTHESIS] = descriptions_by_hypothesis(spec, sampler, EXAMPLES)
        for name, figure in zip(works, interleave(tuple(works.values()), rounds, turns=TURNS), strict=True):
            found[f"{name}, {spec.operator}"] = figure.values
    columns = [Column(title="stream", name=STREAM), Column(title="Hypothesis", name=BY_HYPOTHESIS)]
    show_operators(
        out,
        "Case descriptions a second of processor time, all constraints evaluated on each",
        [*columns, Column(title="ratio", name=STREAM, over=BY_HYPOTHESIS)],
        found,
    )
    return found


def _judgement(out: Console, specs: Specs, chosen: Sequence[Spec], target: Target, rounds: int) -> Rounds:
    found = {}
    with open_host("reference", target=target, specs=specs) as host:
        runner = TrialRunner(specs=specs, host=host, settings=RunnerSettings(adapter="reference", target=target))
        for spec in chosen:
            work = judged(runner, runner.sampler(spec), JUDGED, lambda _case: True, Counter())
            [figure] = interleave((work,), rounds)
            found[f"{REFERENCE}, {spec.operator}"] = figure.values
    show_operators(
        out,
        "Fully judged cases a second of processor time, reference adapter in this process, generation included",
        [Column(title="cases a second", name=REFERENCE)],
        found,
    )
    return found


def _pipeline(
    out: Console, specs: Specs, chosen: Sequence[Spec], target: Target, rounds: int, *, alone: bool
) -> Rounds:
    from benchmarks.plain import PLAIN as TESTS  # noqa: PLC0415 - it imports torch
    from benchmarks.plain import use_one_thread  # noqa: PLC0415 - as above

    use_one_thread()
    small = [budget for budget in BUDGETS if budget <= MOST_ELEMENTS]
    found, notes = {}, []
    # Without a spare, whose start would be counted.
    with ProcessHost("torch", target=target, spare=False) as host:
        settings = RunnerSettings(adapter="torch", target=target)
        known = waivers_of_run(
            read_waivers(shipped_waivers()),
            settings=settings,
            environment=host.environment,
            bindings=host.capabilities.bindings,
            specs=specs,
        )
        runner = TrialRunner(specs=specs, host=host, settings=settings, is_waived=known.covers, sample_waived=True)
        for spec in (spec for spec in chosen if spec.operator in TESTS):
            counter, dense = Counter(), Counter()
            works = {TORCH: judged(runner, runner.sampler(spec), PIPELINE, as_plain, counter, small)}
            if not alone:
                works[PLAIN] = plain_examples(TESTS[spec.operator], PLAIN_EXAMPLES, dense, dense=True)
                works[FILLED] = plain_examples(TESTS[spec.operator], PLAIN_EXAMPLES, Counter(), dense=False)
            for name, figure in zip(works, interleave(tuple(works.values()), rounds, turns=TURNS), strict=True):
                found[f"{name}, {spec.operator}"] = figure.values
            notes.append(
                f"{spec.operator.removeprefix('aclnn')}: {counter.judged} of {counter.calls} calls judged; inputs of "
                f"{counter.mean:.0f} elements on average, the plain way's of {dense.mean:.0f}"
            )
    if left := [spec.stem for spec in chosen if spec.operator not in TESTS]:
        notes.append(f"left out, since no plain way is written for them: {', '.join(left)}")
    columns = [
        Column(title="aclnn-cts", name=TORCH),
        Column(title="plain", name=PLAIN),
        Column(title="ratio", name=TORCH, over=PLAIN, form=".1f"),
        Column(title="plain, filled", name=FILLED),
        Column(title="ratio", name=TORCH, over=FILLED, form=".1f"),
    ]
    title = "Judged cases a second of processor time, whole pipeline on torch's CPU kernels"
    show_operators(out, f"{title}, tensors up to {MOST_ELEMENTS} elements", columns, found)
    if alone:
        return found
    wrap(
        out,
        "plain: hypothesis.extra.numpy and torch.testing.assert_close. Ours calls torch in a process of its own, as "
        "`aclnn-cts run --adapter torch` does. The plain way draws every element, as data fit for reductions must be; "
        "filled: Hypothesis' default, most elements equal",
    )
    for text in notes:
        wrap(out, text, indent=2)
    out.print()
    return found


def _starting(rounds: int) -> Rounds:
    """Seconds, after a round that is not counted."""
    turns = [{name: work() for name, work in STARTS.items()} for _ in range(rounds + 1)]
    return {name: tuple(turn[name] for turn in turns[1:]) for name in STARTS}


def main(arguments: Sequence[str]) -> int:
    """Measure everything, print it, and store it where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds of each measurement (7)")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/speed.md (then: make docs)")
    parser.add_argument("operators", nargs="*", metavar="OP", help="operators (all)")
    parser.add_argument(
        "--alone", type=Path, metavar="FILE", help="measure nothing to compare with, and write the figures to FILE"
    )
    options = parser.parse_args(arguments)
    if options.store and (options.operators or options.alone):
        parser.error("--store keeps the figures of all operators and of what they are compared with: give it alone")
    target = Target()
    specs = load_specs().for_product(target.product)
    chosen = specs.select(options.operators)
    out, started = console(), start()
    wrap(
        out,
        f"{started.text}; {target.product}; median of {options.rounds} rounds, with half of what lies between the "
        "least and the greatest. Rates are by processor time, all processes on one core",
    )
    out.print()
    freeze_objects()  # as `aclnn-cts run` does
    stay_on_one_core()
    rounds = {
        **_generation(out, chosen, target, options.rounds, alone=bool(options.alone)),
        **_judgement(out, specs, chosen, target, options.rounds),
        **(
            _pipeline(out, specs, chosen, target, options.rounds, alone=bool(options.alone))
            if importlib.util.find_spec("torch")
            else {}
        ),
        **_starting(options.rounds),
    }
    if options.alone:
        write_rounds(options.alone, rounds)
        return 0
    if not figures_of(rounds, TORCH):
        wrap(out, 'torch is not installed: no comparison with the plain way; pip install "aclnn-cts[torch]"')
        out.print()
    show_rows(out, list(shown(rounds)))
    if options.store:
        command = f"make bench ARGS='--rounds {options.rounds} --store'"
        needed = (STREAM, BY_HYPOTHESIS, REFERENCE, TORCH, PLAIN, FILLED, *STARTS)
        store(NAME, rounds, command=command, started=started, needed=needed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
