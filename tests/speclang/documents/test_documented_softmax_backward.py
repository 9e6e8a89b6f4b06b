"""What the document of aclnnSoftmaxBackward states, call by call: written by hand from it, not from the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.speclang.documents.support import (
    A2,
    ANYTHING,
    ERROR,
    INFERENCE,
    INVALID,
    NULL,
    OK,
    SOFTMAX,
    TRAINING,
    check,
    of_dtype,
    t,
)


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
