"""To which dtype others promote, and which can be converted to which: the common pages on both, as data.

Names are those of `core.dtypes`. Where the pages leave a combination out there is no promoted dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import DTYPES, INEXACT, component, numpy_dtype

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


def promoted(dtypes: Iterable[str]) -> str | None:
    """The dtype that tensors of these, at least one, promote to, in their order; None where there is none."""
    first, *others = dtypes
    found = _OF_TENSORS.get((first, first))
    for other in others:
        found = None if found is None else _OF_TENSORS.get((found, other))
    return found


def promoted_by_scalar(tensor: str, scalar: str) -> str | None:
    """The dtype that a tensor and a scalar promote to; None where there is none."""
    return _OF_SCALARS.get((scalar, tensor))


@functools.cache
def converts(source: str, to: str) -> bool:
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
