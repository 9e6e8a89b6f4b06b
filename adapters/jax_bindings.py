"""Bindings on JAX: the gradients that `jax.vjp` has for a forward pass."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from aclnn_cts.adapters.binding_evaluation import CompiledBinding, Evaluate, Scope, UnboundError
from aclnn_cts.adapters.bindings import Binding, Call, Conversion, Form, Name
from aclnn_cts.adapters.jax_functions import FUNCTIONS
from aclnn_cts.adapters.protocol import Buffers, Inexpressible, Rejected
from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.errors import nearest
from aclnn_cts.core.printable import shown

_REJECTIONS = (IndexError, TypeError, ValueError)


class JaxBinding(CompiledBinding):
    """One operator's binding. Raises UnboundError for a function that is not offered, and for a form other than vjp."""

    def __init__(self, binding: Binding, *, jit: bool) -> None:
        if binding.form is not Form.AUTOGRAD:
            raise UnboundError(
                f"{binding.where}: has no `gradients`; JAX differentiates a forward pass, so give it some"
            )
        super().__init__(binding, _Jax())
        self._jit = jit
        self._sources = {name: value.name for name, value in binding.outputs.items() if isinstance(value, Name)}

    def run(self, case: Case, buffers: Buffers) -> tuple[dict[str, Any], dict[str, str]]:
        """Make the call: its results by output, and facts. Raises Rejected for a clear error of JAX."""
        self.demand_expressible(case)
        arrays = {name: jnp.asarray(buffer.view) for name, buffer in buffers.inputs.items()}
        # Of the outputs the shapes and dtypes alone count.
        scope = Scope(case, arrays, {name: buffer.view for name, buffer in buffers.outputs.items()})
        wanted = self.asked_for(scope)
        try:
            results = self._differentiated(scope, [self._sources[name] for name in wanted])
        except _REJECTIONS as error:
            raise Rejected(f"{type(error).__name__}: {error}") from error
        found: dict[str, Any] = {}
        facts: dict[str, str] = {}
        for name, result in zip(wanted, results, strict=True):
            if result is None:
                continue
            target = buffers.outputs.get(name)
            if self.binding.cast and target is not None and result.dtype != target.view.dtype:
                facts[name] = f"cast from {result.dtype} by JAX"
                result = result.astype(target.view.dtype)  # noqa: PLW2901 - the same result in another dtype
            found[name] = result
        return found, facts

    def _differentiated(self, scope: Scope, sources: Sequence[str]) -> list[Any]:
        for source in sources:
            # What is differentiated for is made before the forward pass begins.
            scope.named[source] = self.let[source](scope) if source in self.let else scope.value(source)
        given = [value(scope) for value in self.gradients.values()]

        def gradients(leaves: list[Any], cotangents: list[Any]) -> list[Any]:
            def forward(*leaves: jax.Array) -> list[Any]:
                inner = Scope(scope.case, scope.inputs, scope.outputs, dict(zip(sources, leaves, strict=True)))
                for name, value in self.let.items():
                    if name not in sources:
                        inner.named[name] = value(inner)
                return [inner.named[name] for name in self.gradients]

            _, pull_back = jax.vjp(forward, *leaves)
            return list(pull_back(cotangents))

        leaves = [scope.named[source] for source in sources]
        function: Callable[..., list[Any]] = jax.jit(gradients) if self._jit else gradients
        return [jax.block_until_ready(item) for item in function(leaves, given)]


def _unpacked(mask: jax.Array, like: jax.Array) -> jax.Array:
    count = math.prod(like.shape)
    if 8 * mask.size < count:
        raise Inexpressible(f"{8 * mask.size} bits for {count} elements do not fit")
    return jnp.unpackbits(mask.reshape(-1), bitorder="little")[:count].reshape(like.shape).astype(bool)


class _Jax:
    """The library of `binding_evaluation`."""

    conversions: Mapping[Conversion, Callable[..., Any]] = MappingProxyType(
        {
            Conversion.BITS: _unpacked,
            Conversion.DTYPE: lambda array: None if array is None else array.dtype,
            Conversion.PROMOTED: lambda *arrays: functools.reduce(jnp.promote_types, [array.dtype for array in arrays]),
            Conversion.ZEROS: lambda array: None if array is None else jnp.zeros(array.shape, array.dtype),
        }
    )

    def function(self, call: Call, arguments: Mapping[str, Evaluate], binding: Binding) -> Evaluate:
        where = binding.at(call.path)
        function = FUNCTIONS.get(call.function)
        if function is None:
            raise UnboundError(
                f"{where}: {shown(call.function)} is not offered; expected one of {', '.join(FUNCTIONS)}"
                f"{nearest(call.function, FUNCTIONS)}"
            )
        if set(arguments) != set(function.arguments):
            raise UnboundError(
                f"{where}: {call.function} is given {', '.join(arguments) or 'nothing'}; expected "
                f"{', '.join(function.arguments)}"
            )
        compute, values = function.compute, [arguments[name] for name in function.arguments]
        return lambda scope: compute(*[value(scope) for value in values])

    def dtype(self, name: str) -> np.dtype[Any]:
        return numpy_dtype(name)

    def cast(self, tensor: jax.Array, dtype: np.dtype[Any], **_: object) -> jax.Array:
        return tensor.astype(dtype)
