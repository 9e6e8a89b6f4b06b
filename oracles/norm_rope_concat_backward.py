"""aclnnNormRopeConcatBackward: the gradients of query, key and value that are normalised, joined and rotated.

The forward pass normalises query and encoderQuery by themselves, joins them along the sequence, puts heads in front of
positions and rotates; so it does with key. Value is joined alone. With neighbours x1 and x2, the rotation adds -x2 sin1
to x1 cos1 and x1 sin2 to x2 cos2 in Interleave. In Half the added terms are in the two halves: those of -x2 come first.
"""
# ruff: noqa: PLR0913, PLR0917 - a formula takes what the operator does

from collections.abc import Mapping
from typing import Any

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._normalisation import Groups, Sizes, gradients, normalised
from aclnn_cts.oracles._rotary import joined, parted

_AFFINE = 2
_HALF = 2
_Taken = Mapping[str, Any]


def _backward(
    f: F, gradQueryOutput: Array, gradKeyOutput: Array, gradValueOutput: Array, query: Array, key: Array,
    encoderQuery: Array | None, encoderKey: Array | None, normQueryWeight: Array | None, normQueryMean: Array | None,
    normQueryRstd: Array | None, normKeyWeight: Array | None, normKeyMean: Array | None, normKeyRstd: Array | None,
    normAddedQueryWeight: Array | None, normAddedQueryMean: Array | None, normAddedQueryRstd: Array | None,
    normAddedKeyWeight: Array | None, normAddedKeyMean: Array | None, normAddedKeyRstd: Array | None,
    ropeSin: Array | None, ropeCos: Array | None, normType: int, normAddedType: int, ropeType: int, concatOrder: int,
) -> Outputs:  # fmt: skip
    taken: _Taken = locals()
    own, encoded = _parts(gradValueOutput, key.shape[1], concatOrder)
    results = {"gradValue": own, "gradEncoderValue": encoded}
    for name in ("Query", "Key"):
        x = taken[name.lower()]
        joint = _before_rotation(f, taken[f"grad{name}Output"], taken)
        own, encoded = _parts(joint, x.shape[1], concatOrder)
        results |= _before_norm(f, own, x, (f"grad{name}", name), normType, taken)
        names = f"gradEncoder{name}", f"Added{name}"
        results |= _before_norm(f, encoded, taken[f"encoder{name}"], names, normAddedType, taken)
    return results


def _before_rotation(f: F, gradient: Array, taken: _Taken) -> Array:
    """(batch, headNum, positions, headDim): the gradient of what was rotated."""
    if not taken["ropeType"]:
        return gradient
    positions, width = gradient.shape[2:]
    cos, sin = _angles(f, taken, positions)
    first, second = parted(gradient * sin, _pairs(width, taken))
    # Which positions fewer rows rotate is not said.
    rotated: Array = f.undecided(
        gradient * cos + joined(f, second, -first, 1), where=taken["ropeSin"].shape[0] != positions
    )
    return rotated


def _angles(f: F, taken: _Taken, positions: int) -> tuple[Array, Array]:
    """(positions, headDim): cosines and sines; positions beyond their rows stay as they are."""
    cos, sin = taken["ropeCos"], taken["ropeSin"]
    rest = (positions - cos.shape[0], cos.shape[1])
    if rest[0] <= 0:
        return cos, sin
    return f.concat([cos, f.lift(np.ones(rest))]), f.concat([sin, f.lift(np.zeros(rest))])


def _pairs(width: int, taken: _Taken) -> int:
    """Half of the length of the blocks in which the rotation puts its pairs."""
    return width // 2 if taken["ropeType"] == _HALF else 1


def _parts(gradient: Array, length: int, concatOrder: int) -> tuple[Array, Array]:
    """(batch, positions, headNum, headDim): what belongs to a tensor of such a length, and to that of the encoder."""
    turned = gradient.transpose(0, 2, 1, 3)
    if not concatOrder:
        return turned[:, :length], turned[:, length:]
    start = turned.shape[1] - length
    return turned[:, start:], turned[:, :start]


