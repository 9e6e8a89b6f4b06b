"""The parts of pages that tell measured figures: each is made from files that benchmarks stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from aclnn_cts.cli.screen import short_name
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.plan import PROFILES, plan_parts
from benchmarks import (
    bench,
    bench_bundle,
    bench_candidates,
    bench_report,
    bench_run,
    bench_scale,
    bench_watch,
    campaign_faults,
    campaign_memory,
    campaign_rates,
    campaign_scaling,
    findings,
    gaming,
    isolation,
    kernel_mistakes,
    overlapping,
    planned_corners,
    wrong_kernels,
)
from benchmarks.shown import Row, tally
from benchmarks.stored import Measured, Rounds, provenance, read_figures
from tests.wrong_kernels.usual_inputs import SHAPES
from tools.markdown import between, table

SPREAD = "Medians of the rounds; ± is half the range from the least to the greatest."


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page, between two marks."""

    page: str
    """Its path below this folder."""
    name: str
    sources: tuple[str, ...]
    """The stored figures that it is made from, by name."""
    measure: str
    """The command that stores them."""
    body: Callable[[Mapping[str, Measured]], Iterator[str]]
    """Its lines, of those sources that are there."""

    @property
    def start(self) -> str:
        """The mark above it."""
        files = ", ".join(f"{source}.json" for source in self.sources)
        return f"<!-- {self.name}: made from benchmarks/figures/ ({files}) by `make docs`; type nothing here -->"

    @property
    def end(self) -> str:
        """The mark below it."""
        return f"<!-- {self.name}: end -->"

    def lines(self) -> Iterator[str]:
        """From one mark to the other, both included."""
        found = {name: measured for name in self.sources if (measured := read_figures(name)) is not None}
        yield self.start
        if found:
            yield from self.body(found)
            yield ""
            yield provenance(list(found.values()))
        if missing := [name for name in self.sources if name not in found]:
            yield f"Not measured yet: {', '.join(missing)}; `{self.measure}` does."
        yield self.end


def _goals(rows: Iterable[Row]) -> Iterator[str]:
    """Figures beside their goals."""
    return table(("figure", "measured", "goal"), [(row.what, row.figure, row.verdict) for row in rows])


def _rows(*shown: tuple[str, Callable[[Rounds], Iterator[Row]]]) -> Callable[[Mapping[str, Measured]], Iterator[str]]:
    """A table of figures beside their goals, and below it which of these are missed."""

    def body(found: Mapping[str, Measured]) -> Iterator[str]:
        rows = list(chain.from_iterable(show(found[name].rounds) for name, show in shown if name in found))
        yield from _goals(rows)
        yield ""
        yield f"{tally(rows)} {SPREAD}"

    return body


def _overlap(found: Mapping[str, Measured]) -> Iterator[str]:
    [measured] = found.values()
    rows = [
        (adapter, *(measured.figure(f"{adapter}, {column}").text(".2f") for column in overlapping.COLUMNS))
        for adapter in overlapping.ADAPTERS
        if f"{adapter}, {overlapping.COLUMNS[0]}" in measured.rounds
    ]
    yield from table(("adapter", *overlapping.COLUMNS), rows)
    yield ""
    yield f"Geometric means over the operators. {SPREAD}"


def _bundle(found: Mapping[str, Measured]) -> Iterator[str]:
    [measured] = found.values()
    yield from table(bench_bundle.TITLES, list(bench_bundle.columns(measured.rounds)))
    yield ""
    yield SPREAD


def _scale(found: Mapping[str, Measured]) -> Iterator[str]:
    [measured] = found.values()
    rows = list(bench_scale.shown(measured.rounds))
    yield from _goals(rows[:3])
    yield ""
    yield from table(bench_scale.TITLES, list(bench_scale.columns(measured.rounds)))
    yield ""
    yield f"Goals of the efficiency: {tally(rows).removeprefix('Goals met: ')}"


def _conditions(found: Mapping[str, Measured]) -> Iterator[str]:
    [measured] = found.values()
    yield from _goals(list(findings.shown(measured.rounds, lambda name: name == findings.CONDITIONS)))
    yield ""
    yield "The faults are mutants of all operators whose trigger is known, drawn by a seed that nobody tuned on."


def _cheats(found: Mapping[str, Measured]) -> Iterator[str]:
    [measured] = found.values()
    yield "A naive judge makes five random trials with a tolerance of 1e-2."
    yield (
        f"The last column says what `judge` found with {measured.rounds['seeds'][0]:.0f} seeds, and with how many of "
        "them. The outputs of a harmless cheat are right."
    )
    yield ""
    yield from table(gaming.TITLES, list(gaming.rows(measured.rounds)))


def _kernel_mistakes(found: Mapping[str, Measured]) -> Iterator[str]:
    [measured] = found.values()
    yield from kernel_mistakes.summary(measured.rounds)
    yield ""
    yield from table(kernel_mistakes.TITLES, list(kernel_mistakes.rows(measured.rounds)))
    yield ""
    yield "Right kernels, each with calls of the `standard` profile:"
    yield ""
    yield from table(kernel_mistakes.RIGHT_TITLES, list(kernel_mistakes.right_rows(measured.rounds)))


def _wrong_kernels(found: Mapping[str, Measured]) -> Iterator[str]:
    [measured] = found.values()
    yield from wrong_kernels.summary(measured.rounds)
    yield ""
    yield from table(wrong_kernels.TITLES, list(wrong_kernels.rows(measured.rounds)))


def _wrong_calls(found: Mapping[str, Measured]) -> Iterator[str]:
    [measured] = found.values()
    yield from table(wrong_kernels.CALL_TITLES, list(wrong_kernels.calls(measured.rounds)))
    yield ""
    yield from table(("operator", "usual inputs"), [(f"`{name}`", shape) for name, shape in SHAPES.items()])


