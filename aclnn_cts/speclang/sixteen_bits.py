"""Which inputs of an elementwise operator can have every bit pattern of a dtype of 16 bits."""

from __future__ import annotations

from aclnn_cts.core.dtypes import INEXACT, itemsize
from aclnn_cts.speclang.model import Spec


def inputs_of_16_bits(spec: Spec, product: str) -> list[tuple[str, str]]:
    """Each input with each of its floating dtypes of 16 bits; none of an operator that is not elementwise."""
    return [
        (name, dtype)
        for name in (spec.inputs if spec.elementwise else ())
        for dtype in spec.dtypes_of(spec.parameter(name), product)
        if dtype in INEXACT and itemsize(dtype) == 2
    ]
