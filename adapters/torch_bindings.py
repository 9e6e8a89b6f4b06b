"""Bindings on torch: calls of ATen operators, and autograd of a forward pass of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from aclnn_cts.adapters.binding_evaluation import CompiledBinding, Scope, UnboundError
from aclnn_cts.adapters.bindings import Binding, Form, Name
from aclnn_cts.adapters.torch_aten import Aten
from aclnn_cts.adapters.torch_attention import unpadded_attention_grad
from aclnn_cts.adapters.torch_deformable import deformable_conv2d_backward
from aclnn_cts.adapters.torch_gru import gru_backward
from aclnn_cts.adapters.torch_rms_norm import rms_norm_grad
from aclnn_cts.adapters.torch_settings import ask
from aclnn_cts.adapters.torch_tensors import Bound, Results, acl_name
from aclnn_cts.core.errors import nearest
from aclnn_cts.core.printable import shown

FUNCTIONS: Mapping[str, Callable[[Bound], Results]] = MappingProxyType(
    {
        "deformable_conv2d_backward": deformable_conv2d_backward,
        "gru_backward": gru_backward,
        "rms_norm_grad": rms_norm_grad,
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
        self.modules = ("torch.fx.experimental.symbolic_shapes",) if binding.form is Form.FUNCTION else ()
        """What torch itself imports at the first call, which takes longer than any call and is no part of one."""
        self._like = [self.compiled(value) for value in binding.like]
        self._shape = None if binding.shape is None else self.compiled(binding.shape)
        if binding.form is Form.FUNCTION and binding.function not in FUNCTIONS:
            raise UnboundError(
                f"{binding.where}.function: {shown(binding.function)}; expected one of {', '.join(FUNCTIONS)}"
                f"{nearest(binding.function, FUNCTIONS)}"
            )

    def run(self, bound: Bound) -> Results:
        """Make the call."""
        if self.binding.form is Form.FUNCTION:
            return FUNCTIONS[self.binding.function](bound)
        bound.facts |= dict.fromkeys(self.binding.recomputed, _RECOMPUTED)
        wanted = self.asked_for(bound)
        results = self._differentiated(bound, wanted) if self.binding.form is Form.AUTOGRAD else self._computed(bound)
        results = {name: results[name] for name in wanted if results.get(name) is not None}
        if self.binding.cast:
            for name, result in results.items():
                target = bound.outputs.get(name)
                if target is not None and target.dtype != result.dtype:
                    bound.facts[name] = f"cast from {acl_name(result.dtype)} by torch"
                    results[name] = result.to(target.dtype)
        return results, bound.facts

    def _computed(self, bound: Bound) -> dict[str, Any]:
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

    def _target(self, bound: Bound, name: str) -> torch.Tensor | None:
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

    def _differentiated(self, scope: Scope, wanted: Sequence[str]) -> dict[str, Any]:
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
            ask(torch.autograd.grad, results, flat, gradients, allow_unused=True, materialize_grads=True)
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
    return value if value is None else ask(value.detach().requires_grad_)


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
