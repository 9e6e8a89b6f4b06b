"""What each document states, call by call: written by hand from the documents, not from the spec files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.case import CallOptions, Case, Data, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.spec.binding import bind_case
from aclnn_cts.spec.evaluate import evaluate
from aclnn_cts.spec.kinds import Strength
from aclnn_cts.spec.load import load_specs, package_folder
from aclnn_cts.spec.yaml_file import read_yaml

SPECS = load_specs()
DOCUMENTS = Path(__file__).parents[3] / "shared" / "docs"

A2, TRAINING, INFERENCE = "atlas-a2", "atlas-training", "atlas-inference"
OK = ("ACLNN_SUCCESS",)
NULL = ("ACLNN_ERR_PARAM_NULLPTR",)
INVALID = ("ACLNN_ERR_PARAM_INVALID",)
TILING = ("ACLNN_ERR_INNER_TILING_ERROR",)
EITHER = ("ACLNN_ERR_PARAM_INVALID", "ACLNN_ERR_INNER_TILING_ERROR")
ERROR = ("ACLNN_ERR_*",)
ANYTHING = ("ACLNN_ERR_*", "ACLNN_SUCCESS")


def t(*shape: int, dtype: str = "FLOAT", form: str = "ND", **fields: Any) -> Tensor:  # noqa: ANN401
    return Tensor(shape, dtype, form, **fields)


def of_dtype(arguments: Mapping[str, Any], dtype: str, *names: str) -> dict[str, Any]:
    """The tensors named (all where none is) in another dtype."""
    return {
        name: Tensor(value.shape, dtype, value.format)
        for name, value in arguments.items()
        if isinstance(value, Tensor) and (not names or name in names)
    }


def check(operator: str, arguments: Mapping[str, Any], product: str, broken: str, statuses: tuple[str, ...]) -> None:
    case = Case(operator, arguments, Target(product=product))
    spec = bind_case(SPECS, case, where="here")
    found = evaluate(spec, case)
    assert {item.id for item in found.broken} == set(broken.split())
    assert found.statuses == statuses


SOFTMAX: dict[str, Any] = {"gradOutput": t(2, 3), "output": t(2, 3), "dim": 1, "out": t(2, 3)}


@pytest.mark.parametrize(
    ("product", "changes", "broken", "statuses"),
    [
        (A2, {}, "", OK),
        (A2, of_dtype(SOFTMAX, "BF16"), "", OK),
        (A2, of_dtype(SOFTMAX, "FLOAT16"), "", OK),
        (TRAINING, of_dtype(SOFTMAX, "FLOAT16"), "", OK),
        (INFERENCE, {}, "", OK),
        (A2, {"dim": -2}, "", OK),
        (A2, {"dim": 0}, "", OK),
        (A2, {"gradOutput": t(2, 3, strides=(1, 2)), "out": t(2, 3, strides=(4, 1))}, "", OK),
        (A2, {"out": t(2, 3, dtype="BF16")}, "", OK),
        (A2, dict.fromkeys(("gradOutput", "output", "out"), t(1, 1, 1, 2, 1, 1, 1, 3)), "", OK),
        (A2, {"gradOutput": None}, "gradOutput.null", NULL),
        (A2, {"output": None}, "output.null", NULL),
        (A2, {"out": None}, "out.null", NULL),
        (A2, {"dim": 2}, "dim.range", INVALID),
        (A2, {"dim": -3}, "dim.range", INVALID),
        (A2, {"dim": 2**63 - 1}, "dim.range", INVALID),
        (
            TRAINING,
            of_dtype(SOFTMAX, "BF16", "gradOutput", "output"),
            "gradOutput.dtype output.dtype",
            INVALID,
        ),
        (A2, of_dtype(SOFTMAX, "DOUBLE", "gradOutput", "output"), "gradOutput.dtype output.dtype", INVALID),
        (A2, {"out": t(2, 3, dtype="DOUBLE")}, "out.dtype", ANYTHING),
        (INFERENCE, {"out": t(2, 3, dtype="BF16")}, "out.dtype", ANYTHING),
        (A2, {"output": t(2, 3, dtype="FLOAT16")}, "output.same_dtype", ANYTHING),
        (A2, {"output": t(3, 2)}, "output.shape", ANYTHING),
        (A2, {"out": t(2, 3, 1)}, "out.shape", ANYTHING),
        (A2, {"gradOutput": t(2, 3, form="NCHW")}, "gradOutput.format", ANYTHING),
        (A2, {"out": t(2, 3, form="NCL")}, "out.format", ANYTHING),
        (
            A2,
            dict.fromkeys(("gradOutput", "output", "out"), t(1, 1, 1, 2, 1, 1, 1, 3, 1)),
            "gradOutput.rank output.rank",
            ANYTHING,
        ),
        (
            A2,
            {"dim": 0, **dict.fromkeys(("gradOutput", "output", "out"), t())},
            "gradOutput.rank_zero",
            ANYTHING,
        ),
        (A2, dict.fromkeys(("gradOutput", "output", "out"), t(2, 0)), "gradOutput.not_empty", ANYTHING),
        (A2, {"gradOutput": None, "dim": 7, "out": t(9)}, "gradOutput.null", NULL),
        (A2, {"dim": 2, "out": t(3, 2)}, "dim.range out.shape", (*INVALID, *ERROR)),
    ],
)
def test_softmax_backward(product: str, changes: Mapping[str, Any], broken: str, statuses: tuple[str, ...]) -> None:
    check("aclnnSoftmaxBackward", {**SOFTMAX, **changes}, product, broken, statuses)


def conv(L: int = 2, pad: int = 1, T: int = 4, *, mode: int = 0, dtype: str = "FLOAT") -> dict[str, Any]:  # noqa: N803
    time = T + 2 * pad - L + 1
    arguments = {
        "self": t(time, 3, 7, form="NCL"),
        "input": t(T, 3, 5),
        "weight": t(L, 5, 7),
        "bias": t(7),
        "pad": pad,
        "cubeMathType": mode,
        "gradInput": t(T, 3, 5, form="NCL"),
        "gradWeight": t(L, 5, 7, form="NCL"),
        "gradBias": t(7),
    }
    return {**arguments, **of_dtype(arguments, dtype)}


ALL_DTYPES = " ".join(
    f"{name}.dtype" for name in ("self", "input", "weight", "bias", "gradInput", "gradWeight", "gradBias")
)


@pytest.mark.parametrize(
    ("product", "arguments", "broken", "statuses"),
    [
        (A2, conv(), "", OK),
        *[(A2, conv(mode=mode, dtype=dtype), "", OK) for mode in range(4) for dtype in ("FLOAT", "FLOAT16", "BF16")],
        *[(TRAINING, conv(mode=mode, dtype="FLOAT16"), "", OK) for mode in range(4)],
        (TRAINING, conv(mode=1), "", OK),
        (TRAINING, conv(mode=2), "", OK),
        (TRAINING, conv(mode=0), "cubeMathType.mode", ERROR),
        (TRAINING, conv(mode=3), "cubeMathType.mode", ERROR),
        *[(TRAINING, conv(mode=mode, dtype="BF16"), ALL_DTYPES, INVALID) for mode in (0, 1, 3)],
        (TRAINING, conv(mode=2, dtype="BF16"), "cubeMathType.bf16", ANYTHING),
        (TRAINING, conv(mode=2, dtype="DOUBLE"), ALL_DTYPES, INVALID),
        (A2, conv(mode=4), "cubeMathType.range", ANYTHING),
        (A2, conv(mode=-1), "cubeMathType.range", ANYTHING),
        # The kernel length and the padding: [1, 255] and [0, 255], on Atlas A2 alone
        (A2, conv(254, 0, 300), "", OK),
        (A2, conv(255, 0, 300), "", OK),
        (A2, conv(256, 0, 300), "weight.kernel", ANYTHING),
        (A2, conv(1, 0, 3), "", OK),
        (A2, conv(0, 0, 3), "weight.kernel", ANYTHING),
        (TRAINING, conv(256, 0, 300, mode=1), "", OK),
        (A2, conv(5, 0, 9), "", OK),
        (A2, conv(5, -1, 9), "pad.range", ANYTHING),
        (A2, conv(5, 254, 9), "", OK),
        (A2, conv(5, 255, 9), "", OK),
        (A2, conv(5, 256, 9), "pad.range", ANYTHING),
        (TRAINING, conv(5, 256, 9, mode=1), "", OK),
        (TRAINING, conv(5, -1, 9, mode=1), "pad.negative", ANYTHING),
        (A2, conv(3, 0, 2), "self.dims", ANYTHING),
        # Sizes up to 2147483646
        (A2, conv(1, 0, 2147483646), "", OK),
        (A2, conv(1, 0, 2147483647), "self.dims input.dims", ANYTHING),
        (TRAINING, conv(1, 0, 2147483647, mode=1), "", OK),
        *[
            (A2, {**conv(), name: None}, f"{name}.null", NULL)
            for name in ("self", "input", "weight", "bias", "gradInput", "gradWeight", "gradBias")
        ],
        (A2, conv(dtype="DOUBLE"), ALL_DTYPES, INVALID),
        (A2, {**conv(), **of_dtype(conv(), "FLOAT16", "bias", "gradBias")}, "bias.same_dtype", INVALID),
        (A2, {**conv(), **of_dtype(conv(), "FLOAT16", "gradBias")}, "gradBias.same_dtype", ANYTHING),
        (A2, {**conv(), "self": t(5, 3, 7, form="NCHW")}, "self.format", INVALID),
        (A2, {**conv(), "bias": t(7, form="NCL")}, "bias.format", INVALID),
        (A2, {**conv(), "gradInput": t(4, 3, 5)}, "gradInput.format_nd", ANYTHING),
        (A2, {**conv(), "gradInput": t(4, 3, 5, form="NHWC")}, "gradInput.format", INVALID),
        (A2, {**conv(), "self": t(5, 3, 7, 1)}, "self.rank", INVALID),
        (A2, {**conv(), "bias": t(7, 1)}, "bias.rank", INVALID),
        (A2, {**conv(), "bias": t(8), "gradBias": t(8)}, "bias.size", INVALID),
        (A2, {**conv(), "gradBias": t(8)}, "gradBias.shape", INVALID),
        (A2, {**conv(), "gradBias": t(-1)}, "gradBias.shape gradBias.negative", INVALID),
        (A2, {**conv(), "gradInput": t(3, 4, 5, form="NCL")}, "gradInput.shape", INVALID),
        (A2, {**conv(), "input": t(4, 3, 6), "gradInput": t(4, 3, 6, form="NCL")}, "input.channels", INVALID),
        (A2, {**conv(), "self": t(6, 3, 7)}, "self.time", ANYTHING),
        (A2, {**conv(), "self": t(5, 4, 7)}, "self.batch", ANYTHING),
        (A2, {**conv(), "self": t(5, 3, 8)}, "self.channels", ANYTHING),
        (A2, {**conv(), "gradWeight": t(2, 5, 7, form="NCL", strides=(70, 14, 2))}, "gradWeight.contiguous", ANYTHING),
    ],
)
def test_conv_tbc_backward(product: str, arguments: Mapping[str, Any], broken: str, statuses: tuple[str, ...]) -> None:
    check("aclnnConvTbcBackward", arguments, product, broken, statuses)


def embedding(
    rows: int = 4,
    width: int = 3,
    weights: int = 9,
    *,
    index: str = "INT64",
    **changes: Any,  # noqa: ANN401
) -> dict[str, Any]:
    return {
        "grad": t(2, rows // 2, width),
        "indices": t(rows, dtype=index, data=Data(recipe="indices", low=0, high=weights)),
        "numWeights": weights,
        "paddingIdx": 0,
        "scaleGradByFreq": False,
        "out": t(weights, width),
        **changes,
    }


def counts(weights: int, cores: int) -> int:
    return weights // cores + weights % cores


def widest(cores: int, weights: int, count_bytes: int, width_bytes: int) -> int:
    """The largest width below the limit of the training series."""
    return -(-(180192 - count_bytes * counts(weights, cores)) // width_bytes) - 1


@pytest.mark.parametrize(
    ("product", "arguments", "broken", "statuses"),
    [
        (A2, embedding(), "", OK),
        (TRAINING, embedding(), "", OK),
        *[
            (product, embedding(index=dtype), "", OK)
            for product in (A2, TRAINING)
            for dtype in ("FLOAT", "FLOAT16", "DOUBLE", "INT32", "INT64", "INT16", "INT8", "UINT8", "BOOL")
        ],
        (A2, embedding(grad=t(2, 2, 3, dtype="BF16"), out=t(9, 3, dtype="BF16")), "", OK),
        (
            TRAINING,
            embedding(grad=t(2, 2, 3, dtype="BF16"), out=t(9, 3, dtype="BF16")),
            "grad.dtype out.dtype",
            INVALID,
        ),
        (A2, embedding(grad=t(1, 1, 2, 1, 1, 2, 1, 3)), "", OK),
        (A2, embedding(grad=t(1, 1, 2, 1, 1, 2, 1, 1, 3)), "grad.rank", INVALID),
        (A2, embedding(indices=t(1, 1, 2, 1, 1, 2, 1, 1, dtype="INT32")), "", OK),
        (A2, embedding(indices=t(1, 1, 2, 1, 1, 2, 1, 1, 1, dtype="INT32")), "indices.rank", INVALID),
        (A2, embedding(2, grad=t(3), indices=t(1, dtype="INT64")), "grad.rank.min", ANYTHING),
        (A2, embedding(2, grad=t(1, 3), indices=t(dtype="INT64")), "indices.rank.min", ANYTHING),
        (A2, embedding(grad=t(5, 3)), "grad.rows", INVALID),
        (A2, embedding(out=t(8, 3)), "out.rows", INVALID),
        (A2, embedding(out=t(9, 4)), "out.columns", INVALID),
        (A2, embedding(out=t(9, 3, 1)), "out.rank", INVALID),
        (A2, embedding(out=t(27)), "out.rank", INVALID),
        (A2, embedding(grad=None), "grad.null", NULL),
        (A2, embedding(indices=None), "indices.null", NULL),
        (A2, embedding(out=None), "out.null", NULL),
        (A2, embedding(grad=t(2, 2, 3, dtype="DOUBLE")), "grad.dtype", INVALID),
        (A2, embedding(indices=t(4, dtype="UINT16")), "indices.dtype", INVALID),
        (A2, embedding(out=t(9, 3, dtype="INT32")), "out.dtype", INVALID),
        (A2, embedding(out=t(9, 3, dtype="FLOAT16")), "out.dtypeAsGrad", ANYTHING),
        (A2, embedding(grad=t(2, 2, 3, form="NCHW")), "grad.format", INVALID),
        (A2, embedding(indices=t(4, dtype="INT64", form="NCL")), "indices.format", INVALID),
        (A2, embedding(out=t(9, 3, form="NCHW")), "out.format", ANYTHING),
        (A2, embedding(out=t(9, 3, strides=(6, 2))), "out.contiguous", ANYTHING),
        (A2, embedding(grad=t(2, 2, 3, strides=(1, 2, 4))), "", OK),
        (A2, embedding(paddingIdx=2**63 - 1), "", OK),
        (A2, embedding(paddingIdx=2**63), "paddingIdx.negative", ANYTHING),
        (A2, embedding(paddingIdx=2**64 - 1), "paddingIdx.negative", ANYTHING),
        (A2, embedding(indices=t(4, dtype="INT64", data=Data(values=(0, 8, 9, 1)))), "indices.range", ANYTHING),
        (A2, embedding(indices=t(4, dtype="INT64", data=Data(values=(0, -1, 8, 1)))), "indices.range", ANYTHING),
        (A2, embedding(grad=t(0, 3), indices=t(0, dtype="INT64")), "grad.empty indices.empty", ANYTHING),
        # What voids the promise of accuracy on Atlas A2
        (A2, embedding(2, 1, 2147483647), "", OK),
        (A2, embedding(2, 1, 2147483648), "numWeights.int32", ANYTHING),
        (TRAINING, embedding(2, 1, 2147483648), "", OK),
        (A2, embedding(2, grad=t(2139095040, 3), indices=t(2139095040, dtype="INT64")), "", OK),
        (A2, embedding(2, grad=t(2139095041, 3), indices=t(2139095041, dtype="INT64")), "indices.count", ANYTHING),
        (A2, embedding(2, grad=t(2147483648, 3), indices=t(2147483648, dtype="INT64")), "grad.rows.int32", ANYTHING),
        # The width with scaling on the training series
        (TRAINING, embedding(width=widest(32, 9, 4, 36) - 1, index="INT32", scaleGradByFreq=True), "", OK),
        (
            TRAINING,
            embedding(width=widest(30, 9, 4, 36) + 1, index="INT32", scaleGradByFreq=True),
            "embeddingDim.int32.edge",
            ANYTHING,
        ),
        (
            TRAINING,
            embedding(width=widest(30, 9, 4, 36) + 3, index="INT32", scaleGradByFreq=True),
            "embeddingDim.int32",
            ERROR,
        ),
        (TRAINING, embedding(width=widest(32, 9, 8, 20) - 1, scaleGradByFreq=True), "", OK),
        (TRAINING, embedding(width=widest(30, 9, 8, 20) + 3, scaleGradByFreq=True), "embeddingDim.int64", ERROR),
        (TRAINING, embedding(width=9999, scaleGradByFreq=False), "", OK),
        (A2, embedding(width=9999, scaleGradByFreq=True), "", OK),
        (
            TRAINING,
            embedding(width=64, weights=3200000, index="INT32", scaleGradByFreq=True),
            "embeddingDim.int32",
            ERROR,
        ),
        (TRAINING, embedding(width=9999, index="INT16", scaleGradByFreq=True), "embeddingDim.other", ANYTHING),
    ],
)  # fmt: skip
def test_embedding_dense_backward(
    product: str, arguments: Mapping[str, Any], broken: str, statuses: tuple[str, ...]
) -> None:
    check("aclnnEmbeddingDenseBackward", arguments, product, broken, statuses)


def rms(
    *dtypes: str,
    leading: tuple[int, ...] = (2, 3),
    trailing: tuple[int, ...] = (16,),
    **changes: Any,  # noqa: ANN401
) -> dict[str, Any]:
    names = ("dy", "x", "rstd", "gamma", "dxOut", "dgammaOut")
    data = Data(recipe="normal")
    shapes = {"rstd": leading, "gamma": trailing, "dgammaOut": trailing}
    arguments: dict[str, Any] = {
        name: Tensor(
            shapes.get(name, leading + trailing), dtype, data=data if name not in ("dxOut", "dgammaOut") else None
        )
        for name, dtype in zip(names, dtypes or ("FLOAT",) * 6, strict=True)
    }
    return {**arguments, **changes}


HALF = ("FLOAT16", "FLOAT16", "FLOAT", "FLOAT16", "FLOAT16", "FLOAT")
BRAIN = ("BF16", "BF16", "FLOAT", "BF16", "BF16", "FLOAT")
ROWS = {
    HALF,
    ("FLOAT16", "FLOAT16", "FLOAT", "FLOAT", "FLOAT16", "FLOAT"),
    ("BF16", "BF16", "FLOAT", "FLOAT", "BF16", "FLOAT"),
    BRAIN,
    ("FLOAT",) * 6,
}
EMPTIED = "dy.empty x.empty dxOut.empty"


@pytest.mark.parametrize(
    ("product", "arguments", "broken", "statuses"),
    [
        *[(A2, rms(*row), "", OK) for row in sorted(ROWS)],
        (INFERENCE, rms(), "", OK),
        (INFERENCE, rms(*HALF), "", OK),
        (INFERENCE, rms("FLOAT16", "FLOAT16", "FLOAT", "FLOAT", "FLOAT16", "FLOAT"), "dtype.rows", EITHER),
        (A2, rms("FLOAT", "FLOAT", "FLOAT", "FLOAT16", "FLOAT", "FLOAT"), "dtype.rows", EITHER),
        (A2, rms("FLOAT", "FLOAT", "FLOAT16", "FLOAT", "FLOAT", "FLOAT"), "rstd.dtype", EITHER),
        (A2, rms("DOUBLE", "FLOAT", "FLOAT", "FLOAT", "FLOAT", "FLOAT"), "dy.dtype", EITHER),
        (A2, rms("FLOAT", "FLOAT", "FLOAT", "FLOAT", "FLOAT", "FLOAT16"), "dgammaOut.dtype", EITHER),
        (INFERENCE, rms(*BRAIN), "dy.dtype x.dtype gamma.dtype dxOut.dtype", EITHER),
        *[
            (A2, {**rms(), name: None}, f"{name}.null", NULL)
            for name in ("dy", "x", "rstd", "gamma", "dxOut", "dgammaOut")
        ],
        (A2, rms(leading=(2,) * 7, trailing=(3,)), "", OK),
        (A2, rms(leading=(2,) * 8, trailing=(3,)), "dy.rank x.rank dxOut.rank", TILING),
        (A2, rms(leading=(2,), trailing=(3, 4, 5)), "", OK),
        (A2, rms(x=t(3, 2, 16)), "x.shape", TILING),
        (A2, rms(dxOut=t(2, 3, 17)), "dxOut.shape", TILING),
        (A2, rms(gamma=t(15)), "gamma.shape", TILING),
        (A2, rms(dgammaOut=t(3, 16)), "dgammaOut.shape", TILING),
        (A2, rms(rstd=t(3, 2)), "rstd.shape", TILING),
        (A2, rms(rstd=t(7)), "rstd.numel", TILING),
        (A2, rms(rstd=t(2, 3, 1)), "rstd.leading", ANYTHING),
        (A2, rms(rstd=t(2), leading=(2, 1)), "rstd.leading", ANYTHING),
        (A2, rms(rstd=t(1), leading=()), "x.leading", ANYTHING),
        (A2, rms(dy=t(2, 3, 16, form="NCDHW")), "dy.format", ANYTHING),
        (A2, rms(dy=t(2, 3, 16, strides=(1, 2, 6))), "dy.contiguous", ANYTHING),
        (A2, rms(dxOut=t(2, 3, 16, strides=(1, 2, 6))), "dxOut.contiguous", ANYTHING),
        (A2, rms(leading=(0,)), f"{EMPTIED} rstd.empty", ANYTHING),
        (A2, rms(trailing=(0,)), f"{EMPTIED} gamma.empty dgammaOut.empty", ANYTHING),
        # The last axis takes 32 bytes on the inference series
        (INFERENCE, rms(trailing=(8,)), "", OK),
        (INFERENCE, rms(trailing=(7,)), "x.lastAxis dy.lastAxis gamma.lastAxis", ANYTHING),
        (INFERENCE, rms(*HALF, trailing=(16,)), "", OK),
        (INFERENCE, rms(*HALF, trailing=(15,)), "x.lastAxis dy.lastAxis gamma.lastAxis", ANYTHING),
        (A2, rms(trailing=(1,)), "", OK),
        # Neither inf nor nan there
        (INFERENCE, rms(x=t(2, 3, 16, data=Data(recipe="special"))), "inputs.finite", ANYTHING),
        (A2, rms(x=t(2, 3, 16, data=Data(recipe="special"))), "", OK),
    ],
)  # fmt: skip
def test_rms_norm_grad(product: str, arguments: Mapping[str, Any], broken: str, statuses: tuple[str, ...]) -> None:
    check("aclnnRmsNormGrad", arguments, product, broken, statuses)


def upsample(length: int = 6, forward: int = 4, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "gradOutput": t(2, 3, length),
        "outputSizeOptional": (length,),
        "inputSize": (2, 3, forward),
        "scalesOptional": 0.0,
        "out": t(2, 3, forward),
        **changes,
    }


@pytest.mark.parametrize(
    ("arguments", "broken", "statuses"),
    [
        (upsample(), "", OK),
        *[(upsample(gradOutput=t(2, 3, 6, dtype=d), out=t(2, 3, 4, dtype=d)), "", OK) for d in ("FLOAT16", "BF16")],
        (upsample(gradOutput=t(2, 3, 6, form="NCL")), "", OK),
        (upsample(scalesOptional=1.5), "", OK),
        (upsample(scalesOptional=6 / 4 + 0.01), "", OK),
        (upsample(10, 3, scalesOptional=10 / 3), "", OK),
        (upsample(gradOutput=t(2, 3, 6, strides=(1, 2, 6)), out=t(2, 3, 4, strides=(1, 2, 6))), "", OK),
        (upsample(100000, 1), "", OK),
        # A forward pass that shrinks does so by less than 50
        (upsample(2, 99), "", OK),
        (upsample(2, 100), "ratio.shrink", ANYTHING),
        (upsample(2, 101), "ratio.shrink", ANYTHING),
        (upsample(gradOutput=None), "gradOutput.null", NULL),
        (upsample(inputSize=None), "inputSize.null", NULL),
        (upsample(out=None), "out.null", NULL),
        (upsample(outputSizeOptional=None), "outputSizeOptional.null", ANYTHING),
        ({**upsample(), **of_dtype(upsample(), "DOUBLE")}, "gradOutput.dtype out.dtype", INVALID),
        (upsample(out=t(2, 3, 4, dtype="FLOAT16")), "out.same_dtype", INVALID),
        (upsample(out=t(2, 3, 4, dtype="INT32")), "out.dtype out.same_dtype", INVALID),
        (upsample(gradOutput=t(2, 3, 6, 1)), "gradOutput.rank", INVALID),
        (upsample(gradOutput=t(6, 6)), "gradOutput.rank", INVALID),
        (upsample(out=t(2, 3, 4, 1)), "out.rank_three", ANYTHING),
        (upsample(out=t(2, 12)), "out.rank", ANYTHING),
        (upsample(out=t(2, 3, 4, form="NCHW")), "out.format_nd", ANYTHING),
        (upsample(out=t(2, 3, 4, form="NCL")), "out.format_nd", ANYTHING),
        (upsample(out=t(2, 3, 4, form="NHWC")), "out.format", ANYTHING),
        (upsample(gradOutput=t(2, 3, 6, form="NCHW")), "gradOutput.format", ANYTHING),
        (upsample(outputSizeOptional=(6, 6)), "outputSizeOptional.length", ANYTHING),
        (upsample(inputSize=(2, 3)), "inputSize.length", ANYTHING),
        (upsample(outputSizeOptional=(7,)), "outputSizeOptional.size", ANYTHING),
        (upsample(gradOutput=t(1, 3, 6)), "gradOutput.batch", ANYTHING),
        (upsample(gradOutput=t(2, 2, 6)), "gradOutput.channels", ANYTHING),
        (upsample(out=t(2, 3, 5)), "out.shape", ANYTHING),
        (upsample(scalesOptional=-1.0), "scalesOptional.negative", ANYTHING),
        (upsample(scalesOptional=2.0), "scalesOptional.agrees", ANYTHING),
        (upsample(scalesOptional=4 / 6), "scalesOptional.agrees", ANYTHING),
        (upsample(6, 0), "out.not_empty", ANYTHING),
    ],
)  # fmt: skip
def test_upsample_nearest_exact1d_backward(
    arguments: Mapping[str, Any], broken: str, statuses: tuple[str, ...]
) -> None:
    check("aclnnUpsampleNearestExact1dBackward", arguments, A2, broken, statuses)


@pytest.mark.parametrize("pointer", ["workspaceSize", "executor", "workspace"])
def test_pointers_of_the_call(pointer: str) -> None:
    case = Case("aclnnConvTbcBackward", conv(), call=CallOptions(null=(pointer,)))
    found = evaluate(SPECS["aclnnConvTbcBackward"], case)
    assert [item.id for item in found.broken] == [f"interface.{pointer}.null"]
    assert found.statuses == (ANYTHING if pointer == "workspace" else NULL)
    case = Case("aclnnSoftmaxBackward", SOFTMAX, call=CallOptions(null=(pointer,)))
    assert evaluate(SPECS["aclnnSoftmaxBackward"], case).statuses == ANYTHING


EXAMPLES = {
    "aclnnConvTbcBackward": dict.fromkeys((A2, TRAINING), "gradInput.format_nd gradWeight.format_nd"),
    "aclnnEmbeddingDenseBackward": {A2: "", TRAINING: ""},
    "aclnnRmsNormGrad": dict.fromkeys(
        (A2, INFERENCE),
        "dy.format x.format rstd.format gamma.format dxOut.format dgammaOut.format rstd.leading",
    ),
    "aclnnSoftmaxBackward": {A2: "", TRAINING: "", INFERENCE: ""},
    "aclnnUpsampleNearestExact1dBackward": {A2: ""},
}  # fmt: skip
"""What each document's example contradicts: nothing but what the document leaves open by it."""


