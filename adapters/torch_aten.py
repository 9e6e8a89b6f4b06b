"""ATen operators by name, held to torch's own schemas: what a call in a binding becomes.

An operator that writes into its arguments is refused, and so is one that takes or returns no tensor: those read files,
set devices and count threads.
"""
# ruff: noqa: SLF001 - torch has no other name for a schema

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

from aclnn_cts.adapters.binding_evaluation import Evaluate, Scope, UnboundError
from aclnn_cts.adapters.bindings import Binding, Call, Conversion
from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.adapters.torch_settings import DISPATCH_KEYS, ask
from aclnn_cts.adapters.torch_tensors import TORCH_DTYPES, acl_name
from aclnn_cts.core.errors import nearest
from aclnn_cts.core.printable import shown

_aten: Any = torch.ops.aten


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """An overload of an ATen operator with its arguments; and the one that writes its result into a given tensor."""

    operator: Any
    positional: Sequence[Evaluate]
    keywords: Mapping[str, Evaluate]
    into: Any
    """None: there is no such overload."""
    out: str
    """What that calls the tensor."""

    def __call__(self, scope: Scope, *, target: torch.Tensor | None = None) -> Any:  # noqa: ANN401 - a tensor or several
        """Make the call, with its result in the target where there is one."""
        keywords = {name: value(scope) for name, value in self.keywords.items()}
        if target is not None:
            keywords[self.out] = target
        return ask(
            self.operator if target is None else self.into, *[value(scope) for value in self.positional], **keywords
        )


def _promoted(*tensors: torch.Tensor | None) -> torch.dtype | None:
    """As torch promotes tensors of one dimension at least: one of none would count for less there."""
    dtypes = [tensor.dtype for tensor in tensors if tensor is not None]
    return functools.reduce(torch.promote_types, dtypes) if dtypes else None


