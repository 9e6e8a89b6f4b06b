"""From a case's arguments to what the C functions take: handles of tensors and arrays, and scalars in range."""

from __future__ import annotations

import ctypes
import hashlib
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from aclnn_cts.adapters.cann.bindings import Functions
from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.core.case import (
    POINTERS,
    Argument,
    BoolArray,
    Case,
    FloatArray,
    Scalar,
    Tensor,
    TensorList,
    contiguous_strides,
    host_bytes,
)
from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.speclang.kinds_number import C_RANGES
from aclnn_cts.speclang.model import Parameter, Spec

_T = TypeVar("_T")

_LOW, _HIGH = C_RANGES["int64_t"]
_ARRAYS: Mapping[str, tuple[str, Any]] = MappingProxyType(
    {
        "int_array": ("Int", ctypes.c_int64),
        "bool_array": ("Bool", ctypes.c_bool),
        "float_array": ("Float", ctypes.c_float),
    }
)
"""What the functions of an array are called after, and the C type of its elements."""
_NOWHERE: Mapping[str, int] = MappingProxyType({})


class Descriptors:
    """The arguments of one phase one. Handles live until `release`, which must come after phase two has returned.

    `addresses` is the device address of each tensor's storage; a tensor without one gets a null address, which phase
    one never reads. Raises Inexpressible for an argument that its C type cannot hold, or that no descriptor is made of.
    """

    __slots__ = ("_made", "_meta", "arguments")

    def __init__(self, meta: Functions, spec: Spec, case: Case, *, addresses: Mapping[str, int] = _NOWHERE) -> None:
        self._meta = meta
        self._made: list[tuple[str, int]] = []
        """Handles with the function that destroys each, in the order in which they were made."""
        self.arguments: list[Any] = []
        """In the order of the prototype, without workspaceSize and executor."""
        try:
            for parameter in spec.parameters:
                value = case.arguments.get(parameter.name)
                self.arguments.append(self._argument(parameter, value, addresses))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Destroy all handles. May be called again."""
        while self._made:
            destroy, handle = self._made.pop()
            self._meta[destroy](handle)

    def _argument(self, parameter: Parameter, value: Argument, addresses: Mapping[str, int]) -> object:
        name, kind = parameter.name, parameter.kind
        if value is None and kind in POINTERS:
            return None
        if kind == "tensor":
            return self._tensor(name, _of_class(Tensor, name, value, "tensor"), addresses.get(name))
        if kind == "scalar":
            return self._scalar(name, _of_class(Scalar, name, value, "scalar"))
        if kind == "string":
            return _of_class(str, name, value, "text").encode()
        if kind == "tensor_list":
            return self._list(name, _of_class(TensorList, name, value, "list of tensors"), addresses)
        if kind in _ARRAYS:
            return self._array(name, value, *_ARRAYS[kind])
        return _number(parameter, value)

    def _kept(self, what: str, handle: int | None, name: str, of: str) -> int:
        """A handle that was made, to be destroyed in its turn; `of` is said of one that was not."""
        if not handle:
            raise Inexpressible(f"{name}: aclCreate{what} makes no {of}")
        self._made.append((f"aclDestroy{what}", int(handle)))
        return int(handle)

    def _list(self, name: str, value: TensorList, addresses: Mapping[str, int]) -> int:
        """A list, which owns its tensors: destroying it destroys them."""
        before = len(self._made)
        handles = []
        for place, tensor in enumerate(value.items):
            item = f"{name}[{place}]"
            handles.append(self._tensor(item, tensor, addresses.get(item)))
        array = (ctypes.c_void_p * max(len(handles), 1))(*handles)
        made = self._meta["aclCreateTensorList"](array, len(handles))
        if made:
            del self._made[before:]
        return self._kept("TensorList", made, name, f"list of {len(handles)} tensors")

    def _scalar(self, name: str, value: Scalar) -> int:
        # The value is copied while the scalar is made.
        made = self._meta["aclCreateScalar"](ctypes.create_string_buffer(host_bytes(value)), DTYPES[value.dtype].value)
        return self._kept("Scalar", made, name, f"scalar of the dtype {value.dtype}")

    def _tensor(self, name: str, value: Tensor, address: int | None) -> int:
        shape, storage = _dims(name, value.shape), storage_shape(value)
        made = self._meta["aclCreateTensor"](
            shape,
            len(value.shape),
            DTYPES[value.dtype].value,
            _strides(name, value),
            _int64(name, value.offset),
            FORMATS[value.format],
            _dims(name, storage),
            len(storage),
            address,
        )
        return self._kept("Tensor", made, name, f"tensor of shape {list(value.shape)}")

    def _array(self, name: str, value: Argument, word: str, element: Any) -> int:  # noqa: ANN401 - a ctypes type
        items: Any = value.items if isinstance(value, (BoolArray, FloatArray)) else value
        items = _of_class(tuple, name, items, f"array for acl{word}Array")
        array = _dims(name, items) if word == "Int" else (element * max(len(items), 1))(*items)
        made = self._meta[f"aclCreate{word}Array"](array, len(items))
        return self._kept(f"{word}Array", made, name, f"array of {len(items)} items")


def _of_class(kind: type[_T], name: str, value: object, what: str) -> _T:
    if not isinstance(value, kind):
        raise Inexpressible(f"{name}: {value!r} is no {what}")
    return value


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
        [_known(tensor) for tensor in value.items]
        if isinstance(value, TensorList)
        else _known(value)
        if isinstance(value, Tensor)
        else value
        for value in case.arguments.values()
    ]
    return hashlib.blake2b(repr((case.operator, parts)).encode(), digest_size=16).digest()


def _known(tensor: Tensor) -> tuple[object, ...]:
    shape, strides = tensor.shape, effective_strides(tensor)
    return shape, tensor.dtype, tensor.format, strides, tensor.offset, storage_shape(tensor)


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


def _number(parameter: Parameter, value: Argument) -> object:
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
