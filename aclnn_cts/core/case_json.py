"""The case file format `aclnn-cts/case/1`: decoding with messages that name the place, and the canonical encoding."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from aclnn_cts.core.case import (
    SCALAR_DTYPES,
    Argument,
    BoolArray,
    CallOptions,
    Case,
    Data,
    FloatArray,
    Origin,
    Scalar,
    Tensor,
    TensorList,
    argument_kind,
    integer_bounds,
    real_view,
)
from aclnn_cts.core.dtypes import COMPONENTS, DTYPES, FORMATS
from aclnn_cts.core.errors import HarnessError, UsageError, did_you_mean
from aclnn_cts.core.outside import ARRAY_LIMIT, NON_FINITE, RANK_LIMIT, numbers_as_words
from aclnn_cts.core.printable import ECHO_LIMIT, printable, quote
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target

T = TypeVar("T")

CASE_FORMAT = "aclnn-cts/case/1"

_CASE_KEYS = ("format", "operator", "product", "arguments", "target", "call", "origin")
_DATA_NUMBERS = ("mean", "std", "epsilon")
_INT64 = (-(2**63), 2**63 - 1)


def case_to_json(case: Case, *, origin: bool = True) -> dict[str, Any]:
    """The case as plain JSON values."""
    arguments = msgspec.to_builtins(case.arguments)
    target = msgspec.to_builtins(case.target)
    target.pop("product", None)
    document: dict[str, Any] = {
        "format": CASE_FORMAT,
        "operator": case.operator,
        "product": case.target.product,
        "arguments": {name: _argument_to_json(value, arguments[name]) for name, value in case.arguments.items()},
    }
    if target:
        document["target"] = target
    call = msgspec.to_builtins(case.call)
    if call:
        document["call"] = call
    if origin and (provenance := msgspec.to_builtins(case.origin)):
        document["origin"] = provenance
    return document


def canonical_json(document: object) -> bytes:
    """One spelling for equal documents: keys sorted, no blanks, shortest numbers that read back the same."""
    return msgspec.json.encode(document, order="sorted")


def case_id(case: Case) -> str:
    """SHA-256 of the canonical JSON without the origin, in hexadecimal."""
    return hashlib.sha256(canonical_json(case_to_json(case, origin=False))).hexdigest()


def _argument_to_json(value: Argument, plain: Any) -> object:  # noqa: ANN401 - what msgspec makes of any argument
    """An argument that msgspec has turned into plain values, in the form that a case file gives it."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        return {"tensor": _tensor_to_json(value, plain)}
    kind = str(argument_kind(value))
    if isinstance(value, TensorList):
        return {
            kind: [_tensor_to_json(tensor, inner) for tensor, inner in zip(value.items, plain["items"], strict=True)]
        }
    if isinstance(value, Scalar):
        return {kind: {"dtype": value.dtype, "value": numbers_as_words(value.value)}}
    if isinstance(value, (BoolArray, FloatArray)):
        return {kind: numbers_as_words(value.items)}
    return {kind: numbers_as_words(value)}


def _tensor_to_json(value: Tensor, plain: dict[str, Any]) -> dict[str, Any]:
    if value.data is not None:
        # The encoder would write null for inf and nan, and two cases would share an id.
        plain["data"] = numbers_as_words(plain["data"])
    del plain["kind"]
    # msgspec leaves a default out by identity, so that an ND may be there or not: here it always stands, third.
    return {"shape": plain["shape"], "dtype": value.dtype, "format": value.format, **plain}


def case_from_json(document: object, *, where: str) -> Case:
    """Read one case document. `where` (file and line) opens every message.

    Names of operators and parameters are not looked up here: that needs a spec (`speclang.binding`).
    """
    body = _object(document, where=where, path="$", keys=_CASE_KEYS)
    if body.get("format") != CASE_FORMAT:
        found = quote(body["format"]) if "format" in body else "missing"
        raise UsageError(f"{where}: $.format: {found}; expected {CASE_FORMAT!r}")
    operator = _string(body, "operator", where)
    arguments = _object(body.get("arguments"), where=where, path="$.arguments", keys=None)
    target: dict[str, Any] = {"product": _string(body, "product", where) if "product" in body else DEFAULT_PRODUCT}
    extra = _object(body.get("target", {}), where=where, path="$.target", keys=None)
    if "product" in extra:
        raise UsageError(f"{where}: $.target.product: stands outside `target`; write it as $.product")
    return Case(
        operator=operator,
        arguments={
            name: argument_from_json(value, where=where, path=f"$.arguments.{printable(name, ECHO_LIMIT)}")
            for name, value in arguments.items()
        },
        target=_convert(target | dict(extra), Target, where=where, path="$.target"),
        call=_call(body.get("call", {}), where=where),
        origin=_convert(body.get("origin", {}), Origin, where=where, path="$.origin"),
    )