def _before_norm(
    f: F, gradient: Array, x: Array | None, names: tuple[str, str], kind: int, taken: _Taken
) -> dict[str, Array]:
    """The gradients of a tensor and of its parameters; `names`: of the first, and within those of the others."""
    output, *parameters = names[0], f"gradNorm{names[1]}Weight", f"gradNorm{names[1]}Bias"
    sizes = gradient.shape[-1:]
    if x is None or not kind:
        # Without a normalisation, an output that is given for its parameters holds anything.
        unused: Array = f.undecided(f.lift(np.zeros(sizes)), where=True)
        return {output: gradient, **dict.fromkeys(parameters, unused)}
    shapes: dict[str, Sizes | None] = {output: x.shape, **dict.fromkeys(parameters, sizes)}
    weight = taken[f"norm{names[1]}Weight"] if kind == _AFFINE else None
    statistics = taken[f"norm{names[1]}Mean"], taken[f"norm{names[1]}Rstd"]
    return gradients(f, Groups.of_rows(x.shape, sizes), gradient, x, *statistics, weight, shapes)


def _forward(
    f: F, query: Array, key: Array, value: Array, encoderQuery: Array | None, encoderKey: Array | None,
    encoderValue: Array | None, normQueryWeight: Array | None, normKeyWeight: Array | None,
    normAddedQueryWeight: Array | None, normAddedKeyWeight: Array | None, queryBias: Array | None,
    keyBias: Array | None, addedQueryBias: Array | None, addedKeyBias: Array | None, ropeSin: Array | None,
    ropeCos: Array | None, normType: int, normAddedType: int, ropeType: int, concatOrder: int,
) -> Outputs:  # fmt: skip
    taken: _Taken = locals()
    results = {"value": _joint(f, [value, encoderValue], concatOrder)}
    for name in ("Query", "Key"):
        made, statistics = _norm(f, taken[name.lower()], name, normType, taken)
        encoded, others = _norm(f, taken[f"encoder{name}"], f"Added{name}", normAddedType, taken)
        joint = _joint(f, [made, encoded], concatOrder)
        results |= {name.lower(): _rotated(f, joint, taken), **statistics, **others}
    return results


def _norm(f: F, x: Array | None, name: str, kind: int, taken: _Taken) -> tuple[Array | None, dict[str, Array]]:
    if x is None or not kind:
        # Nothing is saved; the tensors of the operator are null.
        nothing: Array = f.lift(np.zeros(0))
        return x, {f"norm{name}Mean": nothing, f"norm{name}Rstd": nothing}
    rows, sizes = Groups.of_rows(x.shape, x.shape[-1:]), (*x.shape[:-1], 1)
    is_affine = kind == _AFFINE
    weight = taken[f"norm{name}Weight"] if is_affine else None
    bias = taken[f"{name[0].lower()}{name[1:]}Bias"] if is_affine else None
    found = normalised(f, rows, x, weight, bias, sizes)
    return found["y"], {f"norm{name}Mean": found["mean"], f"norm{name}Rstd": found["rstd"]}


def _joint(f: F, parts: list[Array | None], concatOrder: int) -> Array:
    given = [part for part in (reversed(parts) if concatOrder else parts) if part is not None]
    joint: Array = f.concat(given, 1).transpose(0, 2, 1, 3)
    return joint


def _rotated(f: F, x: Array, taken: _Taken) -> Array:
    if not taken["ropeType"]:
        return x
    positions, width = x.shape[2:]
    cos, sin = _angles(f, taken, positions)
    first, second = parted(x, 1)
    return x * cos + joined(f, -second, first, _pairs(width, taken)) * sin


_NAMES = ("Query", "Key", "AddedQuery", "AddedKey")
_DERIVATIVE = Derivative(
    forward=_forward,
    gradients={"gradQueryOutput": "query", "gradKeyOutput": "key", "gradValueOutput": "value"},
    wrt={
        "gradQuery": "query",
        "gradKey": "key",
        "gradValue": "value",
        "gradEncoderQuery": "encoderQuery",
        "gradEncoderKey": "encoderKey",
        "gradEncoderValue": "encoderValue",
        **{f"gradNorm{name}Weight": f"norm{name}Weight" for name in _NAMES},
        **{f"gradNorm{name}Bias": f"{name[0].lower()}{name[1:]}Bias" for name in _NAMES},
    },
    saved=tuple(f"norm{name}{statistic}" for name in _NAMES for statistic in ("Mean", "Rstd")),
)
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
