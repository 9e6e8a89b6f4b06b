"""From a case's arguments to what the C functions take: handles of tensors and arrays, and scalars in range."""

from __future__ import annotations

import ctypes
import hashlib
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from aclnn_cts.adapters.cann.bindings import Functions
from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.core.case import Argument, Case, Tensor, contiguous_strides
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.formats import FORMATS
from aclnn_cts.speclang.kinds_number import C_RANGES
from aclnn_cts.speclang.model import Parameter, Spec

__all__ = ["Descriptors", "cache_key", "effective_strides", "storage_shape"]

_LOW, _HIGH = C_RANGES["int64_t"]
_NOWHERE: Mapping[str, int] = MappingProxyType({})


class Descriptors:
    """The arguments of one phase one. Handles live until `release`, which must come after phase two has returned.

    `addresses` is the device address of each tensor's storage; a tensor without one gets a null address, which phase
    one never reads. Raises Inexpressible for an argument that its C type cannot hold, or that no descriptor is made of.
    """

    __slots__ = ("_arrays", "_meta", "_tensors", "arguments")

    def __init__(self, meta: Functions, spec: Spec, case: Case, *, addresses: Mapping[str, int] = _NOWHERE) -> None:
        self._meta = meta
        self._tensors: list[int] = []
        self._arrays: list[int] = []
        self.arguments: list[Any] = []
        """In the order of the prototype, without workspaceSize and executor."""
        try:
            for parameter in spec.parameters:
                value = case.arguments.get(parameter.name)
                self.arguments.append(self._argument(parameter, value, addresses.get(parameter.name)))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Destroy all handles. May be called again."""
        destroy_tensor, destroy_array = self._meta["aclDestroyTensor"], self._meta["aclDestroyIntArray"]
        while self._tensors:
            destroy_tensor(self._tensors.pop())
        while self._arrays:
            destroy_array(self._arrays.pop())

    def _argument(self, parameter: Parameter, value: Argument, address: int | None) -> object:
        if parameter.kind == "tensor":
            return None if value is None else self._tensor(parameter.name, value, address)
        if parameter.kind == "int_array":
            return None if value is None else self._int_array(parameter.name, value)
        return _scalar(parameter, value)

    def _tensor(self, name: str, value: Argument, address: int | None) -> int:
        if not isinstance(value, Tensor):
            raise Inexpressible(f"{name}: {value!r} is no tensor")
        rank = len(value.shape)
        shape = _dims(name, value.shape)
        storage = storage_shape(value)
        handle = self._meta["aclCreateTensor"](
            shape,
            rank,
            DTYPES[value.dtype].value,
            _strides(name, value),
            _int64(name, value.offset),
            FORMATS[value.format],
            _dims(name, storage),
            len(storage),
            address,
        )
        if not handle:
            raise Inexpressible(f"{name}: aclCreateTensor makes no tensor of shape {list(value.shape)}")
        self._tensors.append(handle)
        return int(handle)

    def _int_array(self, name: str, value: Argument) -> int:
        if not isinstance(value, tuple):
            raise Inexpressible(f"{name}: {value!r} is no array of integers")
        handle = self._meta["aclCreateIntArray"](_dims(name, value), len(value))
        if not handle:
            raise Inexpressible(f"{name}: aclCreateIntArray makes no array of {len(value)} items")
        self._arrays.append(handle)
        return int(handle)


def storage_shape(tensor: Tensor) -> tuple[int, ...]:
    """The shape of the memory behind a view: its own where that is contiguous, else one row up to the view's end."""
    if tensor.storage_shape is not None:
        return tensor.storage_shape
    if tensor.is_contiguous and tensor.offset == 0:
        return tensor.shape
    return (tensor.reach,)


def cache_key(case: Case) -> bytes:
    """Stands for what the operator library's cache knows a call by: all of it but the addresses and the contents.

    Of tensors it is what reaches the library, so that strides which are left out and strides which say the same are
    one. A digest, since Python's own hash of -1 is that of -2.
    """
    parts = [
        (value.shape, value.dtype, value.format, effective_strides(value), value.offset, storage_shape(value))
        if isinstance(value, Tensor)
        else value
        for value in case.arguments.values()
    ]
    return hashlib.blake2b(repr((case.operator, parts)).encode(), digest_size=16).digest()


def effective_strides(tensor: Tensor) -> tuple[int, ...] | None:
    """The strides that the library is given: those of a contiguous tensor too, as the documents' programs do.

    None where they leave 64 bits; the library makes them up then.
    """
    if tensor.strides is not None:
        return tensor.strides
    if abs(math.prod(size for size in tensor.shape[1:] if size)) > _HIGH:
        return None
    return contiguous_strides(tensor.shape)


def _strides(name: str, tensor: Tensor) -> Any:  # noqa: ANN401 - a ctypes array or None
    strides = effective_strides(tensor)
    if strides is None:
        return None
    if len(strides) != len(tensor.shape):
        raise Inexpressible(f"{name}: {len(strides)} strides for {len(tensor.shape)} dimensions")
    return _dims(name, strides)


def _dims(name: str, values: Sequence[int]) -> Any:  # noqa: ANN401 - a ctypes array
    for value in values:
        _int64(name, value)
    # Never of length 0: the library takes a pointer to nothing for no pointer at all.
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def _int64(name: str, value: int) -> int:
    if not _LOW <= value <= _HIGH:
        raise Inexpressible(f"{name}: {value} does not fit in int64_t")
    return value


def _scalar(parameter: Parameter, value: Argument) -> object:
    name, kind = parameter.name, parameter.kind
    if kind == "double":
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    elif kind == "bool":
        if isinstance(value, bool):
            return value
    elif isinstance(value, int) and not isinstance(value, bool):
        low, high = C_RANGES[parameter.c_type]
        if low <= value <= high:
            return value
        raise Inexpressible(f"{name}: {value} does not fit in {parameter.c_type}, which holds {low} to {high}")
    raise Inexpressible(f"{name}: {value!r} cannot be passed as {parameter.c_type}")
