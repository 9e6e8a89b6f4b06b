"""One output against its bound: special values, open elements, histogram and the worst element."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import ERROR_RATIO_EDGES
from aclnn_cts.judgement.comparison import OutputComparison
from aclnn_cts.judgement.model import ComputeModel, load_precision
from tests.support.compared import compare
from tests.support.counted import counted

INF, NAN = math.inf, math.nan


def model(dtype: str = "FLOAT", product: str = "atlas-a2") -> ComputeModel:
    return load_precision().model(
        operator="aclnnRmsNormGrad", output="dxOut", dtype=dtype, target=Target(product=product)
    )


def sums(value: list[float], magnitude: list[float] | None = None, **more: Any) -> ExpectedOutput:
    """Sums of three products with these values and sums of magnitudes."""
    sizes = np.abs(np.array(value)) if magnitude is None else np.array(magnitude)
    finite = np.where(np.isfinite(sizes), sizes, 0.0)
    return counted(np.array(value), 3, finite, partial=np.where(np.isnan(np.array(value)), 0.0, sizes), **more)


def judged(
    value: float, got: float, *, magnitude: float | None = None, dtype: str = "FLOAT", product: str = "atlas-a2"
) -> OutputComparison:
    expected = sums([value], None if magnitude is None else [magnitude])
    return compare("out", to_dtype(np.array([got]), dtype), expected, model(dtype, product))


@pytest.mark.parametrize(
    ("value", "got", "kind"),
    [
        (INF, INF, ""),
        (INF, -INF, Fault.SPECIAL),
        (INF, NAN, Fault.SPECIAL),
        (INF, 3e38, Fault.SPECIAL),
        (-INF, -INF, ""),
        (NAN, NAN, ""),
        (NAN, INF, Fault.SPECIAL),
        (NAN, 0.0, Fault.SPECIAL),
        (1.0, NAN, Fault.SPECIAL),
        (1.0, INF, Fault.SPECIAL),
        (1.0, 1.5, Fault.VALUE),
        (0.0, -0.0, ""),
        (-0.0, 0.0, ""),
    ],
)
def test_required_special_values(value: float, got: float, kind: str) -> None:
    comparison = judged(value, got)
    assert comparison.kind == kind
    assert comparison.deviation.beyond == bool(kind)
    assert comparison.deviation.open == 0


@pytest.mark.parametrize(
    ("got", "kind", "left_open"),
    [(INF, "", 1), (-INF, "", 1), (NAN, "", 1), (2e38, "", 0), (1e38, Fault.VALUE, 0)],
)
def test_where_an_intermediate_may_overflow(got: float, kind: str, left_open: int) -> None:
    comparison = judged(2e38, got, magnitude=8e38)
    assert (comparison.kind, comparison.deviation.open) == (kind, left_open)


@pytest.mark.parametrize(
    ("value", "magnitude", "got", "kind", "left_open"),
    [
        (-INF, 8e38, NAN, "", 1),  # finite terms reach inf first, and inf - inf is nan
        (-INF, 8e38, -INF, "", 1),
        (-INF, 8e38, 1e38, Fault.SPECIAL, 0),
        (-INF, 2e38, NAN, Fault.SPECIAL, 0),
        (-INF, INF, NAN, Fault.SPECIAL, 0),
        (NAN, 0.0, INF, Fault.SPECIAL, 0),
    ],
)
def test_where_finite_terms_may_overflow_beside_a_required_inf(
    value: float, magnitude: float, got: float, kind: str, left_open: int
) -> None:
    comparison = judged(value, got, magnitude=magnitude)
    assert (comparison.kind, comparison.deviation.open) == (kind, left_open)


@pytest.mark.parametrize(
    ("value", "got", "kind"),
    [
        (65519.0, 65504.0, ""),
        (65519.0, INF, Fault.MODEL),  # a coarser sum could have been rounded up
        (65521.0, INF, ""),
        (65521.0, 65504.0, Fault.MODEL),
        (65520.0, INF, ""),
        (65520.0, 65504.0, ""),
        (1e6, INF, ""),
        (1e6, 65504.0, Fault.MODEL),
        (1e6, 60000.0, Fault.VALUE),
        (-1e6, -INF, ""),
        (-1e6, INF, Fault.MODEL),  # partial sums in half precision may overflow either way
        (60000.0, INF, Fault.SPECIAL),
    ],
)
def test_where_rounding_to_the_output_may_overflow(value: float, got: float, kind: str) -> None:
    assert judged(value, got, dtype="FLOAT16").kind == kind


def test_overflow_of_the_accumulation_itself() -> None:
    largest = 2.0**128 - 2.0**104
    assert judged(largest, INF).kind == ""
    assert judged(largest, largest).kind == ""
    assert judged(1e39, INF).kind == ""
    assert judged(1e39, NAN).kind == ""
    assert judged(1e38, INF).kind == Fault.SPECIAL


@pytest.mark.parametrize("product", ["atlas-inference", "atlas-training"])
@pytest.mark.parametrize(
    ("value", "got", "kind", "left_open"),
    [
        (INF, 3.4028234663852886e38, "", 1),
        (NAN, 0.0, "", 1),
        (1e6, 65504.0, "", 1),
        (1.0, 1.0, "", 0),
        (1.0, INF, Fault.SPECIAL, 0),
        (1.0, 2.0, Fault.VALUE, 0),
    ],
)
def test_saturating_products_are_not_judged_on_special_values(
    product: str, value: float, got: float, kind: str, left_open: int
) -> None:
    comparison = judged(value, got, dtype="FLOAT16", product=product)
    assert (comparison.kind, comparison.deviation.open) == (kind, left_open)
    assert comparison.judged == 1 - left_open


def test_elements_that_the_oracle_leaves_open() -> None:
    expected = sums([1.0, 2.0, 3.0], open=np.array([False, True, False]))
    comparison = compare("out", np.array([1.0, 99.0, 3.0], np.float32), expected, model())
    assert (comparison.kind, comparison.judged, comparison.deviation.open) == ("", 2, 1)
    assert sum(comparison.deviation.histogram) == 2
    comparison = compare("out", np.array([1.0, NAN, 3.5], np.float32), expected, model())
    assert (comparison.kind, comparison.deviation.beyond, comparison.deviation.index) == (Fault.VALUE, 1, (2,))
    everything = msgspec.structs.replace(expected, open=np.ones(3, np.bool_))
    comparison = compare("out", np.full(3, NAN, np.float32), everything, model())
    assert (comparison.kind, comparison.judged, comparison.deviation.open) == ("", 0, 3)


def test_the_worst_element_and_its_figures() -> None:
    value = np.array([[1.0, -2.0, 3.0], [4.0, 0.5, 6.0]])
    magnitude = np.array([[1.0, 2.0, 3.0], [4.0, 50.0, 6.0]])
    expected = counted(value, 2, magnitude, partial=magnitude)
    got = value.astype(np.float32)
    got[1, 1] += 2.0**-18
    deviation = compare("dx", got, expected, model()).deviation
    assert (deviation.output, deviation.index, deviation.elements, deviation.beyond) == ("dx", (1, 1), 6, 0)
    assert deviation.got == 0.5 + 2.0**-18
    assert deviation.expected == 0.5
    assert deviation.bound == pytest.approx(2 * 2.0**-24 * 50, rel=1e-6)
    assert deviation.error_ratio == pytest.approx(2.0**-18 / (100 * 2.0**-24), rel=1e-6)
    assert deviation.cancellation == pytest.approx(200.0, rel=1e-6), "both roundings of terms of 50"


def test_histogram_bins_end_at_powers_of_two() -> None:
    error_ratios = [0.0, 2.0**-13, 2.0**-12, 1.5 * 2.0**-12, 2.0**-11, 0.5, 0.75, 1.0]
    magnitude = np.full(len(error_ratios), 2.0**70)
    unit = counted(np.zeros(1), 1, magnitude)
    width = compare("out", np.full(8, 2.0**40, np.float64), unit, model("DOUBLE")).deviation.bound
    got = np.array(error_ratios) * width
    deviation = compare("out", got, unit, model("DOUBLE")).deviation
    by_edge = dict(zip([*ERROR_RATIO_EDGES, "above"], deviation.histogram, strict=True))
    assert {edge: count for edge, count in by_edge.items() if count} == {-12: 3, -11: 2, -1: 1, 0: 2}
    got[2:5] = np.array([2.0, 17.0, 1e9]) * width
    deviation = compare("out", got, unit, model("DOUBLE")).deviation
    by_edge = dict(zip([*ERROR_RATIO_EDGES, "above"], deviation.histogram, strict=True))
    assert {edge: count for edge, count in by_edge.items() if count} == {-12: 2, -1: 1, 0: 2, 1: 1, "above": 2}
    assert deviation.beyond == 3
    assert sum(deviation.histogram) == len(error_ratios)


def test_exact_data_without_a_tolerance() -> None:
    expected = ExpectedOutput(value=np.array([3.0, -4.0]), partial=np.array([7.0, 9.0]), exact=True)
    assert compare("out", np.array([3.0, -4.0], np.float32), expected, model()).deviation.error_ratio == 0.0
    deviation = compare(
        "out", np.array([3.0, np.nextafter(np.float32(-4), np.float32(0))], np.float32), expected, model()
    ).deviation
    assert (deviation.error_ratio, deviation.bound, deviation.index) == (INF, 0.0, (1,))


def test_rank_zero_and_broadcast_values() -> None:
    scalar = counted(np.array(2.0), 1)
    assert compare("out", np.array(2.0, np.float32), scalar, model()).deviation.index == ()
    assert compare("out", np.array(2.5, np.float32), scalar, model()).kind == Fault.VALUE
    zeros = ExpectedOutput(value=np.zeros((1, 1)), partial=np.zeros((1, 1)), exact=True)
    assert compare("out", np.zeros((3, 4), np.float32), zeros, model()).deviation.elements == 12
    comparison = compare("out", np.eye(3, 4, dtype=np.float32), zeros, model())
    assert (comparison.deviation.beyond, comparison.kind) == (3, Fault.VALUE)


def test_empty_outputs_have_nothing_to_judge() -> None:
    empty = ExpectedOutput(value=np.zeros((0, 2)))
    comparison = compare("out", np.zeros((0, 2), np.float16), empty, model("FLOAT16"))
    assert (comparison.kind, comparison.judged, comparison.deviation.elements) == ("", 0, 0)


def test_a_documented_model_is_not_excused_by_coarser_arithmetic() -> None:
    value = np.linspace(1.0, 2.0, 40) + 1e-4
    expected = counted(value, 9, partial=value)
    got = to_dtype(value * (1 + 2.0**-10), "FLOAT16")
    assert compare("out", got, expected, model("FLOAT16")).kind == Fault.MODEL
    documented = dataclasses.replace(model("FLOAT16"), basis="document")
    assert compare("out", got, expected, documented).kind == Fault.VALUE


def test_elements_whose_error_is_nan_are_open() -> None:
    magnitude = np.array([NAN, 1.0, NAN])
    expected = counted(np.array([1.0, 1.0, NAN]), 1, magnitude)
    for value, wrong in itertools.product((0.0, 9.0, NAN, math.inf), (0, 1, 2)):
        got = np.array([1.0, 1.0, NAN], np.float32)
        got[wrong] = value
        found = compare("out", got, expected, model())
        # A required nan is required whatever the error of a finite value would be.
        assert bool(found.kind) == (wrong == 1 or (wrong == 2 and not math.isnan(value)))
        assert found.deviation.open == 1
