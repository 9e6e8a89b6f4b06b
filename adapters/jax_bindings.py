"""Bindings on JAX: the gradients that `jax.vjp` has for a forward pass."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from aclnn_cts.adapters.binding_evaluation import (
    Evaluate,
    UnboundError,
    asked_for,
    compiled,
    demand_expressible,
    plain,
)
from aclnn_cts.adapters.bindings import (
    Binding,
    Call,
    Conversion,
    Convert,
    Form,
    Literal,
    Name,
    parameters_of,
    read_bindings,
)
from aclnn_cts.adapters.jax_functions import FUNCTIONS
from aclnn_cts.adapters.protocol import Buffers, Inexpressible, Rejected
from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.errors import nearest
from aclnn_cts.core.printable import shown

_REJECTIONS = (IndexError, TypeError, ValueError)


def shipped() -> Mapping[str, Binding]:
    """The bindings of the package."""
    path = Path(__file__).resolve().with_suffix(".yaml")
    return read_bindings(path, name=f"adapters/{path.name}")


@dataclass(slots=True)
class _Scope:
    """One call's arrays and values, and what is named so far."""

    case: Case
    arrays: Mapping[str, Any]
    outputs: Mapping[str, Any]
    """Of the outputs the shapes and dtypes alone count."""
    named: dict[str, Any] = field(default_factory=dict)

    def value(self, name: str) -> Any:  # noqa: ANN401 - an array or a plain value
        """What is named so, else the array, else the argument as Python has it."""
        for known in (self.named, self.arrays, self.outputs):
            if name in known:
                return known[name]
        return plain(self.case, name)


class JaxBinding:
    """One operator's binding. Raises UnboundError for a function that is not offered, and for a form other than vjp."""

    def __init__(self, binding: Binding, *, jit: bool) -> None:
        if binding.form is not Form.AUTOGRAD:
            raise UnboundError(
                f"{binding.where}: has no `gradients`; JAX differentiates a forward pass, so give it some"
            )
        self.binding = binding
        self._jit = jit
        self._names = parameters_of(binding)
        library = _Jax()
        self._let = {name: compiled(value, library, binding) for name, value in binding.let.items()}
        self._wanted = [compiled(value, library, binding) for value in binding.wanted]
        self._gradients = {name: compiled(value, library, binding) for name, value in binding.gradients.items()}
        self._sources = {name: value.name for name, value in binding.outputs.items() if isinstance(value, Name)}

    def run(self, case: Case, buffers: Buffers) -> tuple[dict[str, Any], dict[str, str]]:
        """Make the call: its results by output, and facts. Raises Rejected for a clear error of JAX."""
        demand_expressible(case, self.binding, self._names)
        arrays = {name: jnp.asarray(buffer.view) for name, buffer in buffers.inputs.items()}
        scope = _Scope(case, arrays, {name: buffer.view for name, buffer in buffers.outputs.items()})
        wanted = asked_for(self.binding, self._wanted, scope, case)
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

    def _differentiated(self, scope: _Scope, sources: Sequence[str]) -> list[Any]:
        for source in sources:
            # What is differentiated for is made before the forward pass begins.
            scope.named[source] = self._let[source](scope) if source in self._let else scope.value(source)
        given = [value(scope) for value in self._gradients.values()]

        def gradients(leaves: list[Any], cotangents: list[Any]) -> list[Any]:
            def forward(*leaves: jax.Array) -> list[Any]:
                inner = _Scope(scope.case, scope.arrays, scope.outputs, dict(zip(sources, leaves, strict=True)))
                for name, value in self._let.items():
                    if name not in sources:
                        inner.named[name] = value(inner)
                return [inner.named[name] for name in self._gradients]

            _, pull_back = jax.vjp(forward, *leaves)
            return list(pull_back(cotangents))

        leaves = [scope.named[source] for source in sources]
        function: Callable[..., list[Any]] = jax.jit(gradients) if self._jit else gradients
        return [jax.block_until_ready(item) for item in function(leaves, given)]


class _Jax:
    """The library of `binding_evaluation`."""

    def function(self, call: Call, arguments: Mapping[str, Evaluate], binding: Binding) -> Evaluate:
        where = f"{binding.file.at(call.path)}: {'.'.join(map(str, call.path))}"
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

    def conversion(self, value: Convert, operands: Sequence[Evaluate]) -> Evaluate:
        first, *rest = operands
        if value.kind is Conversion.CAST:
            return _casting(value, operands)
        if value.kind is Conversion.SIZE:
            return lambda scope: first(scope).shape[rest[0](scope)]
        if value.kind is Conversion.BITS:
            return lambda scope: _unpacked(first(scope), rest[0](scope))
        if value.kind is Conversion.PROMOTED:
            return lambda scope: functools.reduce(jnp.promote_types, [operand(scope).dtype for operand in operands])
        function = _OF_ARRAYS[value.kind]
        return lambda scope: None if (array := first(scope)) is None else function(array)


_OF_ARRAYS: Mapping[Conversion, Callable[[Any], object]] = MappingProxyType(
    {
        Conversion.NUMEL: lambda array: math.prod(array.shape),
        Conversion.SHAPE: lambda array: tuple(array.shape),
        Conversion.DTYPE: lambda array: array.dtype,
        Conversion.ZEROS: lambda array: jnp.zeros(array.shape, array.dtype),
    }
)


def _casting(value: Convert, operands: Sequence[Evaluate]) -> Evaluate:
    first, *wanted = operands
    dtypes = [
        functools.partial(_given, numpy_dtype(str(item.value))) if isinstance(item, Literal) else evaluate
        for item, evaluate in zip(value.operands[1:], wanted, strict=True)
    ]

    def cast(scope: _Scope) -> jax.Array | None:
        array: jax.Array | None = first(scope)
        known = [dtype(scope) for dtype in dtypes]
        return array if array is None or array.dtype in known else array.astype(known[-1])

    return cast


def _given(dtype: np.dtype[Any], _scope: _Scope) -> np.dtype[Any]:
    return dtype


def _unpacked(mask: jax.Array, like: jax.Array) -> jax.Array:
    count = math.prod(like.shape)
    if 8 * mask.size < count:
        raise Inexpressible(f"{8 * mask.size} bits for {count} elements do not fit")
    return jnp.unpackbits(mask.reshape(-1), bitorder="little")[:count].reshape(like.shape).astype(bool)
