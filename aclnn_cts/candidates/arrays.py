"""Arrays by parameter name and cases: NumPy, torch or DLPack in, and the arguments that the C prototype takes out."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import (
    POINTERS,
    Argument,
    BoolArray,
    Case,
    Data,
    FloatArray,
    Scalar,
    Tensor,
    TensorList,
    number,
    scalar_of,
    tensors_in,
)
from aclnn_cts.core.dtypes import DIMENSIONS, INEXACT, acl_name, numpy_dtype
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.outside import number_or_word
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.binding import check_prototype, infer_outputs
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds_data import ElementsRule, FiniteRule, StructureRule
from aclnn_cts.speclang.kinds_dtype import relations, scalar_dtypes
from aclnn_cts.speclang.model import Parameter, Spec

SHOWN_ELEMENTS = 4096
"""Most elements of an array that a JSON document holds."""

_MOST_NAMED = 4
"""Parameters of a rule that a message describes."""

_RAW = {
    "bfloat16": "BF16",
    "float8_e5m2": "FLOAT8_E5M2",
    "float8_e4m3fn": "FLOAT8_E4M3FN",
    "float8_e8m0fnu": "FLOAT8_E8M0",
}
"""Floating dtypes of torch that NumPy has through ml_dtypes alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCall:
    """A call whose contents are given as arrays."""

    case: Case
    """Descriptors without contents."""
    inputs: Mapping[str, NDArray[Any]]
    inferred: frozenset[str]
    """The outputs whose shape and dtype follow from the inputs: the case has these."""


