"""What judges usually try: FLOAT, normal values, one shape, default attributes, saved tensors of a forward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Arguments = dict[str, Any]
SHAPES: Mapping[str, str] = {
    "softmax_backward": "16 x 4,096",
    "embedding_dense_backward": "512 indices of 1,000, 64 columns",
    "layer_norm_backward": "64 x 256",
    "batch_norm_backward": "8 x 16 x 14 x 14",
    "group_norm_backward": "4 x 32 x 256, 8 groups",
    "nll_loss_backward": "64 x 100, mean",
    "upsample_bilinear2d_backward_v2": "2 x 3 x 16 x 16, ratio 2",
    "max_pool2d_with_indices_backward": "2 x 8 x 32 x 32, kernel 2",
    "avg_pool2d_backward": "2 x 8 x 32 x 32, kernel 2",
    "leaky_relu_backward": "64 x 512, slope 0.01",
    "smooth_l1_loss_backward": "64 x 512, beta 1",
    "gelu_backward_v2": "64 x 512",
    "rotary_position_embedding_grad": "2 x 16 x 8 x 64, half",
    "rms_norm_grad": "64 x 256",
}


def usual_inputs(op: str, rng: Generator) -> Arguments:
    """The arguments of one call."""
    return _MAKERS[op](rng)


def _normal(rng: Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape, np.float32)


def _softmax(rng: Generator) -> Arguments:
    y = np.exp(_normal(rng, 16, 4096))
    return {"gradOutput": _normal(rng, 16, 4096), "output": y / y.sum(-1, keepdims=True), "dim": -1}


def _embedding(rng: Generator) -> Arguments:
    indices = rng.integers(1, 1000, 512, np.int32)
    sizes = {"numWeights": 1000, "paddingIdx": 0, "scaleGradByFreq": False}
    return {"grad": _normal(rng, 512, 64), "indices": indices, **sizes}


def _layer_norm(rng: Generator) -> Arguments:
    x = _normal(rng, 64, 256)
    saved = {"mean": x.mean(1, keepdims=True), "rstd": 1 / np.sqrt(x.var(1, keepdims=True) + np.float32(1e-5))}
    more = {"weightOptional": _normal(rng, 256), "biasOptional": _normal(rng, 256), "outputMask": [True] * 3}
    return {"gradOut": _normal(rng, 64, 256), "input": x, "normalizedShape": [256], **saved, **more}


def _batch_norm(rng: Generator) -> Arguments:
    x = _normal(rng, 8, 16, 14, 14)
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    saved = {
        "runningMean": mean,
        "runningVar": var,
        "saveMean": mean,
        "saveInvstd": 1 / np.sqrt(var + np.float32(1e-5)),
    }
    more = {"weight": _normal(rng, 16), "training": True, "eps": 1e-5, "outputMask": [True] * 3}
    return {"gradOut": _normal(rng, *x.shape), "input": x, **saved, **more}


def _group_norm(rng: Generator) -> Arguments:
    x = _normal(rng, 4, 32, 256)
    groups = x.reshape(4, 8, -1)
    saved = {"mean": groups.mean(-1), "rstd": 1 / np.sqrt(groups.var(-1) + np.float32(1e-5))}
    sizes = {"N": 4, "C": 32, "HxW": 256, "group": 8, "outputMask": [True] * 3}
    return {"gradOut": _normal(rng, *x.shape), "input": x, **saved, "gamma": _normal(rng, 32), **sizes}


def _rms_norm(rng: Generator) -> Arguments:
    x = _normal(rng, 64, 256)
    rstd = 1 / np.sqrt((x * x).mean(1) + np.float32(1e-6))
    return {"dy": _normal(rng, 64, 256), "x": x, "rstd": rstd, "gamma": _normal(rng, 256)}


def _nll_loss(rng: Generator) -> Arguments:
    x = _normal(rng, 64, 100)
    ones = np.ones(100, np.float32)
    labels = {"target": rng.integers(0, 100, 64, np.int64), "weight": ones, "reduction": 1, "ignoreIndex": -100}
    total = np.full(1, 64, np.float32)
    return {"gradOutput": np.ones(1, np.float32), "self": x - np.log(np.exp(x).sum(1, keepdims=True)), **labels,
            "totalWeight": total}  # fmt: skip


def _bilinear(rng: Generator) -> Arguments:
    sizes = {"outputSize": [32, 32], "inputSize": [2, 3, 16, 16], "alignCorners": False, "scalesH": 2.0, "scalesW": 2.0}
    return {"gradOut": _normal(rng, 2, 3, 32, 32), **sizes}


def _window(rng: Generator) -> Arguments:
    sizes = {"kernelSize": [2, 2], "stride": [2, 2], "padding": [0, 0], "ceilMode": False}
    return {"gradOutput": _normal(rng, 2, 8, 16, 16), "self": _normal(rng, 2, 8, 32, 32), **sizes}


def _max_pool(rng: Generator) -> Arguments:
    call = _window(rng)
    windows = call["self"].reshape(2, 8, 16, 2, 16, 2).swapaxes(3, 4).reshape(2, 8, 16, 16, 4)
    best = windows.argmax(-1)
    rows, columns = np.arange(16)[:, None] * 2 + best // 2, np.arange(16) * 2 + best % 2
    return {**call, "indices": (rows * 32 + columns).astype(np.int32), "dilation": [1, 1]}


def _avg_pool(rng: Generator) -> Arguments:
    return {**_window(rng), "countIncludePad": True, "divisorOverride": 0, "cubeMathType": 0}


def _leaky_relu(rng: Generator) -> Arguments:
    arrays = {"gradOutput": _normal(rng, 64, 512), "self": _normal(rng, 64, 512)}
    return {**arrays, "negativeSlope": 0.01, "selfIsResult": False}


def _smooth_l1(rng: Generator) -> Arguments:
    arrays = {name: _normal(rng, 64, 512) for name in ("gradOut", "self", "target")}
    return {**arrays, "reduction": 1, "beta": 1.0}


def _gelu(rng: Generator) -> Arguments:
    return {"gradOutput": _normal(rng, 64, 512), "self": _normal(rng, 64, 512), "approximate": "tanh"}


def _rotary(rng: Generator) -> Arguments:
    angle = rng.uniform(0, 3, (2, 1, 8, 64)).astype(np.float32)
    arrays = {"dy": _normal(rng, 2, 16, 8, 64), "cos": np.cos(angle), "sin": np.sin(angle)}
    return {**arrays, "xOptional": _normal(rng, 2, 16, 8, 64), "mode": 0}


_MAKERS: Mapping[str, Callable[[Generator], Arguments]] = {
    "softmax_backward": _softmax,
    "embedding_dense_backward": _embedding,
    "layer_norm_backward": _layer_norm,
    "batch_norm_backward": _batch_norm,
    "group_norm_backward": _group_norm,
    "nll_loss_backward": _nll_loss,
    "upsample_bilinear2d_backward_v2": _bilinear,
    "max_pool2d_with_indices_backward": _max_pool,
    "avg_pool2d_backward": _avg_pool,
    "leaky_relu_backward": _leaky_relu,
    "smooth_l1_loss_backward": _smooth_l1,
    "gelu_backward_v2": _gelu,
    "rotary_position_embedding_grad": _rotary,
    "rms_norm_grad": _rms_norm,
}
