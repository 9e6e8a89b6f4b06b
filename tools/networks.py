"""Calls of published transformers, by the sizes in their `config.json`: one sequence of 2,048 tokens in BF16."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_TOKENS = 2_048


class Network(msgspec.Struct, frozen=True):
    """The sizes of a transformer's layers."""

    name: str
    """Of the repository whose `config.json` has them."""
    hidden: int
    inner: int
    heads: int
    shared: int
    """Heads of keys and values."""
    vocabulary: int
    is_llama: bool = True
    """Whether its other layers are those of Llama: RMS norms, gated units, rotary embeddings."""

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.hidden // self.heads


NETWORKS = (
    Network("meta-llama/Llama-2-7b-hf", hidden=4_096, inner=11_008, heads=32, shared=32, vocabulary=32_000),
    Network("meta-llama/Llama-2-13b-hf", hidden=5_120, inner=13_824, heads=40, shared=40, vocabulary=32_000),
    Network("meta-llama/Meta-Llama-3-70B", hidden=8_192, inner=28_672, heads=64, shared=8, vocabulary=128_256),
    Network("meta-llama/Llama-3.1-8B", hidden=4_096, inner=14_336, heads=32, shared=8, vocabulary=128_256),
    Network("meta-llama/Llama-3.2-3B", hidden=3_072, inner=8_192, heads=24, shared=8, vocabulary=128_256),
    Network("mistralai/Mistral-7B-v0.1", hidden=4_096, inner=14_336, heads=32, shared=8, vocabulary=32_000),
    Network("Qwen/Qwen2-0.5B", hidden=896, inner=4_864, heads=14, shared=2, vocabulary=151_936),
    Network("Qwen/Qwen2-7B", hidden=3_584, inner=18_944, heads=28, shared=4, vocabulary=152_064),
    Network("google/gemma-2b", hidden=2_048, inner=16_384, heads=8, shared=1, vocabulary=256_000, is_llama=False),
    Network("microsoft/phi-2", hidden=2_560, inner=10_240, heads=32, shared=32, vocabulary=51_200, is_llama=False),
)


_ATTENTIONS = ("aclnnFlashAttentionScoreGrad", "aclnnFlashAttentionScoreGradV2")


def network_calls() -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Operator, arguments and source of the calls that a layer of each network makes in its backward pass."""
    for network in NETWORKS:
        source = f"sizes of {network.name}"
        for operator, arguments in _calls(network):
            yield operator, arguments, source


def _calls(network: Network) -> Iterator[tuple[str, Mapping[str, Any]]]:
    hidden, heads, head = network.hidden, network.heads, network.head
    for operator in _ATTENTIONS:
        yield operator, _attention(network, has_type=operator.endswith("V2"))
    if not network.is_llama:
        return
    tokens = _tensor(1, _TOKENS, hidden)
    statistics = _tensor(1, _TOKENS, dtype="FLOAT")
    yield "aclnnRmsNormGrad", {"dy": tokens, "x": tokens, "rstd": statistics, "gamma": _tensor(hidden)}
    inner = {"yGrad": _tensor(1, _TOKENS, network.inner), "x": _tensor(1, _TOKENS, 2 * network.inner)}
    yield "aclnnSwiGluGrad", {**inner, "dim": -1}
    angles = _tensor(1, _TOKENS, 1, head)
    rotated = {"dy": _tensor(1, _TOKENS, heads, head), "cos": angles, "sin": angles, "xOptional": None, "mode": 0}
    yield "aclnnRotaryPositionEmbeddingGrad", rotated
    yield (
        "aclnnCrossEntropyLossGrad",
        {
            "gradLoss": _tensor(dtype="FLOAT"),
            "logProb": _tensor(_TOKENS, network.vocabulary, dtype="FLOAT"),
            "target": _tensor(_TOKENS, dtype="INT64"),
            "reductionOptional": "mean",
            "ignoreIndex": -100,
            "labelSmoothing": 0.0,
            "lseSquareScaleForZloss": 0.0,
        },
    )
    scores = _tensor(1, heads, _TOKENS, _TOKENS)
    masked = {"gradOutput": scores, "y": scores, "mask": _tensor(1, 1, _TOKENS, _TOKENS, dtype="BOOL")}
    yield "aclnnScaledMaskedSoftmaxBackward", {**masked, "scale": 1 / math.sqrt(head), "fixTriuMask": False}


def _attention(network: Network, *, has_type: bool) -> Mapping[str, Any]:
    """Causal attention: a mask of all places, nothing dropped."""
    heads, width = network.heads, network.shared * network.head
    queries, keys = _tensor(1, _TOKENS, network.hidden), _tensor(1, _TOKENS, width)
    statistics = _tensor(1, heads, _TOKENS, 8, dtype="FLOAT")
    starts = {"qStartIdxOptional": None, "kvStartIdxOptional": None} if has_type else {}
    return {
        "query": queries,
        "keyIn": keys,
        "value": keys,
        "dy": queries,
        "pseShiftOptional": None,
        "dropMaskOptional": None,
        "paddingMaskOptional": None,
        "attenMaskOptional": _tensor(_TOKENS, _TOKENS, dtype="BOOL"),
        "softmaxMaxOptional": statistics,
        "softmaxSumOptional": statistics,
        "softmaxInOptional": None,
        "attentionInOptional": queries,
        "prefixOptional": None,
        **starts,
        "scaleValue": 1 / math.sqrt(network.head),
        "keepProb": 1.0,
        "preTokens": _TOKENS,
        "nextTokens": 0,
        "headNum": heads,
        "inputLayout": "BSH",
        "innerPrecise": 0,
        "sparseMode": 0,
        **({"pseType": 1} if has_type else {}),
    }


def _tensor(*shape: int, dtype: str = "BF16") -> dict[str, Any]:
    return {"tensor": {"shape": shape, "dtype": dtype}}
