from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.oracles import registry
from tests.oracles.support import (
    ORDERS,
    Array,
    assert_conforms,
    assert_within,
    differences,
    few,
    floats,
    make_call,
    many,
    sum_float32,
    wild,
)

INF, NAN = np.inf, np.nan
NO_PADDING = 2**64 - 1


ORACLE = registry.load("embedding_dense_backward")


def out(grad: Array, indices: Array, rows: int, *, padding: int = NO_PADDING, scale: bool = False) -> ExpectedOutput:
    attributes = {"numWeights": rows, "paddingIdx": padding, "scaleGradByFreq": scale}
    return ORACLE(make_call({"grad": grad, "indices": indices}, attributes, out=(rows, np.shape(grad)[-1])))["out"]


def plain(grad: Array, indices: Array, rows: int, padding: int) -> list[list[Array]]:
    """The gradients of each row, in the order of their occurrence."""
    occurrences: list[list[Array]] = [[] for _ in range(rows)]
    for index, row in zip(indices.reshape(-1), grad.reshape(-1, grad.shape[-1]), strict=True):
        if index != padding:
            occurrences[int(index)].append(row)
    return occurrences


def test_is_the_derivative_of_the_look_up() -> None:
    generator = np.random.default_rng(1)
    table, indices = generator.normal(size=(5, 3)), generator.integers(0, 5, size=(2, 4))
    grad = generator.normal(size=(2, 4, 3))
    gradient = differences(lambda at: float((at[indices] * grad).sum()), table)
    assert np.allclose(out(grad, indices, 5).value, gradient, atol=1e-8)
    gradient[2] = 0
    assert np.allclose(out(grad, indices, 5, padding=2).value, gradient, atol=1e-8)


def test_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    generator = np.random.default_rng(3)
    grad, indices = generator.normal(size=(4, 6, 3)), generator.integers(0, 5, size=(4, 6))
    for padding, scale in ((-1, False), (2, False), (-1, True), (0, True)):
        kernel = torch.ops.aten.embedding_dense_backward(torch.tensor(grad), torch.tensor(indices), 6, padding, scale)
        ours = out(grad, indices, 6, padding=padding % 2**64, scale=scale).value
        assert np.allclose(ours, kernel.numpy(), rtol=1e-13, atol=1e-13)


def test_the_padding_row_is_zero_even_where_its_gradients_are_nan() -> None:
    grad = np.array([[1.0, 2.0], [NAN, INF], [3.0, 4.0], [-INF, NAN]])
    result = out(grad, np.array([0, 1, 2, 1]), 4, padding=1, scale=True)
    assert result.value.tolist() == [[1, 2], [0, 0], [3, 4], [0, 0]]
    assert not np.any(result.open)
    assert np.asarray(result.error)[[1, 3]].max() < 2.0**-120, "of underflow alone"


@pytest.mark.parametrize("padding", [3, 4, 2**63, NO_PADDING])
def test_a_padding_index_outside_the_table_has_no_effect(padding: int) -> None:
    assert out(np.ones((3, 1)), np.array([0, 1, 2]), 3, padding=padding).value.tolist() == [[1], [1], [1]]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint8", "int64"])
def test_indices_of_every_kind(dtype: str) -> None:
    result = out(np.arange(8.0).reshape(4, 2), np.array([2, 0, 2, 1]).astype(dtype), 3)
    assert result.value.tolist() == [[2, 3], [6, 7], [4, 6]]


def test_floating_indices_are_truncated_and_bools_are_rows() -> None:
    assert out(np.array([[1.0], [2.0], [4.0]]), np.array([0.9, 1.99, -0.5]), 2).value.tolist() == [[5], [2]]
    assert out(np.array([[1.0], [2.0], [4.0]]), np.array([True, False, True]), 2).value.tolist() == [[2], [5]]


@pytest.mark.parametrize("indices", [[0, -1], [0, 2], [0.0, NAN], [INF, 0.0], [2.0**40, 1.0], [2**62, 0]])
def test_an_index_outside_the_table_leaves_everything_open(indices: list[float]) -> None:
    result = out(np.ones((2, 3)), np.array(indices), 2)
    assert result.value.shape == (2, 3)
    assert result.open is not None
    assert result.open.all()


@pytest.mark.parametrize(
    ("grad", "indices", "rows"), [((0, 3), (0,), 4), ((2, 0), (2,), 4), ((3, 0, 2), (3, 0), 2), ((0, 2), (0,), 0)]
)
def test_empty_tensors(grad: tuple[int, ...], indices: tuple[int, ...], rows: int) -> None:
    for scale in (False, True):
        result = out(np.zeros(grad), np.zeros(indices, np.int64), rows, padding=0, scale=scale)
        assert result.value.shape == (rows, grad[-1])
        assert not result.value.any()
        assert np.max(result.error, initial=0.0) < 2.0**-120, "of underflow alone"


def test_special_values_meet_their_own_column_alone() -> None:
    grad = np.array([[INF, 1.0, NAN], [INF, 2.0, 1.0], [1.0, INF, 1.0], [1.0, -INF, 1.0]])
    result = out(grad, np.array([0, 0, 1, 1]), 2)
    assert np.array_equal(result.value, [[INF, 3, NAN], [2, NAN, 2]], equal_nan=True)
    assert not np.any(result.open)


@few
@given(seed=st.integers(0, 2**32), order=st.sampled_from(ORDERS), scale=st.booleans(), each=st.booleans())
def test_float32_in_any_order_stays_within_the_bound(seed: int, order: str, *, scale: bool, each: bool) -> None:
    generator = np.random.default_rng(seed)
    grad, indices = floats(generator, (23, 3)), generator.integers(0, 4, size=23)
    got = np.zeros((5, 3), np.float32)
    for row, gradients in enumerate(plain(grad, indices, 5, 5)):
        if not gradients:
            continue
        factor = np.float32(1) / np.float32(len(gradients) if scale else 1)
        terms = np.stack(gradients, axis=-1).astype(np.float32)
        total = sum_float32(terms * factor, order, generator) if each else sum_float32(terms, order, generator) * factor
        got[row] = total
    assert_within(out(grad, indices, 5, scale=scale), got)


@many
@given(
    seed=st.integers(0, 2**32), share=st.sampled_from([0.0, 0.05]), order=st.sampled_from(ORDERS), scale=st.booleans()
)
def test_wild_data_in_float32_conforms(seed: int, share: float, order: str, *, scale: bool) -> None:
    generator = np.random.default_rng(seed)
    grad, indices = wild(generator, (17, 3), share=share), generator.integers(0, 5, size=17)
    got = np.zeros((6, 3), np.float32)
    with np.errstate(all="ignore"):
        for row, gradients in enumerate(plain(grad, indices, 6, 2)):
            if gradients:
                factor = np.float32(1) / np.float32(len(gradients) if scale else 1)
                got[row] = sum_float32(np.stack(gradients, axis=-1).astype(np.float32), order, generator) * factor
    assert_conforms(out(grad, indices, 6, padding=2, scale=scale), got)


def test_a_dropped_occurrence_exceeds_the_bound() -> None:
    generator = np.random.default_rng(4)
    grad, indices = generator.normal(size=(40, 2)), generator.integers(0, 3, size=40)
    for scale in (False, True):
        result = out(grad, indices, 3, scale=scale)
        divisors = np.bincount(indices)[indices][:, None] if scale else 1
        assert (np.abs(grad) / divisors > np.asarray(result.error)[indices]).all()
