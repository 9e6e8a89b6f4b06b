"""The enumerations aclDataType and aclFormat, and which dtypes promote and convert to which.

Names are those of `acl_base.h` without `ACL_` and `ACL_FORMAT_` (`FLOAT`, `ND`, ...). Case files, specs and messages
use no other.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core import hifloat8


class DType(msgspec.Struct, frozen=True):
    """One aclDataType: its name and value in the header, bytes of an element (0 where less than one), and kind."""

    name: str
    value: int
    size: int
    kind: str
    """`float`, `signed`, `unsigned`, `bool`, `complex` or `other` (no NumPy counterpart here)."""


_ROWS = (
    ("UNDEFINED", -1, 0, "other"),
    ("FLOAT", 0, 4, "float"),
    ("FLOAT16", 1, 2, "float"),
    ("INT8", 2, 1, "signed"),
    ("INT32", 3, 4, "signed"),
    ("UINT8", 4, 1, "unsigned"),
    ("INT16", 6, 2, "signed"),
    ("UINT16", 7, 2, "unsigned"),
    ("UINT32", 8, 4, "unsigned"),
    ("INT64", 9, 8, "signed"),
    ("UINT64", 10, 8, "unsigned"),
    ("DOUBLE", 11, 8, "float"),
    ("BOOL", 12, 1, "bool"),
    ("STRING", 13, 0, "other"),
    ("COMPLEX64", 16, 8, "complex"),
    ("COMPLEX128", 17, 16, "complex"),
    ("BF16", 27, 2, "float"),
    ("INT4", 29, 0, "other"),
    ("UINT1", 30, 0, "other"),
    ("COMPLEX32", 33, 4, "other"),
    ("HIFLOAT8", 34, 1, "float"),
    ("FLOAT8_E5M2", 35, 1, "float"),
    ("FLOAT8_E4M3FN", 36, 1, "float"),
    ("FLOAT8_E8M0", 37, 1, "float"),
)

DTYPES: MappingProxyType[str, DType] = MappingProxyType({row[0]: DType(*row) for row in _ROWS})
FLOAT8: frozenset[str] = frozenset(name for name, dtype in DTYPES.items() if dtype.kind == "float" and dtype.size == 1)
"""Floating dtypes of 8 bits, which data are stored in and nothing is computed in."""
FLOATING: frozenset[str] = frozenset(name for name, dtype in DTYPES.items() if dtype.kind == "float") - FLOAT8
"""The other ones."""
COMPONENTS: MappingProxyType[str, str] = MappingProxyType({"COMPLEX64": "FLOAT", "COMPLEX128": "DOUBLE"})
"""The dtype of the real and the imaginary part, by complex dtype."""
INEXACT: frozenset[str] = FLOATING | FLOAT8 | frozenset(COMPONENTS)
"""Floating dtypes, and the complex ones of floating components."""
JUDGED_INPUTS: frozenset[str] = INEXACT | frozenset(
    name for name, dtype in DTYPES.items() if dtype.kind in ("signed", "unsigned", "bool")
)
"""What an oracle can be given: widened to float64 (of a complex dtype the components), int64 or bool."""
INTEGERS: frozenset[str] = frozenset(
    name for name, dtype in DTYPES.items() if dtype.kind in ("signed", "unsigned") and name != "UINT64"
)
"""Integers that an oracle is given whole: as int64."""
JUDGED_OUTPUTS: frozenset[str] = INEXACT | INTEGERS
"""What an output can be compared in: a bound is derived from a binary format, of fixed point for integers."""

_NUMPY = {
    "FLOAT": "float32",
    "FLOAT16": "float16",
    "INT8": "int8",
    "INT32": "int32",
    "UINT8": "uint8",
    "INT16": "int16",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "INT64": "int64",
    "UINT64": "uint64",
    "DOUBLE": "float64",
    "BOOL": "bool",
    "COMPLEX64": "complex64",
    "COMPLEX128": "complex128",
}
_ML_DTYPES = {
    "BF16": "bfloat16",
    "FLOAT8_E5M2": "float8_e5m2",
    "FLOAT8_E4M3FN": "float8_e4m3fn",
    "FLOAT8_E8M0": "float8_e8m0fnu",
}


def itemsize(name: str) -> int:
    """Bytes of one element; 1 where the header packs several into a byte, so that a size is never underestimated."""
    return max(DTYPES[name].size, 1)


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of an aclDataType (`BF16` and FLOAT8 through ml_dtypes, `HIFLOAT8` as bytes of its own).

    Raises KeyError for a member that no array here can hold (`STRING`, `INT4`).
    """
    if name == "HIFLOAT8":
        return hifloat8.STORAGE
    if name in _ML_DTYPES:
        import ml_dtypes  # noqa: PLC0415 - 60 ms that only these need

        other: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
        return other
    return np.dtype(_NUMPY[name])


