"""Where each tensor of a call lies in one block of memory: a pure function of the case, alike in every process."""

from __future__ import annotations

import math
from types import MappingProxyType

import msgspec
import numpy as np

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.printable import shown
from aclnn_cts.generate.layouts import storage_dtype

ALIGNMENT = 64
"""Bytes; each storage starts at a multiple of it, as device allocations do."""
GUARD = 256
"""Bytes of the guard band on each side of a storage; the one behind it also takes the rest up to the alignment."""

_MAX_RANK = 32
_ADDRESSED = 2**48
"""Elements; more than that no array can have, even where another dimension is 0."""
_COUNTED = 2**16
"""Elements up to which the places of a doubtful view are compared one by one."""


class UnsafeViewError(ValueError):
    """A tensor whose view must not be touched: it leaves its storage, or its elements share memory."""


class Place(msgspec.Struct, frozen=True):
    """Byte offsets of one tensor in the block: guard from `start`, storage from `offset` to `end`, guard to `stop`."""

    name: str
    tensor: Tensor
    output: bool
    filled: bool
    """Whether it has contents before the call: every input, and an output whose descriptor has data."""
    start: int
    offset: int
    end: int
    stop: int


class Layout(msgspec.Struct, frozen=True):
    """The block of one call: inputs in the order of the prototype, then outputs. Places touch, and fill it."""

    places: MappingProxyType[str, Place]
    size: int
    """Bytes, at least 1."""


def layout(case: Case, outputs: frozenset[str]) -> Layout:
    """Place every tensor of a case that is not null. Raises UnsafeViewError for one that `check_view` refuses."""
    places: dict[str, Place] = {}
    cursor = 0
    # A stable sort: inputs first, both in the order of the prototype.
    for name, tensor in sorted(case.tensors(), key=lambda item: item[0] in outputs):
        reason = check_view(tensor)
        if reason is not None:
            raise UnsafeViewError(f"{name}: {reason}")
        offset = cursor + GUARD
        end = offset + tensor.storage_numel * storage_dtype(tensor.dtype).itemsize
        stop = -(-end // ALIGNMENT) * ALIGNMENT + GUARD
        output = name in outputs
        places[name] = Place(name, tensor, output, not output or tensor.data is not None, cursor, offset, end, stop)
        cursor = stop
    return Layout(MappingProxyType(places), max(cursor, 1))


def check_view(tensor: Tensor) -> str | None:
    """Why no memory can safely be handed over under a descriptor, or None where it can.

    A device does not check the view of a tensor against its storage: such a case would read or write memory of others.
    """
    shape, strides, storage_shape = tensor.shape, tensor.strides, tensor.storage_shape
    if (shape and min(shape) < 0) or (storage_shape and min(storage_shape) < 0):
        return f"shape {list(shape)} or storage_shape {storage_shape} has a negative dimension"
    if len(shape) > _MAX_RANK:
        return f"rank {len(shape)}; views of more than {_MAX_RANK} dimensions cannot be made"
    if 0 in shape and math.prod(filter(None, shape)) > _ADDRESSED:
        return f"shape {shown(list(shape))}: its sizes beside the 0 exceed what memory has"
    if tensor.offset < 0:
        return f"offset {tensor.offset} lies before the storage"
    reason = _check_strides(shape, strides) if strides is not None else None
    if reason is None and storage_shape is not None and tensor.reach > tensor.storage_numel:
        return f"the view reaches element {tensor.reach - 1} of a storage of {tensor.storage_numel}"
    return reason


def _check_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> str | None:
    if len(strides) != len(shape):
        return f"{len(strides)} strides for {len(shape)} dimensions"
    if 0 in shape:
        return None
    if _nested(shape, strides):
        return None
    for size, stride in zip(shape, strides, strict=True):
        if stride < 0:
            return f"strides {list(strides)}: a negative stride leads out of the storage"
        if stride == 0 and size > 1:
            return f"strides {list(strides)}: a stride of 0 puts several elements in one place"
    if _overlaps(shape, strides):
        return f"strides {list(strides)}: elements of the view overlap"
    return None


def _nested(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether every stride steps over all that smaller ones reach: then no two elements share a place."""
    reached = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if stride < 0 or (stride <= reached and size != 1):
            return False
        reached += (size - 1) * stride
    return True


def _overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two elements share a place: taken as true of a large view, which is not `_nested`."""
    count = math.prod(shape)
    if count > _COUNTED:
        return True
    places = np.zeros(1, dtype=np.int64)
    for size, stride in zip(shape, strides, strict=True):
        places = (places[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return len(np.unique(places)) < count
