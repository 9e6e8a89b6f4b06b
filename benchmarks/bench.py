"""`make bench`: how fast the harness is, as figures beside the goals and as ratios against doing without it.

A benchmark and no gate: the exit code is 0 whatever the figures are. Run as `python -m benchmarks.bench [--rounds N]`
from the checkout.
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from aclnn_cts.cli.output import console, show_table, table, wrap
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result
from aclnn_cts.engine.bench import Bench
from aclnn_cts.engine.collector import keep_for_good
from aclnn_cts.engine.host import open_host
from aclnn_cts.engine.process import ProcessHost
from aclnn_cts.engine.settings import BenchSettings
from aclnn_cts.engine.waiver_file import read_waivers, shipped_waivers
from aclnn_cts.engine.waivers import waivers_of_run
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import BUDGETS
from aclnn_cts.spec.evaluate import evaluate
from aclnn_cts.spec.load import Specs, load_specs
from aclnn_cts.spec.model import Spec
from benchmarks.hypothesis_driver import descriptions_by_hypothesis, plain_examples
from benchmarks.measure import Figure, geometric_mean, interleave, ratio

DESCRIPTIONS, EXAMPLES, JUDGED, PIPELINE, PLAIN_EXAMPLES = 2_000, 100, 400, 500, 100
"""Things done in a round."""
MOST_ELEMENTS = 256
"""Of a tensor in the comparison with the plain way, whose arrays cannot be much larger."""

_LOAD = (
    "import time; from aclnn_cts.spec.load import load_specs; start = time.perf_counter(); load_specs();"
    "print(time.perf_counter() - start)"
)


@dataclass(slots=True)
class _Counter:
    """What a pipeline came to, over all rounds."""

    judged: int = 0
    calls: int = 0
    elements: int = 0

    @property
    def mean(self) -> float:
        return self.elements / max(self.calls, 1)


@dataclass(slots=True, kw_only=True)
class _Section:
    """One table: a row an operator, and the geometric mean below."""

    columns: tuple[str, ...]
    forms: tuple[str, ...]
    rows: dict[str, tuple[Figure, ...]] = field(default_factory=dict)

    def show(self, title: str, goal: str) -> None:
        out = console()
        wrap(out, title, style="bold")
        made = table("operator", *self.columns)
        for column in made.columns[1:]:
            column.justify = "right"
        means = tuple(geometric_mean(figures) for figures in zip(*self.rows.values(), strict=True))
        for name, figures in (*self.rows.items(), ("geometric mean", means)):
            cells = (figure.text(form) for figure, form in zip(figures, self.forms, strict=True))
            made.add_row(name.removeprefix("aclnn"), *cells)
        show_table(out, made)
        wrap(out, goal)
        out.print()


def _cases(sampler: Sampler, number: int, count: int, budgets: Sequence[int] = ()) -> Iterator[Case]:
    """Random cases of a round; `budgets`: most elements of a tensor, one of them a case (the sampler's own)."""
    for choices in stream_block(number, "benchmark", 0, count):
        yield sampler.case(sampler.draw(choices, budget=choices.pick(budgets) if budgets else None))


def _descriptions(spec: Spec, sampler: Sampler) -> Callable[[int], int]:
    def work(number: int) -> int:
        done = 0
        for case in _cases(sampler, number, DESCRIPTIONS):
            if evaluate(spec, case).broken:
                raise AssertionError(f"{spec.operator}: a case of the generator breaks a constraint")
            done += 1
        return done

    return work


def _largest(case: Case) -> int:
    return max(tensor.numel for _, tensor in case.tensors())


def _drawn(spec: Spec, case: Case) -> int:
    """Elements of all inputs."""
    return sum(tensor.numel for name, tensor in case.tensors() if name in spec.inputs)


def _as_plain(case: Case) -> bool:
    """Whether the plain way has this case too: small, and an rstd (if any) that torch computes anew from x."""
    rstd = case.arguments.get("rstd")
    fits = not isinstance(rstd, Tensor) or (rstd.data is not None and rstd.data.recipe == "rstd")
    return fits and _largest(case) <= MOST_ELEMENTS


def _judged(
    bench: Bench,
    sampler: Sampler,
    count: int,
    chosen: Callable[[Case], bool],
    counter: _Counter,
    budgets: Sequence[int] = (),
) -> Callable[[int], int]:
    """Generate, make data, call, ask the oracle, judge, and make the records; gives how many have a verdict.

    Cases that are not `chosen` are drawn all the same, and the time for it counts.
    """

    def work(number: int) -> int:
        cases = [case for case in _cases(sampler, number, count, budgets) if chosen(case)]
        done = 0
        for batch in bench.run([Trial("values", case) for case in cases]):
            done += sum(record.verdict.result in (Result.PASSED, Result.FAILED) for record in batch.records)
        counter.judged += done
        counter.calls += len(cases)
        counter.elements += sum(_drawn(sampler.spec, case) for case in cases)
        return done

    return work


def _generation(chosen: Sequence[Spec], target: Target, rounds: int) -> None:
    section = _Section(columns=("stream", "Hypothesis", "ratio"), forms=(",.0f", ",.0f", ",.0f"))
    for spec in chosen:
        sampler = Sampler(spec, target)
        stream, hypothesis = interleave(
            (_descriptions(spec, sampler), descriptions_by_hypothesis(spec, sampler, EXAMPLES)), rounds
        )
        section.rows[spec.operator] = (stream, hypothesis, ratio(stream, hypothesis))
    section.show(
        "Case descriptions a second of processor time, all constraints evaluated on each",
        "goal: the stream driver makes 15,000 or more, geometric mean",
    )


def _judgement(specs: Specs, chosen: Sequence[Spec], target: Target, rounds: int) -> None:
    section = _Section(columns=("cases a second",), forms=(",.0f",))
    with open_host("reference", target=target, specs=specs) as host:
        bench = Bench(specs=specs, host=host, settings=BenchSettings(adapter="reference", target=target))
        for spec in chosen:
            work = _judged(bench, bench.sampler(spec), JUDGED, lambda _case: True, _Counter())
            section.rows[spec.operator] = interleave((work,), rounds)
    section.show(
        "Fully judged cases a second of processor time, reference adapter in this process, generation included",
        "goal: 1,500 or more, geometric mean",
    )


def _pipeline(specs: Specs, chosen: Sequence[Spec], target: Target, rounds: int) -> None:
    from benchmarks.plain import PLAIN, use_one_thread  # noqa: PLC0415 - it imports torch

    use_one_thread()
    columns = ("aclnn-cts", "plain", "ratio", "plain, filled", "ratio")
    section = _Section(columns=columns, forms=(",.0f", ",.0f", ",.1f", ",.0f", ",.1f"))
    small = [budget for budget in BUDGETS if budget <= MOST_ELEMENTS]
    notes: list[str] = []
    # Without a spare, whose start would be counted.
    with ProcessHost("torch", target=target, spare=False) as host:
        settings = BenchSettings(adapter="torch", target=target)
        known = waivers_of_run(
            read_waivers(shipped_waivers()), settings=settings, environment=host.environment, specs=specs
        )
        bench = Bench(specs=specs, host=host, settings=settings, explained=known.explains)
        for spec in chosen:
            counter, dense = _Counter(), _Counter()
            test = PLAIN[spec.operator]
            ours, plain, filled = interleave(
                (
                    _judged(bench, bench.sampler(spec), PIPELINE, _as_plain, counter, small),
                    plain_examples(test, PLAIN_EXAMPLES, dense, dense=True),
                    plain_examples(test, PLAIN_EXAMPLES, _Counter(), dense=False),
                ),
                rounds,
            )
            section.rows[spec.operator] = (ours, plain, ratio(ours, plain), filled, ratio(ours, filled))
            notes.append(
                f"{spec.operator.removeprefix('aclnn')}: {counter.judged} of {counter.calls} calls judged; inputs of "
                f"{counter.mean:.0f} elements on average, the plain way's of {dense.mean:.0f}"
            )
    section.show(
        "Judged cases a second of processor time, whole pipeline on torch's CPU kernels, "
        f"tensors up to {MOST_ELEMENTS} elements",
        "goal: 10 times the plain way (hypothesis.extra.numpy, torch.testing.assert_close) or more, geometric mean. "
        "Ours calls torch in a process of its own, as `aclnn-cts run --adapter torch` does. The plain way draws every "
        "element, as data fit for reductions must be; filled: Hypothesis' default, most elements equal",
    )
    out = console()
    for text in notes:
        wrap(out, text, indent=2)
    out.print()


def _fresh(*arguments: str) -> tuple[float, str]:
    """Seconds and standard output of a fresh interpreter."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout


def _starting(rounds: int) -> None:
    loads, helps, bare = [], [], []
    for _ in range(rounds + 1):
        loads.append(float(_fresh("-c", _LOAD)[1]) * 1e3)
        helps.append(_fresh("-m", "aclnn_cts", "--help")[0] * 1e3)
        bare.append(_fresh("-c", "pass")[0] * 1e3)
    out = console()
    wrap(out, "Starting, in milliseconds, in a fresh interpreter", style="bold")
    made = table("what", "milliseconds", "goal")
    made.add_row("all specs loaded", Figure(tuple(loads[1:])).text(".0f"), "under 150")
    made.add_row("aclnn-cts --help", Figure(tuple(helps[1:])).text(".0f"), "under 300")
    made.add_row("the interpreter alone", Figure(tuple(bare[1:])).text(".0f"), "")
    show_table(out, made)


def main(arguments: Sequence[str]) -> int:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds of each measurement (7)")
    parser.add_argument("operators", nargs="*", metavar="OP", help="operators (all)")
    options = parser.parse_args(arguments)
    specs, target = load_specs(), Target()
    chosen = specs.select(options.operators)
    out = console()
    wrap(
        out,
        f"Python {platform.python_version()}, {platform.machine()}, {target.product}; median of {options.rounds} "
        "rounds, with half of what lies between the least and the greatest. Rates are by processor time, of one core",
    )
    out.print()
    keep_for_good()  # as `aclnn-cts run` does
    _generation(chosen, target, options.rounds)
    _judgement(specs, chosen, target, options.rounds)
    if importlib.util.find_spec("torch") is None:
        wrap(out, 'torch is not installed: no comparison with the plain way; pip install "aclnn-cts[torch]"')
        out.print()
    else:
        _pipeline(specs, chosen, target, options.rounds)
    _starting(options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
