"""aclnnFlashAttentionUnpaddingScoreGradV3: attention backwards, sequence by sequence, with rotary parts of heads."""
# ruff: noqa: PLR0913, PLR0917 - a formula takes what the operator does

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._attention import FLAGS, SAVED, WRT, backward, forward

_Numbers = NDArray[Any]


def _backward(
    f: F, query: Array, queryRope: Array, keyIn: Array, keyInRope: Array, value: Array, dy: Array,
    pseShiftOptional: Array | None, dropMaskOptional: _Numbers | None, paddingMaskOptional: _Numbers | None,
    attenMaskOptional: _Numbers | None, softmaxMaxOptional: Array, softmaxSumOptional: Array,
    softmaxInOptional: Array | None, attentionInOptional: Array, prefixOptional: Sequence[int] | None,
    actualSeqQLenOptional: Sequence[int], actualSeqKvLenOptional: Sequence[int], scaleValue: float, keepProb: float,
    preTokens: int, nextTokens: int, headNum: int, inputLayout: str, sparseMode: int, pseType: int,
) -> Outputs:  # fmt: skip
    whole = {"query": f.concat((query, queryRope), 2), "keyIn": f.concat((keyIn, keyInRope), 2)}
    results: dict[str, Any] = dict(backward(f, {**locals(), **whole}))
    width = query.shape[2]
    for name, rope in (("dqOut", "dqRopeOut"), ("dkOut", "dkRopeOut")):
        both = results[name]
        results |= {name: both[:, :, :width], rope: both[:, :, width:]}
    optional = (pseShiftOptional, dropMaskOptional, paddingMaskOptional, softmaxInOptional)
    unread = pseType > 1 or any(array is not None for array in optional)
    return {name: f.undecided(array, where=unread) for name, array in results.items()}


def _forward(
    f: F, query: Array, queryRope: Array, keyIn: Array, keyInRope: Array, value: Array, pseShiftOptional: Array | None,
    dropMaskOptional: _Numbers | None, attenMaskOptional: _Numbers | None, prefixOptional: Sequence[int] | None,
    actualSeqQLenOptional: Sequence[int], actualSeqKvLenOptional: Sequence[int], scaleValue: float, keepProb: float,
    preTokens: int, nextTokens: int, headNum: int, inputLayout: str, sparseMode: int, pseType: int,
) -> Outputs:  # fmt: skip
    whole = {"query": f.concat((query, queryRope), 2), "keyIn": f.concat((keyIn, keyInRope), 2)}
    return forward(f, {**locals(), **whole})


FORMULA = Operator.of(
    _backward,
    derivative=Derivative(
        forward=_forward,
        gradients={"dy": "y"},
        wrt={**WRT, "dqRopeOut": "queryRope", "dkRopeOut": "keyInRope"},
        saved=SAVED,
    ),
    flags=FLAGS,
)
