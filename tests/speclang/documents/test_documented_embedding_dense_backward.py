"""What the document of aclnnEmbeddingDenseBackward states, call by call: written by hand from it, not from the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aclnn_cts.core.case import Data
from tests.speclang.documents.support import (
    A2,
    ANYTHING,
    ERROR,
    INVALID,
    NULL,
    OK,
    TRAINING,
    check,
    t,
)


def embedding(
    rows: int = 4,
    width: int = 3,
    weights: int = 9,
    *,
    index: str = "INT64",
    **changes: Any,
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
        (A2, embedding(grad=t(2, 2, 3, form="NCHW")), "grad.format", ANYTHING),
        (A2, embedding(indices=t(4, dtype="INT64", form="NCL")), "indices.format", ANYTHING),
        (A2, embedding(out=t(9, 3, form="NCHW")), "out.format", ANYTHING),
        (A2, embedding(out=t(9, 3, strides=(6, 2))), "out.contiguous", ANYTHING),
        (A2, embedding(grad=t(2, 2, 3, strides=(1, 2, 4))), "", OK),
        (A2, embedding(paddingIdx=8), "", OK),
        (A2, embedding(paddingIdx=9), "paddingIdx.row", ANYTHING),
        (A2, embedding(paddingIdx=2**63 - 1), "paddingIdx.row", ANYTHING),
        (A2, embedding(paddingIdx=2**63), "paddingIdx.negative", ANYTHING),
        (A2, embedding(paddingIdx=2**64 - 1), "paddingIdx.negative", ANYTHING),
        (A2, embedding(indices=t(4, dtype="INT64", data=Data(values=(0, 8, 9, 1)))), "indices.range", ANYTHING),
        (A2, embedding(indices=t(4, dtype="INT64", data=Data(values=(0, -1, 8, 1)))), "indices.range", ANYTHING),
        (A2, embedding(grad=t(0, 3), indices=t(0, dtype="INT64")), "grad.empty indices.empty", ANYTHING),
        # What voids the check of accuracy on Atlas A2
        (A2, embedding(2, 1, 2147483647), "", OK),
        (A2, embedding(2, 1, 2147483648), "numWeights.int32", OK),
        (A2, {**embedding(2, 1, 2147483648), "grad": None}, "grad.null numWeights.int32", NULL),
        (A2, embedding(2, 1, 2147483648, paddingIdx=2**63), "paddingIdx.negative numWeights.int32", ANYTHING),
        (TRAINING, embedding(2, 1, 2147483648), "", OK),
        (A2, embedding(2, grad=t(2139095040, 3), indices=t(2139095040, dtype="INT64")), "", OK),
        (A2, embedding(2, grad=t(2139095041, 3), indices=t(2139095041, dtype="INT64")), "indices.count", OK),
        (A2, embedding(2, grad=t(2147483648, 3), indices=t(2147483648, dtype="INT64")), "grad.rows.int32", OK),
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
