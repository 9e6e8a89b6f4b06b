"""Bounds hold on every correct arithmetic, and break on arithmetic that is coarser than promised."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.rounding import BINARY_FORMATS, binary_format, round_to, to_dtype, widen
from aclnn_cts.judgement.bound import bound, loosest_model, sorted_elements
from aclnn_cts.judgement.model import ComputeModel, load_precision
from tests.judgement.emulation import ORDERS, dot, flushed, forward, fused, known, truncated, truncating
from tests.support.compared import compare
from tests.support.counted import counted

ROWS = 2000
LENGTHS = (1, 2, 3, 7, 31, 130)
FORMATS = BINARY_FORMATS


def model(
    dtype: str, operand: str | None = None, *, operator: str = "aclnnRmsNormGrad", output: str = "dxOut"
) -> ComputeModel:
    return load_precision().model(operator=operator, output=output, dtype=dtype, operand=operand)


def matrix(dtype: str, operand: str | None = None, *, output: str = "gradWeight") -> ComputeModel:
    return model(dtype, operand, operator="aclnnConvTbcBackward", output=output)


def normal(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Float64, Float64]:
    return random.standard_normal(shape), random.standard_normal(shape)


def cancelling(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Float64, Float64]:
    left, right = normal(random, shape)
    half = shape[1] // 2
    left[:, half : 2 * half] = -left[:, :half] * (1 + random.uniform(-1e-6, 1e-6, (shape[0], half)))
    right[:, half : 2 * half] = right[:, :half]
    return left, right


def wide(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Float64, Float64]:
    left, right = normal(random, shape)
    return np.ldexp(left, random.integers(-12, 13, shape)), np.ldexp(right, random.integers(-12, 13, shape))


def tiny(random: np.random.Generator, shape: tuple[int, int]) -> tuple[Float64, Float64]:
    left, right = normal(random, shape)
    return np.ldexp(left, random.integers(-72, -60, shape)), np.ldexp(right, random.integers(-76, -60, shape))


DATA: dict[str, Callable[[np.random.Generator, tuple[int, int]], tuple[Float64, Float64]]] = {
    "normal": normal,
    "cancelling": cancelling,
    "wide": wide,
    "tiny": tiny,
}


def stored(dtype: str, arrays: tuple[Float64, Float64]) -> tuple[Float64, Float64]:
    return widen(to_dtype(arrays[0], dtype)), widen(to_dtype(arrays[1], dtype))


@pytest.mark.parametrize("data", sorted(DATA))
@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16"])
def test_no_order_of_summation_exceeds_the_bound(dtype: str, data: str) -> None:
    for length in LENGTHS:
        left, right = stored(dtype, DATA[data](np.random.default_rng(length), (ROWS, length)))
        expected = dot(left, right)
        products = left.astype(np.float32) * right.astype(np.float32)
        results = {name: order(products) for name, order in ORDERS.items()} | {"fused": fused(left, right)}
        for name, result in results.items():
            comparison = compare("out", to_dtype(widen(result), dtype), expected, model(dtype))
            assert comparison.kind == "", (name, length, comparison.deviation)
            assert comparison.deviation.error_ratio <= 1.0


@pytest.mark.parametrize("data", sorted(DATA))
@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16"])
def test_truncation_stays_within_the_model_that_allows_it(dtype: str, data: str) -> None:
    for length in LENGTHS:
        left, right = stored(dtype, DATA[data](np.random.default_rng(length), (ROWS, length)))
        got = to_dtype(widen(truncating(left, right)), dtype)
        assert compare("out", got, dot(left, right), matrix(dtype)).kind == "", length


def test_flushing_stays_within_the_model_that_allows_it() -> None:
    for length in LENGTHS:
        left, right = stored("FLOAT", tiny(np.random.default_rng(length), (ROWS, length)))
        products = flushed(left.astype(np.float32) * right.astype(np.float32))
        total = products[:, 0].copy()
        for column in range(1, length):
            total = flushed(total + products[:, column])
        expected = dot(left, right)
        assert compare("out", total, expected, model("FLOAT")).kind == ""
        kept = dataclasses.replace(model("FLOAT"), flushes_compute=False, flushes_result=False)
        expected = dot(left, right, arithmetic=kept.arithmetic)
        assert compare("out", total, expected, kept).kind != "", "data that underflow must show the difference"


def test_a_truncated_overflow_is_the_largest_finite_number() -> None:
    """A sum that was cut there goes on from it; inf is as right, and nothing else changes."""
    largest = FORMATS["FLOAT"].largest
    left, right = np.array([[3e38, 3e38, -3e38], [1.0, 2.0, 3.0]]), np.ones((2, 3))
    cut = np.array([largest - 3e38, 6.0]).astype(np.float32)
    overflowed = np.array([np.inf, 6.0], np.float32)
    for got in (cut, overflowed):
        assert compare("out", got, dot(left, right), matrix("FLOAT")).kind == ""
    rounding = dataclasses.replace(matrix("FLOAT"), truncates=False)
    assert compare("out", cut, dot(left, right), rounding).kind == Fault.VALUE
    wrong = compare("out", np.array([np.inf, 6.5], np.float32), dot(left, right), matrix("FLOAT"))
    assert (wrong.deviation.beyond, wrong.deviation.index) == (1, (1,))


@pytest.mark.parametrize("operand", ["HFLOAT32", "FLOAT16"])
@pytest.mark.parametrize("data", ["normal", "cancelling", "wide"])
def test_rounded_operands_stay_within_the_bound_of_their_mode(operand: str, data: str) -> None:
    promised = load_precision().formats[operand]
    for length in LENGTHS:
        arrays = stored("FLOAT", DATA[data](np.random.default_rng(length), (ROWS, length)))
        facts = known(*arrays, matrix("FLOAT", operand))
        expected = dot(*arrays)
        for form in (promised, FORMATS[operand], FORMATS["FLOAT"]):  # coarsest, finer, and not rounded at all
            left, right = (round_to(array, form) for array in arrays)
            for got in (truncating(left, right), forward((left * right).astype(np.float32))):
                comparison = compare("out", got, expected, matrix("FLOAT", operand), operands=facts)
                assert comparison.kind == "", (form, length, comparison.deviation)


@pytest.mark.parametrize("operand", ["HFLOAT32", "FLOAT16"])
def test_each_operand_may_be_rounded_by_a_rule_of_its_own(operand: str) -> None:
    """As stored, to nearest in every width that sources give, with any rule for ties, and flushed."""
    random = np.random.default_rng(11)
    promised, widest = load_precision().formats[operand], FORMATS[operand]
    for length in LENGTHS:
        arrays = stored("FLOAT", wide(random, (ROWS, length)))
        ties = [round_to(array, widest) * (1 + 2.0**-12) for array in arrays]
        left, right = (
            np.where(random.random(array.shape) < 0.5, array, tie) for array, tie in zip(arrays, ties, strict=True)
        )
        left, right = stored("FLOAT", (left, right))
        used = []
        for array in (left, right):
            small = np.where(np.abs(array) < promised.smallest_normal, 0.0, array)
            choices = [array, small] + [
                round_to(array * tie, form) for form in (promised, widest) for tie in (1 - 2.0**-40, 1.0, 1 + 2.0**-40)
            ]
            used.append(np.choose(random.integers(len(choices), size=array.shape), choices))
        assert np.isfinite(used).all()
        facts = known(left, right, matrix("FLOAT", operand))
        for got in (truncating(*used), forward((used[0] * used[1]).astype(np.float32))):
            comparison = compare("out", got, dot(left, right), matrix("FLOAT", operand), operands=facts)
            assert comparison.kind == "", (length, comparison.deviation)


@pytest.mark.parametrize("operand", ["HFLOAT32", "FLOAT16"])
@pytest.mark.parametrize("length", [1, 4, 16])
def test_operands_that_are_rounded_twice_are_found(operand: str, length: int) -> None:
    promised = load_precision().formats[operand]
    wider = binary_format(
        "one bit more",
        significand=promised.significand + 1,
        min_exponent=promised.min_exponent,
        max_exponent=promised.max_exponent,
    )
    left, right = stored("FLOAT", normal(np.random.default_rng(3), (ROWS, length)))
    twice = [round_to(round_to(array, wider), promised) for array in (left, right)]
    facts = known(left, right, matrix("FLOAT", operand))
    got = forward((twice[0] * twice[1]).astype(np.float32))
    comparison = compare("out", got, dot(left, right), matrix("FLOAT", operand), operands=facts)
    assert comparison.deviation.beyond > ROWS // 100


def test_rounding_goes_one_way_and_the_bound_with_it() -> None:
    """A number and a quarter of a unit: rounding may take off a quarter of one, and adds nothing."""
    unit = 2.0**-10
    left, right = np.array([[1 + 1.25 * unit]]), np.array([[1.0]])
    facts = known(left, right, matrix("FLOAT", "FLOAT16"))
    for got, conforms in ((1 + unit, True), (1 + 1.125 * unit, True), (1 + 1.25 * unit, True), (1 + 2 * unit, False)):
        comparison = compare(
            "out", np.array([got], np.float32), dot(left, right), matrix("FLOAT", "FLOAT16"), operands=facts
        )
        assert (comparison.kind == "") == conforms
        deviation = comparison.deviation
        # The bound is that of the side on which the result lies.
        assert deviation.bound == pytest.approx(0.25 * unit if got < left.item() else 0.0, abs=1e-6)
        assert deviation.error_ratio == pytest.approx(1.0 if got == 1 + unit else deviation.error_ratio, rel=1e-3)
        assert (deviation.error_ratio <= 1.0) == conforms


def test_small_operands_lose_digits_in_float16() -> None:
    left, right = stored("FLOAT", normal(np.random.default_rng(5), (ROWS, 9)))
    left *= 2.0**-20
    facts = known(left, right, matrix("FLOAT", "FLOAT16"))
    got = forward((round_to(left, FORMATS["FLOAT16"]) * right).astype(np.float32))
    expected = dot(left, right)
    assert compare("out", got, expected, matrix("FLOAT", "FLOAT16"), operands=facts).kind == ""
    assert compare("out", got, expected, matrix("FLOAT", "FLOAT16")).kind != "", "no unit roundoff holds down there"


def test_operands_beyond_the_range_leave_the_result_open() -> None:
    left, right = np.array([[1e5, 1.0]]), np.array([[1.0, 1.0]])
    facts = known(left, right, matrix("FLOAT", "FLOAT16"))
    assert (facts.exact, facts.overflows) == (False, True)
    expected = dot(left, right)
    for got, kind in ((np.inf, ""), (np.nan, ""), (100001.0, ""), (2.0, Fault.VALUE)):
        comparison = compare("out", np.array([got], np.float32), expected, matrix("FLOAT", "FLOAT16"), operands=facts)
        assert comparison.kind == kind, got


def test_a_result_may_pass_through_the_operand_format() -> None:
    left, right = np.array([[2049.0]]), np.array([[1.0]])
    expected = dot(left, right, lattice=1.0)
    got = np.array([2048.0], np.float32)
    # Operands in FLOAT alone would make it 2049.
    for output, conforms in (("gradInput", True), ("gradWeight", False)):
        facts = msgspec.structs.replace(
            known(left, right, matrix("FLOAT", "FLOAT16"), lattice=1.0), exact=True, span=None
        )
        kind = compare("out", got, expected, matrix("FLOAT", "FLOAT16", output=output), operands=facts).kind
        assert (kind == "") == conforms


def half_accumulation(left: Float64, right: Float64, dtype: str) -> Float64:
    form = FORMATS[dtype]
    total = round_to(left[:, 0] * right[:, 0], form)
    for column in range(1, left.shape[1]):
        total = round_to(total + round_to(left[:, column] * right[:, column], form), form)
    return total


@pytest.mark.parametrize("dtype", ["FLOAT16", "BF16"])
def test_accumulation_in_half_precision_exceeds_the_model(dtype: str) -> None:
    left, right = stored(dtype, normal(np.random.default_rng(7), (ROWS, 31)))
    comparison = compare("out", to_dtype(half_accumulation(left, right, dtype), dtype), dot(left, right), model(dtype))
    assert comparison.kind == Fault.MODEL, "coarser arithmetic explains it"
    assert comparison.deviation.beyond > ROWS // 2


@pytest.mark.parametrize("dtype", ["FLOAT16", "BF16"])
@pytest.mark.parametrize(("length", "alike"), [(31, False), (900, False), (900, True), (4000, True)])
def test_only_errors_of_its_size_are_put_down_to_coarser_arithmetic(dtype: str, length: int, *, alike: bool) -> None:
    """The worst case of long sums in half precision holds any value, also that of a sum without signs.

    Terms of one sign that are rounded alike, or lost beside their sum, fit; a result of the other sign does not.
    """
    same = np.full((20, length), 1.3)
    left, right = stored(dtype, (same, same) if alike else normal(np.random.default_rng(3), (20, length)))
    exact, magnitude = (left * right).sum(axis=1), np.abs(left * right).sum(axis=1)
    expected = counted(exact, length, magnitude, partial=magnitude)

    def kind(got: Float64) -> str:
        return compare("out", to_dtype(got, dtype), expected, model(dtype)).kind

    assert kind(half_accumulation(left, right, dtype)) == Fault.MODEL
    assert kind(-exact if alike else magnitude) == Fault.VALUE


@pytest.mark.parametrize("dtype", ["FLOAT16", "BF16"])
def test_a_truncated_output_exceeds_the_model(dtype: str) -> None:
    left, right = stored(dtype, normal(np.random.default_rng(7), (ROWS, 31)))
    exact = (left * right).sum(axis=1)
    rounded = round_to(exact, FORMATS[dtype])
    towards_zero = np.where(
        np.abs(rounded) > np.abs(exact),
        widen(np.nextafter(to_dtype(rounded, dtype), to_dtype(exact * 0, dtype))),
        rounded,
    )
    comparison = compare("out", to_dtype(towards_zero, dtype), dot(left, right), model(dtype))
    assert comparison.kind == Fault.MODEL
    assert comparison.deviation.beyond > ROWS // 3, "half of all roundings go up"


@pytest.mark.parametrize(
    ("promised", "used"), [(None, "HFLOAT32"), ("HFLOAT32", "BF16"), ("FLOAT16", "BF16"), (None, "FLOAT16")]
)
def test_operands_coarser_than_promised_are_found(promised: str | None, used: str) -> None:
    left, right = stored("FLOAT", normal(np.random.default_rng(8), (ROWS, 5)))
    facts = known(left, right, matrix("FLOAT", promised))
    got = forward((round_to(left, FORMATS[used]) * round_to(right, FORMATS[used])).astype(np.float32))
    comparison = compare("out", got, dot(left, right), matrix("FLOAT", promised), operands=facts)
    assert comparison.kind != ""
    assert comparison.deviation.beyond > ROWS // 10


def test_a_missing_term_is_wrong_in_any_arithmetic() -> None:
    left, right = stored("FLOAT16", normal(np.random.default_rng(9), (ROWS, 31)))
    short = (left[:, :-1] * right[:, :-1]).sum(axis=1)
    comparison = compare("out", to_dtype(short, "FLOAT16"), dot(left, right), model("FLOAT16"))
    assert comparison.kind == Fault.VALUE
    assert comparison.deviation.beyond > ROWS * 0.9


@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16"])
def test_integer_data_must_be_exact_in_every_order(dtype: str) -> None:
    random = np.random.default_rng(11)
    left = random.integers(-8, 9, (ROWS, 130)).astype(np.float64)
    right = random.integers(-8, 9, (ROWS, 130)).astype(np.float64)
    expected = dot(left, right, lattice=1.0)
    products = (left * right).astype(np.float32)
    for name, order in ORDERS.items():
        comparison = compare("out", to_dtype(widen(order(products)), dtype), expected, model(dtype))
        assert (comparison.kind, comparison.deviation.error_ratio) == ("", 0.0), name
    limits = bound(expected, model(dtype))
    assert limits.ends.lower is limits.ends.upper
    near = to_dtype(expected.value, dtype)
    near[3] = np.nextafter(near[3], to_dtype(np.array(1e4), dtype))
    comparison = compare("out", near, expected, model(dtype))
    assert comparison.deviation.index == (3,)
    assert comparison.deviation.beyond == 1
    assert comparison.deviation.error_ratio == np.inf


def test_lattice_that_does_not_fit_is_no_exactness() -> None:
    left, right = np.array([[2.0**23, -(2.0**23)], [2.0**24, -(2.0**24) + 1]]), np.ones((2, 2))
    expected = dot(left, right, lattice=1.0)
    assert np.asarray(expected.error)[0] == 0.0
    assert np.asarray(expected.error)[1] > 1.0
    tiny = dot(left * 2.0**-170, right, lattice=2.0**-170)
    assert np.all(np.asarray(tiny.error) > 0.0), "below the smallest subnormal number"


def test_one_operation_counts_as_one() -> None:
    value = np.array([1.0, 3.0])
    expected = counted(value, 1)
    kept = dataclasses.replace(model("FLOAT"), flushes_result=False)
    error = np.asarray(bound(expected, kept).error)
    assert np.allclose(error, 2.0**-24 * value, rtol=1e-6)
    assert np.all(error > 2.0**-24 * value)


def test_counts_may_differ_from_element_to_element() -> None:
    counts = np.array([[0], [1], [3]])
    magnitude = np.ones((3, 2))
    expected = counted(magnitude, counts)
    limits = bound(expected, model("FLOAT"))
    assert np.array_equal(limits.ends.upper[0], [1.0, 1.0]), "nothing is rounded where nothing is added"
    assert np.allclose(np.asarray(limits.error)[2], 3 * 2.0**-24, rtol=1e-6)


def test_double_leaves_room_for_the_oracle_itself() -> None:
    left, right = normal(np.random.default_rng(2), (ROWS, 64))
    for order in ORDERS.values():
        double = model("DOUBLE")
        expected = dot(left, right, arithmetic=double.arithmetic)
        assert compare("out", order(left * right), expected, double).kind == ""


def test_the_loosest_model_is_coarser_in_every_respect() -> None:
    coarse = loosest_model(model("BF16"))
    assert (coarse.accumulation.name, coarse.truncates, coarse.output_truncates) == ("BF16", True, True)
    expected = ExpectedOutput(value=np.array([1.0, -1.0, 1.003]))
    limits = bound(expected, coarse)
    assert limits.ends.lower.tolist() == [1.0, -1.0, 1.0]
    assert limits.ends.upper.tolist() == [1.0, -1.0, 1.0078125]


def test_bounds_of_zero_elements() -> None:
    empty = np.zeros((0, 3))
    expected = counted(empty, 2, partial=empty)
    assert bound(expected, model("FLOAT16")).ends.lower.shape == (0, 3)


def test_truncation_helper_rounds_towards_zero() -> None:
    assert truncated(np.array([1 + 2.0**-24 * 1.5, -1 - 2.0**-24 * 1.5])).tolist() == [1.0, -1.0]


def truncated_integers(value: Float64, error: float) -> tuple[list[float], list[float], list[bool]]:
    """The least and the greatest INT8 of results that may be truncated, and which are open."""
    whole = dataclasses.replace(model("INT8"), output_truncates=True)
    expected = ExpectedOutput(value=value, error=np.full(value.shape, error))
    ends = bound(expected, whole).ends
    got = np.full(value.shape, 127, np.int8)
    return ends.lower.tolist(), ends.upper.tolist(), sorted_elements(got, expected, whole).open.tolist()


def test_a_fraction_becomes_either_integer_beside_it_and_one_beyond_the_range_is_open() -> None:
    lower, upper, is_open = truncated_integers(np.array([2.5, -2.5, 130.2, -140.7]), 1.0e-6)
    assert (lower[:2], upper[:2]) == ([2.0, -3.0], [3.0, -2.0])
    assert is_open == [False, False, True, True]


def test_what_underflows_is_no_fraction_of_an_integer() -> None:
    lower, upper, _ = truncated_integers(np.array([0.0, 3.0]), 1.0e-45)
    assert (lower, upper) == ([0.0, 3.0], [0.0, 3.0])
