"""Bindings on torch: ATen operators by name, held to their schemas, and autograd of a forward pass of them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

from aclnn_cts.adapters.binding_evaluation import BindingScope, CompiledBinding, Evaluate, UnboundError
from aclnn_cts.adapters.bindings import Binding, BindingForm, Conversion, LibraryCall, Name
from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.adapters.torch_functions import (
    attention_grad,
    convolution_backward,
    deformable_conv2d_backward,
    grouped_bias_add_grad,
    gru_backward,
    lstm_backward,
    rms_norm_grad,
    selected_attention_grad,
    unpadded_attention_grad,
)
from aclnn_cts.adapters.torch_settings import DISPATCH_KEYS, call_torch
from aclnn_cts.adapters.torch_tensors import TORCH_DTYPES, BoundTensors, Results, acl_name
from aclnn_cts.core.errors import did_you_mean
from aclnn_cts.core.printable import quote

FUNCTIONS: Mapping[str, Callable[[BoundTensors], Results]] = MappingProxyType(
    {
        "convolution_backward": convolution_backward,
        "deformable_conv2d_backward": deformable_conv2d_backward,
        "grouped_bias_add_grad": grouped_bias_add_grad,
        "gru_backward": gru_backward,
        "lstm_backward": lstm_backward,
        "rms_norm_grad": rms_norm_grad,
        "attention_grad": attention_grad,
        "selected_attention_grad": selected_attention_grad,
        "unpadded_attention_grad": unpadded_attention_grad,
    }
)
"""What no value of the vocabulary expresses."""

_RECOMPUTED = "computed by torch from the inputs of the forward pass"


class TorchBinding(CompiledBinding):
    """One operator's binding, looked up in torch. Raises UnboundError for what this torch does not have."""

    def __init__(self, binding: Binding, *, device: torch.device) -> None:
        library = Aten(device)
        super().__init__(binding, library)
        call = binding.call
        self._call = None if call is None else library.function(call, self.arguments(call), binding)
        self._outputs = [
            (name, value.name if isinstance(value, Name) else "", self.compiled(value))
            for name, value in binding.outputs.items()
            if value is not None
        ]
        self.modules = ("torch.fx.experimental.symbolic_shapes",) if binding.form is BindingForm.FUNCTION else ()
        """What torch itself imports at the first call, which takes longer than any call and is no part of one."""
        self._like = [self.compiled(value) for value in binding.like]
        self._shape = None if binding.shape is None else self.compiled(binding.shape)
        if binding.form is BindingForm.FUNCTION and binding.function not in FUNCTIONS:
            raise UnboundError(
                f"{binding.where}.function: {quote(binding.function)}; expected one of {', '.join(FUNCTIONS)}"
                f"{did_you_mean(binding.function, FUNCTIONS)}"
            )

    def run(self, bound: BoundTensors) -> Results:
        """Make the call."""
        if self.binding.form is BindingForm.FUNCTION:
            return FUNCTIONS[self.binding.function](bound)
        bound.facts |= dict.fromkeys(self.binding.recomputed, _RECOMPUTED)
        wanted = self.asked_for(bound)
        results = (
            self._differentiated(bound, wanted) if self.binding.form is BindingForm.AUTOGRAD else self._computed(bound)
        )
        results = {name: results[name] for name in wanted if results.get(name) is not None}
        if self.binding.cast:
            for name, result in results.items():
                target = bound.outputs.get(name)
                if target is not None and target.dtype != result.dtype:
                    bound.facts[name] = f"cast from {acl_name(result.dtype)} by torch"
                    results[name] = result.to(target.dtype)
        return results, bound.facts

    def _computed(self, bound: BoundTensors) -> dict[str, Any]:
        for name, value in self.let.items():
            bound.named[name] = value(bound)
        if self._call is None:
            return {name: value(bound) for name, _, value in self._outputs}
        names = list(self.binding.outputs)
        if len(names) == 1 and self._like and (target := self._target(bound, names[0])) is not None:
            self._call(bound, target=target)
            return {names[0]: target}
        found = self._call(bound)
        return dict(zip(names, found if isinstance(found, (list, tuple)) else [found], strict=False))

    def _target(self, bound: BoundTensors, name: str) -> torch.Tensor | None:
        """The output's memory where the result fits it: torch would resize any other, which ours cannot be."""
        if self._call is None or self._call.into is None:
            return None
        like = [value(bound) for value in self._like]
        if not all(isinstance(item, torch.Tensor) for item in like):
            return None
        try:
            dtype = functools.reduce(torch.promote_types, [item.dtype for item in like])
            if self._shape is None:
                shape = tuple(torch.broadcast_shapes(*[item.shape for item in like])) if like[1:] else like[0].shape
            else:
                shape = self._shape(bound)
        except (IndexError, RuntimeError):
            # The call itself says what is wrong with them.
            return None
        return bound.output(name, shape=tuple(shape), dtype=dtype) if isinstance(shape, Sequence) else None

    def _differentiated(self, scope: BindingScope, wanted: Sequence[str]) -> dict[str, Any]:
        sources = {name: source for name, source, _ in self._outputs if name in wanted}
        with torch.enable_grad():
            for source in sources.values():
                if source not in self.let:
                    scope.named[source] = _leaf(scope.value(source))
            for name, value in self.let.items():
                found = value(scope)
                scope.named[name] = _leaf(found) if name in sources.values() else found
            pairs = [(scope.named[name], value(scope)) for name, value in self.gradients.items()]
            pairs = [pair for pair in pairs if pair[1] is not None] or pairs
        leaves = {source: scope.named[source] for source in sources.values() if scope.named[source] is not None}
        flat = [leaf for item in leaves.values() for leaf in (item if isinstance(item, list) else [item])]
        results, gradients = zip(*pairs, strict=True)
        found = iter(
            call_torch(torch.autograd.grad, results, flat, gradients, allow_unused=True, materialize_grads=True)
            if flat
            else ()
        )
        by_source = {
            source: [next(found) for _ in item] if isinstance(item, list) else next(found)
            for source, item in leaves.items()
        }
        return {name: by_source.get(source) for name, source in sources.items()}


