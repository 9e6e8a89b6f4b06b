"""aclnnFlashAttentionScoreGrad: attention backwards in the layouts BSH, SBH, BSND and BNSD; pse is scaled with S."""
# ruff: noqa: PLR0913, PLR0917 - a formula takes what the operator does

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._attention import FLAGS, SAVED, WRT, backward, forward

_Numbers = NDArray[Any]


def _backward(
    f: F, query: Array, keyIn: Array, value: Array, dy: Array, pseShiftOptional: Array | None,
    dropMaskOptional: _Numbers | None, attenMaskOptional: _Numbers | None, softmaxMaxOptional: Array,
    softmaxSumOptional: Array, attentionInOptional: Array, prefixOptional: Sequence[int] | None, scaleValue: float,
    keepProb: float, preTokens: int, nextTokens: int, headNum: int, inputLayout: str, innerPrecise: int,
    sparseMode: int,
) -> Outputs:  # fmt: skip
    return backward(f, locals())


def _forward(
    f: F, query: Array, keyIn: Array, value: Array, pseShiftOptional: Array | None, dropMaskOptional: _Numbers | None,
    attenMaskOptional: _Numbers | None, prefixOptional: Sequence[int] | None, scaleValue: float, keepProb: float,
    preTokens: int, nextTokens: int, headNum: int, inputLayout: str, sparseMode: int,
) -> Outputs:  # fmt: skip
    return forward(f, locals())


FORMULA = Operator.of(
    _backward,
    derivative=Derivative(forward=_forward, gradients={"dy": "y"}, wrt=WRT, saved=SAVED),
    flags=FLAGS,
)
