"""Small calls of each operator for torch, with what they give by hand, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from aclnn_cts.adapters.protocol import Call, Session
from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.generate.buffers import CallBuffers, prepare
from aclnn_cts.generate.recipes import case_arrays

OUTPUTS = {
    "aclnnConvTbcBackward": ("gradInput", "gradWeight", "gradBias"),
    "aclnnConvolutionBackward": ("gradWeight", "gradBias"),
    "aclnnEmbeddingDenseBackward": ("out",),
    "aclnnModulateBackward": ("grad_input", "grad_scale", "grad_shift"),
    "aclnnUpsampleNearestExact1dBackward": ("out",),
    "aclnnSoftmaxBackward": ("out",),
    "aclnnRmsNormGrad": ("dxOut", "dgammaOut"),
}
Make: TypeAlias = Callable[..., Case]
LAYOUTS = ("contiguous", "transposed", "gaps")


def tensor(values: object, dtype: str = "FLOAT") -> Tensor:
    shape = np.shape(np.asarray(values))
    return Tensor(shape, dtype, data=Data(values=tuple(np.asarray(values).reshape(-1).tolist())))


def laid_out(it: Tensor, how: str) -> Tensor:
    """The same tensor with other strides and an offset."""
    rank = len(it.shape)
    if how == "contiguous" or not rank:
        return it
    strides = [0] * rank
    step = 1 if how == "transposed" else 2
    for axis in range(rank) if how == "transposed" else reversed(range(rank)):
        strides[axis] = step
        step *= it.shape[axis] + (how == "gaps")
    return Tensor(it.shape, it.dtype, strides=tuple(strides), offset=3, data=it.data)


def prepared(it: Case) -> CallBuffers:
    arrays = case_arrays(it, [name for name, item in it.tensors() if item.data is not None])
    return prepare(it, outputs=frozenset(OUTPUTS[it.operator]), arrays=arrays)


def run(session: Session, it: Case) -> tuple[Outcome, CallBuffers]:
    buffers = prepared(it)
    (outcome,) = session.run([Call(it, buffers)])
    return outcome, buffers


def values_of(buffers: CallBuffers) -> dict[str, Any]:
    return {name: buffer.view.astype(np.float64).tolist() for name, buffer in buffers.outputs.items()}


def assert_nothing_else_touched(buffers: CallBuffers) -> None:
    for name, state in buffers.inspect().items():
        assert (state.gap, state.guard_before, state.guard_after, state.changed, state.unwritten) == (0,) * 5, name


def softmax(dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "gradOutput": tensor([[1, 2], [3, 5]], dtype),
        "output": tensor([[0.25, 0.75], [0.5, 0.5]], dtype),
        "dim": -1,
        "out": Tensor((2, 2), dtype),
    }
    return Case("aclnnSoftmaxBackward", arguments | changes)


def conv(dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "self": tensor([[[1]], [[2]], [[4]]], dtype),
        "input": tensor([[[3]], [[5]]], dtype),
        "weight": tensor([[[7]], [[11]]], dtype),
        "bias": tensor([0], dtype),
        "pad": 1,
        "cubeMathType": 0,
        "gradInput": Tensor((2, 1, 1), dtype),
        "gradWeight": Tensor((2, 1, 1), dtype),
        "gradBias": Tensor((1,), dtype),
    }
    return Case("aclnnConvTbcBackward", arguments | changes)


def embedding(dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "grad": tensor([[1, 2], [3, 4], [5, 6], [9, 9]], dtype),
        "indices": tensor([2, 0, 2, 1], "INT64"),
        "numWeights": 4,
        "paddingIdx": 1,
        "scaleGradByFreq": False,
        "out": Tensor((4, 2), dtype),
    }
    return Case("aclnnEmbeddingDenseBackward", arguments | changes)


def upsample(dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "gradOutput": tensor([[[1, 2, 3, 4, 5, 6, 7]]], dtype),
        "outputSizeOptional": (7,),
        "inputSize": (1, 1, 4),
        "scalesOptional": 0.0,
        "out": Tensor((1, 1, 4), dtype),
    }
    return Case("aclnnUpsampleNearestExact1dBackward", arguments | changes)


def rms_norm(dtype: str = "FLOAT", gamma_dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "dy": tensor([[1, 0], [0, 1]], dtype),
        "x": tensor([[1, 1], [1, -1]], dtype),
        "rstd": Tensor((2,), "FLOAT", data=Data(recipe="rstd", of="x", epsilon=0.0)),
        "gamma": tensor([2, 3], gamma_dtype),
        "dxOut": Tensor((2, 2), dtype),
        "dgammaOut": Tensor((2,), "FLOAT"),
    }
    return Case("aclnnRmsNormGrad", arguments | changes)


EXAMPLES: Mapping[Make, object] = {
    # y (g - sum(y g)): the sums are 1.75 and 4.
    softmax: {"out": [[-0.1875, 0.1875], [-0.5, 0.5]]},
    # gradInput[t] = sum_k self[t + 1 - k] weight[k]; gradWeight[k] = sum_u input[u + k - 1] self[u].
    conv: {
        "gradInput": [[[2 * 7 + 1 * 11]], [[4 * 7 + 2 * 11]]],
        "gradWeight": [[[3 * 2 + 5 * 4]], [[3 * 1 + 5 * 2]]],
        "gradBias": [7],
    },
    embedding: {"out": [[3, 4], [0, 0], [6, 8], [0, 0]]},
    upsample: {"out": [[[1 + 2, 3, 4 + 5, 6 + 7]]]},
    # x rstd = x; g = dy gamma; the means of g x are 1 and -1.5; dx = g - x mean; dgamma = sum of dy x.
    rms_norm: {"dxOut": [[1, -1], [1.5, 1.5]], "dgammaOut": [1, -1]},
}
