"""Numbers and texts as C++ literals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import COMPONENTS, components

__all__ = ["braces", "double", "elements", "single", "string", "wrapped"]


def braces(values: Sequence[int]) -> str:
    """A list of int64_t."""
    return "{" + ", ".join(f"{value}LL" for value in values) + "}"


def wrapped(words: Sequence[str], *, each: int = 6) -> str:
    """Words, so many a line."""
    rows = ["    " + ", ".join(words[start : start + each]) for start in range(0, len(words), each)]
    return "\n" + ",\n".join(rows)


def double(value: float) -> str:
    """The same number; nan and inf by the prelude's names."""
    if math.isnan(value):
        return "kNan"
    if math.isinf(value):
        return "kInf" if value > 0 else "-kInf"
    return value.hex()


def elements(storage: NDArray[Any], dtype: str) -> tuple[str, list[str]]:
    """The element type and the elements: hexadecimal floats, bits for 16-bit floats, integers as they are.

    Of a complex dtype re and im one after the other.
    """
    if dtype in COMPONENTS:
        return elements(components(storage).reshape(-1), COMPONENTS[dtype])
    if dtype in ("FLOAT16", "BF16"):
        return "uint16_t", [f"0x{bits:04x}" for bits in storage.view(np.uint16).tolist()]
    if dtype == "FLOAT":
        return "float", [single(value) for value in storage.tolist()]
    if dtype == "DOUBLE":
        return "double", [double(value) for value in storage.tolist()]
    if dtype == "BOOL":
        return "uint8_t", [str(int(value)) for value in storage.tolist()]
    names = {"INT8": "int8_t", "UINT8": "uint8_t", "INT16": "int16_t", "INT32": "int32_t", "INT64": "int64_t"}
    suffix = "LL" if dtype == "INT64" else ""
    return names.get(dtype, "uint64_t"), [f"{int(value)}{suffix}" for value in storage.tolist()]


def single(value: float) -> str:
    """A number of single precision."""
    if math.isfinite(value):
        return f"{value.hex()}f"
    return f"static_cast<float>({double(value)})"


def string(text: str) -> str:
    """A literal; what is not printable ASCII is written in octal, which takes no further digits."""
    plain = {'"': '\\"', "\\": "\\\\"}
    return (
        '"'
        + "".join(
            plain.get(chr(byte)) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in text.encode()
        )
        + '"'
    )