def _isolation(found: Mapping[str, Measured]) -> Iterator[str]:
    [measured] = found.values()
    yield from table(isolation.TITLES, list(isolation.overheads(measured.rounds)))
    yield ""
    rows = isolation.shown(measured.rounds)
    yield from _goals(rows)


def _profile_costs(found: Mapping[str, Measured]) -> Iterator[str]:
    """The calls of each profile's plan, times what a trial of the operator took on the quick profile."""
    [measured] = found.values()
    specs = load_specs()
    rows = []
    for stem in bench_run.ALONE:
        spec = specs.find(stem, where="bench_run.ALONE")
        [each] = measured.rounds[bench_run.PER_TRIAL.format(stem)]
        plans = (plan_parts([spec], product=spec.products[0], chosen=chosen) for chosen in PROFILES.values())
        counts = [sum(part.count for part in plan) for plan in plans]
        cells = (f"{count:,} calls: {_duration(count * each / 1000)}" for count in counts)
        rows.append((short_name(spec.operator), f"{each:.1f} ms", *cells))
    yield from table(("operator", "CPU time of a trial", *(f"`{name}`" for name in PROFILES)), rows)


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def _corners(measured: Mapping[str, Measured]) -> Iterator[str]:
    yield from table(planned_corners.COLUMNS, list(planned_corners.shown(measured[planned_corners.NAME].rounds)))


SECTIONS: Sequence[Section] = (
    Section(
        page="speed.md",
        name="commands",
        sources=(bench_run.NAME,),
        measure="make bench-run ARGS=--store",
        body=_rows((bench_run.NAME, bench_run.goal_rows)),
    ),
    Section(
        page="profiles.md",
        name="cost",
        sources=(bench_run.NAME,),
        measure="make bench-run ARGS=--store",
        body=_profile_costs,
    ),
    Section(
        page="speed.md",
        name="speed",
        sources=(bench.NAME,),
        measure="make bench ARGS=--store",
        body=_rows((bench.NAME, bench.shown)),
    ),
    Section(
        page="campaigns-at-scale.md",
        name="campaign",
        sources=(campaign_rates.NAME, campaign_scaling.NAME, campaign_memory.NAME, campaign_faults.NAME),
        measure="make bench-fuzz ARGS=--store",
        body=_rows(
            (campaign_rates.NAME, campaign_rates.shown),
            (campaign_scaling.NAME, campaign_scaling.shown),
            (campaign_memory.NAME, campaign_memory.shown),
            (campaign_faults.NAME, campaign_faults.shown),
        ),
    ),
    Section(
        page="campaigns-at-scale.md",
        name="overlap",
        sources=(overlapping.NAME,),
        measure="make bench-fuzz ARGS='--only overlap --store'",
        body=_overlap,
    ),
    Section(
        page="campaigns-at-scale.md",
        name="scale",
        sources=(bench_scale.NAME,),
        measure="make bench-scale ARGS=--store",
        body=_scale,
    ),
    Section(
        page="isolation.md",
        name="isolation",
        sources=(isolation.NAME,),
        measure="make bench-isolation ARGS=--store",
        body=_isolation,
    ),
    Section(
        page="report.md",
        name="report",
        sources=(bench_report.NAME,),
        measure="make bench-report ARGS=--store",
        body=_rows((bench_report.NAME, bench_report.shown)),
    ),
    Section(
        page="finding-cards.md",
        name="conditions",
        sources=(findings.NAME,),
        measure="make bench-findings ARGS=--store",
        body=_conditions,
    ),
    Section(
        page="cheats.md",
        name="cheats",
        sources=(gaming.NAME,),
        measure="make bench-gaming ARGS=--store",
        body=_cheats,
    ),
    Section(
        page="judging-kernels.md",
        name="costs",
        sources=(bench_candidates.NAME,),
        measure="make bench-judge-kernels ARGS=--store",
        body=_rows((bench_candidates.NAME, bench_candidates.shown)),
    ),
    Section(
        page="wrong-kernels.md",
        name="wrong-kernels",
        sources=(wrong_kernels.NAME,),
        measure="make bench-wrong-kernels ARGS=--store",
        body=_wrong_kernels,
    ),
    Section(
        page="wrong-kernels/calls.md",
        name="wrong-calls",
        sources=(wrong_kernels.NAME,),
        measure="make bench-wrong-kernels ARGS=--store",
        body=_wrong_calls,
    ),
    Section(
        page="wrong-kernels/attention-and-convolution.md",
        name="kernel-mistakes",
        sources=(kernel_mistakes.NAME,),
        measure="make bench-kernel-mistakes ARGS=--store",
        body=_kernel_mistakes,
    ),
    Section(
        page="watch-training.md",
        name="watch",
        sources=(bench_watch.NAME,),
        measure="make bench-watch ARGS=--store",
        body=_rows((bench_watch.NAME, bench_watch.shown)),
    ),
    Section(
        page="visited-corners.md",
        name="corners",
        sources=(planned_corners.NAME,),
        measure="make bench-corners ARGS=--store",
        body=_corners,
    ),
    Section(
        page="compare-and-bundle.md",
        name="bundle",
        sources=(bench_bundle.NAME,),
        measure="make bench-bundle ARGS=--store",
        body=_bundle,
    ),
)


def with_figures(page: str, text: str) -> str:
    """The text of a page with its sections as they are to be. ValueError where it lacks the marks of one."""
    for section in SECTIONS:
        if section.page == page:
            text = between(text, section.start, section.end, "\n".join(section.lines()))
    return text
