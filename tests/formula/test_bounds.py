"""The bound holds on every correct arithmetic, and is as sharp as the rules of error analysis allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.expected import Arithmetic, ExpectedOutput, FunctionAccuracy, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.contraction import contract
from aclnn_cts.formula.definition import Form, Operator, default_arithmetic
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.formula.reach import ELEMENTS, WHOLE, Ranges
from aclnn_cts.judgement.model import ORACLE_ROUNDOFF, gamma

U = 2.0**-24 + ORACLE_ROUNDOFF
NAN, INF = np.nan, np.inf


def say(
    formula: Callable[..., Outputs] | Operator,
    shape: tuple[int, ...] | None = None,
    *,
    lattices: dict[str, float] | None = None,
    **inputs: Any,
) -> ExpectedOutput:
    tensors = {name: np.asarray(value) for name, value in inputs.items()}
    arguments = {name: Tensor(array.shape, "FLOAT") for name, array in tensors.items()}
    arguments["out"] = Tensor(next(iter(tensors.values())).shape if shape is None else shape, "FLOAT")
    operator = formula if isinstance(formula, Operator) else Operator.of(formula)
    return FormulaOracle(operator)(OracleInput(tensors=tensors, arguments=arguments, lattices=lattices or {}))["out"]


def reals(*shape: int, key: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(key).standard_normal(shape).astype(np.float32).astype(np.float64)


def sum_of_products(f: F, x: Array, y: Array) -> Outputs:
    return {"out": (x * y).sum(1)}


def inner_product(f: F, x: Array, y: Array) -> Outputs:
    return {"out": f.einsum("ij,ij->i", x, y)}


@pytest.mark.parametrize("formula", [sum_of_products, inner_product])
def test_a_sum_of_n_products_meets_n_roundings(formula: Callable[..., Outputs]) -> None:
    x, y = reals(5, 7), reals(5, 7, key=1)
    output = say(formula, (5,), x=x, y=y)
    assert np.allclose(output.value, (x * y).sum(1), rtol=1e-14)
    assert np.asarray(output.error) == pytest.approx(gamma(7, U) * np.abs(x * y).sum(1), rel=1e-6)


def test_explicit_sums_are_one_sum_in_any_order() -> None:
    def written(f: F, x: Array) -> Outputs:
        return {"out": f.take(x, np.array([0])) + f.take(x, np.array([1])) + f.take(x, np.array([2]))}

    x = reals(3)
    assert say(written, (1,), x=x).error == pytest.approx(gamma(2, U) * np.abs(x).sum(), rel=1e-6)


def test_as_written_stops_reordering() -> None:
    """The rounding of the difference is relative to what is left of it, and not to its terms."""

    def centred(f: F, x: Array, y: Array) -> Outputs:
        return {"out": f.as_written(x - 1000.0) * y}

    def free(f: F, x: Array, y: Array) -> Outputs:
        return {"out": (x - 1000.0) * y}

    x, y = 1000.0 + np.float64(np.float32(0.25)) * np.ones(4), reals(4)
    sharp = np.asarray(say(free, x=x, y=y).error) / np.asarray(say(centred, x=x, y=y).error)
    assert (sharp > 0.99).all()
    widened = say(Operator.of(centred, any_order=False), x=x, y=y)
    assert np.asarray(widened.error) == pytest.approx(np.asarray(say(centred, x=x, y=y).error))


def test_a_difference_of_inputs_errs_by_one_rounding_of_itself() -> None:
    def distance(f: F, x: Array, y: Array) -> Outputs:
        apart = f.difference(x, y)
        return {"out": f.where(apart > 0.0, apart, -apart)}

    x, y = reals(4), np.array([1.0, 0.0, 0.0, 0.0])
    y[1:3] = x[1:3] * [1.0, 1.0 - 2.0**-20]
    output = say(distance, x=x, y=y)
    assert (output.value == np.abs(x - y)).all()
    assert output.open is None
    error = np.asarray(output.error)
    assert error[1] == 0.0
    assert error == pytest.approx(U * np.abs(x - y), rel=1e-6)

    def of_products(f: F, x: Array, y: Array) -> Outputs:
        return {"out": f.difference(x * y, y)}

    free = np.asarray(say(of_products, x=x, y=y).error)
    assert (free[[0, 2]] >= U * np.abs(y)[[0, 2]]).all()


def test_the_error_of_one_number_meets_what_it_is_multiplied_by() -> None:
    """Where a factor cancels, such as 1 - z of a gate that is almost open, whether it is multiplied out or not."""

    def carried(f: F, x: Array, y: Array) -> Outputs:
        return {"out": f.evaluated(x.sum(1)) * (1.0 - y)}

    def free(f: F, x: Array, y: Array) -> Outputs:
        return {"out": x.sum(1) * (1.0 - y)}

    x, y = reals(500, 40), (1.0 - np.abs(reals(500, key=1)) * 2.0**-12).astype(np.float32).astype(np.float64)
    output, wide = say(carried, (500,), x=x, y=y), say(free, (500,), x=x, y=y)
    g, z = np.add.accumulate(x.astype(np.float32), axis=1)[:, -1], y.astype(np.float32)
    for computed in (g * (np.float32(1.0) - z), g - g * z):
        assert np.all(np.abs(computed - output.value) <= output.error)
    assert np.all(np.asarray(output.error) <= wide.error)
    assert np.median(np.asarray(output.error) / np.asarray(wide.error)) < 0.1


def test_exact_data_are_exact_and_others_are_not() -> None:
    x, y = np.rint(4.0 * reals(3, 5)), np.rint(4.0 * reals(3, 5, key=1))
    steps = {"x": 1.0, "y": 1.0}
    assert say(sum_of_products, (3,), x=x, y=y, lattices=steps).exact is True
    assert say(sum_of_products, (3,), x=x, y=y).exact is False
    large = x.copy()
    large[0] = 2.0**24 + 2.0
    some = say(sum_of_products, (3,), x=large, y=y + 3.0, lattices=steps)
    assert np.asarray(some.exact).tolist() == [False, True, True]


def test_a_term_outside_is_no_term() -> None:
    def windows(f: F, x: Array) -> Outputs:
        return {"out": f.take(x, np.array([[0, 1, 2], [2, -1, -1]])).sum(1)}

    x = reals(3)
    error = np.asarray(say(windows, (2,), x=x).error)
    assert error[0] == pytest.approx(gamma(2, U) * np.abs(x).sum(), rel=1e-6)
    assert error[1] < 1e-30


@pytest.mark.parametrize("outside", [-1, -1_000])
def test_a_product_outside_is_no_term_of_a_contraction(outside: int) -> None:
    cells = np.array([[0, 1, 2], [2, outside, outside]])

    def gathered(f: F, x: Array, y: Array) -> Outputs:
        return {"out": f.einsum("ij,jk->ik", f.take(x, cells), y)}

    x, y = reals(3), reals(3, 4, key=1)
    output = say(gathered, (2, 4), x=x, y=y)
    taken = np.where(cells >= 0, x[np.maximum(cells, 0)], 0.0)
    assert output.value == pytest.approx(taken @ y, rel=1e-14)
    counts = np.array([[gamma(3, U)], [gamma(1, U)]])
    assert np.asarray(output.error) == pytest.approx(counts * (np.abs(taken) @ np.abs(y)), rel=1e-6)


@pytest.mark.parametrize("other", [0, -1])
def test_a_cell_beyond_the_last_is_refused(other: int) -> None:
    def beyond(f: F, x: Array) -> Outputs:
        return {"out": f.take(x, np.array([other, 3]))}

    with pytest.raises(IndexError):
        say(beyond, (2,), x=reals(3))


@pytest.mark.parametrize("scale", [1.0, 1e30], ids=["ordinary", "beyond FLOAT"])
def test_parts_and_joined_arrays_keep_the_bounds_of_their_elements(scale: float) -> None:
    def pieces(f: F, x: Array, y: Array) -> list[Array]:
        return [(x * y)[:2], x[2:, ::-1] + y[-1], f.stack([x[0], y[0, ::-1]])]

    def whole(f: F, x: Array, y: Array) -> Outputs:
        return {"out": f.concat(pieces(f, x, y), -2)}

    x, y = scale * reals(4, 3), reals(4, 3, key=1)
    found = say(whole, (6, 3), x=x, y=y)
    for number, rows in enumerate((slice(0, 2), slice(2, 4), slice(4, 6))):

        def piece(f: F, x: Array, y: Array, number: int = number) -> Outputs:
            return {"out": pieces(f, x, y)[number]}

        alone = say(Operator(forms=(Form("piece", piece, ("x", "y")),)), (2, 3), x=x, y=y)
        assert np.array_equal(found.value[rows], alone.value)
        error, least = (np.broadcast_to(np.asarray(each.error), each.value.shape) for each in (found, alone))
        assert np.all(error[rows] >= 0.999 * least)
        assert np.all(error[rows] <= 1.001 * least + 1e-37)


def test_a_doubtful_comparison_takes_in_both_branches() -> None:
    def choose(f: F, x: Array, y: Array) -> Outputs:
        return {"out": f.where((x + y) - x > y, 1.0, -1.0)}

    output = say(choose, x=np.ones(1), y=np.full(1, 0.3))
    assert np.asarray(output.error) >= 2.0
    sure = say(lambda f, x, y: {"out": f.where(x > y, 1.0, -1.0)}, x=np.ones(1), y=np.full(1, 0.3))
    assert np.all(np.asarray(sure.error) == 0.0)


def test_the_binade_of_what_is_in_doubt_is_one_of_two() -> None:
    values = np.array([1.0, -1.5, 1.9999999, 2.0, 2.0000002, 3.0, 0.0])
    sure = say(lambda f, x: {"out": f.binade(x)}, x=values)
    assert np.asarray(sure.value)[:6].tolist() == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    assert sure.open is not None
    assert sure.open.tolist() == [False] * 6 + [True]
    assert np.all(np.asarray(sure.error)[:6] == 0.0)

    above = say(lambda f, x: {"out": f.binade(x, of=1.5)}, x=np.array([1.4999999, -1.5, 3.0]))
    assert np.asarray(above.value).tolist() == [0.5, 1.0, 2.0]

    output = say(lambda f, x: {"out": f.binade(x * 1.1 / 1.1)}, x=values)
    error, value = np.asarray(output.error), np.asarray(output.value)
    assert (value - error)[:6].tolist() == [0.5, 1.0, 1.0, 1.0, 1.0, 2.0]
    assert (value + error)[:6].tolist() == [1.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    assert output.open is not None
    assert output.open.tolist() == [False] * 6 + [True]


def test_either_of_two_is_all_between_them() -> None:
    def choose(f: F, x: Array) -> Outputs:
        return {"out": f.either(x, f.where(x > 1.5, x * 2.0, x))}

    output = say(choose, x=np.array([1.0, 2.0]))
    error, value = np.asarray(output.error), np.asarray(output.value)
    assert (value - error).tolist() == pytest.approx([1.0, 2.0])
    assert (value + error).tolist() == pytest.approx([1.0, 4.0])
    assert error[0] == 0.0


def test_what_may_be_narrowed_lies_between_it_and_what_it_is_rounded_to() -> None:
    values = np.array([1.0, 1.0 + 2.0**-12, 1.0 + 2.0**-10 - 2.0**-12, 2.0**-14 + 2.0**-26, 2.0**-15 + 2.0**-26, 1e5])
    output = say(lambda f, x: {"out": f.narrowed(x, "FLOAT16")}, x=values)
    low, high = np.asarray(output.value) - output.error, np.asarray(output.value) + output.error
    assert low[:4].tolist() == pytest.approx([1.0, 1.0, values[2], 2.0**-14], rel=1e-14)
    assert high[:4].tolist() == pytest.approx([1.0, values[1], 1.0 + 2.0**-10, values[3]], rel=1e-14)
    assert low[4] <= 0.0 < values[4] <= high[4]  # it may be flushed
    assert output.open is not None
    assert output.open.tolist() == [False] * 5 + [True]

    small = say(lambda f, x: {"out": f.narrowed(x, "FLOAT16", normal=False)}, x=values[:5])
    assert (np.asarray(small.error) > 0.0).tolist() == [False] * 4 + [True]


def test_what_an_overflow_may_hide_is_open() -> None:
    def absorbed(f: F, x: Array) -> Outputs:
        return {"out": 1.0 / (x * x)}

    output = say(absorbed, x=np.array([1.0, 1e20]))
    assert output.open is not None
    assert output.open.tolist() == [False, True]


def test_an_overflow_that_shows_may_be_inf() -> None:
    output = say(lambda f, x: {"out": x * x * 1e-30}, x=np.array([1.0, 1e20]))
    assert output.partial is not None
    assert (output.partial > 3.5e38).tolist() == [False, True]


def test_a_function_may_overflow_by_its_own_error() -> None:
    """Eight units in the last place lead from 65280 beyond the largest number of FLOAT16."""
    half = BINARY_FORMATS["FLOAT16"]
    arithmetic = Arithmetic(accumulation=half, functions=(("softplus", FunctionAccuracy(ulps=8)),))
    values = np.array([1.0, 65280.0])
    call = OracleInput(
        tensors={"x": values},
        arguments={"x": Tensor((2,), "FLOAT16"), "out": Tensor((2,), "FLOAT16")},
        lattices={},
        arithmetics={"out": arithmetic},
    )
    output = FormulaOracle(Operator.of(lambda f, x: {"out": f.softplus(x) / 64.0}))(call)["out"]
    assert output.partial is not None
    assert (output.partial > half.largest).tolist() == [False, True]


def test_an_argument_of_exp_in_doubt_by_more_than_one_is_open() -> None:
    def power(f: F, x: Array) -> Outputs:
        return {"out": f.exp((x + 1e9) - 1e9)}

    output = say(power, x=np.array([1.0]))
    assert output.open is not None
    assert output.open.all()
    assert say(lambda f, x: {"out": f.exp(x)}, x=np.array([1.0])).open is None


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "erfc", "sqrt", "sigmoid", "softplus"])
def test_an_error_of_the_argument_carries_by_the_slope(name: str) -> None:
    """Every argument within its error gives a result within the bound."""
    x = np.abs(reals(50)) + 0.1
    shift = reals(50, key=1) * 2.0**-10

    def formula(f: F, x: Array, y: Array) -> Outputs:
        return {"out": f.function(name, x + y)}

    call = OracleInput(
        tensors={"x": x, "y": np.zeros(50)},
        arguments={name: Tensor((50,), "FLOAT") for name in ("x", "y", "out")},
        radii={"x": np.abs(shift)},
    )
    output = FormulaOracle(Operator.of(formula))(call)["out"]
    moved = say(formula, x=x + shift, y=np.zeros(50))
    assert (np.abs(moved.value - output.value) <= output.error).all()
    assert output.functions == (name,)


def test_one_form_alone_requires_no_inf() -> None:
    def product(f: F, x: Array, y: Array) -> Outputs:
        return {"out": x * y}

    def turned(f: F, x: Array, y: Array) -> Outputs:
        return {"out": y * x}

    x, y = np.array([INF, NAN, 1.0, INF]), np.array([2.0, 2.0, 2.0, 1e-40])
    alone = say(product, x=x, y=y)
    assert alone.open is not None
    assert alone.open.tolist() == [True, True, False, True]
    agreed = say(Operator.of(product, turned), x=x, y=y)
    assert agreed.open is not None
    assert agreed.open.tolist() == [False, False, False, True]
    assert agreed.value[0] == INF
    assert np.isnan(agreed.value[1])


@pytest.mark.parametrize(
    ("subscripts", "left", "right"),
    [("ij,jk->ik", (2, 3), (3, 4)), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("ubo,kio->ukbi", (2, 3, 4), (5, 6, 4))],
)
def test_contractions_are_those_of_numpy(subscripts: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = reals(*left), reals(*right, key=1)
    assert np.allclose(contract(subscripts, left, right)(x, y), np.einsum(subscripts, x, y))


@pytest.mark.parametrize("subscripts", ["ij->i", "ii,ij->j", "ij,jk->il", "ij,k->k"])
def test_other_subscripts_are_refused(subscripts: str) -> None:
    with pytest.raises(ValueError, match=subscripts.partition(",")[0]):
        contract(subscripts, (2, 2), (2, 2)[: 1 if ",k-" in subscripts else 2])


def test_a_result_of_another_shape_is_refused() -> None:
    with pytest.raises(UsageError, match=r"out has the shape \[2\], expected \[3, 2\]"):
        say(lambda f, x: {"out": x.sum(0)}, x=reals(3, 2))


@pytest.mark.parametrize("value", [2.0, INF, NAN])
def test_rank_zero_is_one_element(value: float) -> None:
    def product(f: F, x: Array, y: Array) -> Outputs:
        return {"out": x * y}

    def total(f: F, x: Array, y: Array) -> Outputs:
        return {"out": (x * y).sum(())}

    output = say(Operator.of(product, total), (), x=np.array(value), y=np.array(3.0))
    assert output.value.shape == ()
    assert output.value == 3.0 * value or np.isnan(value)
    assert output.open is None or not output.open.any()


@pytest.mark.parametrize("ranges", [WHOLE, ELEMENTS])
@pytest.mark.parametrize("factor", [0.5, 2.0, 64.0])
def test_a_flushed_input_is_multiplied_by_a_power_of_two(ranges: Ranges, factor: float) -> None:
    """However small the input is: what a flush takes from it counts as often as the input itself."""
    size = 2.0**-15
    flushed = ranges.leaf(size, hi=size, loads=True)
    assert ranges.weight(ranges.scaled(flushed, factor)) >= factor


def test_units_in_the_last_place_of_a_narrow_format_may_make_a_product_overflow() -> None:
    """A logistic function of 1 may come out above it: by 8 of 128 units."""
    form = BINARY_FORMATS["BF16"]
    narrow = msgspec.structs.replace(default_arithmetic(), accumulation=form, output=form)
    large = np.array([0.97 * form.largest, 0.5 * form.largest])
    tensors = {"x": np.array([500.0, 500.0]), "y": large}
    arguments = {name: Tensor((2,), "BF16") for name in ("x", "y", "out")}
    call = OracleInput(tensors=tensors, arguments=arguments, arithmetics={"out": narrow})
    output = FormulaOracle(Operator.of(lambda f, x, y: {"out": f.sigmoid(x) * y}))(call)["out"]
    assert output.partial is not None
    assert (output.partial > form.largest).tolist() == [True, False]


def test_no_elements_are_divided_by_no_elements() -> None:
    def halves(f: F, a: Array, b: Array) -> Outputs:
        return {"out": a / (b * (1.0 - b))}

    found = say(halves, a=np.zeros((2, 0)), b=np.zeros((2, 0)), lattices={"a": 1.0, "b": 0.25})
    assert found.value.shape == (2, 0)