def _call(document: object, *, where: str) -> CallOptions:
    call = _convert(document, CallOptions, where=where, path="$.call")
    if call.phases not in (1, 2):
        raise UsageError(f"{where}: $.call.phases: {quote(call.phases)}; expected 1 (the first phase alone) or 2")
    known = ("workspaceSize", "executor", "workspace")
    for name in call.null:
        if name not in known:
            raise UsageError(
                f"{where}: $.call.null: {quote(name)}; expected any of {', '.join(known)}{did_you_mean(name, known)}"
            )
    return call


def argument_from_json(value: object, *, where: str, path: str) -> Argument:
    """Read one argument in the form that a case file gives it."""
    if value is None:
        return None
    body = _object(value, where=where, path=path, keys=None)
    if len(body) != 1:
        raise UsageError(
            f"{where}: {path}: {quote(sorted(body))}; expected null or an object with one of {', '.join(_READERS)}"
        )
    kind, content = next(iter(body.items()))
    if kind not in _READERS:
        raise UsageError(
            f"{where}: {path}: unknown kind of argument {quote(kind)}; expected one of {', '.join(_READERS)}"
            f"{did_you_mean(kind, _READERS)}"
        )
    return _READERS[kind](content, where=where, path=f"{path}.{kind}")


def _convert(value: object, kind: type[T], *, where: str, path: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, _, inner = str(error).partition(" - at `$")
        place = printable(inner.rstrip("`"), ECHO_LIMIT)
        raise UsageError(f"{where}: {path}{place}: {printable(message, ECHO_LIMIT)}") from None


def _double(content: object, *, where: str, path: str) -> float:
    if isinstance(content, str) and content in NON_FINITE:
        return NON_FINITE[content]
    return _convert(content, float, where=where, path=path)


def _text(content: object, *, where: str, path: str) -> str:
    """A word for a `char *`: C ends it at the first null byte, and takes it as bytes."""
    word = _convert(content, str, where=where, path=path)
    if len(word) > ECHO_LIMIT or any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in word):
        raise UsageError(f"{where}: {path}: {quote(word)}; expected at most {ECHO_LIMIT} characters, none of them null")
    return word


def _scalar(content: object, *, where: str, path: str) -> Scalar:
    body = _object(content, where=where, path=path, keys=Scalar.__struct_fields__)
    dtype = body.get("dtype")
    if not isinstance(dtype, str) or dtype not in SCALAR_DTYPES:
        known = [name for name in DTYPES if name in SCALAR_DTYPES]
        raise UsageError(
            f"{where}: {path}.dtype: {quote(dtype)}; expected one of {', '.join(known)}"
            f"{did_you_mean(str(dtype), known)}"
        )
    place = f"{path}.value"
    kind = DTYPES[dtype].kind
    if kind == "bool":
        return Scalar(dtype, _convert(body.get("value"), bool, where=where, path=place))
    if kind not in ("signed", "unsigned"):
        return Scalar(dtype, _double(body.get("value"), where=where, path=place))
    value = _convert(body.get("value"), int, where=where, path=place)
    low, high = integer_bounds(dtype)
    if not low <= value <= high:
        raise UsageError(f"{where}: {place}: {quote(value)}; expected {dtype}, in [{low}, {high}]")
    return Scalar(dtype, value)


def _items(content: object, *, where: str, path: str) -> Sequence[object]:
    items = _convert(content, tuple[Any, ...], where=where, path=path)
    if len(items) > ARRAY_LIMIT:
        raise UsageError(f"{where}: {path}: {len(items)} items; expected at most {ARRAY_LIMIT}")
    return items


def _int_array(content: object, *, where: str, path: str) -> tuple[int, ...]:
    return _convert(_items(content, where=where, path=path), tuple[int, ...], where=where, path=path)


def _bool_array(content: object, *, where: str, path: str) -> BoolArray:
    items = _items(content, where=where, path=path)
    return BoolArray(_convert(items, tuple[bool, ...], where=where, path=path))


def _float_array(content: object, *, where: str, path: str) -> FloatArray:
    items = _items(content, where=where, path=path)
    return FloatArray(tuple(_double(item, where=where, path=f"{path}[{place}]") for place, item in enumerate(items)))


def _tensor_list(content: object, *, where: str, path: str) -> TensorList:
    items = _items(content, where=where, path=path)
    return TensorList(tuple(_tensor(item, where=where, path=f"{path}[{place}]") for place, item in enumerate(items)))