@functools.cache
def acl_name(dtype: np.dtype[Any]) -> str:
    """The aclDataType of a NumPy dtype; NumPy's own word where there is none."""
    return next(
        (name for name, item in DTYPES.items() if item.kind != "other" and numpy_dtype(name) == dtype), dtype.name
    )


def component(name: str) -> str:
    """The dtype of the components of a complex dtype; every other dtype itself."""
    return COMPONENTS.get(name, name)


def components(array: NDArray[Any]) -> NDArray[Any]:
    """The components of a complex array over its memory: a last dimension of re and im. Other arrays are themselves."""
    if array.dtype.kind != "c":
        return array
    return array[..., np.newaxis].view(array.real.dtype)


def from_components(array: NDArray[Any], name: str) -> NDArray[Any]:
    """A tensor's array from its components, where its dtype is complex; else the array itself."""
    if name not in COMPONENTS:
        return array
    return np.ascontiguousarray(array).view(numpy_dtype(name))[..., 0]


FORMATS: MappingProxyType[str, int] = MappingProxyType(
    {
        "UNDEFINED": -1,
        "NCHW": 0,
        "NHWC": 1,
        "ND": 2,
        "NC1HWC0": 3,
        "FRACTAL_Z": 4,
        "NC1HWC0_C04": 12,
        "HWCN": 16,
        "NDHWC": 27,
        "FRACTAL_NZ": 29,
        "NCDHW": 30,
        "NDC1HWC0": 32,
        "FRACTAL_Z_3D": 33,
        "NC": 35,
        "NCL": 47,
    }
)

DIMENSIONS: MappingProxyType[str, int] = MappingProxyType(
    {"NC": 2, "NCL": 3, "NCHW": 4, "NHWC": 4, "HWCN": 4, "NCDHW": 5, "NDHWC": 5}
)
"""How many dimensions a format is for; those that are left out are for any."""

PRIVATE_FORMATS: frozenset[str] = frozenset(
    {"NC1HWC0", "FRACTAL_Z", "NC1HWC0_C04", "FRACTAL_NZ", "NDC1HWC0", "FRACTAL_Z_3D"}
)
"""Formats whose memory is tiled for the device: a strided view of the host cannot stand for them."""


