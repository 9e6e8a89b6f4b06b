"""Complex numbers in formulas: values, bounds of each component, and what nothing is required of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.dtypes import COMPONENTS, component, components, numpy_dtype
from aclnn_cts.core.errors import OracleError, UsageError
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.core.faults import Fault
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.derivative import differences
from aclnn_cts.formula.emulator import ORDERS, Variant
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.formula.graph import exact_element
from aclnn_cts.judgement.comparison import OutputComparison
from aclnn_cts.judgement.model import load_precision
from aclnn_cts.oracles import registry
from aclnn_cts.selftest.subject import Subject
from tests.formula.calls import assert_repeats
from tests.support.compared import compare


def _formula() -> Operator:
    found = registry.load_formula("sigmoid_backward")
    assert found is not None
    return found


SIGMOID = _formula()


def question(dtype: str, *, out: str = "", **inputs: NDArray[Any]) -> OracleInput:
    """A call of aclnnSigmoidBackward, or of a formula with the same output, on complex arrays."""
    arrays = {name: np.asarray(array, numpy_dtype(dtype)) for name, array in inputs.items()}
    arguments = {name: Tensor(array.shape, dtype) for name, array in arrays.items()}
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    model = load_precision().model(operator="", output="", dtype=component(dtype))
    return OracleInput(
        tensors={name: components(array).astype(np.float64) for name, array in arrays.items()},
        arguments=arguments | {"gradInput": Tensor(shape, out or dtype)},
        arithmetics={"gradInput": model.arithmetic},
    )


def said(call: OracleInput, operator: Operator = SIGMOID) -> ExpectedOutput:
    return FormulaOracle(operator)(call)["gradInput"]


def held(dtype: str, got: NDArray[Any], expected: ExpectedOutput) -> OutputComparison:
    model = load_precision().model(operator="", output="", dtype=component(dtype))
    return compare("gradInput", components(got), expected, model)


def complexes(dtype: str, *shape: int, key: int, spread: int = 3) -> NDArray[Any]:
    """Components of several magnitudes, so that terms swamp one another and cancel."""
    random = np.random.default_rng(key)
    parts = random.standard_normal((*shape, 2)) * 2.0 ** random.integers(-spread, spread + 1, (*shape, 2))
    return parts.astype(numpy_dtype(component(dtype))).view(numpy_dtype(dtype))[..., 0]


@pytest.mark.parametrize("dtype", COMPONENTS)
def test_the_gradient_is_g_times_the_conjugate_slope(dtype: str) -> None:
    g, y = complexes(dtype, 4, 1, 3, key=1), complexes(dtype, 5, 1, key=2)
    output = said(question(dtype, gradOutput=g, output=y))
    wide = y.astype(np.complex128)
    right = components(g.astype(np.complex128) * np.conj(wide * (1.0 - wide)))
    assert output.value.shape == right.shape == (4, 5, 3, 2)
    assert np.allclose(output.value, right, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", COMPONENTS)
def test_the_second_opinion_is_the_exact_component(dtype: str) -> None:
    g, y = complexes(dtype, 3, key=3), complexes(dtype, 3, key=4)
    call = question(dtype, gradOutput=g, output=y)
    for place in range(3):
        a, b, c, d = (Fraction(float(part)) for item in (g, y) for part in (item[place].real, item[place].imag))
        # y (1 - y) = (c - c^2 + d^2) + (d - 2 c d) i
        slope = c - c * c + d * d, d - 2 * c * d
        exact = a * slope[0] + b * slope[1], b * slope[0] - a * slope[1]
        for part in (0, 1):
            found = exact_element(SIGMOID, call, "gradInput", (place, part))
            assert found is not None
            assert abs(found - exact[part]) <= Fraction(1, 10**40) * (1 + abs(exact[part]))


Product = Callable[[Any, Any], tuple[Any, Any]]


def ways(real: Any) -> Iterator[Product]:
    """Products of complex numbers as pairs in which everything, one product of a sum, or nothing is fused."""
    wide = np.longdouble if real is np.float64 else np.float64

    def plain(x: Any, y: Any) -> tuple[Any, Any]:
        return real(x[0] * y[0]) - real(x[1] * y[1]), real(x[0] * y[1]) + real(x[1] * y[0])

    def swapped(x: Any, y: Any) -> tuple[Any, Any]:
        return -(real(x[1] * y[1]) - real(x[0] * y[0])), real(x[1] * y[0]) + real(x[0] * y[1])

    def fused(x: Any, y: Any) -> tuple[Any, Any]:
        first, second = wide(x[0]) * wide(y[0]), wide(x[0]) * wide(y[1])
        return real(first - real(x[1] * y[1])), real(second + real(x[1] * y[0]))

    def fused_last(x: Any, y: Any) -> tuple[Any, Any]:
        first, second = wide(x[1]) * wide(y[1]), wide(x[1]) * wide(y[0])
        return real(real(x[0] * y[0]) - first), real(real(x[0] * y[1]) + second)

    yield from (plain, swapped, fused, fused_last)


def gradients(real: Any, g: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    """The gradient in every order in which the document, kernels and autograd write it."""
    one_less = real(1.0) - y[0], -y[1]
    conjugate = y[0], -y[1]
    for times in ways(real):
        slope = times(one_less, y)
        yield times(g, (slope[0], -slope[1]))
        yield times(times(g, (one_less[0], -one_less[1])), conjugate)
        yield times(times(g, conjugate), (one_less[0], -one_less[1]))
        square = times(y, y)
        distributed = y[0] - square[0], -(y[1] - square[1])
        yield times(g, distributed)


@pytest.mark.parametrize("dtype", COMPONENTS)
@pytest.mark.parametrize("spread", [0, 3, 20])
def test_every_order_of_the_four_products_is_within_the_bound(dtype: str, spread: int) -> None:
    real = numpy_dtype(component(dtype)).type
    g, y = complexes(dtype, 4000, key=5, spread=spread), complexes(dtype, 4000, key=6, spread=spread)
    expected = said(question(dtype, gradOutput=g, output=y))
    error_ratios = []
    for re, im in gradients(real, (g.real, g.imag), (y.real, y.imag)):
        got = np.stack([re, im], axis=-1).view(numpy_dtype(dtype))[..., 0]
        comparison = held(dtype, got, expected)
        assert not comparison.kind, comparison.deviation
        error_ratios.append(comparison.deviation.error_ratio)
    # And the bound is no wider than such sums need.
    assert max(error_ratios) > 0.2


@pytest.mark.parametrize("dtype", COMPONENTS)
def test_the_other_component_and_the_slope_itself_are_found(dtype: str) -> None:
    g, y = complexes(dtype, 64, key=7), complexes(dtype, 64, key=8)
    expected = said(question(dtype, gradOutput=g, output=y))
    slope = y * (1 - y)
    for wrong in (g * slope, np.conj(g * np.conj(slope)), (g * np.conj(slope)).real.astype(numpy_dtype(dtype))):
        comparison = held(dtype, wrong.astype(numpy_dtype(dtype)), expected)
        assert comparison.kind in (Fault.VALUE, Fault.MODEL)
        assert comparison.deviation.beyond > 32


def test_gaussian_integers_are_exact() -> None:
    random = np.random.default_rng(9)
    g, y = (random.integers(-8, 9, (50, 2)).astype(np.float32).view(np.complex64)[..., 0] for _ in range(2))
    call = question("COMPLEX64", gradOutput=g, output=y)
    exactly = said(msgspec.structs.replace(call, lattices=dict.fromkeys(call.tensors, 1.0)))
    assert np.all(exactly.exact)
    right = (g * np.conj(y * (1 - y))).astype(np.complex64)
    assert not held("COMPLEX64", right, exactly).kind
    assert held("COMPLEX64", np.nextafter(components(right), np.float32(9)).view(np.complex64)[..., 0], exactly).kind


@pytest.mark.parametrize("special", [complex(np.inf, 0), complex(0, np.nan), complex(np.inf, -np.inf)])
def test_nothing_is_required_of_both_components_beside_inf_and_nan(special: complex) -> None:
    g = np.array([special, 1 + 1j], np.complex64)
    expected = said(question("COMPLEX64", gradOutput=g, output=np.array([0.5, 0.25j], np.complex64)))
    assert expected.open is not None
    assert expected.open.tolist() == [[True, True], [False, False]]


def test_an_intermediate_that_may_overflow_leaves_its_components_open() -> None:
    g, y = np.array([1e-30, 1e-30], np.complex64), np.array([1e30 + 1e30j, 2 + 1j], np.complex64)
    expected = said(question("COMPLEX64", gradOutput=g, output=y))
    right = (g * np.conj(y.astype(np.complex128) * (1 - y))).astype(np.complex64)
    for overflown in (complex(np.nan, np.inf), complex(-np.inf, np.nan)):
        comparison = held("COMPLEX64", np.array([overflown, right[1]], np.complex64), expected)
        assert not comparison.kind
        assert comparison.deviation.open == 2


def test_a_real_formula_has_the_imaginary_part_0_and_a_complex_one_needs_a_complex_output() -> None:
    def constant(f: F, x: Array) -> Outputs:
        return {"gradInput": f.lift(np.full(x.shape, 2.0))}

    g = np.array([1 + 1j, 2j])
    assert said(question("COMPLEX128", x=g), Operator.of(constant)).value.tolist() == [[2.0, 0.0]] * 2
    with pytest.raises(UsageError, match="gradInput is complex, and its output is not"):
        said(question("COMPLEX128", gradOutput=g, output=g, out="DOUBLE"))


def test_a_real_operand_meets_both_components() -> None:
    def mixed(f: F, x: Array, y: Array) -> Outputs:
        return {"gradInput": -(3.0 * (2.0 + x) - y) * 0.5 + np.array([4.0, 5.0])}

    g, y = np.array([1 + 1j, 2j]), np.array([0.5j, 3 - 2j])
    found = said(question("COMPLEX128", x=g, y=y), Operator.of(mixed)).value
    assert found.tolist() == components(-(3 * (2 + g) - y) * 0.5 + np.array([4, 5])).tolist()


def test_differences_are_of_real_tensors() -> None:
    g = np.array([1 + 1j, 2j])
    assert not list(differences(SIGMOID, question("COMPLEX128", gradOutput=g, output=g)))


def test_mutants_of_complex_arithmetic_are_repeated() -> None:
    call = question("COMPLEX64", gradOutput=complexes("COMPLEX64", 3, key=3), output=complexes("COMPLEX64", 3, key=4))
    model = load_precision().model(operator="", output="", dtype="FLOAT")
    held = Subject.of(SIGMOID, FormulaOracle(SIGMOID), call, {"gradInput": model})
    assert_repeats(held, Variant(order="random", fused=True, key=1))


def moved(f: F, x: Array, y: Array) -> Outputs:
    """Conjugated terms in other places, their sums and a mean, with every move that arrays have."""
    cells = np.array([[5, 0, -1], [1, 1, 3]])
    taken = f.take(x.transpose(1, 0).reshape(-1), cells) * y.conj()
    halves = f.stack([taken[:, :2], taken[:, 1:]], 0)
    rows = f.concat([halves.sum(0), taken.mean(1, keepdims=True)], 1)
    added = f.scatter_add(rows, np.array([[0, 2, -1], [2, 1, 4]]), (6,)).reshape(2, 3)
    chosen = f.where(np.array([True, False, True]), added, f.lift(np.ones((2, 3))))
    return {"gradInput": chosen + f.reduce_to(taken, (1, 3)).broadcast_to((2, 3)) / 4.0}


def moved_by_numpy(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    flat = np.append(x.transpose().reshape(-1), 0.0)
    taken = flat[[[5, 0, -1], [1, 1, 3]]] * np.conj(y)
    rows = np.concatenate([taken[:, :2] + taken[:, 1:], taken.mean(1, keepdims=True)], 1)
    added = np.zeros(7, x.dtype)
    np.add.at(added, [[0, 2, -1], [2, 1, 4]], rows)
    chosen = np.where([True, False, True], added[:6].reshape(2, 3), 1.0)
    found: NDArray[Any] = chosen + taken.sum(0) / 4.0
    return found


@pytest.mark.parametrize("dtype", COMPONENTS)
def test_complex_arrays_are_moved_and_summed(dtype: str) -> None:
    x, y = complexes(dtype, 2, 3, key=11), complexes(dtype, 2, 3, key=12)
    call = question(dtype, x=x, y=y)
    expected = said(call, Operator.of(moved))
    right = moved_by_numpy(x.astype(np.complex128), y.astype(np.complex128))
    assert np.allclose(expected.value, components(right), rtol=1e-13, atol=1e-13)
    assert not held(dtype, moved_by_numpy(x, y), expected).kind
    assert held(dtype, moved_by_numpy(np.conj(x), y), expected).deviation.beyond >= 4
    model = load_precision().model(operator="", output="", dtype=component(dtype))
    subject = Subject.of(Operator.of(moved), FormulaOracle(Operator.of(moved)), call, {"gradInput": model})
    for order in ORDERS:
        assert not subject.faulty([subject.emulated(Variant(order=order, fused=True)).outputs])[0]
    assert_repeats(subject, Variant(order="random", key=1))


def test_a_complex_divisor_is_refused() -> None:
    def divided(f: F, x: Array) -> Outputs:
        return {"gradInput": x / x}

    with pytest.raises(OracleError, match="complex divisor"):
        said(question("COMPLEX64", x=np.ones(2)), Operator.of(divided))
