"""Operators that show what formulas can express: two to fifteen lines each, as an oracle file would have them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def tanh_backward(f: F, gradOutput: Array, output: Array) -> Outputs:
    return {"gradInput": gradOutput * (1.0 - output * output)}


def tanh_distributed(f: F, gradOutput: Array, output: Array) -> Outputs:
    return {"gradInput": gradOutput - gradOutput * (output * output)}


def tanh_forward(f: F, self: Array) -> Outputs:
    return {"output": f.tanh(self)}


TANH = Operator.of(
    tanh_backward,
    tanh_distributed,
    derivative=Derivative(
        forward=tanh_forward, gradients={"gradOutput": "output"}, wrt={"gradInput": "self"}, saved=("output",)
    ),
)


def sigmoid_backward(f: F, gradOutput: Array, y: Array) -> Outputs:
    return {"gradInput": gradOutput * (1.0 - y) * y}


def sigmoid_last(f: F, gradOutput: Array, y: Array) -> Outputs:
    return {"gradInput": (1.0 - y) * y * gradOutput}


def sigmoid_forward(f: F, self: Array) -> Outputs:
    return {"y": f.sigmoid(self)}


SIGMOID = Operator.of(
    sigmoid_backward,
    sigmoid_last,
    derivative=Derivative(
        forward=sigmoid_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"}, saved=("y",)
    ),
)


def gelu_backward(f: F, gradOutput: Array, self: Array, approximate: str) -> Outputs:
    if approximate == "tanh":
        c, a = math.sqrt(2.0 / math.pi), 0.044715
        t = f.tanh(c * (self + a * (self * self * self)))
        slope = (1.0 - t * t) * (c * (1.0 + 3.0 * a * (self * self)))
        return {"gradInput": gradOutput * (0.5 * (1.0 + t) + 0.5 * self * slope)}
    density = f.exp(-0.5 * (self * self)) * (1.0 / math.sqrt(2.0 * math.pi))
    return {"gradInput": gradOutput * (0.5 * (1.0 + f.erf(self * math.sqrt(0.5))) + self * density)}


def gelu_forward(f: F, self: Array, approximate: str) -> Outputs:
    if approximate == "tanh":
        return {"y": 0.5 * self * (1.0 + f.tanh(math.sqrt(2.0 / math.pi) * (self + 0.044715 * (self * self * self))))}
    return {"y": 0.5 * self * (1.0 + f.erf(self * math.sqrt(0.5)))}


GELU = Operator.of(
    gelu_backward,
    derivative=Derivative(forward=gelu_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"}),
)


def log_softmax_backward(f: F, gradOutput: Array, output: Array, dim: int) -> Outputs:
    return {"out": gradOutput - f.exp(output) * gradOutput.sum(dim, keepdims=True)}


def log_softmax_forward(f: F, self: Array, dim: int) -> Outputs:
    centred = self - self.max(dim, keepdims=True)
    return {"output": centred - f.log(f.exp(centred).sum(dim, keepdims=True))}


LOG_SOFTMAX = Operator.of(
    log_softmax_backward,
    derivative=Derivative(
        forward=log_softmax_forward, gradients={"gradOutput": "output"}, wrt={"out": "self"}, saved=("output",)
    ),
)


def layer_norm_backward(
    f: F, gradOut: Array, input: Array, mean: Array, rstd: Array, weightOptional: Array | None
) -> Outputs:
    xhat = f.as_written(input - mean) * rstd
    g = gradOut if weightOptional is None else gradOut * weightOptional
    inner = g - g.mean(1, keepdims=True) - xhat * (g * xhat).mean(1, keepdims=True)
    return {"gradInput": inner * rstd, "gradWeight": (gradOut * xhat).sum(0), "gradBias": gradOut.sum(0)}


def layer_norm_by_rows(
    f: F, gradOut: Array, input: Array, mean: Array, rstd: Array, weightOptional: Array | None
) -> Outputs:
    """A scale and two offsets a row: useless at a large mean, and found in practice."""
    g = gradOut if weightOptional is None else gradOut * weightOptional
    db, ds = g.sum(1, keepdims=True), (g * input).sum(1, keepdims=True)
    b = (db * mean - ds) * rstd * rstd * rstd / input.shape[1]
    c = -1.0 * b * mean - db * rstd / input.shape[1]
    xhat = f.as_written(input - mean) * rstd
    return {"gradInput": rstd * g + b * input + c, "gradWeight": (gradOut * xhat).sum(0), "gradBias": gradOut.sum(0)}


def layer_norm_forward(f: F, input: Array, weightOptional: Array | None, gradBias: tuple[int, ...]) -> Outputs:
    mean = input.mean(1, keepdims=True)
    centred = input - mean
    rstd = 1.0 / f.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5)
    y = centred * rstd
    return {"y": y if weightOptional is None else y * weightOptional, "mean": mean, "rstd": rstd}


LAYER_NORM = Operator.of(
    layer_norm_backward,
    layer_norm_by_rows,
    derivative=Derivative(
        forward=layer_norm_forward,
        gradients={"gradOut": "y"},
        wrt={"gradInput": "input", "gradWeight": "weightOptional"},
        saved=("mean", "rstd"),
    ),
)


def mse_loss_backward(f: F, gradOutput: Array, self: Array, target: Array, reduction: int) -> Outputs:
    scale = 2.0 / self.size if reduction == 1 else 2.0
    return {"out": f.as_written(self - target) * scale * gradOutput}


def mse_loss_forward(f: F, self: Array, target: Array, reduction: int) -> Outputs:
    square = (self - target) * (self - target)
    if reduction == 0:
        return {"loss": square}
    return {"loss": square.mean() if reduction == 1 else square.sum()}


MSE_LOSS = Operator.of(
    mse_loss_backward,
    derivative=Derivative(forward=mse_loss_forward, gradients={"gradOutput": "loss"}, wrt={"out": "self"}),
)


def leaky_relu_backward(f: F, gradOutput: Array, self: Array, negativeSlope: float) -> Outputs:
    return {"out": f.where(self > 0.0, gradOutput, gradOutput * negativeSlope)}


def leaky_relu_forward(f: F, self: Array, negativeSlope: float) -> Outputs:
    return {"y": f.where(self > 0.0, self, self * negativeSlope)}


LEAKY_RELU = Operator.of(
    leaky_relu_backward,
    derivative=Derivative(forward=leaky_relu_forward, gradients={"gradOutput": "y"}, wrt={"out": "self"}),
)


def windows(shape: tuple[int, ...], out: tuple[int, ...], kernel: int, stride: int, pad: int) -> NDArray[np.int64]:
    """The cells (N, C, oh, ow, kernel, kernel) of each window, -1 in the padding."""
    (n, c, height, width), (_, _, rows, columns) = shape, out
    y = (np.arange(rows) * stride - pad)[:, None, None, None] + np.arange(kernel)[:, None]
    x = (np.arange(columns) * stride - pad)[:, None, None] + np.arange(kernel)
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    planes = np.arange(n * c).reshape(n, c, 1, 1, 1, 1) * (height * width)
    return np.where(inside, planes + y * width + x, -1)


def divisors(cells: NDArray[np.int64], *, include: bool, override: int) -> NDArray[Any]:
    """What each window is divided by."""
    if override or include:
        return np.full((*cells.shape[:4], 1, 1), override or cells.shape[4] * cells.shape[5])
    return np.asarray(np.maximum((cells >= 0).sum((4, 5), keepdims=True), 1))


def avg_pool_backward(
    f: F,
    gradOutput: Array,
    self: Array,
    kernel: int,
    stride: int,
    padding: int,
    countIncludePad: bool,
    divisorOverride: int,
) -> Outputs:
    cells = windows(self.shape, gradOutput.shape, kernel, stride, padding)
    share = gradOutput.reshape(*gradOutput.shape, 1, 1) / divisors(
        cells, include=countIncludePad, override=divisorOverride
    )
    return {"gradInput": f.scatter_add(share.broadcast_to(cells.shape), cells, self.shape)}


def avg_pool_forward(
    f: F,
    self: Array,
    gradOutput: tuple[int, ...],
    kernel: int,
    stride: int,
    padding: int,
    countIncludePad: bool,
    divisorOverride: int,
) -> Outputs:
    cells = windows(self.shape, gradOutput, kernel, stride, padding)
    total = f.take(self, cells) / divisors(cells, include=countIncludePad, override=divisorOverride)
    return {"y": total.sum((4, 5))}


AVG_POOL = Operator.of(
    avg_pool_backward,
    derivative=Derivative(forward=avg_pool_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"}),
)


def max_pool_backward(f: F, gradOutput: Array, self: Array, indices: NDArray[np.int64]) -> Outputs:
    n, c, height, width = self.shape
    planes = np.arange(n * c).reshape(n, c, 1, 1) * (height * width)
    return {"gradInput": f.scatter_add(gradOutput, indices + planes, self.shape)}


def max_pool_forward(f: F, self: Array, indices: NDArray[np.int64]) -> Outputs:
    n, c, height, width = self.shape
    return {"y": f.take(self, indices + np.arange(n * c).reshape(n, c, 1, 1) * (height * width))}


MAX_POOL = Operator.of(
    max_pool_backward,
    derivative=Derivative(forward=max_pool_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"}),
)


def attention_backward(f: F, query: Array, key: Array, value: Array, dy: Array, scale: float) -> Outputs:
    s = f.as_written(f.einsum("id,jd->ij", query, key)) * scale
    e = f.exp(f.as_written(s - s.max(1, keepdims=True)))
    p = e / f.as_written(e.sum(1, keepdims=True))
    dp = f.as_written(f.einsum("id,jd->ij", dy, value))
    ds = f.as_written(p * f.as_written(dp - (dp * p).sum(1, keepdims=True))) * scale
    return {
        "dq": f.einsum("ij,jd->id", ds, key),
        "dk": f.einsum("ij,id->jd", ds, query),
        "dv": f.einsum("ij,id->jd", p, dy),
    }


def attention_forward(f: F, query: Array, key: Array, value: Array, scale: float) -> Outputs:
    s = f.einsum("id,jd->ij", query, key) * scale
    e = f.exp(s - s.max(1, keepdims=True))
    return {"y": f.einsum("ij,jd->id", e / e.sum(1, keepdims=True), value)}


ATTENTION = Operator.of(
    attention_backward,
    derivative=Derivative(
        forward=attention_forward, gradients={"dy": "y"}, wrt={"dq": "query", "dk": "key", "dv": "value"}
    ),
)
