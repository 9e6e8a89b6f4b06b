"""Attention: what masks, windows, groups and layouts mean, and statistics that belong to the call."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts import expected
from aclnn_cts.core.attention import Sequences, Sparsity, band, compressed, in_layout
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.oracles import _blocks, registry

Arrays = Mapping[str, NDArray[np.float64]]
B, N, SHARED, ROWS, COLUMNS, WIDTH, VALUES = 2, 4, 2, 5, 7, 3, 2
ALL = Sequences(layout="BNSD", heads=N, shared=SHARED, rows=slice(None), columns=slice(None), batches=slice(None))
ATTRIBUTES: Mapping[str, Any] = {
    "pseShiftOptional": None,
    "dropMaskOptional": None,
    "attenMaskOptional": None,
    "prefixOptional": None,
    "scaleValue": 0.5,
    "keepProb": 1.0,
    "preTokens": 100,
    "nextTokens": 100,
    "headNum": N,
    "inputLayout": "BNSD",
    "innerPrecise": 2,
    "sparseMode": 0,
}
UNREAD: Mapping[str, Any] = {"paddingMaskOptional": None, "softmaxInOptional": None}


def drawn(*, shared: int = SHARED) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(3)
    shapes = {
        "query": (B, N, ROWS, WIDTH),
        "keyIn": (B, shared, COLUMNS, WIDTH),
        "value": (B, shared, COLUMNS, VALUES),
        "dy": (B, N, ROWS, VALUES),
    }
    return {name: random.standard_normal(shape) for name, shape in shapes.items()}


def numbers(
    tensors: Mapping[str, NDArray[Any]],
    *,
    stem: str = "flash_attention_score_grad",
    outputs: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    **attributes: Any,
) -> Arrays:
    """The gradients of a call with the statistics of its own forward pass, which recipes make."""
    return registry.load(stem).values(call_of(tensors, outputs=outputs, **attributes))


def call_of(
    tensors: Mapping[str, NDArray[Any]],
    *,
    outputs: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    **attributes: Any,
) -> OracleInput:
    """A call with the statistics of its own forward pass."""
    arguments = {**ATTRIBUTES, **attributes}
    arrays = {**tensors, **{name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}}
    described: dict[str, Any] = {
        **{name: value for name, value in arguments.items() if name not in arrays},
        **{name: tensor(array) for name, array in arrays.items()},
    }
    dy = arrays["dy"].shape
    described["attentionInOptional"] = Tensor(dy, "DOUBLE", data=Data(recipe="attention"))
    saved = (B * ROWS, N, 8) if arguments["inputLayout"] == "TND" else (B, N, ROWS, 8)
    for name, recipe in (("softmaxMaxOptional", "softmax_max"), ("softmaxSumOptional", "softmax_sum")):
        described[name] = Tensor(saved, "DOUBLE", data=Data(recipe=recipe))
    made = case_arrays(Case("aclnnAttention", described), [*arrays, *described])
    made_of = {"dqOut": "query", "dkOut": "keyIn", "dvOut": "value"}
    known = {name: arrays[of].shape for name, of in made_of.items()} | dict(outputs)
    shapes = {name: Tensor(shape, "DOUBLE") for name, shape in known.items()}
    return OracleInput(tensors=made, arguments=described | shapes)


def tensor(array: NDArray[Any]) -> Tensor:
    dtype = {"f": "DOUBLE", "b": "BOOL"}.get(array.dtype.kind, "UINT8")
    return Tensor(array.shape, dtype, data=Data(values=tuple(array.reshape(-1).tolist())))


def assert_equal(found: Arrays, wanted: Arrays) -> None:
    assert set(found) == set(wanted) == {"dqOut", "dkOut", "dvOut"}
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("mode", [2, 3])
def test_keys_that_no_query_sees_have_gradients_of_exactly_0(mode: int) -> None:
    found = numbers(drawn(), sparseMode=mode, attenMaskOptional=compressed((2048, 2048)) != 0)
    unseen = slice(ROWS, None) if mode == 2 else slice(0, 0)
    assert not found["dkOut"][:, :, unseen].any()
    assert not found["dvOut"][:, :, unseen].any()
    assert found["dkOut"][:, :, : ROWS - 1].any()


def test_heads_of_a_group_equal_repeated_heads() -> None:
    grouped = drawn()
    repeated = {name: array.repeat(N // array.shape[1], axis=1) for name, array in grouped.items()}
    found, wanted = numbers(grouped), dict(numbers(repeated))
    for name in ("dkOut", "dvOut"):
        wanted[name] = wanted[name].reshape(B, SHARED, N // SHARED, COLUMNS, -1).sum(2)
    assert_equal(found, wanted)


@pytest.mark.parametrize(("mode", "before", "after"), [(2, 9, 9), (3, 9, 9), (4, 1, 1), (4, 0, 2), (4, 3, -1)])
def test_a_mode_with_a_compressed_mask_equals_its_explicit_mask(mode: int, before: int, after: int) -> None:
    shift = 0 if mode == 2 else COLUMNS - ROWS
    low, high = (shift - before, shift + after) if mode == 4 else (-100, shift)
    mask = band((ROWS, COLUMNS), low, high, ()) != 0
    tokens: Mapping[str, Any] = {"preTokens": before, "nextTokens": after}
    found = numbers(drawn(), sparseMode=mode, attenMaskOptional=compressed((2048, 2048)) != 0, **tokens)
    assert_equal(found, numbers(drawn(), sparseMode=1, attenMaskOptional=mask))


@pytest.mark.parametrize("mode", [5, 6])
def test_a_prefix_equals_its_explicit_mask(mode: int) -> None:
    prefix = (COLUMNS - ROWS, COLUMNS - 1)
    mask = band((B, 1, ROWS, COLUMNS), -100, COLUMNS - ROWS, prefix) != 0
    own = mask if mode == 5 else compressed((3072, 2048)) != 0
    found = numbers(drawn(), sparseMode=mode, prefixOptional=prefix, attenMaskOptional=own)
    assert_equal(found, numbers(drawn(), sparseMode=1, attenMaskOptional=mask))


def test_a_window_in_mode_0_counts_from_the_upper_left() -> None:
    mask = band((ROWS, COLUMNS), -1, 2, ()) != 0
    found = numbers(drawn(), attenMaskOptional=mask, preTokens=1, nextTokens=2)
    assert_equal(found, numbers(drawn(), sparseMode=1, attenMaskOptional=mask))


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND"])
def test_layouts_hold_the_same(layout: str) -> None:
    laid = {name: np.ascontiguousarray(in_layout(array, layout)) for name, array in drawn().items()}
    found, wanted = numbers(laid, inputLayout=layout), numbers(drawn())
    assert_equal(found, {name: in_layout(array, layout) for name, array in wanted.items()})


@pytest.mark.parametrize("mode", [0, 3, 4])
def test_sequences_of_equal_lengths_equal_a_batch(mode: int) -> None:
    others: dict[str, Any] = {"sparseMode": mode, "preTokens": 2, "nextTokens": 1}
    if mode:
        others["attenMaskOptional"] = compressed((2048, 2048)) != 0

    def behind_each_other(arrays: Arrays) -> dict[str, NDArray[Any]]:
        return {name: array.swapaxes(1, 2).reshape(-1, *array.shape[1::2]) for name, array in arrays.items()}

    ends: Mapping[str, Any] = {
        "actualSeqQLenOptional": (ROWS, 2 * ROWS),
        "actualSeqKvLenOptional": (COLUMNS, 2 * COLUMNS),
    }
    stem = "flash_attention_unpadding_score_grad"
    found = numbers(behind_each_other(drawn()), stem=stem, inputLayout="TND", **ends, **UNREAD, **others)
    assert_equal(found, behind_each_other(numbers(drawn(), **others)))


def test_gradients_are_those_of_a_softmax_with_a_dropout() -> None:
    tensors, kept = drawn(shared=N), np.random.default_rng(5).random((B, N, ROWS, COLUMNS)) < 0.75
    packed = np.packbits(kept.reshape(-1), bitorder="little")
    found = numbers(tensors, keepProb=0.75, dropMaskOptional=packed)
    q, k, v, dy = (tensors[name] for name in ("query", "keyIn", "value", "dy"))
    powers = np.exp(0.5 * q @ k.swapaxes(2, 3))
    p = powers / powers.sum(-1, keepdims=True)
    dp = np.where(kept, dy @ v.swapaxes(2, 3) / 0.75, 0.0)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True))
    wanted = {
        "dqOut": 0.5 * ds @ k,
        "dkOut": 0.5 * ds.swapaxes(2, 3) @ q,
        "dvOut": np.where(kept, p / 0.75, 0.0).swapaxes(2, 3) @ dy,
    }
    assert_equal(found, wanted)


def test_each_row_and_head_has_statistics_of_its_own() -> None:
    tensors = drawn()
    described: dict[str, Any] = {**ATTRIBUTES, **{name: tensor(array) for name, array in tensors.items()}}
    described["top"] = Tensor((B, N, ROWS, 8), "DOUBLE", data=Data(recipe="softmax_max"))
    described["total"] = Tensor((B, N, ROWS, 8), "DOUBLE", data=Data(recipe="softmax_sum"))
    made = case_arrays(Case("aclnnAttention", described), ["top", "total"])
    scores = 0.5 * tensors["query"] @ tensors["keyIn"].repeat(2, axis=1).swapaxes(2, 3)
    assert (made["top"] == made["top"][..., :1]).all()
    np.testing.assert_allclose(made["top"][..., 0], scores.max(-1), rtol=1e-14)
    np.testing.assert_allclose(
        made["total"][..., 0], np.exp(scores - scores.max(-1, keepdims=True)).sum(-1), rtol=1e-14
    )
    assert len(np.unique(made["top"][..., 0])) == B * N * ROWS


def test_what_mask_and_window_say_differently_is_open() -> None:
    def contradicts(mode: int, mask: NDArray[Any] | None, **others: Any) -> bool:
        known: dict[str, Any] = {"before": 100, "after": 100, "prefix": (2, 3)} | others
        return Sparsity(mode=mode, mask=mask, **known).is_contradicted(ROWS, COLUMNS, ALL)

    free = np.zeros((ROWS, COLUMNS), np.bool_)
    assert not contradicts(0, None)
    assert not contradicts(0, free)
    assert contradicts(0, free, after=0)
    assert not contradicts(0, band(free.shape, -100, 0, ()), after=0)
    assert not contradicts(1, free, after=0)
    assert contradicts(1, None)
    assert contradicts(2, np.zeros((2048, 2048)))
    assert contradicts(5, free[None, None])


_PSE = np.random.default_rng(11).standard_normal((1, N, ROWS, COLUMNS))
_DROPPED = np.random.default_rng(13).integers(0, 256, -(-B * N * ROWS * COLUMNS // 8), np.uint8)


@pytest.mark.parametrize("scores", [1, 2 * N // SHARED * COLUMNS, N // SHARED * ROWS * COLUMNS, N * ROWS * COLUMNS])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"sparseMode": 3, "attenMaskOptional": compressed((2048, 2048)) != 0},
        {"pseShiftOptional": _PSE, "dropMaskOptional": _DROPPED, "keepProb": 0.5},
        {"sinkInOptional": np.linspace(-1.0, 1.0, N), "pseType": 1, "outputs": {"dsinkOut": (N,)}},
    ],
)
def test_attention_in_blocks_of_keys_queries_heads_or_batches_equals_that_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, attributes: Mapping[str, Any], scores: int
) -> None:
    stem = "flash_attention_score_grad" + ("_v3" if "pseType" in attributes else "")
    call = call_of(drawn(), **attributes)
    whole = registry.load(stem)(call)
    monkeypatch.setattr(_blocks, "_MOST", scores)
    blocks = registry.load(stem)(call)
    for name, output in whole.items():
        np.testing.assert_allclose(blocks[name].value, output.value, rtol=1e-12, atol=1e-14, err_msg=name)
        bounds = [np.asarray(item.error, np.float64) for item in (blocks[name], output)]
        np.testing.assert_allclose(bounds[0], bounds[1], rtol=1e-3, err_msg=name)
        assert blocks[name].summands == output.summands


def test_rows_of_a_normalisation_in_blocks_give_what_all_of_them_give(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    shapes = {"gradOut": (9, 4), "input": (9, 4), "mean": (9, 1), "rstd": (9, 1), "weightOptional": (4,)}
    arrays = {name: random.uniform(0.5, 2.0, shape) for name, shape in shapes.items()}
    outputs = {"gradInputOut": (9, 4), "gradWeightOut": (4,), "gradBiasOut": (4,)}
    described = {name: Tensor(shape, "FLOAT") for name, shape in (shapes | outputs).items()}
    call = OracleInput(tensors=arrays, arguments={**described, "normalizedShape": (4,)})
    whole = registry.load("layer_norm_backward")(call)
    monkeypatch.setattr(_blocks, "_MOST", 8)
    blocks = registry.load("layer_norm_backward")(call)
    for name in outputs:
        np.testing.assert_allclose(blocks[name].value, whole[name].value, rtol=1e-12, err_msg=name)
        bounds = [np.asarray(found[name].error, np.float64) for found in (blocks, whole)]
        np.testing.assert_allclose(bounds[0], bounds[1], rtol=1e-3, err_msg=name)


@pytest.mark.parametrize(
    ("queries", "keys"), [((1, 1, 2048, 64), (1, 1, 2048, 64)), ((31, 24, 1, 5), (31, 3, 4432, 5))]
)
def test_millions_of_scores_are_judged_in_little_memory(queries: tuple[int, ...], keys: tuple[int, ...]) -> None:
    random = np.random.default_rng(5)
    shapes = {"query": queries, "keyIn": keys, "value": keys, "dy": queries, "attentionInOptional": queries}
    inputs = {name: random.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    inputs |= dict.fromkeys(("softmaxMaxOptional", "softmaxSumOptional"), np.ones((*queries[:3], 8), np.float32))
    tracemalloc.start()
    found = expected("aclnnFlashAttentionScoreGrad", {**inputs, **ATTRIBUTES, "headNum": queries[1]})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.isfinite(found["dkOut"].bound).all()
    # One array of all scores has 34 or 26 MB, and their bounds have a dozen; all keys have 16 MB, and their gradients.
    assert peak < 400e6


def test_a_sink_takes_part_in_the_softmax_and_its_gradient_is_that_of_its_share() -> None:
    tensors, sink = drawn(shared=N), np.random.default_rng(7).standard_normal(N)
    own = {"sinkInOptional": sink, "pseType": 1}
    found = dict(numbers(tensors, stem="flash_attention_score_grad_v3", outputs={"dsinkOut": (N,)}, **own))
    q, k, v, dy = (tensors[name] for name in ("query", "keyIn", "value", "dy"))
    powers, ahead = np.exp(0.5 * q @ k.swapaxes(2, 3)), np.exp(sink)[None, :, None, None]
    total = powers.sum(-1, keepdims=True) + ahead
    p, dp = powers / total, dy @ v.swapaxes(2, 3)
    lost = (p * dp).sum(-1, keepdims=True)
    ds = p * (dp - lost)
    np.testing.assert_allclose(found.pop("dsinkOut"), -(ahead / total * lost).sum((0, 2, 3)), rtol=1e-6)
    wanted = {"dqOut": 0.5 * ds @ k, "dkOut": 0.5 * ds.swapaxes(2, 3) @ q, "dvOut": p.swapaxes(2, 3) @ dy}
    assert_equal(found, wanted)


@pytest.mark.parametrize("layout", ["same_as_input", ""])
def test_a_sink_of_sequences_is_that_of_batches(layout: str) -> None:
    flat = {name: array.swapaxes(1, 2).reshape(-1, *array.shape[1::2]) for name, array in drawn().items()}
    own: dict[str, Any] = {"sinkInOptional": np.random.default_rng(7).standard_normal(N), "pseType": 1}
    own["outputs"] = {"dsinkOut": (N,)}
    ends: dict[str, Any] = {"actualSeqQLenOptional": (ROWS, 2 * ROWS)}
    ends |= {"actualSeqKvLenOptional": (COLUMNS, 2 * COLUMNS), "queryRope": None, "keyInRope": None}
    ends |= UNREAD
    stem = "flash_attention_unpadding_score_grad_v5"
    found = dict(numbers(flat, stem=stem, inputLayout="TND", softmaxInLayout=layout, **ends, **own))
    wanted = dict(numbers(drawn(), stem="flash_attention_score_grad_v3", **own))
    np.testing.assert_allclose(found.pop("dsinkOut"), wanted.pop("dsinkOut"), rtol=1e-6)
    behind = {name: array.swapaxes(1, 2).reshape(-1, *array.shape[1::2]) for name, array in wanted.items()}
    assert_equal(found, behind)


@pytest.mark.parametrize("lengths", [(2, 8, 10), (10, 10, 10), (0, 5, 10)])
def test_statistics_that_lie_by_heads_are_those_that_lie_by_tokens(lengths: tuple[int, ...]) -> None:
    ends = {"actualSeqQLenOptional": lengths, "actualSeqKvLenOptional": (3, 7, 14)}
    flat = {name: array.swapaxes(1, 2).reshape(-1, *array.shape[1::2]) for name, array in drawn().items()}
    known: dict[str, Any] = {"stem": "flash_attention_unpadding_score_grad_v4", "inputLayout": "TND", **UNREAD, **ends}
    assert_equal(numbers(flat, softmaxInLayout="", **known), numbers(flat, softmaxInLayout="same_as_input", **known))


@pytest.mark.parametrize(("mode", "band_of", "cut"), [(7, 1, -1), (8, 0, 1)])
def test_modes_of_cut_sequences_have_a_band_in_one_of_them(mode: int, band_of: int, cut: int) -> None:
    flat = {name: array.swapaxes(1, 2).reshape(-1, *array.shape[1::2]) for name, array in drawn().items()}
    known: dict[str, Any] = {"stem": "flash_attention_unpadding_score_grad_v2", "inputLayout": "TND", **UNREAD}
    known |= {"pseType": 1, "actualSeqQLenOptional": (ROWS, 2 * ROWS)}
    known |= {"actualSeqKvLenOptional": (COLUMNS, 2 * COLUMNS)}
    found = numbers(
        flat, sparseMode=mode, preTokens=COLUMNS, nextTokens=cut, attenMaskOptional=compressed((2048, 2048)), **known
    )
    shift = COLUMNS - ROWS
    lasts = [shift + cut if number == band_of else (shift if mode == 7 else 0) for number in range(2)]
    masks = np.stack([band((ROWS, COLUMNS), -100, last, ()) for last in lasts])[:, None]
    assert_equal(found, numbers(flat, sparseMode=1, attenMaskOptional=masks, **known))


def test_selected_blocks_are_what_a_mask_leaves() -> None:
    random, block, count = np.random.default_rng(11), 2, 2
    shapes = {"query": (8, N, WIDTH), "key": (12, SHARED, WIDTH), "value": (12, SHARED, VALUES)}
    tensors = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    dy = random.standard_normal((8, N, VALUES))
    ends: dict[str, Any] = {"actualSeqQLenOptional": (3, 8), "actualSeqKvLenOptional": (4, 12)}
    chosen = random.permuted(np.tile(np.arange(2), (8, SHARED, 1)), axis=2)
    chosen[3:] = random.permuted(np.tile(np.arange(4), (5, SHARED, 1)), axis=2)[:, :, :count]
    masks = np.ones((2, N, 5, 8), np.bool_)
    for row, head, number in np.ndindex(8, N, count):
        place = chosen[row, head // (N // SHARED), number] * block
        masks[int(row >= 3), head, row - 3 * int(row >= 3), place : place + block] = False
    described: dict[str, Any] = {name: tensor(array) for name, array in {**tensors, "attentionOutGrad": dy}.items()}
    described |= {"topkIndices": Tensor(chosen.shape, "INT32", data=Data(values=tuple(chosen.reshape(-1).tolist())))}
    described |= {"selectedBlockSize": block, "selectedBlockCount": count, "attenMaskOptional": None, **ends}
    described |= {"scaleValue": 0.5, "headNum": N, "inputLayout": "TND", "sparseMode": 0}
    described["attentionOut"] = Tensor(dy.shape, "DOUBLE", data=Data(recipe="attention"))
    for name, recipe in (("softmaxMax", "softmax_max"), ("softmaxSum", "softmax_sum")):
        described[name] = Tensor((8, N, 8), "DOUBLE", data=Data(recipe=recipe))
    made = case_arrays(Case("aclnnNsaSelectedAttentionGrad", described), list(described))
    outputs = {"dqOut": "query", "dkOut": "key", "dvOut": "value"}
    shown = {name: Tensor(shapes[of], "DOUBLE") for name, of in outputs.items()}
    found = registry.load("nsa_selected_attention_grad").values(OracleInput(tensors=made, arguments=described | shown))
    wanted: dict[str, list[NDArray[Any]]] = {name: [] for name in outputs}
    for rows, columns, mask in ((slice(0, 3), slice(0, 4), masks[0]), (slice(3, 8), slice(4, 12), masks[1])):
        alone = {
            "query": tensors["query"][rows].swapaxes(0, 1)[None],
            "keyIn": tensors["key"][columns].swapaxes(0, 1)[None],
            "value": tensors["value"][columns].swapaxes(0, 1)[None],
            "dy": dy[rows].swapaxes(0, 1)[None],
        }
        q, k, v, g = alone.values()
        k, v = k.repeat(N // SHARED, 1), v.repeat(N // SHARED, 1)
        seen = ~mask[None, :, : q.shape[2], : k.shape[2]]
        powers = np.where(seen, np.exp(0.5 * q @ k.swapaxes(2, 3)), 0.0)
        p, dp = powers / powers.sum(-1, keepdims=True), g @ v.swapaxes(2, 3)
        ds = p * (dp - (p * dp).sum(-1, keepdims=True))
        shared = [
            array[0].reshape(SHARED, N // SHARED, *array.shape[2:]).sum(1)
            for array in (0.5 * ds.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ g)
        ]
        for name, array in zip(outputs, ((0.5 * ds @ k)[0], *shared), strict=True):
            wanted[name].append(array.swapaxes(0, 1))
    assert_equal(found, {name: np.concatenate(arrays) for name, arrays in wanted.items()})


def test_rotary_parts_are_further_columns_of_queries_and_keys() -> None:
    flat = {name: array.swapaxes(1, 2).reshape(-1, *array.shape[1::2]) for name, array in drawn().items()}
    cut = {"query": "queryRope", "keyIn": "keyInRope"}
    parts = {name: array[:, :, :2] if name in cut else array for name, array in flat.items()}
    parts |= {rope: flat[name][:, :, 2:] for name, rope in cut.items()}
    ends: dict[str, Any] = {"actualSeqQLenOptional": (ROWS, 2 * ROWS)}
    ends |= {"actualSeqKvLenOptional": (COLUMNS, 2 * COLUMNS), "inputLayout": "TND", "pseType": 1, **UNREAD}
    outputs = {"dqRopeOut": parts["queryRope"].shape, "dkRopeOut": parts["keyInRope"].shape}
    found = dict(numbers(parts, stem="flash_attention_unpadding_score_grad_v3", outputs=outputs, **ends))
    for name, rope in (("dqOut", "dqRopeOut"), ("dkOut", "dkRopeOut")):
        found[name] = np.concatenate((found[name], found.pop(rope)), 2)
    assert_equal(found, numbers(flat, stem="flash_attention_unpadding_score_grad_v2", **ends))