_SHORT = MappingProxyType(
    {
        "f32": "FLOAT",
        "f16": "FLOAT16",
        "f64": "DOUBLE",
        "bf16": "BF16",
        "s8": "INT8",
        "u8": "UINT8",
        "s16": "INT16",
        "u16": "UINT16",
        "s32": "INT32",
        "u32": "UINT32",
        "s64": "INT64",
        "u64": "UINT64",
        "bool": "BOOL",
        "c32": "COMPLEX32",
        "c64": "COMPLEX64",
        "c128": "COMPLEX128",
    }
)
_TENSORS = """
     f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  bool c32  c64  c128
f32  f32  f32  f64  f32  f32  f32  f32  x    f32  x    f32  x    f32  c64  c64  c128
f16  f32  f16  f64  f32  f16  f16  f16  x    f16  x    f16  x    f16  c32  c64  c128
f64  f64  f64  f64  f64  f64  f64  f64  x    f64  x    f64  x    f64  c128 c128 c128
bf16 f32  f32  f64  bf16 bf16 bf16 bf16 x    bf16 x    bf16 x    bf16 c32  c64  c128
s8   f32  f16  f64  bf16 s8   s16  s16  x    s32  x    s64  x    s8   c32  c64  c128
u8   f32  f16  f64  bf16 s16  u8   s16  x    s32  x    s64  x    u8   c32  c64  c128
s16  f32  f16  f64  bf16 s16  s16  s16  x    s32  x    s64  x    s16  c32  c64  c128
u16  x    x    x    x    x    x    x    u16  x    x    x    x    x    x    x    x
s32  f32  f16  f64  bf16 s32  s32  s32  x    s32  x    s64  x    s32  c32  c64  c128
u32  x    x    x    x    x    x    x    x    x    u32  x    x    x    x    x    x
s64  f32  f16  f64  bf16 s64  s64  s64  x    s64  x    s64  x    s64  c32  c64  c128
u64  x    x    x    x    x    x    x    x    x    x    x    u64  x    x    x    x
bool f32  f16  f64  bf16 s8   u8   s16  x    s32  x    s64  x    bool c32  c64  c128
c32  c64  c32  c128 c32  c32  c32  c32  x    c32  x    c32  x    c32  c32  c64  c128
c64  c64  c64  c128 c64  c64  c64  c64  x    c64  x    c64  x    c64  c64  c64  c128
c128 c128 c128 c128 c128 c128 c128 c128 x    c128 x    c128 x    c128 c128 c128 c128
"""
"""Two tensors. Read-only: a line for each of them, a column for the other."""
_SCALARS = """
     f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  bool c32  c64  c128
f32  f32  f16  f64  bf16 f32  f32  f32  x    f32  x    f32  x    f32  c32  c64  c128
f16  f32  f16  f64  bf16 f32  f32  f32  x    f32  x    f32  x    f32  c32  c64  c128
f64  f32  f16  f64  bf16 f32  f32  f32  x    f32  x    f32  x    f32  c128 c128 c128
bf16 f32  f16  f64  bf16 f32  f32  f32  x    f32  x    f32  x    f32  c32  c64  c128
s8   f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  s8   c32  c64  c128
u8   f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  u8   c32  c64  c128
s16  f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  s16  c32  c64  c128
u16  f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  x    c32  c64  c128
s32  f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  s32  c32  c64  c128
u32  f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  x    c32  c64  c128
s64  f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  s64  c32  c64  c128
u64  f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  x    c32  c64  c128
bool f32  f16  f64  bf16 s8   u8   s16  u16  s32  u32  s64  u64  bool c32  c64  c128
c32  c64  c32  c128 c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c32  c64  c128
c64  c64  c32  c128 c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c32  c64  c128
c128 c64  c32  c128 c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c32  c64  c128
"""
"""A scalar, by line, and a tensor, by column."""
_INTEGERS = ("signed", "unsigned")
_CONVERTS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "bool": (*_INTEGERS, "float", "complex"),
        "signed": (*_INTEGERS, "float", "complex"),
        "unsigned": (*_INTEGERS, "float", "complex"),
        "float": ("float", "complex"),
        "complex": ("complex",),
    }
)
"""The kinds of dtype that each kind can be converted to."""


def _read(text: str) -> MappingProxyType[tuple[str, str], str]:
    """A table by line and column, without the pairs that have no dtype."""
    head, *lines = (line.split() for line in text.strip().splitlines())
    return MappingProxyType(
        {
            (_SHORT[line[0]], _SHORT[column]): _SHORT[word]
            for line in lines
            for column, word in zip(head, line[1:], strict=True)
            if word != "x"
        }
    )


_OF_TENSORS, _OF_SCALARS = _read(_TENSORS), _read(_SCALARS)


def promoted_dtype(dtypes: Iterable[str]) -> str | None:
    """The dtype that tensors of these, at least one, promote to, in their order; None where there is none."""
    first, *others = dtypes
    if first in FLOAT8:
        # The table leaves them out: what is the same already needs no rule, and they go with nothing else.
        return first if set(others) <= {first} else None
    found = _OF_TENSORS.get((first, first))
    for other in others:
        found = None if found is None else _OF_TENSORS.get((found, other))
    return found


def promoted_by_scalar(tensor: str, scalar: str) -> str | None:
    """The dtype that a tensor and a scalar promote to; None where there is none."""
    return _OF_SCALARS.get((scalar, tensor))


@functools.cache
def can_convert(source: str, to: str) -> bool:
    """Whether a result of one dtype can be converted to another; one of the same dtype needs no conversion."""
    return source == to or DTYPES[to].kind in _CONVERTS.get(DTYPES[source].kind, ())


def promoted_inputs(
    tensors: Mapping[str, NDArray[Any]], names: Collection[str], dtype: str | None
) -> dict[str, NDArray[Any]]:
    """Inputs as oracles take them, those of `names` as a computation in the dtype that they promote to uses them.

    Integers and bools are rounded to it (to its components). No other input changes: a floating dtype promotes to one
    that holds all of its numbers.
    """
    if dtype not in INEXACT:
        return dict(tensors)
    form = numpy_dtype(component(dtype))
    return {
        name: array.astype(form).astype(np.float64) if name in names and array.dtype != np.float64 else array
        for name, array in tensors.items()
    }
