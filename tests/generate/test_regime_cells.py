"""Cells of size regime, dtype and layout: what a plan is to reach, what it reaches, and where that is shown."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from aclnn_cts.adapters.reference import ReferenceAdapter
from aclnn_cts.cli import screen
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.generate.regime_cells import cells_of, planned_cells
from aclnn_cts.generate.sizes import QUICK, STANDARD
from aclnn_cts.reports.model.rows import regime_maps
from aclnn_cts.store.summary import Summary, summary_from_json, summary_to_json
from aclnn_cts.trials.plan import PROFILES, Part, plan_parts
from tests.generate.every_operator import each, sampler, valid_cases
from tests.support.trial_runs import bench

pytestmark = pytest.mark.mechanism

SOFTMAX = "aclnnSoftmaxBackward"


def case(shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Case:
    return Case(SOFTMAX, {"out": Tensor(shape, "FLOAT", strides=strides)})


def test_a_call_is_in_a_cell_for_each_regime_of_its_sizes() -> None:
    assert set(cells_of(case((2, 16)), "FLOAT")) == {"tiny FLOAT contiguous", "aligned FLOAT contiguous"}
    assert set(cells_of(case((3, 5), (1, 3)), "BF16")) == {"tiny BF16 strided", "odd BF16 strided"}
    assert not list(cells_of(case((0, 16)), "FLOAT"))


@each
def test_calls_are_in_planned_cells(stem: str, product: str) -> None:
    chosen = sampler(stem, product)
    planned = set(planned_cells(chosen, STANDARD))
    assert set(planned_cells(chosen, QUICK)) < planned
    assert {cell for cell in planned if "heavy" in cell}
    for made in valid_cases(stem, product, 40):
        there = dict(made.tensors())
        first = next(there[name] for name in chosen.spec.outputs if name in there)
        assert set(cells_of(made, first.dtype)) <= planned


def test_the_quick_plan_reaches_every_cell_and_the_summary_keeps_them() -> None:
    made = bench(ReferenceAdapter())
    summary = Summary()
    summary.demand(SOFTMAX, cells=planned_cells(sampler("softmax_backward", "atlas-a2"), QUICK))
    assert set(summary.operator(SOFTMAX).cells.values()) == {0}
    planned = plan_parts([sampler("softmax_backward", "atlas-a2").spec], product="atlas-a2", chosen=PROFILES["quick"])
    for _, _, judged in made.run_parts([part for part in planned if part.check == "values"], seed=0):
        summary.include(judged.coverage)
    cells = summary.operator(SOFTMAX).cells
    assert not [cell for cell, number in cells.items() if not number]
    assert summary_from_json(summary_to_json(summary), where="summary").operator(SOFTMAX).cells == cells
    twice = Summary()
    for _ in range(2):
        twice.include(summary)
    assert twice.operator(SOFTMAX).cells == {cell: 2 * number for cell, number in cells.items()}


def test_calls_without_a_verdict_on_values_reach_no_cell() -> None:
    made = bench(ReferenceAdapter())
    coverage = Summary()
    for judged in made.run(made.expand(Part(SOFTMAX, "status", "invalid", "dim.range", count=4), seed=0)):
        coverage.include(judged.coverage)
    assert not coverage.operator(SOFTMAX).cells


def test_the_terminal_names_empty_cells() -> None:
    summary = Summary()
    summary.demand(SOFTMAX, cells=["tiny FLOAT contiguous", "long FLOAT strided"])
    summary.operator(SOFTMAX).reach({"tiny FLOAT contiguous": 7})
    out = Console(file=io.StringIO(), width=100)
    screen.show_regimes(out, summary)
    shown = out.file.getvalue()  # type: ignore[attr-defined]
    assert "FLOAT contiguous" in shown
    assert re.search(r"Not reached: 1 cell:\n +Softmax FLOAT strided: long\n", shown)


def test_the_report_has_a_map_for_each_layout() -> None:
    cells = {"tiny FLOAT contiguous": 7, "long FLOAT contiguous": 0, "tiny BF16 strided": 2}
    contiguous, strided = regime_maps(SOFTMAX, cells)
    assert (contiguous.kind, contiguous.rows, contiguous.columns) == ("regime", ("FLOAT",), ("tiny", "long"))
    assert contiguous.counts == ((7, 0),)
    assert contiguous.possible == ((True, True),)
    assert (strided.kind, strided.rows, strided.counts) == ("regime_strided", ("BF16",), ((2,),))
