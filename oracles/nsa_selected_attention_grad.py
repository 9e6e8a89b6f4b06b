"""aclnnNsaSelectedAttentionGrad: attention backwards; a query sees the blocks of keys that it selects."""
# ruff: noqa: PLR0913, PLR0917 - a formula takes what the operator does

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.attention import under_usual_names
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._attention import SAVED, WRT, backward, forward

_Numbers = NDArray[Any]


def _backward(
    f: F, query: Array, key: Array, value: Array, attentionOut: Array, attentionOutGrad: Array, softmaxMax: Array,
    softmaxSum: Array, topkIndices: _Numbers, actualSeqQLenOptional: Sequence[int],
    actualSeqKvLenOptional: Sequence[int], attenMaskOptional: _Numbers | None, scaleValue: float,
    selectedBlockSize: int, headNum: int, inputLayout: str, sparseMode: int,
) -> Outputs:  # fmt: skip
    chosen = np.sort(topkIndices, axis=2)
    repeats = bool((chosen[:, :, 1:] == chosen[:, :, :-1]).any())
    unread = attenMaskOptional is not None or sparseMode != 0 or repeats
    results = backward(f, under_usual_names(locals()))
    return {name: f.undecided(array, where=unread) for name, array in results.items()}


def _forward(
    f: F, query: Array, key: Array, value: Array, topkIndices: _Numbers, actualSeqQLenOptional: Sequence[int],
    actualSeqKvLenOptional: Sequence[int], scaleValue: float, selectedBlockSize: int, headNum: int, inputLayout: str,
) -> Outputs:  # fmt: skip
    results = forward(f, under_usual_names(locals()))
    return {_OWN_NAMES.get(name, name): array for name, array in results.items()}


_OWN_NAMES = dict(zip(SAVED, ("attentionOut", "softmaxMax", "softmaxSum"), strict=True))
FORMULA = Operator.of(
    _backward,
    derivative=Derivative(
        forward=_forward,
        gradients={"attentionOutGrad": "y"},
        wrt=WRT | {"dkOut": "key"},
        saved=tuple(_OWN_NAMES.values()),
    ),
)
