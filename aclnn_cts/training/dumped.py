"""Calls that other programs have dumped as JSON, as cases: shapes, dtypes, attributes, and data that is drawn.

One object a line, in one of two forms:

    {"operator": "layer_norm_backward", "arguments": {"grad_out": {"shape": [8, 16], "dtype": "float32"}, ...}}
    {"function": "native_layer_norm_backward", "args": [{"tensor": {"shape": [8, 16], "dtype": "f32"}}, [16], ...]}

The first has the names of the C prototype, or a framework's spelling of them. The second is a call of ATen; its
positional arguments need torch, whose schema names them, and `kwargs` do not. A tensor may have `stride`s. Other keys
of a line are left alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from aclnn_cts.candidates.arrays import BoundCall, bind, evaluation, first_broken_rule
from aclnn_cts.candidates.check import judged_document, shipped_specs
from aclnn_cts.core.case import Case, Data, Origin, Tensor, owner, with_arguments
from aclnn_cts.core.dtypes import DTYPES, INEXACT, numpy_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outside import read_outside
from aclnn_cts.core.printable import quote
from aclnn_cts.generate.configuration import RecipeTemplate
from aclnn_cts.generate.sampler import Sampler, data_value
from aclnn_cts.training.inverse import inverse_bindings

_TORCH_DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "float32": "FLOAT", "float": "FLOAT", "f32": "FLOAT", "float16": "FLOAT16", "half": "FLOAT16", "f16": "FLOAT16",
        "bfloat16": "BF16", "bf16": "BF16", "float64": "DOUBLE", "double": "DOUBLE", "f64": "DOUBLE",
        "int8": "INT8", "i8": "INT8", "int16": "INT16", "i16": "INT16", "int32": "INT32", "int": "INT32",
        "i32": "INT32", "int64": "INT64", "long": "INT64", "i64": "INT64", "uint8": "UINT8", "u8": "UINT8",
        "bool": "BOOL", "b8": "BOOL",
        "complex64": "COMPLEX64", "c64": "COMPLEX64", "complex128": "COMPLEX128", "c128": "COMPLEX128",
    }
)  # fmt: skip
"""torch's names, and those of operator logs."""


_MOST_BYTES = 1 << 28
"""Of a file of calls: a million lines."""


class DumpedTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of a dumped call."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None = None


class DumpedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    operator: str = ""
    arguments: dict[str, Any] = {}
    function: str = ""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedEntry:
    """A line, and its case or the reason why it has none; of a case, the rule that it breaks."""

    line: int
    case: Case | None = None
    reason: str = ""


def read_dumped(path: Path, *, seed: int = 0, product: str | None = None) -> Iterator[DumpedEntry]:
    """The calls of a file; a line that fits no operator has a reason. Raises UsageError where it cannot be read."""
    text = read_outside(path, limit=_MOST_BYTES, expected="a file of calls, one JSON object a line")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                call = msgspec.json.decode(line, type=DumpedCall)
                case, broken = _case(call, seed=seed + number, product=product)
                yield DumpedEntry(line=number, case=case, reason=broken)
            except (msgspec.MsgspecError, UsageError) as error:
                yield DumpedEntry(line=number, reason=str(error))


def _case(call: DumpedCall, *, seed: int, product: str | None) -> tuple[Case, str]:
    """The case of a line, and the first rule that it breaks; of contents, which are drawn, no rule is asked."""
    operator, given = next(named_calls(call))
    source = f"call of {call.function or call.operator}"
    case = bound_case(operator, given, source=source, seed=seed, product=product)
    known = judged_document(operator, product)
    bound = BoundCall(case=case, inputs={}, inferred=frozenset())
    rules = evaluation(known.spec, bound, known.contents)
    return case, f"breaks the rule {first_broken_rule(known.spec, bound, rules)}" if rules.broken else ""


