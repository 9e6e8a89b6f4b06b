"""The five operators in emulated arithmetic, each by the formulas that its oracle's docstring admits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.oracles._nearest import edges_exact
from benchmarks.emulations import Sums, Way

Emulation: TypeAlias = Callable[[OracleInput, Sums], dict[str, Float64]]
"""The outputs before they are rounded to their dtypes."""

TERMS_LIMIT = 1 << 20
"""Terms of all sums of one output up to which a call is emulated."""


def _softmax(call: OracleInput, sums: Sums) -> dict[str, Float64]:
    shape = call.tensors["output"].shape
    y, g = (sums.load(call.tensors[name].reshape(shape or (1,))) for name in ("output", "gradOutput"))
    axis = call.integer("dim")
    y, g = np.moveaxis(y, axis, 0), np.moveaxis(g, axis, 0)
    total = sums.dot(y, g)
    if sums.way.formula % 2:
        out = sums.product(y, sums.single(g - total))
    else:
        out = sums.difference(sums.product(y, g), y, total)
    return {"out": np.moveaxis(out, 0, axis).reshape(shape)}


def _rms_norm(call: OracleInput, sums: Sums) -> dict[str, Float64]:
    tensors = call.tensors
    gamma, r = sums.load(tensors["gamma"].reshape(-1)), sums.load(tensors["rstd"].reshape(-1, 1))
    matrix = (r.size, gamma.size)
    dy, x = sums.load(tensors["dy"].reshape(matrix)), sums.load(tensors["x"].reshape(matrix))
    width = float(max(gamma.size, 1))
    xhat, g = sums.product(x, r), sums.product(dy, gamma)

    def mean(terms: Float64) -> Float64:
        if sums.way.formula // 3 % 2:
            return sums.product(terms, sums.single(np.asarray(1.0 / width)))[:, None]
        return sums.single(terms / width)[:, None]

    formula = sums.way.formula % 3
    if formula == 0:
        inner = mean(sums.dot(g.T, xhat.T))
        dx = sums.product(sums.difference(g, xhat, inner), r)
    elif formula == 1:
        inner = sums.product(mean(sums.dot(g.T, xhat.T)), r)
        dx = sums.difference(sums.product(g, r), xhat, inner)
    else:
        inner = mean(sums.dot(g.T, x.T))
        cube = sums.product(sums.product(sums.product(r, r), r), x)
        dx = sums.difference(sums.product(g, r), cube, inner)
    dgamma = sums.dot(dy, xhat) if formula < 2 else sums.dot(sums.product(dy, x), r)
    return {"dxOut": dx.reshape(tensors["x"].shape), "dgammaOut": dgamma.reshape(tensors["gamma"].shape)}


def _embedding(call: OracleInput, sums: Sums) -> dict[str, Float64]:
    rows, padding = call.integer("numWeights"), call.integer("paddingIdx")
    indices = call.tensors["indices"].reshape(-1).astype(np.int64)
    grad = sums.load(call.tensors["grad"])
    grad = grad.reshape(indices.size, grad.shape[-1])
    out = np.zeros((rows, grad.shape[-1]))
    keep = indices != padding
    indices, grad = indices[keep], grad[keep]
    if not indices.size:
        return {"out": out}
    order = np.argsort(indices, kind="stable")
    used, counts = np.unique(indices, return_counts=True)
    place = np.repeat(np.arange(used.size), counts)
    within = np.arange(indices.size) - np.repeat(np.cumsum(counts) - counts, counts)
    terms = np.zeros((int(counts.max()), used.size, grad.shape[1]))
    terms[within, place] = grad[order]
    if not call.integer("scaleGradByFreq"):
        out[used] = sums.total(terms)
        return {"out": out}
    many = counts[:, None].astype(np.float64)
    reciprocal = sums.single(1.0 / many)
    if sums.way.formula % 3 == 0:
        out[used] = sums.single(sums.total(terms) / many)
    elif sums.way.formula % 3 == 1:
        out[used] = sums.product(sums.total(terms), reciprocal)
    else:
        out[used] = sums.dot(terms, reciprocal)
    return {"out": out}


def _upsample(call: OracleInput, sums: Sums) -> dict[str, Float64]:
    grad = sums.load(call.tensors["gradOutput"])
    edges = edges_exact(grad.shape[-1], call.shape("out")[-1])
    sizes = edges[1:] - edges[:-1]
    steps = np.arange(int(sizes.max(initial=0)))[:, None]
    exists = steps < sizes
    gathered = grad[..., np.where(exists, edges[:-1] + steps, 0)]
    return {"out": sums.total(np.moveaxis(np.where(exists, gathered, 0.0), -2, 0))}


def _conv_tbc(call: OracleInput, sums: Sums) -> dict[str, Float64]:
    grad, x, weight = (sums.load(call.tensors[name]) for name in ("self", "input", "weight"))
    pad = call.integer("pad")
    out_time, batch, out_channels = grad.shape
    time, _, in_channels = x.shape
    length = weight.shape[0]
    taps = np.arange(length)
    at = np.arange(time) + pad - taps[:, None]
    exists = (at >= 0) & (at < out_time)
    # (k, o, t, b) beside (k, o, i): the pairs of tap and output channel are the terms.
    left = grad[np.clip(at, 0, out_time - 1)].transpose(0, 3, 1, 2).reshape(-1, time, batch, 1)
    right = weight.transpose(0, 2, 1).reshape(-1, 1, 1, in_channels)
    there = exists.repeat(out_channels, axis=0).reshape(-1, time, 1, 1)
    of_input = sums.dot(left, right, there)
    at = np.arange(out_time)[:, None] + taps - pad
    exists = (at >= 0) & (at < time)
    # (u, b, k, i) beside (u, b, o): the pairs of time and batch are the terms.
    left = x[np.clip(at, 0, time - 1)].transpose(0, 2, 1, 3).reshape(-1, length, in_channels, 1)
    right = grad.reshape(-1, 1, 1, out_channels)
    there = exists.repeat(batch, axis=0).reshape(-1, length, 1, 1)
    of_weight = sums.dot(left, right, there)
    of_bias = sums.total(sums.plain(call.tensors["self"]).reshape(-1, out_channels))
    return {"gradInput": of_input, "gradWeight": of_weight, "gradBias": of_bias}


EMULATIONS: Mapping[str, tuple[Emulation, int]] = MappingProxyType(
    {
        "aclnnConvTbcBackward": (_conv_tbc, 3),
        "aclnnEmbeddingDenseBackward": (_embedding, 1),
        "aclnnRmsNormGrad": (_rms_norm, 2),
        "aclnnSoftmaxBackward": (_softmax, 1),
        "aclnnUpsampleNearestExact1dBackward": (_upsample, 1),
    }
)
"""By operator: the emulation, and how many sums it asks for."""
FORMULAS = 6
"""A multiple of the number of formulas of each operator."""


def emulate(operator: str, call: OracleInput, way: Way) -> dict[str, Float64]:
    """The outputs before their last rounding."""
    function, count = EMULATIONS[operator]
    with np.errstate(all="ignore"):
        return function(call, Sums(way, count))


def terms_of(call: OracleInput) -> int:
    """An upper bound of the terms of all sums of one output."""
    if "weight" not in call.tensors:
        return max(array.size for array in call.tensors.values())
    grad, x, weight = (call.tensors[name] for name in ("self", "input", "weight"))
    terms: int = max(x.size * weight.shape[0] * weight.shape[2], weight.size * grad.shape[0] * grad.shape[1])
    return terms