def as_array(value: object) -> NDArray[Any]:
    """A NumPy array, a torch tensor or what speaks DLPack, as a NumPy array. Raises TypeError for anything else."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            raise TypeError("a masked array with masked elements; expected all elements, as `filled(0)` gives them")
        return np.asarray(value)
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        return _of_torch(value)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value)
    if isinstance(value, (np.generic, int, float, list, tuple)) or hasattr(value, "__array__"):
        try:
            return np.asarray(value)
        except ValueError:
            raise TypeError(f"{quote(value)}; expected an array, all rows of the same length") from None
    raise TypeError(f"{type(value).__name__}; expected a NumPy array, a torch tensor or an object with __dlpack__")


def _of_dlpack(value: Any) -> NDArray[Any]:  # noqa: ANN401 - any library's array
    """What speaks DLPack; NumPy itself reads no BF16 and no memory of a device there."""
    try:
        found: NDArray[Any] = np.from_dlpack(value)
    except (RuntimeError, BufferError, TypeError, ValueError) as error:
        if (torch := sys.modules.get("torch")) is not None:
            with contextlib.suppress(RuntimeError, BufferError, TypeError, ValueError, AttributeError):
                return _of_torch(torch.utils.dlpack.from_dlpack(value))
        if hasattr(value, "__array__"):
            return np.asarray(value)
        raise TypeError(_unread(value, error)) from None
    return found


def _of_torch(value: Any) -> NDArray[Any]:  # noqa: ANN401 - torch is not imported here
    torch = sys.modules["torch"]
    try:
        tensor = value.detach().cpu().resolve_conj().resolve_neg()
        if (name := _RAW.get(str(tensor.dtype).removeprefix("torch."))) is None:
            plain: NDArray[Any] = tensor.numpy()
            return plain
        dtype = numpy_dtype(name)
        integers = torch.int16 if dtype.itemsize == 2 else torch.uint8
        raw: NDArray[Any] = tensor.contiguous().view(integers).numpy()
    except (RuntimeError, TypeError) as error:  # a NotImplementedError of a device without memory is one
        raise TypeError(_unread(value, error)) from None
    return raw.view(dtype)


def _unread(value: Any, error: Exception) -> str:  # noqa: ANN401 - as above
    described = f"{type(value).__name__} of {getattr(value, 'dtype', '?')} on {getattr(value, 'device', '?')}"
    why = quote(str(error).partition("\n")[0])
    return f"{described}: {why}; expected elements that can be read; hand over a NumPy array or a dense torch tensor"


def bind(
    spec: Spec,
    inputs: Mapping[str, object],
    outputs: Mapping[str, NDArray[Any]],
    *,
    names: Mapping[str, str],
    target: Target,
    where: str = "inputs",
) -> BoundCall:
    """The call of these inputs and attributes, with the outputs that follow from them.

    Where none follow, those given stand as they are. Raises UsageError, opened by `where`, for a name or value that the
    prototype does not take.
    """
    given = _by_name(spec, inputs, names, where)
    arrays: dict[str, NDArray[Any]] = {}
    arguments: dict[str, Argument] = {}
    # Scalars last: their dtypes may follow from those of tensors.
    for item in sorted(spec.parameters, key=lambda item: item.kind == "scalar"):
        if item.role == "output":
            continue
        value = given.get(item.name)
        if value is None and item.kind not in POINTERS:
            raise UsageError(f"{where}: {item.name} is missing; expected {_EXPECTED[item.kind]} ({item.c_type})")
        try:
            argument = _argument(item, value, arrays)
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"{where}: {item.name}: {error}") from None
        if item.kind == "scalar" and isinstance(argument, (int, float)):
            dtypes = {name: tensor.dtype for name, held in arguments.items() for tensor in tensors_in(held)[:1]}
            argument = _scalar(argument, scalar_dtypes(relations(spec, target.product), item, dtypes, target))
        arguments[item.name] = argument
    found: dict[str, Tensor | TensorList | None] = {}
    try:
        found = infer_outputs(spec, arguments, target=target, format="ND")
    except UsageError:
        if not outputs:
            raise
    known = {item.name: arguments.get(item.name) for item in spec.parameters}
    known.update(found or {name: array_descriptor(array) for name, array in outputs.items() if known.get(name) is None})
    case = Case(spec.operator, dict(_formatted(spec, known, target)), target)
    check_prototype(spec, case, where=where, path="")
    return BoundCall(case=case, inputs=arrays, inferred=frozenset(name for name, item in found.items() if item))


def _by_name(spec: Spec, inputs: Mapping[str, object], names: Mapping[str, str], where: str) -> dict[str, object]:
    """Inputs and attributes by C name."""
    if not isinstance(inputs, Mapping):
        raise UsageError(f"{where}: {type(inputs).__name__}; expected a mapping of arrays and attributes by name")
    given: dict[str, object] = {}
    words: dict[str, str] = {}
    for word, value in inputs.items():
        if word not in names:
            takes = ", ".join(item.name for item in spec.parameters if item.role != "output")
            raise UsageError(f"{where}: {quote(word)}: {spec.operator} takes {takes}{did_you_mean(str(word), names)}")
        name = names[word]
        if name in given:
            raise UsageError(f"{where}: {words[name]} and {word} are one parameter; give one of them")
        if spec.parameter(name).role == "output" and value is not None:
            raise UsageError(f"{where}: {word} is an output of {spec.operator}; expected inputs and attributes alone")
        given[name], words[name] = value, word
    return given


def with_channels_last(spec: Spec, call: BoundCall) -> BoundCall:
    """The same call with channels in the last axis, where the document lists such formats; else the call itself."""
    case = call.case
    arguments = dict(_formatted(spec, case.arguments, case.target, channels_last=True))
    if arguments == case.arguments:
        return call
    # What followed from the inputs with channels second follows anew.
    for name, found in _inferred_again(spec, arguments, case.target).items():
        held = arguments[name]
        if name in call.inferred and isinstance(held, Tensor) and isinstance(found, Tensor):
            arguments[name] = msgspec.structs.replace(held, shape=found.shape)
    return replace(call, case=msgspec.structs.replace(case, arguments=arguments))


def _inferred_again(
    spec: Spec, arguments: Mapping[str, Argument], target: Target
) -> Mapping[str, Tensor | TensorList | None]:
    own = {item.name: arguments[item.name] for item in spec.parameters if item.role != "output"}
    with contextlib.suppress(UsageError):
        return infer_outputs(spec, own, target=target, format="ND")
    return {}


def _formatted(
    spec: Spec, arguments: Mapping[str, Argument], target: Target, *, channels_last: bool = False
) -> Iterator[tuple[str, Argument]]:
    """The arguments with a format for each tensor.

    ND where the document lists it for that many dimensions, else the first for so many that it lists, channels second
    or last.
    """
    chosen: dict[str, str] = {}

    def looked(item: Parameter, tensor: Tensor) -> Tensor:
        listed = item.layouts.get(len(tensor.shape)) or item.formats.get(target.product, ("ND",))
        sized = [name for name in listed if DIMENSIONS.get(name) in (None, len(tensor.shape))]
        placed = [name for name in sized if name.endswith("C") == channels_last]
        own = (*(name for name in listed if name == "ND" and not channels_last), *placed, *sized, *listed)[0]
        chosen.setdefault(item.name, chosen.get(item.format_as or "", own))
        return msgspec.structs.replace(tensor, format=chosen[item.name])

    for item in spec.parameters:
        value = arguments.get(item.name)
        if isinstance(value, Tensor):
            yield item.name, looked(item, value)
        elif isinstance(value, TensorList):
            yield item.name, TensorList(tuple(looked(item, entry) for entry in value.items))
        elif item.name in arguments:
            yield item.name, value


def _argument(item: Parameter, value: object, arrays: dict[str, NDArray[Any]]) -> Argument:
    """One argument, a scalar as its number; the contents of a tensor go to `arrays`."""
    if value is None or isinstance(value, Scalar):
        return value
    if item.kind == "tensor":
        return _tensor(item.name, value, arrays)
    if item.kind == "tensor_list":
        if not isinstance(value, Sequence):
            raise TypeError(f"{type(value).__name__}; expected a list of arrays")
        return TensorList(tuple(_tensor(f"{item.name}[{n}]", entry, arrays) for n, entry in enumerate(value)))
    value = _plain(value)
    values = value if isinstance(value, (list, tuple)) else (value,)
    try:
        if item.kind in _ARRAYS:
            of, array = _ARRAYS[item.kind]
            return array(tuple([_number(of, _plain(entry)) for entry in values]))
        if item.kind == "string":
            return _text(value)
        number = _number(item.kind, value)
    except (TypeError, OverflowError):
        raise TypeError(f"{quote(value)}; expected {_EXPECTED[item.kind]} ({item.c_type})") from None
    if item.c_type == "uint64_t" and -(2**63) <= number < 0:
        return number % 2**64  # what C makes of the -1 that frameworks pass
    return number


def _scalar(value: float, allowed: Sequence[str]) -> Scalar:
    """A scalar of its Python number: of the own dtype of such numbers, else of the first that is allowed and holds it.

    Of its own dtype too where none does, which breaks a rule.
    """
    own = "BOOL" if isinstance(value, bool) else "INT64" if isinstance(value, int) else "FLOAT"
    holding = [name for name in allowed if name in INEXACT or scalar_of(name, value).value == value]
    return scalar_of(own if own in holding or not holding else holding[0], value)


def _plain(value: object) -> object:
    """An array or a number of a library as Python has it."""
    if isinstance(value, (np.generic, np.ndarray)) or hasattr(value, "tolist"):
        return as_array(value).tolist()
    return value


def _number(kind: str, value: object) -> float:
    """A number of a kind. Raises TypeError for what is none, or would lose something."""
    if isinstance(value, (bool, int, float)):
        if kind == "scalar":
            return value
        if kind == "double":
            return float(value)
        if kind == "bool" and value in (0, 1):
            return bool(value)
        if kind == "int" and (isinstance(value, int) or value.is_integer()):
            return int(value)
    raise TypeError


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


_ARRAYS: Mapping[str, tuple[str, Callable[[tuple[Any, ...]], Argument]]] = {
    "int_array": ("int", tuple),
    "bool_array": ("bool", BoolArray),
    "float_array": ("double", FloatArray),
}
"""By kind of argument, the kind of its items and what holds them."""
_EXPECTED: Mapping[str, str] = {
    "int": "an integer",
    "double": "a number",
    "bool": "True or False",
    "scalar": "a number",
    "string": "a string",
    "int_array": "integers",
    "bool_array": "True and False",
    "float_array": "numbers",
}


def _tensor(name: str, value: object, arrays: dict[str, NDArray[Any]]) -> Tensor:
    array = as_array(value)
    arrays[name] = array
    return array_descriptor(array)


def array_descriptor(array: NDArray[Any]) -> Tensor:
    """The descriptor of an array, without contents."""
    return Tensor(array.shape, acl_name(array.dtype))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRules:
    """The tensors whose contents rules read."""

    whole: frozenset[str]
    """All elements."""
    ranges: Mapping[str, tuple[str, ...]]
    """Least and largest element, nan, and the values of these attributes where they occur."""


def content_rules(spec: Spec) -> ContentRules:
    """What the rules of a document read of contents."""
    rules = [item.rule for item in spec.constraints]
    ranges: dict[str, tuple[str, ...]] = {
        name: () for rule in rules if isinstance(rule, FiniteRule) for name in rule.of
    }
    for rule in rules:
        if isinstance(rule, ElementsRule):
            ranges[rule.of] = (*ranges.get(rule.of, ()), *([rule.besides] if rule.besides is not None else []))
    return ContentRules(whole=frozenset(rule.of for rule in rules if isinstance(rule, StructureRule)), ranges=ranges)


def evaluation(spec: Spec, call: BoundCall, rules: ContentRules) -> Evaluation:
    """Every rule on the call, those on contents too: these read the arrays."""
    arguments: dict[str, Any] = dict(call.case.arguments)
    for name in rules.whole | rules.ranges.keys():
        tensor, array = arguments.get(name), call.inputs.get(name)
        if array is None or not array.size or not isinstance(tensor, Tensor):
            continue
        besides = [arguments.get(word) for word in rules.ranges.get(name, ())]
        values = array.reshape(-1).tolist() if name in rules.whole else _extremes(array, besides)
        data = Data(values=tuple(number_or_word(float(value)) for value in values))
        arguments[name] = msgspec.structs.replace(tensor, data=data)
    return evaluate(spec, msgspec.structs.replace(call.case, arguments=arguments))


def first_broken_rule(spec: Spec, call: BoundCall, rules: Evaluation) -> str:
    """Id and sentence of the first rule that a call breaks, and what the parameters are that the sentence names."""
    first = rules.broken[0]
    words = first.rule.describe(call.case.product).en
    named = [item.name for item in spec.parameters if re.search(rf"\b{item.name}\b", words)]
    given = ", ".join(_argument_text(call, name) for name in named[:_MOST_NAMED])
    return f"{first.id}: {words}" + (f" (given: {given})" if given else "")


def _argument_text(call: BoundCall, name: str) -> str:
    """A parameter of a call in words."""
    value = call.case.arguments.get(name)
    if isinstance(value, Scalar):
        return f"{name} {number(value)}"
    if not isinstance(value, (Tensor, TensorList)):
        return f"{name} {quote(list(value.items) if isinstance(value, (BoolArray, FloatArray)) else value)}"
    held = [name] if isinstance(value, Tensor) else [f"{name}[{place}]" for place in range(len(value))]
    dtypes = [str(call.inputs[word].dtype) if word in call.inputs else "" for word in held]
    found = [f"{dtype or item.dtype} {list(item.shape)}" for dtype, item in zip(dtypes, tensors_in(value), strict=True)]
    return f"{name} {' and '.join(dict.fromkeys(found[:_MOST_NAMED]))}"


def _extremes(array: NDArray[Any], besides: Sequence[object]) -> list[float]:
    """The least and the largest element, nan and the values `besides` where they occur: what rules on ranges read."""
    flat = array.reshape(-1)
    wide = flat if flat.dtype.kind in "iub" else flat.astype(np.float64)
    found: list[float] = []
    for value in besides:
        if isinstance(value, int) and (same := wide == value).any():
            found.append(float(value))
            wide = wide[~same]
    if wide.dtype.kind == "f" and (nans := np.isnan(wide)).any():
        found.append(float("nan"))
        wide = wide[~nans]
    return [*found, *([float(wide.min()), float(wide.max())] if wide.size else [])]


def array_json(array: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: dtype, shape and, of one that is not too large, its elements in row-major order."""
    document: dict[str, Any] = {"dtype": acl_name(array.dtype), "shape": list(array.shape)}
    if array.size <= SHOWN_ELEMENTS:
        flat = array.reshape(-1)
        values = flat.tolist() if flat.dtype.kind in "iub" else flat.astype(np.float64).tolist()
        document["values"] = [number_or_word(value) if isinstance(value, float) else value for value in values]
    return document


def plain_json(value: object) -> dict[str, Any]:
    """A struct or mapping as what a JSON parser would give of it."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return document
