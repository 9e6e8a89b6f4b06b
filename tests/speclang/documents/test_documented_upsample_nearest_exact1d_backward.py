"""What the document of aclnnUpsampleNearestExact1dBackward states, call by call: written by hand, not from the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.speclang.documents.support import (
    A2,
    ANYTHING,
    INVALID,
    NULL,
    OK,
    check,
    of_dtype,
    t,
)


def upsample(length: int = 6, forward: int = 4, **changes: Any) -> dict[str, Any]:
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
        (upsample(gradOutput=t(2, 3, 6, form="NCL")), "gradOutput.format_ncl", ANYTHING),
        (upsample(scalesOptional=1.5), "", OK),
        (upsample(scalesOptional=6 / 4 + 0.01), "", OK),
        (upsample(10, 3, scalesOptional=10 / 3), "", OK),
        (upsample(gradOutput=t(2, 3, 6, strides=(1, 2, 6)), out=t(2, 3, 4, strides=(1, 2, 6))), "", OK),
        # A pass that shrinks does so by less than 50; which pass is meant is not said
        (upsample(49, 1), "", OK),
        (upsample(50, 1), "ratio.enlarge", ANYTHING),
        (upsample(100000, 1), "ratio.enlarge", ANYTHING),
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
