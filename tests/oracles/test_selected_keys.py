"""Attention to named keys: the formulas are derivatives, on calls smaller than documents allow; who sees what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.core.selected_keys import are_plain, seen
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.oracles import registry

Real = NDArray[np.float64]
Arrays = Mapping[str, Real]
B, ROWS, COLUMNS, N, G, WIDTH, ROPE, NUMBERS = 2, 2, 4, 3, 2, 3, 2, 6
STEP = 1e-6
SCALE = 0.5


def make_tensor(array: NDArray[Any]) -> Tensor:
    dtype = "DOUBLE" if array.dtype.kind == "f" else "INT32"
    return Tensor(array.shape, dtype, data=Data(values=tuple(array.reshape(-1).tolist())))


def results(
    stem: str, tensors: Mapping[str, Tensor], outputs: Mapping[str, str], **attributes: Any
) -> tuple[Arrays, Arrays]:
    """The data of a call and its results; `outputs` names the input whose shape each of them has."""
    described: dict[str, Any] = {**tensors, **attributes}
    made = case_arrays(Case("aclnnSelected", described), list(tensors))
    shapes = {name: Tensor(made[of].shape if of else (1,), "DOUBLE") for name, of in outputs.items()}
    call = OracleInput(tensors=made, arguments=described | shapes)
    return made, registry.load(stem).values(call)


def differences(function: Callable[[Arrays], float], arrays: Arrays, name: str) -> Real:
    """The derivative of a function by one array, by central differences."""
    found = np.zeros(arrays[name].shape)
    for place in np.ndindex(found.shape):
        moved = []
        for step in (STEP, -STEP):
            array = arrays[name].copy()
            array[place] += step
            moved.append(function({**arrays, name: array}))
        found[place] = (moved[0] - moved[1]) / (2.0 * STEP)
    return found


def drawn(batches: int, **shapes: tuple[int, ...]) -> dict[str, Tensor]:
    random = np.random.default_rng(5)
    return {name: make_tensor(random.standard_normal((batches, *shape))) for name, shape in shapes.items()}


def numbers_of(batches: int, *, causal: bool) -> Tensor:
    data = Data(recipe="seen_indices", seed=4, high=COLUMNS, axis=-3 if causal else None)
    return Tensor((batches, ROWS, 1, NUMBERS), "INT32", data=data)


def saved(batches: int) -> dict[str, Tensor]:
    shape = (batches, 1, ROWS, N)
    return {
        name: Tensor(shape, "DOUBLE", data=Data(recipe=recipe))
        for name, recipe in (("softmaxMax", "softmax_max"), ("softmaxSum", "softmax_sum"))
    }


def shares(arrays: Arrays, batch: int, row: int, head: int, *, causal: bool) -> Real:
    """The softmax of a head of a query over all keys, written out."""
    last = COLUMNS - ROWS + row if causal else COLUMNS - 1
    scores = np.full(COLUMNS, -np.inf)
    for key in range(last + 1):
        product = arrays["query"][batch, row, head] @ arrays["key"][batch, key, 0]
        rope = [name for name in arrays if "Rope" in name]
        if rope:
            query_rope, key_rope = (
                next(arrays[name] for name in rope if name.startswith(of)) for of in ("query", "key")
            )
            product += query_rope[batch, row, head] @ key_rope[batch, key, 0]
        scores[key] = SCALE * product
    powers = np.exp(scores - scores.max())
    found: Real = powers / powers.sum()
    return found


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rope", [False, True])
def test_attention_to_named_keys_is_derived(*, causal: bool, rope: bool) -> None:
    shapes = {
        "query": (ROWS, N, WIDTH),
        "key": (COLUMNS, 1, WIDTH),
        "value": (COLUMNS, 1, WIDTH),
        "dOut": (ROWS, N, WIDTH),
    }
    ropes = {"queryRopeOptional": (ROWS, N, ROPE), "keyRopeOptional": (COLUMNS, 1, ROPE)} if rope else {}
    outputs = {"dQueryOut": "query", "dKeyOut": "key", "dValueOut": "value"}
    outputs |= {"dQueryRopeOutOptional": "queryRopeOptional", "dKeyRopeOutOptional": "keyRopeOptional"} if rope else {}
    tensors = {
        **drawn(B, **shapes, **ropes),
        "sparseIndices": numbers_of(B, causal=causal),
        "out": Tensor((B, ROWS, N, WIDTH), "DOUBLE", data=Data(recipe="attention")),
        **saved(B),
    }
    missing = {} if rope else dict.fromkeys((*ropes, "queryRopeOptional", "keyRopeOptional"))
    unwritten = {} if rope else dict.fromkeys(("dQueryRopeOutOptional", "dKeyRopeOutOptional"))
    arrays, found = results(
        "sparse_flash_attention_grad", tensors, outputs, **missing, **unwritten, actualSeqLengthsQueryOptional=None,
        scaleValue=SCALE, sparseBlockSize=1, layoutOptional="BSND", sparseMode=3 if causal else 0,
    )  # fmt: skip

    def forward(given_arrays: Arrays) -> float:
        total = 0.0
        for batch, row, head in np.ndindex(B, ROWS, N):
            attended = shares(given_arrays, batch, row, head, causal=causal) @ given_arrays["value"][batch, :, 0]
            total += float(arrays["dOut"][batch, row, head] @ attended)
        return total

    taking_part = {name: array for name, array in arrays.items() if name in {*shapes, *ropes}}
    for output, name in outputs.items():
        np.testing.assert_allclose(found[output], differences(forward, taking_part, name), rtol=1e-6, atol=1e-7)


def test_the_indexer_loss_is_derived() -> None:
    tensors = {
        **drawn(
            1, query=(ROWS, N, WIDTH), key=(COLUMNS, 1, WIDTH), queryIndex=(ROWS, G, WIDTH),
            keyIndex=(COLUMNS, 1, WIDTH), weights=(ROWS, G), queryRope=(ROWS, N, ROPE), keyRope=(COLUMNS, 1, ROPE),
        ),
        "sparseIndices": numbers_of(1, causal=True),
        **saved(1),
    }  # fmt: skip
    outputs = {"dQueryIndex": "queryIndex", "dKeyKndex": "keyIndex", "dWeights": "weights", "loss": ""}
    arrays, found = results(
        "sparse_lightning_indexer_grad_kl_loss", tensors, outputs, actualSeqLengthsQuery=(ROWS,), scaleValue=SCALE,
        layout="BSND", sparseMode=3,
    )  # fmt: skip

    def loss(given_arrays: Arrays) -> float:
        total = 0.0
        for row in range(ROWS):
            keys = COLUMNS - ROWS + row + 1
            p = np.mean([shares(given_arrays, 0, row, head, causal=True) for head in range(N)], axis=0)[:keys]
            index = np.zeros(keys)
            for key, head in np.ndindex(keys, G):
                score = given_arrays["queryIndex"][0, row, head] @ given_arrays["keyIndex"][0, key, 0]
                index[key] += given_arrays["weights"][0, row, head] * max(score, 0.0)
            share = np.exp(index) / np.exp(index).sum()
            total += float((p * np.log(p / share)).sum())
        return total

    names = ("query", "key", "queryRope", "keyRope", "queryIndex", "keyIndex", "weights")
    taking_part = {name: arrays[name] for name in names}
    np.testing.assert_allclose(found["loss"], loss(taking_part), rtol=1e-9)
    for output in ("dQueryIndex", "dKeyKndex", "dWeights"):
        expected = differences(loss, taking_part, outputs[output])
        np.testing.assert_allclose(found[output], expected, rtol=1e-6, atol=1e-7)


def test_who_sees_what() -> None:
    numbers = np.array([[[0, 2, -1], [1, 0, 2]]])
    assert seen(numbers, 3).tolist() == [[[True, False, False], [True, True, True]]]
    assert seen(numbers, 3, all_keys=True).tolist() == [[[True, False, True], [True, True, True]]]
    assert not are_plain(numbers, 3)
    assert are_plain(numbers, 3, all_keys=True)
    # A key that is named twice, one that there is not, and a query that names none.
    for odd in ([[[1, 1, -1]]], [[[1, 7, -1]]], [[[1, -2, -1]]], [[[-1, -1, -1]]]):
        assert not are_plain(np.array(odd), 3, all_keys=True)
