"""ATK's value ranges as recipes and attribute values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aclnn_cts.core.case import Data
from aclnn_cts.core.dtypes import COMPONENTS, DTYPES, component
from aclnn_cts.core.printable import shown
from aclnn_cts.core.strict_json import NON_FINITE
from aclnn_cts.generate.philox import words

ATK_DTYPES: Mapping[str, str] = {
    "fp16": "FLOAT16",
    "float16": "FLOAT16",
    "bf16": "BF16",
    "fp32": "FLOAT",
    "float32": "FLOAT",
    "fp64": "DOUBLE",
    "float64": "DOUBLE",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "bool": "BOOL",
    "complex64": "COMPLEX64",
    "complex128": "COMPLEX128",
}
"""aclDataType by the files' own word."""

_FARTHEST = 2.0**62
"""Magnitude of a bound; recipes have bounds of 64 bits."""
_SCALE = 20
"""Bounds that are no integers are taken to the multiples of 2^-20 within them, or finer where none lies there."""


class NotCarried(Exception):  # noqa: N818 - a reason, and no mistake
    """Why something cannot be carried over."""


def atk_data(ranges: object, *, dtype: str, seed: int, name: str) -> Data:
    """The recipe of a tensor's value range; raises NotCarried for a range that no recipe stands for.

    A normal distribution whose mean and deviation are ranges themselves has them drawn by seed and name.
    """
    value = _single(ranges)
    kind = DTYPES[component(dtype)].kind
    if isinstance(value, Mapping):
        mean, deviation = _interval(value.get("mean")), _interval(value.get("std"))
        if value.get("name") != "nd" or mean is None or deviation is None or kind != "float":
            raise NotCarried(f"{name}: range_values {_shown(ranges)}: no recipe for it in {dtype}")
        drawn = [_drawn(bounds, seed=seed, stream=f"{name}/{word}") for bounds, word in ((mean, "m"), (deviation, "s"))]
        return Data(recipe="normal", seed=seed, mean=drawn[0], std=drawn[1])
    if dtype in COMPONENTS and _interval(value) is None:
        raise NotCarried(f"{name}: range_values {_shown(ranges)}: whether re and im are both meant is not known")
    if kind == "bool" and (truth := _truth(value)) is not None:
        return Data(recipe="constant", mean=float(truth))
    if isinstance(value, str) and value in NON_FINITE:
        if kind != "float":
            raise NotCarried(f"{name}: {dtype} cannot hold {value}")
        return Data(recipe="constant", mean=NON_FINITE[value])
    if isinstance(value, (bool, int, float)):
        return Data(recipe="constant", mean=_finite(value, name))
    bounds = _interval(value)
    if bounds is None:
        raise NotCarried(f"{name}: range_values {_shown(ranges)}: no recipe for it")
    if max(map(abs, bounds)) > _FARTHEST:
        raise NotCarried(f"{name}: range_values {_shown(ranges)}: no recipe reaches so far")
    return _uniform(bounds, kind=kind, seed=seed)


def _uniform(bounds: tuple[float, float], *, kind: str, seed: int) -> Data:
    low, high = bounds
    if kind != "float":
        return Data(recipe="integers", seed=seed, low=math.ceil(low), high=max(math.floor(high), math.ceil(low)))
    if low.is_integer() and high.is_integer():
        return Data(recipe="uniform", seed=seed, low=int(low), high=int(high))
    scale = _SCALE
    while (least := math.ceil(low * 2.0**scale)) >= (most := math.floor(high * 2.0**scale)) and scale < 60:
        scale += 10
    while max(-least, most) >= _FARTHEST:
        scale -= 10
        least, most = math.ceil(low * 2.0**scale), math.floor(high * 2.0**scale)
    return Data(recipe="uniform", seed=seed, low=least, high=max(most, least), exponent=-scale)


def atk_attribute(ranges: object, *, kind: str, c_type: str, seed: int, name: str) -> int | bool | float:
    """An attribute's value; of a range, one that is drawn by seed and name. Raises NotCarried for what has none.

    A negative number for an unsigned parameter, and any number for a `bool`, become what C converts them to.
    """
    value = _single(ranges)
    if (bounds := _interval(value)) is not None:
        drawn = _drawn(bounds, seed=seed, stream=name)
        value = drawn if kind == "double" else math.floor(drawn)
    if kind == "bool" and (truth := _truth(value)) is not None:
        return truth
    if (
        kind == "int"
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
        and _double(value).is_integer()
    ):
        return int(value) % 2**64 if c_type == "uint64_t" else int(value)
    if kind == "double" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _finite(value, name)
    if kind == "double" and isinstance(value, str) and value in NON_FINITE:
        return NON_FINITE[value]
    raise NotCarried(f"{name}: range_values {_shown(ranges)}: no value for the C type {c_type}")


def _truth(value: object) -> bool | None:
    """What C makes of a number in a `bool`: false of zero alone, so that a nan is true; None where it is no number."""
    if isinstance(value, str):
        value = NON_FINITE.get(value)
    return value != 0 if isinstance(value, (bool, int, float)) else None


def _finite(value: float, name: str) -> float:
    number = _double(value)
    if math.isinf(number):
        raise NotCarried(f"{name}: range_values {shown(value)}: larger than any double")
    return number


def _single(ranges: object) -> object:
    """What a list of one stands for."""
    return ranges[0] if isinstance(ranges, list) and len(ranges) == 1 else ranges


def _interval(value: object) -> tuple[float, float] | None:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        return None
    numbers: list[Any] = list(value)
    if not all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        return None
    low, high = (_double(number) for number in numbers)
    return (low, high) if math.isfinite(low) and math.isfinite(high) and low <= high else None


def _double(number: float) -> float:
    """A number as a double; one beyond all doubles is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _drawn(bounds: tuple[float, float], *, seed: int, stream: str) -> float:
    """A number of the interval, the same for the same seed and stream."""
    word: int = words(seed, f"atk/{stream}", 1).tolist()[0]
    low, high = bounds
    number: float = low + (high - low) * (word >> 11) / 2.0**53
    return min(number, high)


def _shown(ranges: object) -> str:
    return shown(ranges, 60)