def bound_case(
    operator: str, given: Mapping[str, Any], *, source: str, seed: int = 0, product: str | None = None
) -> Case:
    """The case of a call with these arguments, its data drawn. Raises UsageError where the prototype has others."""
    known = judged_document(operator, product)
    written = {name for name, own in known.names.items() if known.spec.parameter(own).role == "output"}
    inputs = {name: _value(value, name) for name, value in given.items() if value is not None and name not in written}
    bound = bind(known.spec, inputs, {}, names=known.names, target=known.target, where="arguments")
    strides = {known.names[name]: _strides(value) for name, value in given.items()}
    sampler = Sampler(known.spec, known.target)
    changes = {}
    for place, (name, tensor) in enumerate(bound.case.tensors()):
        if name in bound.inputs:
            family = "float" if tensor.dtype in INEXACT else "other"
            templates = sampler.templates(owner(name), family, kinds=("realistic", "exact"))
            laid_out = _strided(tensor, strides.get(name))
            changes[name] = msgspec.structs.replace(laid_out, data=_data(templates, bound.case, seed + place))
    return msgspec.structs.replace(with_arguments(bound.case, changes), origin=Origin(kind="valid", source=source))


def named_calls(call: DumpedCall) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each operator that computes what was called, and its arguments by name. Raises UsageError where none does."""
    if call.operator:
        yield call.operator, call.arguments
        return
    function = call.function.removeprefix("aten::").partition(".")[0]
    known = shipped_specs("")
    bindings = [item for item in inverse_bindings().get(function, ()) if item.operator in known]
    if not bindings:
        raise UsageError(f"function: {quote(call.function)}: no operator with a spec is bound to it")
    values = {**_positional(function, call.args), **call.kwargs}
    for binding in bindings:
        found = dict(binding.unused)
        for name, source in binding.arguments.items():
            value = values.get(name)
            found[source.parameter] = value if isinstance(value, dict) else source.restored(value)
        yield binding.operator, found


def _positional(function: str, args: Sequence[Any]) -> dict[str, Any]:
    """Positional arguments by the names of torch's schema."""
    if not args:
        return {}
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        raise UsageError("args: positional arguments need torch, whose schema names them; give `kwargs`") from None
    schema = getattr(torch.ops.aten, function).default._schema  # noqa: SLF001 - torch has no other name for it
    if len(args) > len(schema.arguments):
        raise UsageError(f"args: {len(args)} arguments; aten::{function} takes {len(schema.arguments)}")
    defaults = {item.name: item.default_value for item in schema.arguments if item.has_default_value()}
    return {**defaults, **{item.name: value for item, value in zip(schema.arguments, args, strict=False)}}


def _value(value: Any, name: str) -> Any:  # noqa: ANN401 - a JSON value
    """An array without memory where the call has a tensor, or the value as it is."""
    if isinstance(value, list):
        return [_value(item, f"{name}[{place}]") for place, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    try:
        facts = msgspec.convert(value.get("tensor", value), DumpedTensor)
    except msgspec.ValidationError as error:
        raise UsageError(f"arguments: {name}: {error}; expected a tensor with shape and dtype") from error
    word = facts.dtype.removeprefix("torch.")
    dtype = _TORCH_DTYPES.get(word.lower(), word.upper())
    if dtype not in DTYPES:
        raise UsageError(f"arguments: {name}: dtype {quote(facts.dtype)}; expected a name of torch or of aclDataType")
    try:
        return np.broadcast_to(np.zeros((), numpy_dtype(dtype)), facts.shape)
    except ValueError:
        sizes = "sizes of 0 or more, in memory that can be addressed"
        raise UsageError(f"arguments: {name}: shape {quote(list(facts.shape))}; expected {sizes}") from None


def _strides(value: object) -> Sequence[int] | None:
    """The strides that a line has for a tensor; None where it is contiguous."""
    facts = value.get("tensor", value) if isinstance(value, dict) else {}
    return None if facts.get("stride") is None else tuple(facts["stride"])


def _strided(tensor: Tensor, strides: Sequence[int] | None) -> Tensor:
    """A tensor with strides in memory that it just fills."""
    if strides is None or len(strides) != len(tensor.shape) or 0 in tensor.shape:
        return tensor
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, strides, strict=True))
    return msgspec.structs.replace(tensor, strides=tuple(strides), storage_shape=(last + 1,))


def _data(templates: Sequence[RecipeTemplate], case: Case, seed: int) -> Data:
    """Contents as the spec draws them for such an input, where what it reads is among the arguments."""
    for template in templates:
        try:
            if not template.fits(case.arguments, case.target):
                continue
            values = {
                key: data_value(key, compute(case.arguments, case.target)) for key, compute in template.computed.items()
            }
        except (ArithmeticError, LookupError, TypeError, ValueError):
            continue
        return Data(recipe=template.recipe, seed=seed, **template.fixed, **values)
    return Data(recipe="normal", seed=seed)
