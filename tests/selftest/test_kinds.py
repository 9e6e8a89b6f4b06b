"""Each kind of mutant changes values as its name says; the catalogue's are found on the quick plan."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from aclnn_cts.core.expected import OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS, to_dtype, widen
from aclnn_cts.formula.mutants import KINDS as OPERATION_KINDS
from aclnn_cts.formula.mutants import MORE_KINDS, SCATTER_KINDS, TERM_KINDS, Mutant, Site
from aclnn_cts.selftest.fault_catalogue import read_catalogue
from aclnn_cts.selftest.kinds import (
    INPUT_KINDS,
    KINDS,
    OUTPUT_KINDS,
    STORE_KINDS,
    MutationInput,
    Values,
    describe_mutant,
    known_kinds,
    names_constraint,
    spoil_elements,
)
from aclnn_cts.selftest.power import Task, attempt
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.trials.plan import profile
from tests.support.emulated import GRADIENTS

FLOAT16, NAN, INF = BINARY_FORMATS["FLOAT16"], math.nan, math.inf


@pytest.fixture(scope="module")
def specs() -> Specs:
    return load_specs()


def asked(amount: float = 0.0, place: int = 0, **tensors: Values) -> MutationInput:
    return MutationInput(amount, OracleInput(tensors=tensors, arguments={}), place)


@pytest.mark.parametrize(
    ("kind", "amount", "values", "expected"),
    [
        ("in BF16", 0, [1.001], [1.0]),
        ("in FLOAT16", 0, [1e6], [INF]),
        ("nan as 0", 0, [NAN, INF], [0.0, INF]),
        ("at most", 100, [99.0, 101.0], [99.0, 100.0]),
        ("modulo", 128, [127, 128, 255], [127, 0, 127]),
        ("as a signed byte", 0, [127, 128, 255], [127, -128, -1]),
        ("first doubled", 0, [[1.0], [2.0]], [[2.0], [2.0]]),
        ("first as 0", 0, [[1.0], [2.0]], [[0.0], [2.0]]),
        ("last as 0", -1, [[1.0, 2.0]], [[1.0, 0.0]]),
        ("all but the first as 0", 0, [1.0, 2.0, 3.0], [1.0, 0.0, 0.0]),
        ("first repeated", 0, [[1.0], [2.0]], [[1.0], [1.0]]),
        ("reversed", 0, [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]),
        ("read across", 1, [[1, 2, 3], [4, 5, 6]], [[1, 3, 5], [2, 4, 6]]),
        ("one tile early", 2, [1, 2, 3, 4, 5], [1, 2, 1, 2, 3]),
    ],
)
def test_an_input_is_read_wrongly(kind: str, amount: float, values: Any, expected: Any) -> None:
    array = np.array(values)
    before = array.copy()
    assert np.array_equal(INPUT_KINDS[kind](array, asked(amount)), expected, equal_nan=True)
    assert np.array_equal(array, before, equal_nan=True)


def test_rstd_is_computed_from_x() -> None:
    x = np.array([[3.0, 4.0], [1.0, 1.0]])
    got = INPUT_KINDS["computed from x"](np.zeros((2, 1)), asked(x=x))
    assert np.allclose(got, [[12.5**-0.5], [1.0]])


@pytest.mark.parametrize(
    ("kind", "amount", "place", "values", "expected"),
    [
        ("negated", 0, 0, [1.0, -2.0], [-1.0, 2.0]),
        ("scaled", 0.5, 0, [1.0, -2.0], [0.5, -1.0]),
        ("rest of rows as 0", 2, 0, [[1], [2], [3]], [[1], [2], [0]]),
        ("rest of rows as 0", 4, 0, [[1], [2], [3]], [[1], [2], [3]]),
        ("rest of columns as 0", 2, 0, [[1, 2, 3]], [[1, 2, 0]]),
        ("element zeroed", 0, 1, [[1.0], [2.0]], [[1.0], [0.0]]),
        ("element doubled", 0, 0, [[1.0], [2.0]], [[2.0], [2.0]]),
        ("element negated", 0, 1, [1.0, 2.0], [1.0, -2.0]),
        ("rows swapped", 0, 1, [[1], [2], [3]], [[1], [3], [2]]),
        ("columns swapped", 0, 0, [[1, 2, 3]], [[2, 1, 3]]),
    ],
)
def test_a_result_is_wrong(kind: str, amount: float, place: int, values: Any, expected: Any) -> None:
    assert np.array_equal(OUTPUT_KINDS[kind](np.array(values), asked(amount, place)), expected)


def test_neighbours_are_counted_once() -> None:
    """Row 0 has two runs of three, row 1 one run of two, row 2 none."""
    indices = np.array([0, 0, 1, 1, 0])
    got = OUTPUT_KINDS["neighbours counted once"](np.ones((3, 1)), asked(indices=indices))
    assert got.tolist() == [[1.5], [2.0], [1.0]]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("truncated", [1.9999, -1.9999, INF], [1.9990234375, -1.9990234375, INF]),
        ("subnormals flushed", [2.0**-15, 2.0**-14], [0.0, 2.0**-14]),
        # A quarter of a step above a tie of the finer format goes up twice.
        ("rounded twice", [1.0 + 2.0**-12 + 2.0**-13], [1.0 + 2.0**-11]),
        ("inf clamped", [-1e6, INF, 1.0], [-65504.0, 65504.0, 1.0]),
    ],
)
def test_a_result_is_stored_wrongly(kind: str, values: Any, expected: Any) -> None:
    assert STORE_KINDS[kind](np.array(values), FLOAT16).tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        ("FLOAT16", [0.0, -1.0, 65504.0, INF, -INF, NAN], [-65504.0, 65504.0, -65504.0, -65504.0, 65504.0, 65504.0]),
        ("FLOAT8_E4M3FN", [0.0, -448.0, NAN], [-448.0, 448.0, 448.0]),
        ("FLOAT8_E8M0", [1.0, 2.0**127], [2.0**127, 2.0**-127]),
        ("INT8", [-128, 0, 127], [127, -128, -128]),
        ("UINT8", [0, 255], [255, 0]),
    ],
)
def test_a_spoiled_result_is_far_from_right_in_every_element(dtype: str, values: Any, expected: Any) -> None:
    made = to_dtype(spoil_elements(np.array(values, np.float64), BINARY_FORMATS[dtype]), dtype)
    assert widen(made).tolist() == expected


@pytest.mark.parametrize(
    ("kind", "amount", "expected"),
    [
        ("last term dropped", 0, 6.0),
        ("last term twice", 0, 14.0),
        ("first term twice", 0, 11.0),
        ("first terms alone", 2, 3.0),
        ("rest of terms dropped", 2, 10.0),
        ("rest of terms dropped", 3, 6.0),
        ("rest of terms dropped", 8, 10.0),
        ("partial sums in BF16", 0, 10.0),
    ],
)
def test_a_sum_has_wrong_terms(kind: str, amount: float, expected: float) -> None:
    assert TERM_KINDS[kind](np.array([1.0, 2.0, 3.0, 4.0]), amount).sum() == expected


def test_partial_sums_are_rounded() -> None:
    terms = np.array([1.0, 2.0**-9, 1.0, 2.0**-9])
    assert TERM_KINDS["partial sums in BF16"](terms, 0).tolist() == [2.0]
    assert TERM_KINDS["partial sums in FLOAT16"](terms, 0).tolist() == [2.0 + 2.0**-8]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("next cell", [0.0, 3.0, 0.0, 4.0]),
        ("last term dropped", [3.0, 0.0, 0.0, 0.0]),
        ("last term twice", [3.0, 0.0, 8.0, 0.0]),
        ("overwrites", [2.0, 0.0, 4.0, 0.0]),
        ("first term alone", [1.0, 0.0, 4.0, 0.0]),
        ("averaged", [1.5, 0.0, 4.0, 0.0]),
        ("empty cells nan", [3.0, NAN, 4.0, NAN]),
        ("empty cells as the next", [3.0, 4.0, 4.0, 4.0]),
    ],
)
def test_a_scattered_sum_has_wrong_cells_or_terms(kind: str, expected: list[float]) -> None:
    cells, terms = SCATTER_KINDS[kind](np.array([0, 0, 2]), np.array([1.0, 2.0, 4.0]), 4)
    assert np.array_equal(np.bincount(cells, weights=terms, minlength=4), expected, equal_nan=True)


def test_the_kinds_of_a_mutant_depend_on_its_site() -> None:
    for site, kinds in KINDS.items():
        assert set(known_kinds(Mutant(kind="", site=site))) == set(kinds)
    for name, kinds in OPERATION_KINDS.items():
        expected = {*kinds, *MORE_KINDS.get(name, ()), "scaled", "result in FLOAT16"}
        assert set(known_kinds(Mutant(kind="", of=name))) == expected


@pytest.mark.parametrize(
    ("of", "identifier", "expected"),
    [
        ("", "dim.range", True),
        ("a.null b.null", "b.null", True),
        ("a.rank*", "a.rank.min", True),
        ("a", "a.null", False),
    ],
)
def test_a_check_is_named_by_patterns(of: str, identifier: str, *, expected: bool) -> None:
    assert names_constraint(Mutant(kind="unchecked", site=Site.STATUS, of=of), identifier) is expected


def test_a_mutant_is_described() -> None:
    zeroed = Mutant(kind="element zeroed", site=Site.OUTPUT, of="out", place=1 << 15, trigger="dim(out, 0) > 3")
    assert describe_mutant(zeroed) == "out, element zeroed at 50%, where dim(out, 0) > 3"
    assert describe_mutant(Mutant(kind="last term twice", of="sum|scatter")) == "sum or scatter, last term twice"


@pytest.mark.slow
@pytest.mark.parametrize("operator", GRADIENTS)
def test_every_mutant_of_the_catalogue_is_found(operator: str, specs: Specs) -> None:
    missed = [
        entry.id
        for entry in read_catalogue(specs).faults.values()
        if entry.operator == operator and entry.mutants and not entry.equivalent
        if not attempt(
            Task(id=entry.id, operator=operator, seed=0, profile=profile("quick"), subjects=entry.subjects), specs
        )[0].found
    ]
    assert missed == []
