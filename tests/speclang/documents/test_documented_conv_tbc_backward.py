"""What the document of aclnnConvTbcBackward states, call by call: written by hand from it, not from the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.speclang.documents.support import (
    A2,
    ANYTHING,
    ERROR,
    INVALID,
    NULL,
    OK,
    TRAINING,
    check,
    conv,
    of_dtype,
    t,
)

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
        *[(TRAINING, conv(mode=mode, dtype="BF16"), ALL_DTYPES, INVALID) for mode in range(4)],
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
        # A size below zero in an output gives a code on every product, whatever Atlas A2 says of the input's.
        (A2, conv(2, 2, -1), "input.dims gradInput.negative", (*INVALID, *ERROR)),
        (TRAINING, conv(2, 2, -1, mode=1), "gradInput.negative", INVALID),
        (A2, conv(2, 2, 3, batch=-1), "self.dims input.dims gradInput.negative", (*INVALID, *ERROR)),
        (A2, conv(-1, 0, 3), "weight.kernel gradWeight.negative", (*INVALID, *ERROR)),
        (TRAINING, conv(-1, 0, 3, mode=1), "gradWeight.negative", INVALID),
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
        (A2, {**conv(), "bias": t(7, form="NCL")}, "bias.format", ANYTHING),
        # self, input and weight list ND and NCL, gradInput NCL alone; nothing is said of both in one call.
        (
            A2,
            {**conv(), "self": t(5, 3, 7), "input": t(4, 3, 5), "weight": t(2, 5, 7)},
            "self.format_nd",
            ANYTHING,
        ),
        (A2, {**conv(), "input": t(4, 3, 5)}, "input.format_as_self", ANYTHING),
        (A2, {**conv(), "weight": t(2, 5, 7)}, "weight.format_as_self", ANYTHING),
        (A2, {**conv(), "self": t(5, 3, 7)}, "self.format_nd", ANYTHING),
        (A2, {**conv(), "gradInput": t(4, 3, 5)}, "gradInput.format_nd", ANYTHING),
        (A2, {**conv(), "gradInput": t(4, 3, 5, form="NHWC")}, "gradInput.format", INVALID),
        (A2, {**conv(), "self": t(5, 3, 7, 1, form="NCL")}, "self.rank", INVALID),
        (A2, {**conv(), "bias": t(7, 1)}, "bias.rank", INVALID),
        (A2, {**conv(), "bias": t(8), "gradBias": t(8)}, "bias.size", INVALID),
        (A2, {**conv(), "gradBias": t(8)}, "gradBias.shape", INVALID),
        (A2, {**conv(), "gradBias": t(-1)}, "gradBias.shape gradBias.negative", INVALID),
        (A2, {**conv(), "gradInput": t(3, 4, 5, form="NCL")}, "gradInput.shape", INVALID),
        (
            A2,
            {**conv(), "input": t(4, 3, 6, form="NCL"), "gradInput": t(4, 3, 6, form="NCL")},
            "input.channels",
            INVALID,
        ),
        (A2, {**conv(), "self": t(6, 3, 7, form="NCL")}, "self.time", ANYTHING),
        (A2, {**conv(), "self": t(5, 4, 7, form="NCL")}, "self.batch", ANYTHING),
        (A2, {**conv(), "self": t(5, 3, 8, form="NCL")}, "self.channels", ANYTHING),
        (A2, {**conv(), "gradWeight": t(2, 5, 7, form="NCL", strides=(70, 14, 2))}, "gradWeight.contiguous", ANYTHING),
    ],
)
def test_conv_tbc_backward(product: str, arguments: Mapping[str, Any], broken: str, statuses: tuple[str, ...]) -> None:
    check("aclnnConvTbcBackward", arguments, product, broken, statuses)
