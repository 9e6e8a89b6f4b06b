"""A dy of 0 leaves gradients of 0, as do keys that no query names; others are open."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, Tensor
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.oracles import registry

BATCHES, QUERIES, HEADS, SIZE, KEYS = 2, 2, 2, 3, 4
INDICES = np.array([[[0, 0], [2, 1]], [[3, 3], [1, 1]]], np.int64)


def operands() -> dict[str, NDArray[np.generic]]:
    return {
        "query": np.ones((BATCHES, QUERIES, HEADS, SIZE)),
        "key": np.ones((BATCHES, KEYS, 1, SIZE)),
        "dy": np.zeros((BATCHES, QUERIES, HEADS, SIZE)),
        "spareIndices": INDICES.copy(),
        "weights": np.ones((BATCHES, QUERIES, HEADS)),
    }


def unknown(tensors: dict[str, NDArray[np.generic]], **lengths: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """The queries and the keys whose gradients are open, numbered across batches; all others are 0."""
    held = tensors | lengths
    flat = bool(lengths)
    arguments = {
        name: Tensor(array.shape, "INT64" if array.dtype == np.int64 else "FLOAT16") for name, array in held.items()
    }
    null = {f"actucalSeqLengths{name}": None for name in ("Query", "Key")}
    outputs = {"dQuery": arguments["query"], "dKey": arguments["key"], "dWeights": arguments["weights"]}
    attributes: dict[str, Argument] = {
        "headNum": HEADS, "layout": "TND" if flat else "BSND", "sparseMode": 0, "preTokens": 0, "nextTokens": 0,
        "determinstic": False,
    }  # fmt: skip
    found = registry.load("lightning_indexer_grad")(
        OracleInput(tensors=held, arguments={**null, **arguments, **attributes, **outputs})
    )
    queries, of_weights, keys = (
        rows(found[name], outputs[name].shape, inner) for name, inner in (("dQuery", 2), ("dWeights", 1), ("dKey", 2))
    )
    assert queries == of_weights
    return queries, keys


def rows(found: ExpectedOutput, shape: tuple[int, ...], inner: int) -> list[int]:
    """Where a row of the last dimensions is open: throughout or not at all, and 0 where it is not."""
    undecided = np.broadcast_to(False if found.open is None else found.open, shape)
    by_row = undecided.reshape(int(np.prod(shape[:-inner])), -1)
    assert (by_row == by_row[:, :1]).all()
    assert (np.broadcast_to(found.value, shape)[~undecided] == 0).all()
    opened: list[int] = np.flatnonzero(by_row[:, 0]).tolist()
    return opened


def test_all_gradients_are_0_where_dy_is() -> None:
    assert unknown(operands()) == ([], [])


def test_a_query_whose_dy_is_not_0_leaves_its_keys_open() -> None:
    tensors = operands()
    tensors["dy"][0, 1, 0, 2] = 1
    assert unknown(tensors) == ([1], [1, 2])


@pytest.mark.parametrize(
    ("name", "value", "queries", "keys"),
    [
        ("query", np.inf, [0], [0]),
        ("weights", np.nan, [0], [0]),
        ("dy", np.nan, [0], [0]),
        ("key", -np.inf, [0, 1], [0, 1, 2]),
        ("key", 3e38, [0, 1], [0, 1, 2]),
    ],
)
def test_what_0_meets_has_to_be_finite(name: str, value: float, queries: list[int], keys: list[int]) -> None:
    tensors = operands()
    tensors[name].reshape(-1)[0] = value
    tensors["query"] = tensors["query"] * (2 if value == 3e38 else 1)
    assert unknown(tensors) == (queries, keys)


def test_all_keys_of_several_sequences_are_open() -> None:
    tensors = operands()
    tensors["dy"][1, 0, 0, 0] = 1
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in tensors.items()}
    one = {name: np.array([count]) for name, count in (("Query", 4), ("Key", 8))}
    two = {name: np.array([count // 2, count]) for name, count in (("Query", 4), ("Key", 8))}
    assert unknown(flat, **{f"actucalSeqLengths{name}": ends for name, ends in one.items()}) == ([2], [3])
    assert unknown(flat, **{f"actucalSeqLengths{name}": ends for name, ends in two.items()}) == ([2], [*range(8)])