def _unpacked(mask: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A BOOL tensor of the shape of `like` from bits, lowest first."""
    flat = mask.reshape(-1)
    bits = (flat.unsqueeze(-1).to(torch.int32) >> torch.arange(8, dtype=torch.int32, device=flat.device)) & 1
    count = math.prod(like.shape)
    if bits.numel() < count:
        raise Inexpressible(f"{bits.numel()} bits for {count} elements do not fit")
    return bits.reshape(-1)[:count].reshape(like.shape).to(torch.bool)


class Aten:
    """The library of `binding_evaluation`."""

    conversions: Mapping[Conversion, Callable[..., Any]] = MappingProxyType(
        {
            Conversion.BITS: _unpacked,
            # Of a null tensor any dtype will do: it is the tensor that torch is to refuse.
            Conversion.DTYPE: lambda tensor: torch.float32 if tensor is None else tensor.dtype,
            Conversion.PROMOTED: _promoted,
            Conversion.ZEROS: lambda tensor: (
                None if tensor is None else torch.zeros(tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device)
            ),
        }
    )

    def __init__(self, device: torch.device) -> None:
        self._key = DISPATCH_KEYS.get(device.type)

    def function(self, call: Call, arguments: Mapping[str, Evaluate], binding: Binding) -> Function:
        where = binding.at(call.path)
        packet, overload = _looked_up(call.function, where)
        schema = overload._schema
        _demand_harmless(schema, where)
        taken = {item.name: item for item in schema.arguments if not item.is_out}
        for name in arguments:
            if name not in taken:
                raise UnboundError(
                    f"{where}: aten::{call.function} has no argument {shown(name)}; expected {', '.join(taken)}"
                    f"{nearest(name, taken)}"
                )
        for name, item in taken.items():
            if name not in arguments and not item.has_default_value():
                raise UnboundError(f"{where}: aten::{call.function} needs the argument {name}; add it")
        if self._key is not None and not _has_kernel(overload, self._key):
            raise UnboundError(f"{where}: torch has no kernel of aten::{call.function} for {self._key}")
        made = {name: _coerced(item, arguments[name]) for name, item in taken.items() if name in arguments}
        # By position up to the first one that is left out.
        leading = itertools.takewhile(lambda name: name in made and not taken[name].kwarg_only, taken)
        positional = [made.pop(name) for name in list(leading)]
        into, out = _writing(packet, schema)
        return Function(operator=overload, positional=positional, keywords=made, into=into, out=out)

    def dtype(self, name: str) -> torch.dtype | None:
        return TORCH_DTYPES.get(name)

    def cast(
        self, tensor: torch.Tensor, dtype: torch.dtype | None, *, name: str, facts: dict[str, str]
    ) -> torch.Tensor:
        if dtype is None:
            raise Inexpressible(f"torch has no dtype that {name} could be cast to")
        facts[name] = f"{acl_name(tensor.dtype)} converted to {acl_name(dtype)} for torch"
        return tensor.to(dtype)


def _looked_up(name: str, where: str) -> tuple[Any, Any]:
    """An ATen operator and its overload: the one named behind a dot, else the default or the only one."""
    base, _, word = name.partition(".")
    packet = None if base.startswith("__") else getattr(_aten, base, None)
    if packet is None or not hasattr(packet, "overloads"):
        raise UnboundError(
            f"{where}: torch {torch.__version__} has no aten::{base}; expected an operator of torch.ops.aten"
        )
    overloads = packet.overloads()
    word = word or ("default" if "default" in overloads or len(overloads) > 1 else overloads[0])
    if word not in overloads:
        raise UnboundError(
            f"{where}: aten::{base} has no overload {shown(word)}; expected one of "
            f"{', '.join(f'{base}.{item}' for item in overloads)}"
        )
    return packet, getattr(packet, word)


def _demand_harmless(schema: Any, where: str) -> None:  # noqa: ANN401 - torch's own
    kinds = [str(item.type) for item in schema.arguments]
    results = [str(item.type) for item in schema.returns]
    if schema.is_mutable:
        raise UnboundError(
            f"{where}: aten::{schema.name} writes into its arguments; expected one that returns its results"
        )
    if not any("Tensor" in kind for kind in kinds) or not results or not all("Tensor" in kind for kind in results):
        raise UnboundError(
            f"{where}: {schema.name} is no function of tensors; expected one that takes and returns tensors"
        )


def _has_kernel(overload: Any, key: str) -> bool:  # noqa: ANN401 - torch's own
    probe = getattr(torch._C, "_dispatch_has_computed_kernel_for_dispatch_key", None)
    name, word = overload._schema.name, overload._schema.overload_name
    return probe is None or bool(probe(f"{name}.{word}" if word else name, key))


def _writing(packet: Any, schema: Any) -> tuple[Any, str]:  # noqa: ANN401 - torch's own
    """The overload with the same arguments that writes into one tensor more, and that one's name."""
    ours = [(item.name, str(item.type)) for item in schema.arguments]
    for word in packet.overloads():
        other = getattr(packet, word)
        outs = [item.name for item in other._schema.arguments if item.is_out]
        rest = [(item.name, str(item.type)) for item in other._schema.arguments if not item.is_out]
        if len(outs) == 1 and rest == ours:
            return other, outs[0]
    return None, ""


def _coerced(argument: Any, value: Evaluate) -> Evaluate:  # noqa: ANN401 - torch's own
    """A number as its C type has it; None is no number of any type."""
    demanded = {"IntType": int, "BoolType": bool, "FloatType": float}.get(argument.type.kind())
    # A dtype goes by as an int, too.
    if demanded is None or str(argument.real_type) == "ScalarType":
        return value

    def coerce(scope: Scope) -> object:
        found = value(scope)
        if not isinstance(found, (int, float)):
            raise Inexpressible(f"{argument.name} is {found!r}; torch needs a number")
        return bool(found) if demanded is bool else float(found) if demanded is float else found

    return coerce
