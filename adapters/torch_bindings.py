"""Bindings on torch: calls of ATen operators, and autograd of a forward pass of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import torch

from aclnn_cts.adapters.binding_evaluation import Evaluate, UnboundError, asked_for, compiled, demand_expressible
from aclnn_cts.adapters.bindings import Binding, Form, Name, parameters_of, read_bindings
from aclnn_cts.adapters.torch_aten import Aten, TorchScope
from aclnn_cts.adapters.torch_attention import unpadded_attention_grad
from aclnn_cts.adapters.torch_deformable import deformable_conv2d_backward
from aclnn_cts.adapters.torch_gru import gru_backward
from aclnn_cts.adapters.torch_rms_norm import rms_norm_grad
from aclnn_cts.adapters.torch_settings import ask
from aclnn_cts.adapters.torch_tensors import Bound, acl_name
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import nearest
from aclnn_cts.core.printable import shown

Results: TypeAlias = tuple[dict[str, Any], dict[str, str]]
"""The results by output parameter (a result that is the harness' own tensor is written already), and facts."""

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


def shipped() -> Mapping[str, Binding]:
    """The bindings of the package."""
    path = Path(__file__).resolve().with_suffix(".yaml")
    return read_bindings(path, name=f"adapters/{path.name}")


class TorchBinding:
    """One operator's binding, looked up in torch. Raises UnboundError for what this torch does not have."""

    def __init__(self, binding: Binding, *, device: torch.device) -> None:
        self.binding = binding
        self._names = parameters_of(binding)
        library = Aten(device)
        self._let = [(name, compiled(value, library, binding)) for name, value in binding.let.items()]
        self._wanted = [compiled(value, library, binding) for value in binding.wanted]
        self._call = (
            None if binding.call is None else library.function(binding.call, _arguments(library, binding), binding)
        )
        self._gradients = {name: compiled(value, library, binding) for name, value in binding.gradients.items()}
        self._outputs = [
            (name, value.name if isinstance(value, Name) else "", compiled(value, library, binding))
            for name, value in binding.outputs.items()
            if value is not None
        ]
        self.modules = ("torch.fx.experimental.symbolic_shapes",) if binding.form is Form.FUNCTION else ()
        """What torch itself imports at the first call, which takes longer than any call and is no part of one."""
        result = binding.result
        self._like = [] if result is None else [compiled(value, library, binding) for value in result.like]
        self._shape = None if result is None or result.shape is None else compiled(result.shape, library, binding)
        if binding.form is Form.FUNCTION and binding.function not in FUNCTIONS:
            raise UnboundError(
                f"{binding.where}.function: {shown(binding.function)}; expected one of {', '.join(FUNCTIONS)}"
                f"{nearest(binding.function, FUNCTIONS)}"
            )

    def demand_expressible(self, case: Case) -> None:
        """Raise Inexpressible for a call that torch has no words for."""
        demand_expressible(case, self.binding, self._names)

    def run(self, bound: Bound) -> Results:
        """Make the call."""
        if self.binding.form is Form.FUNCTION:
            return FUNCTIONS[self.binding.function](bound)
        scope = TorchScope(bound, facts=dict.fromkeys(self.binding.recomputed, _RECOMPUTED))
        wanted = asked_for(self.binding, self._wanted, scope, bound.case)
        results = self._differentiated(scope, wanted) if self.binding.form is Form.AUTOGRAD else self._computed(scope)
        results = {name: results[name] for name in wanted if results.get(name) is not None}
        if self.binding.cast:
            for name, result in results.items():
                results[name] = _cast_to_output(name, result, scope)
        return results, scope.facts

    def _computed(self, scope: TorchScope) -> dict[str, Any]:
        for name, value in self._let:
            scope.named[name] = value(scope)
        if self._call is None:
            return {name: value(scope) for name, _, value in self._outputs}
        names = list(self.binding.outputs)
        if len(names) == 1 and self._like and (target := self._target(scope, names[0])) is not None:
            return {names[0]: self._call.into(scope, target)}
        found = self._call(scope)
        return dict(zip(names, found if isinstance(found, (list, tuple)) else [found], strict=False))

    def _target(self, scope: TorchScope, name: str) -> torch.Tensor | None:
        """The output's memory where the result fits it: torch would resize any other, which ours cannot be."""
        if self._call is None or not self._call.writes:
            return None
        like = [value(scope) for value in self._like]
        if not all(isinstance(item, torch.Tensor) for item in like):
            return None
        try:
            dtype = functools.reduce(torch.promote_types, [item.dtype for item in like])
            if self._shape is None:
                shape = tuple(torch.broadcast_shapes(*[item.shape for item in like])) if like[1:] else like[0].shape
            else:
                shape = self._shape(scope)
        except (IndexError, RuntimeError):
            # The call itself says what is wrong with them.
            return None
        return scope.bound.output(name, shape=tuple(shape), dtype=dtype) if isinstance(shape, Sequence) else None

    def _differentiated(self, scope: TorchScope, wanted: Sequence[str]) -> dict[str, Any]:
        sources = {name: source for name, source, _ in self._outputs if name in wanted}
        made = dict(self._let)
        with torch.enable_grad():
            for source in sources.values():
                if source not in made:
                    scope.named[source] = _leaf(scope.value(source))
            for name, value in self._let:
                found = value(scope)
                scope.named[name] = _leaf(found) if name in sources.values() else found
            pairs = [(scope.named[name], value(scope)) for name, value in self._gradients.items()]
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


def _cast_to_output(name: str, result: torch.Tensor, scope: TorchScope) -> torch.Tensor:
    target = scope.bound.outputs.get(name)
    if target is None or target.dtype == result.dtype:
        return result
    scope.facts[name] = f"cast from {acl_name(result.dtype)} by torch"
    return result.to(target.dtype)


def _arguments(library: Aten, binding: Binding) -> Mapping[str, Evaluate]:
    call = binding.call
    return {} if call is None else {name: compiled(value, library, binding) for name, value in call.arguments.items()}


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
