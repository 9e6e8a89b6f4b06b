"""Elements by magnitude and error ratio: the same elements as the histogram has, each in its place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import ERROR_RATIO_EDGES, MagnitudeCounts
from aclnn_cts.judgement.bound import sorted_elements
from aclnn_cts.judgement.figures import BINADES, LOWEST, by_magnitude
from aclnn_cts.judgement.model import load_precision
from tests.support.compared import compare
from tests.support.counted import counted

MODEL = load_precision().model(
    operator="aclnnRmsNormGrad", operand=None, output="dxOut", dtype="FLOAT", target=Target(product="atlas-a2")
)
BINS = len(ERROR_RATIO_EDGES) + 1


def sums(value: list[float], **more: object) -> ExpectedOutput:
    sizes = np.where(np.isfinite(np.array(value)), np.abs(np.array(value)), 0.0)
    return counted(np.array(value), 3, sizes, partial=sizes, **more)


def by_class(value: list[float], got: list[float], **more: object) -> tuple[MagnitudeCounts, ...]:
    expected = sums(value, **more)
    return by_magnitude(expected, sorted_elements(to_dtype(np.array(got), "FLOAT"), expected, MODEL))


@pytest.mark.parametrize(
    ("value", "exponent"),
    [
        (0.0, None),
        (2.0**-149, LOWEST + BINADES),
        (2.0**-153, LOWEST),
        (-1.0, 0),
        (255.0, 0),
        (256.0, 8),
        (0.999, -8),
        (2.0**127, 120),
        (5e-324, LOWEST),
    ],
)
def test_an_element_stands_in_the_class_of_its_magnitude(value: float, exponent: int | None) -> None:
    [entry] = by_class([value], [value])
    assert entry.exponent == exponent
    assert sum(entry.counts) == 1


def test_exact_ones_lie_in_the_first_bin_and_faults_beyond_the_limit() -> None:
    [entry] = by_class([1.0, 1.0], [1.0, 2.0])
    assert entry.counts[0] == 1
    assert entry.counts[-1] == 1
    assert sum(entry.counts) == 2


def test_what_is_open_or_has_no_magnitude_has_no_place() -> None:
    value = [math.inf, math.nan, 1.0, 3.0]
    [entry] = by_class(value, value, open=np.array([False, False, True, False]))
    assert sum(entry.counts) == 1
    assert by_class([math.inf], [1.0]) == ()
    assert by_class([], []) == ()


values = st.floats(-(2.0**100), 2.0**100, allow_nan=False, width=32)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(values, st.floats(-4.0, 4.0)), min_size=1, max_size=40))
def test_its_sums_over_magnitudes_are_the_histogram(drawn: list[tuple[float, float]]) -> None:
    value = [item for item, _ in drawn]
    got = to_dtype(np.array([item * (1.0 + error * 2.0**-22) for item, error in drawn]), "FLOAT")
    expected = sums(value)
    entries = by_magnitude(expected, sorted_elements(got, expected, MODEL))
    histogram = compare("out", got, expected, MODEL).deviation.histogram
    assert tuple(map(sum, zip(*(entry.counts for entry in entries), strict=True))) == histogram
    exponents = [LOWEST - 1 if entry.exponent is None else entry.exponent for entry in entries]
    assert exponents == sorted(set(exponents))