def _leaf(value: Any) -> Any:  # noqa: ANN401 - a tensor, a list of them, or null
    if isinstance(value, (list, tuple)):
        return [_leaf(item) for item in value]
    return value if value is None else call_torch(value.detach().requires_grad_)


def compile_bindings(
    bindings: Mapping[str, Binding], *, device: torch.device
) -> tuple[Mapping[str, TorchBinding], Mapping[str, str]]:
    """The bindings that this torch can serve on a device; and by operator, why it cannot serve the others."""
    made: dict[str, TorchBinding] = {}
    problems: dict[str, str] = {}
    for operator, binding in bindings.items():
        try:
            made[operator] = TorchBinding(binding, device=device)
        except UnboundError as error:
            problems[operator] = str(error)
    return MappingProxyType(made), MappingProxyType(problems)


# ruff: noqa: SLF001 - torch has no other name for a schema


_aten: Any = torch.ops.aten


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenFunction:
    """An overload of an ATen operator with its arguments; and the one that writes its result into a given tensor."""

    operator: Any
    positional: Sequence[Evaluate]
    keywords: Mapping[str, Evaluate]
    into: Any
    """None: there is no such overload."""
    out: str
    """What that calls the tensor."""

    def __call__(self, scope: BindingScope, *, target: torch.Tensor | None = None) -> Any:  # noqa: ANN401 - a tensor or several
        """Make the call, with its result in the target where there is one."""
        keywords = {name: value(scope) for name, value in self.keywords.items()}
        if target is not None:
            keywords[self.out] = target
        return call_torch(
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

    def function(self, call: LibraryCall, arguments: Mapping[str, Evaluate], binding: Binding) -> AtenFunction:
        where = binding.at(call.path)
        packet, overload = _looked_up(call.function, where)
        schema = overload._schema
        _demand_harmless(schema, where)
        taken = {item.name: item for item in schema.arguments if not item.is_out}
        for name in arguments:
            if name not in taken:
                raise UnboundError(
                    f"{where}: aten::{call.function} has no argument {quote(name)}; expected {', '.join(taken)}"
                    f"{did_you_mean(name, taken)}"
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
        return AtenFunction(operator=overload, positional=positional, keywords=made, into=into, out=out)

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
            f"{where}: aten::{base} has no overload {quote(word)}; expected one of "
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

    def coerce(scope: BindingScope) -> object:
        found = value(scope)
        if not isinstance(found, (int, float)):
            raise Inexpressible(f"{argument.name} is {found!r}; torch needs a number")
        return bool(found) if demanded is bool else float(found) if demanded is float else found

    return coerce
