"""The five operators in float32, as devices may compute them: several orders of summation, and deliberate faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Call, Capabilities
from aclnn_cts.adapters.results import outcome_of
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to, to_dtype
from aclnn_cts.core.target import Target
from aclnn_cts.oracles._nearest import edges_exact, edges_forward, edges_range
from aclnn_cts.speclang.model import Spec

Single = NDArray[np.float32]
ORDERS = ("forward", "reversed", "pairwise", "shuffled")
GRADIENTS = {
    "aclnnConvTbcBackward": "self",
    "aclnnEmbeddingDenseBackward": "grad",
    "aclnnRmsNormGrad": "dy",
    "aclnnSoftmaxBackward": "gradOutput",
    "aclnnUpsampleNearestExact1dBackward": "gradOutput",
}


def total(terms: Single, order: str) -> Single:
    """The sum over the last axis, every partial sum rounded to float32."""
    count = terms.shape[-1]
    if order == "reversed":
        terms = terms[..., ::-1]
    elif order == "shuffled":
        terms = terms[..., np.random.default_rng(count).permutation(count)]
    elif order == "pairwise":
        while terms.shape[-1] > 1:
            odd = terms[..., terms.shape[-1] // 2 * 2 :]
            terms = np.concatenate([terms[..., :-1:2] + terms[..., 1::2], odd], axis=-1)
    result = np.zeros(terms.shape[:-1], np.float32)
    for place in range(terms.shape[-1]):
        result = result + terms[..., place]
    return result


def conv_tbc_backward(case: Case, inputs: Mapping[str, Any], order: str) -> dict[str, Single]:
    grad, x, weight = inputs["self"], inputs["input"], inputs["weight"]
    pad = attribute(case, "pad")
    t, k, u = np.arange(x.shape[0]), np.arange(weight.shape[0]), np.arange(grad.shape[0])
    of_grad = t[:, None] + pad - k
    exists = (of_grad >= 0) & (of_grad < grad.shape[0])
    # (T, L, B, Ci, Co), and 0 where a tap sees padding.
    taken = grad[np.where(exists, of_grad, 0)]
    terms = np.where(exists[:, :, None, None, None], taken[:, :, :, None, :] * weight[None, :, None], np.float32(0))
    to_input = total(np.moveaxis(terms, 1, 3).reshape(*x.shape, -1), order)
    of_x = u[:, None] + k - pad
    exists = (of_x >= 0) & (of_x < x.shape[0])
    taken = x[np.where(exists, of_x, 0)]
    terms = np.where(
        exists[:, :, None, None, None], taken[..., None] * grad[:, None, :, None, :], np.float32(0)
    )  # (To, L, B, Ci, Co)
    to_weight = total(np.moveaxis(terms, (0, 2), (3, 4)).reshape(*weight.shape, -1), order)
    to_bias = total(np.moveaxis(grad, -1, 0).reshape(grad.shape[-1], -1), order)
    return {"gradInput": to_input, "gradWeight": to_weight, "gradBias": to_bias}


def embedding_dense_backward(case: Case, inputs: Mapping[str, Any], order: str) -> dict[str, Single]:
    grad, indices = inputs["grad"], inputs["indices"].reshape(-1).astype(np.int64)
    rows, padding = attribute(case, "numWeights"), attribute(case, "paddingIdx")
    grad = grad.reshape(indices.size, -1)
    out = np.zeros((rows, grad.shape[1]), np.float32)
    for row in np.unique(indices[indices != padding]):
        own = grad[indices == row]
        out[row] = total(np.ascontiguousarray(own.T), order)
        if case.arguments["scaleGradByFreq"]:
            out[row] *= np.float32(1) / np.float32(len(own))
    return {"out": out}


def rms_norm_grad(case: Case, inputs: Mapping[str, Any], order: str) -> dict[str, Single]:
    shapes = [inputs[name].shape for name in ("x", "gamma")]
    gamma, rstd = inputs["gamma"].reshape(-1), inputs["rstd"].reshape(-1, 1)
    dy, x = (inputs[name].reshape(rstd.size, gamma.size) for name in ("dy", "x"))
    xhat, g = x * rstd, dy * gamma
    mean = total(g * xhat, order)[:, None] / np.float32(gamma.size)
    dx = (g - xhat * mean) * rstd if order != "reversed" else g * rstd - xhat * (mean * rstd)
    return {
        "dxOut": dx.reshape(shapes[0]),
        "dgammaOut": total(np.ascontiguousarray((dy * xhat).T), order).reshape(shapes[1]),
    }


def softmax_backward(case: Case, inputs: Mapping[str, Any], order: str) -> dict[str, Single]:
    y, g, dim = inputs["output"], inputs["gradOutput"], attribute(case, "dim")
    s = np.expand_dims(total(np.moveaxis(y * g, dim, -1), order), dim)
    return {"out": y * (g - s) if order != "pairwise" else y * g - y * s}


def upsample_nearest_exact1d_backward(case: Case, inputs: Mapping[str, Any], order: str) -> dict[str, Single]:
    grad = inputs["gradOutput"]
    out = case.arguments["out"]
    assert isinstance(out, Tensor)
    length, width = grad.shape[-1], out.shape[-1]
    ratio = np.float32(length) / np.float32(width)
    edges = {
        "reversed": lambda: edges_range(ratio, length, width),
        "pairwise": lambda: edges_forward(np.float32(width) / np.float32(length), length, width),
    }.get(order, lambda: edges_exact(length, width))()
    sums = [total(grad[..., edges[i] : edges[i + 1]], order) for i in range(width)]
    return {"out": np.stack(sums, axis=-1)}


OPERATORS: Mapping[str, Callable[[Case, Mapping[str, Any], str], dict[str, Single]]] = {
    "aclnnConvTbcBackward": conv_tbc_backward,
    "aclnnEmbeddingDenseBackward": embedding_dense_backward,
    "aclnnRmsNormGrad": rms_norm_grad,
    "aclnnSoftmaxBackward": softmax_backward,
    "aclnnUpsampleNearestExact1dBackward": upsample_nearest_exact1d_backward,
}


def attribute(case: Case, name: str) -> int:
    value = case.arguments[name]
    assert isinstance(value, int)
    return value


def clipped(case: Case, inputs: dict[str, Any]) -> None:
    """Gradient clipping nobody asked for."""
    name = GRADIENTS[case.operator]
    inputs[name] = np.clip(inputs[name], -1, 1)


def narrowed(case: Case, inputs: dict[str, Any]) -> None:
    """The gradient goes through half precision."""
    name = GRADIENTS[case.operator]
    inputs[name] = round_to(inputs[name].astype(np.float64), BINARY_FORMATS["FLOAT16"]).astype(np.float32)


def first_doubled(case: Case, inputs: dict[str, Any]) -> None:
    """The first element of the memory counts twice."""
    inputs[GRADIENTS[case.operator]].reshape(-1)[:1] *= 2


def last_dropped(case: Case, inputs: dict[str, Any]) -> None:
    """The tail of each line is forgotten."""
    inputs[GRADIENTS[case.operator]][..., -1] = 0


def kept_last(case: Case, inputs: dict[str, Any]) -> None:
    """Of equal indices the last one overwrites the others."""
    indices = inputs["indices"].reshape(-1)
    grad = inputs["grad"].reshape(indices.size, -1)
    last = {value: place for place, value in enumerate(indices.tolist())}
    grad[[place for place, value in enumerate(indices.tolist()) if last[value] != place]] = 0


def gain(case: Case, inputs: Mapping[str, Any], results: dict[str, Single]) -> None:
    """Everything is a little too large."""
    results.update({name: value * np.float32(1.0625) for name, value in results.items()})


def offset(case: Case, inputs: Mapping[str, Any], results: dict[str, Single]) -> None:
    """Something remains where nothing should be."""
    results.update({name: value + np.float32(2.0**-20) for name, value in results.items()})


def plain_mean(case: Case, inputs: Mapping[str, Any], results: dict[str, Single]) -> None:
    """The mean of the gradient is taken away instead of the mean under output."""
    y, g, dim = inputs["output"], inputs["gradOutput"], attribute(case, "dim")
    results["out"] = y * (g - g.mean(axis=dim, keepdims=True, dtype=np.float32))


def padding_times_zero(case: Case, inputs: Mapping[str, Any], results: dict[str, Single]) -> None:
    """Padding rows are multiplied by zero instead of skipped."""
    indices, padding = inputs["indices"].reshape(-1).astype(np.int64), attribute(case, "paddingIdx")
    if padding < len(results["out"]):
        results["out"][padding] = (inputs["grad"].reshape(indices.size, -1)[indices == padding] * 0).sum(axis=0)


def unused_left(case: Case, inputs: Mapping[str, Any], results: dict[str, Single]) -> None:
    """Rows that no index names keep what the memory held."""
    unused = np.ones(len(results["out"]), np.bool_)
    unused[inputs["indices"].reshape(-1).astype(np.int64)] = False
    results["out"][unused] = 2.0**-30


def first_row_lost(case: Case, inputs: Mapping[str, Any], results: dict[str, Single]) -> None:
    """The first row of the table is taken for padding."""
    results["out"][0] = 0


BEFORE: Mapping[str, Callable[[Case, dict[str, Any]], None]] = {
    "clipped": clipped,
    "narrowed": narrowed,
    "first doubled": first_doubled,
    "last dropped": last_dropped,
    "kept last": kept_last,
}
AFTER: Mapping[str, Callable[[Case, Mapping[str, Any], dict[str, Single]], None]] = {
    "gain": gain,
    "offset": offset,
    "plain mean": plain_mean,
    "padding times zero": padding_times_zero,
    "unused left": unused_left,
    "first row lost": first_row_lost,
}


WAVERING: Mapping[str, int] = {"wavers": 2, "wavers seldom": 4, "order varies": 2}
"""One call in so many has other bits: the next number in FLOAT, or those of another order of its sums."""


class Emulated:
    """A session and its adapter in one. `fault` is one of `BEFORE`, `AFTER`, `strides ignored` and `WAVERING`."""

    capabilities = Capabilities(description="float32 in NumPy")
    environment: Mapping[str, str] = {}

    def __init__(self, order: str = "forward", fault: str = "") -> None:
        assert fault in ("", "strides ignored", *WAVERING, *BEFORE, *AFTER)
        self.order, self.fault = order, fault
        self._calls = 0

    def open(self, target: Target, specs: Mapping[str, Spec]) -> Emulated:
        return self

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [self._call(call) for call in calls]

    def close(self) -> None: ...

    def _call(self, call: Call) -> Outcome:
        case = call.case
        assert call.buffers is not None
        inputs = {name: self._input(case, name, buffer.view) for name, buffer in call.buffers.inputs.items()}
        with np.errstate(all="ignore"):
            if self.fault in BEFORE:
                BEFORE[self.fault](case, inputs)
            self._calls += 1
            varies = self._calls % WAVERING.get(self.fault, 1) == 1
            order = "reversed" if varies and self.fault == "order varies" else self.order
            results = OPERATORS[case.operator](case, inputs, order)
            if self.fault in AFTER:
                AFTER[self.fault](case, inputs, results)
            if varies and self.fault != "order varies":
                results = {name: np.nextafter(value, np.float32(np.inf)) for name, value in results.items()}
            return outcome_of(call, {name: _stored(case, name, value) for name, value in results.items()})

    def _input(self, case: Case, name: str, view: NDArray[Any]) -> NDArray[Any]:
        tensor = case.arguments[name]
        assert isinstance(tensor, Tensor)
        if self.fault == "strides ignored" and view.ndim > 1:
            order = np.argsort(np.array(view.strides))[::-1]
            view = view.transpose(order).reshape(view.shape)
        if tensor.dtype in BINARY_FORMATS and name != "indices":
            return np.array(view).astype(np.float32)
        return np.array(view)


def _stored(case: Case, name: str, value: Single) -> NDArray[Any]:
    tensor = case.arguments[name]
    assert isinstance(tensor, Tensor)
    wide = value.astype(np.float64)
    if case.operator == "aclnnSoftmaxBackward":
        source = case.arguments["gradOutput"]
        assert isinstance(source, Tensor)
        wide = to_dtype(wide, source.dtype).astype(np.float64)
    return to_dtype(wide, tensor.dtype)