@pytest.mark.parametrize("operator", EXAMPLES)
def test_examples(operator: str) -> None:
    spec = SPECS[operator]
    (example,) = spec.examples
    for product, broken in EXAMPLES[operator].items():
        found = evaluate(spec, Case(operator, example.arguments, Target(product=product)))
        assert {item.id for item in found.broken} == set(broken.split())
        assert all(item.strength == Strength.OPEN for item in found.broken)


def test_every_clause_is_encoded_once_in_both_languages() -> None:
    assert len(SPECS) == 5
    for spec in SPECS.values():
        addresses = [clause.at for clause in spec.clauses]
        assert len(set(addresses)) == len(addresses)
        assert len(addresses) >= 75
        interface = {clause.at for clause in SPECS.interface_clauses}
        for clause in spec.clauses:
            given = (clause.constraints, clause.promise, clause.interface, clause.example, clause.untestable)
            assert sum(map(bool, given)) == 1, (spec.operator, clause.at)
            assert clause.interface is None or clause.interface in interface
            assert clause.en.strip(), clause.at
            assert clause.en.isascii(), clause.at
            assert any("\u4e00" <= letter <= "\u9fff" for letter in clause.zh), clause.at
            assert clause.untestable is None or all(clause.untestable), clause.at
        encoded = {identifier for clause in spec.clauses for identifier in clause.constraints}
        own = {item.id for item in spec.constraints if not item.id.startswith("interface.")}
        assert encoded == own


