"""The measured judgement at a tiny size: silent on what is correct, and its emulations are what they say they are."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.rounding import BINARY_FORMATS, toward_zero
from benchmarks.bench_judge import measured, put
from benchmarks.emulated_operators import EMULATIONS
from benchmarks.emulations import ORDERS, Sums, Way, hfloat32, rounding_away, rounding_even
from benchmarks.faults_of_precision import FAULTS
from benchmarks.judge_calls import BOUND
from benchmarks.judge_kept import Kept
from benchmarks.judge_report import MARK_END, MARK_START, report, row_pages
from benchmarks.judge_rows import Amount, Row, RowCount, count_row, rows

TINY = Amount(calls=20, elements=1, faulty_cases=8, torch_calls=0)
ROWS = (
    Row(operator="aclnnConvTbcBackward", dtype="FLOAT", mode="USE_HF32"),
    Row(operator="aclnnEmbeddingDenseBackward", dtype="FLOAT16", mode=""),
    Row(operator="aclnnRmsNormGrad", dtype="FLOAT", mode=""),
    Row(operator="aclnnSoftmaxBackward", dtype="BF16", mode=""),
    Row(operator="aclnnUpsampleNearestExact1dBackward", dtype="FLOAT", mode=""),
)


@pytest.fixture(scope="module")
def counts() -> list[RowCount]:
    return [count_row(row, TINY, with_torch=False) for row in ROWS]


def test_silent_on_correct_implementations(counts: list[RowCount]) -> None:
    assert [count.examples for count in counts] == [[]] * len(ROWS)
    assert all(count.calls >= TINY.calls and count.elements > 0 for count in counts)
    assert all(count.alarms[BOUND] == 0 for count in counts)


def test_finds_faults_of_every_kind(counts: list[RowCount]) -> None:
    found = {name for count in counts for name, fault in count.faults.items() if fault.found[BOUND]}
    rare = {"FP16 for HF32", "operands rounded twice"}
    assert found >= set(FAULTS) - rare
    for count in counts:
        for fault in count.faults.values():
            assert fault.calls > 0
            assert fault.accused[BOUND] == 0


def test_operands_that_are_rounded_twice_are_found() -> None:
    row = Row(operator="aclnnConvTbcBackward", dtype="FLOAT", mode="USE_HF32")
    fault = count_row(row, replace(TINY, faulty_cases=24), with_torch=False).faults["operands rounded twice"]
    assert fault.calls >= 8
    assert fault.found[BOUND] > 0.8 * fault.calls


def test_a_run_that_was_interrupted_goes_on(
    counts: list[RowCount], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Kept(tmp_path, TINY, with_torch=False)
    for count in counts:
        assert kept.read(count.row) is None
        kept.write(count)
    again = Kept(tmp_path, TINY, with_torch=False)
    assert measured(ROWS, TINY, jobs=1, with_torch=False, kept=again) == counts
    assert "5 of 5 rows were counted before" in capsys.readouterr().err
    assert Kept(tmp_path, replace(TINY, seed=1), with_torch=False).read(ROWS[0]) is None


def test_the_report_shows_every_row(counts: list[RowCount]) -> None:
    text = report(counts, command="the command")
    assert text.startswith(MARK_START)
    below = row_pages(counts)
    assert all(f"(judgement/{name})" in text for name in below)
    for row, page in itertools.product(ROWS, below.values()):
        assert f"| {row.operator.removeprefix('aclnn')} | {row.dtype} | {row.mode} |" in page
    assert "False alarms of the bound: 0" in text


def test_rows_name_every_operator() -> None:
    found = rows()
    assert {row.operator for row in found} == set(EMULATIONS)
    assert len(set(found)) == len(found)
    assert set(ROWS) < set(found)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 16, 17, 100])
def test_sums_of_small_integers_are_exact_in_every_order(order: str, count: int, *, fused: bool) -> None:
    left = np.arange(count * 3, dtype=np.float64).reshape(count, 3) - 50.0
    right = np.full((count, 3), 3.0)
    way = Way(order=order, fused=fused, key=7)
    assert np.array_equal(Sums(way, 1).dot(left, right), (left * right).sum(axis=0))


def test_a_fused_operation_keeps_the_product() -> None:
    # (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the last bit is lost where the product is rounded before the sum.
    factor = np.array([[1.0 + 2.0**-12], [1.0]])
    other = np.array([[1.0 + 2.0**-12], [-1.0]])
    reversed_order = Way(order="reversed", fused=True)
    assert Sums(reversed_order, 1).dot(factor, other).item() == 2.0**-11 + 2.0**-24
    assert Sums(replace(reversed_order, fused=False), 1).dot(factor, other).item() == 2.0**-11


def test_accumulation_in_half_loses_a_one() -> None:
    terms = np.array([[2048.0], [1.0], [1.0]])
    assert Sums(Way(), 1).total(terms).item() == 2050.0
    assert Sums(Way(accumulation=BINARY_FORMATS["FLOAT16"]), 1).total(terms).item() == 2048.0


def test_a_dropped_term_is_one_of_several() -> None:
    terms = np.array([[1.0, 8.0], [2.0, 0.0]])
    found = {float(Sums(Way(factor=0.0, key=key), 1).total(terms)[0]) for key in range(20)}
    assert found == {1.0, 2.0}
    assert Sums(Way(factor=0.0), 1).total(terms)[1] == 8.0


def test_operand_rules_differ_on_ties_alone() -> None:
    form = hfloat32(10)
    tie, other = 1.0 + 2.0**-11, 1.0 + 2.0**-11 + 2.0**-20
    values = np.array([tie, other])
    assert rounding_even(form)(values).tolist() == [1.0, 1.0 + 2.0**-10]
    assert rounding_away(form)(values).tolist() == [1.0 + 2.0**-10, 1.0 + 2.0**-10]


def test_toward_zero() -> None:
    form = BINARY_FORMATS["FLOAT16"]
    values = np.array([2049.9, -2051.9, 70000.0, -0.0, np.inf])
    assert toward_zero(values, form).tolist() == [2048.0, -2050.0, 65504.0, -0.0, np.inf]


def test_tables_go_between_the_marks(tmp_path: Path) -> None:
    file = tmp_path / "judgement.md"
    file.write_text(f"above\n{MARK_START}\nold\n{MARK_END}\nbelow\n", encoding="utf-8")
    put(f"{MARK_START}\nnew\n{MARK_END}\n", file)
    assert file.read_text(encoding="utf-8") == f"above\n{MARK_START}\nnew\n{MARK_END}\nbelow\n"
    file.write_text("no marks\n", encoding="utf-8")
    with pytest.raises(UsageError, match="expected a line"):
        put("new", file)