def _tensor(document: object, *, where: str, path: str) -> Tensor:
    body = dict(_object(document, where=where, path=path, keys=Tensor.__struct_fields__))
    if isinstance(body.get("data"), Mapping):
        body["data"] = {
            key: NON_FINITE.get(value, value) if key in _DATA_NUMBERS and isinstance(value, str) else value
            for key, value in body["data"].items()
        }
    tensor = _convert(body, Tensor, where=where, path=path)
    _check_tensor(tensor, where=where, path=path)
    if tensor.data is not None:
        _check_data(tensor, tensor.data, where=where, path=f"{path}.data")
    return tensor


_READERS: Mapping[str, Callable[..., Argument]] = MappingProxyType(
    {
        "tensor": _tensor,
        "scalar": _scalar,
        "string": _text,
        "int_array": _int_array,
        "bool_array": _bool_array,
        "float_array": _float_array,
        "tensor_list": _tensor_list,
        "int": functools.partial(_convert, kind=int),
        "bool": functools.partial(_convert, kind=bool),
        "double": _double,
    }
)
"""By the kind of argument that they read."""


def check_case(case: Case, *, where: str, error: type[UsageError | HarnessError]) -> None:
    """An `error` for a case that no file can hold: one that was stored by another program, or changed there."""
    try:
        for name, tensor in case.tensors():
            _check_tensor(tensor, where=where, path=f"$.arguments.{printable(name, ECHO_LIMIT)}")
    except UsageError as mistake:
        raise error(str(mistake)) from None


def _check_tensor(tensor: Tensor, *, where: str, path: str) -> None:
    """Before anything is computed from sizes: their number, that each is an int64_t, and that the names are known."""
    for name in ("shape", "strides", "storage_shape"):
        sizes: tuple[int, ...] = getattr(tensor, name) or ()
        if len(sizes) > RANK_LIMIT:
            raise UsageError(f"{where}: {path}.{name}: {len(sizes)} dimensions; expected at most {RANK_LIMIT}")
        check_int64(sizes, where=f"{where}: {path}.{name}")
    check_int64((tensor.offset,), where=f"{where}: {path}.offset")
    if tensor.dtype not in DTYPES:
        raise UsageError(
            f"{where}: {path}.dtype: {quote(tensor.dtype)}; expected an aclDataType without ACL_"
            f"{did_you_mean(tensor.dtype, DTYPES)}"
        )
    if tensor.format not in FORMATS:
        raise UsageError(
            f"{where}: {path}.format: {quote(tensor.format)}; expected an aclFormat without ACL_FORMAT_"
            f"{did_you_mean(tensor.format, FORMATS)}"
        )
    if tensor.strides is not None and len(tensor.strides) != len(tensor.shape):
        raise UsageError(
            f"{where}: {path}.strides: {len(tensor.strides)} strides; expected {len(tensor.shape)}, "
            "one a dimension of shape"
        )


def check_int64(values: tuple[int, ...], *, where: str) -> None:
    """UsageError, opened by `where`, for the first number that is no int64_t."""
    for value in values:
        if not _INT64[0] <= value <= _INT64[1]:
            raise UsageError(f"{where}: {quote(value)}; expected int64_t, in [{_INT64[0]}, {_INT64[1]}]")


def _check_data(tensor: Tensor, data: Data, *, where: str, path: str) -> None:
    if (data.values is None) == (data.recipe is None):
        raise UsageError(f"{where}: {path}: expected either `values` or `recipe`")
    if data.values is None:
        return
    for index, value in enumerate(data.values):
        if isinstance(value, str) and value not in NON_FINITE:
            raise UsageError(f"{where}: {path}.values[{index}]: {quote(value)}; expected a number, or inf, -inf or nan")
    if min(tensor.shape, default=0) < 0:
        raise UsageError(
            f"{where}: {path}: a tensor of the shape {list(tensor.shape)} has no elements to state; leave `data` out"
        )
    if len(data.values) != (count := real_view(tensor).numel):
        alternately = ", re and im of each element" if tensor.dtype in COMPONENTS else ""
        raise UsageError(
            f"{where}: {path}.values: {len(data.values)} numbers; "
            f"expected {count} for the shape {list(tensor.shape)}{alternately}"
        )


def _object(document: object, *, where: str, path: str, keys: tuple[str, ...] | None) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise UsageError(f"{where}: {path}: {quote(document)}; expected an object")
    for key in document if keys is not None else ():
        if key not in (keys or ()):
            raise UsageError(
                f"{where}: {path}: unknown key {quote(key)}; expected any of {', '.join(keys or ())}"
                f"{did_you_mean(key, keys or ())}"
            )
    return document


def _string(body: Mapping[str, Any], key: str, where: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise UsageError(f"{where}: $.{key}: {quote(value)}; expected a string")
    return value
