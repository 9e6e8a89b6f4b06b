"""What the document of aclnnRmsNormGrad states, call by call: written by hand from it, not from the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aclnn_cts.core.case import Data, Tensor
from tests.speclang.documents.support import (
    A2,
    ANYTHING,
    EITHER,
    INFERENCE,
    NULL,
    OK,
    TILING,
    check,
    t,
)


def rms(
    *dtypes: str,
    leading: tuple[int, ...] = (2, 3),
    trailing: tuple[int, ...] = (16,),
    **changes: Any,
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
        (A2, rms(dy=t(2, 3, 16, form="NCDHW")), "dy.format_ncdhw", ANYTHING),
        (A2, rms(dy=t(2, 3, 16, form="NCHW")), "dy.format", ANYTHING),
        (INFERENCE, rms(gamma=t(16, form="NCL")), "gamma.format", ANYTHING),
        (A2, rms(dgammaOut=t(16, form="FRACTAL_NZ")), "dgammaOut.format", ANYTHING),
        (A2, rms(dy=t(2, 3, 16, strides=(1, 2, 6))), "dy.contiguous", ANYTHING),
        (A2, rms(dxOut=t(2, 3, 16, strides=(1, 2, 6))), "dxOut.contiguous", ANYTHING),
        (A2, rms(leading=(0,)), "empty.rows", ANYTHING),
        (A2, rms(trailing=(0,)), "empty.both", ANYTHING),
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