SECTIONS = ("products", "prototype", "function", "params", "returns", "phase2", "limits", "example")


def test_every_section_and_parameter_has_clauses() -> None:
    for spec in SPECS.values():
        heads = {clause.at.split(".")[0] for clause in spec.clauses}
        assert heads == set(SECTIONS)
        named = {clause.at.split(".")[1] for clause in spec.clauses if clause.at.startswith("params.")}
        assert named == {*(item.name for item in spec.parameters), "workspaceSize", "executor"}
        numbers = [clause.at for clause in spec.clauses if clause.at.startswith("phase2.")]
        assert {address.split(".")[1] for address in numbers} == {
            "workspace", "workspaceSize", "executor", "stream", "returns",
        }  # fmt: skip


def test_listed_codes_are_those_that_the_documents_name() -> None:
    named = {
        "aclnnConvTbcBackward": {*NULL, *INVALID},
        "aclnnEmbeddingDenseBackward": {*NULL, *INVALID},
        "aclnnRmsNormGrad": {*NULL, *EITHER},
        "aclnnSoftmaxBackward": {*NULL, *INVALID},
        "aclnnUpsampleNearestExact1dBackward": {*NULL, *INVALID},
    }
    for operator, codes in named.items():
        found = {name for item in SPECS[operator].constraints for name in item.statuses} - {*ERROR}
        assert found == codes


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the documents' folder `shared` does not lie beside the checkout")
@pytest.mark.parametrize("stem", [*(spec.stem for spec in SPECS.values()), "interface"])
def test_the_specs_name_the_edition_of_their_document(stem: str) -> None:
    content = read_yaml(package_folder() / f"{stem}.yaml").content
    documents = content["documents"] if stem == "interface" else [content["document"]]
    for document in documents:
        text = (DOCUMENTS / f"{document['title']}.txt").read_bytes()
        assert document["sha256"] == hashlib.sha256(text).hexdigest()
