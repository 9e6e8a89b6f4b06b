"""Bindings on JAX: the functions that a binding may call, and the gradients that `jax.vjp` has for a forward pass."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import jax
import numpy as np
from jax import Array, lax, nn
from jax import numpy as jnp

from aclnn_cts.adapters.binding_evaluation import BindingScope, CompiledBinding, Evaluate, UnboundError
from aclnn_cts.adapters.bindings import Binding, BindingForm, Conversion, LibraryCall, Name
from aclnn_cts.adapters.protocol import Buffers, Inexpressible, Rejected
from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.errors import did_you_mean
from aclnn_cts.core.printable import quote

_REJECTIONS = (IndexError, TypeError, ValueError)


class JaxBinding(CompiledBinding):
    """One operator's binding. Raises UnboundError for a function that is not offered, and for a form other than vjp."""

    def __init__(self, binding: Binding, *, jit: bool) -> None:
        if binding.form is not BindingForm.AUTOGRAD:
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
        scope = BindingScope(case, arrays, {name: buffer.view for name, buffer in buffers.outputs.items()})
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

    def _differentiated(self, scope: BindingScope, sources: Sequence[str]) -> list[Any]:
        for source in sources:
            # What is differentiated for is made before the forward pass begins.
            scope.named[source] = self.let[source](scope) if source in self.let else scope.value(source)
        given = [value(scope) for value in self.gradients.values()]

        def gradients(leaves: list[Any], cotangents: list[Any]) -> list[Any]:
            def forward(*leaves: jax.Array) -> list[Any]:
                inner = BindingScope(scope.case, scope.inputs, scope.outputs, dict(zip(sources, leaves, strict=True)))
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

    def function(self, call: LibraryCall, arguments: Mapping[str, Evaluate], binding: Binding) -> Evaluate:
        where = binding.at(call.path)
        function = FUNCTIONS.get(call.function)
        if function is None:
            raise UnboundError(
                f"{where}: {quote(call.function)} is not offered; expected one of {', '.join(FUNCTIONS)}"
                f"{did_you_mean(call.function, FUNCTIONS)}"
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


def conv_tbc(input: Array, weight: Array, bias: Array, pad: int) -> Array:  # noqa: A002 - the documented name
    """A one-dimensional convolution over time, batch and channels."""
    product = lax.conv_general_dilated(input, weight, (1,), [(pad, pad)], dimension_numbers=("WNC", "WIO", "WNC"))
    return product + bias


def embedding(table: Array, indices: Array, padding_index: int, scale_by_frequency: object) -> Array:
    """Rows of a table; those of the padding index take no gradient, and the others its mean where that is asked for."""
    if scale_by_frequency:
        counts = jnp.zeros(table.shape[0], jnp.float32).at[indices].add(1)
        table = (table / jnp.maximum(counts, 1)[:, None]).astype(table.dtype)
    rows = jnp.take(table, indices, axis=0)
    return jnp.where((indices == padding_index)[..., None], jnp.zeros((), table.dtype), rows)


def nearest_exact(x: Array, size: tuple[int, ...], scale: float) -> Array:
    """Resize the last axis; `scale` is output size over input size, and not given where it is not above 0."""
    if scale <= 0:
        return jax.image.resize(x, (*x.shape[:-1], *size), "nearest")
    places = jnp.floor((jnp.arange(size[0], dtype=jnp.float32) + 0.5) / jnp.float32(scale)).astype(jnp.int32)
    return jnp.take(x, jnp.minimum(places, x.shape[-1] - 1), axis=-1)


def reflection_pad(x: Array, padding: tuple[int, ...]) -> Array:
    """The last axis, longer by its mirror images at both ends."""
    before, after = padding
    return jnp.pad(x, [*((0, 0),) * (x.ndim - 1), (before, after)], mode="reflect")


def softmax_tangent(x: Array, output: Array, dim: int) -> Array:
    """The derivative of a softmax in the direction x, from the softmax itself, as JAX's own rule has it."""
    return output * (x - jnp.sum(output * x, axis=dim, keepdims=True))


def log_softmax_tangent(x: Array, output: Array, dim: int) -> Array:
    """The derivative of a logarithm of a softmax in the direction x, from that logarithm."""
    return x - jnp.sum(jnp.exp(output) * x, axis=dim, keepdims=True)


def _saved_rstd_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (x, rstd), (direction, _) = primals, tangents
    axes = tuple(axis for axis in range(x.ndim) if rstd.shape[axis] == 1 and x.shape[axis] != 1)
    count = math.prod(x.shape[axis] for axis in axes)
    return rstd, -(rstd**3) * jnp.sum(x * direction, axis=axes, keepdims=True) / max(count, 1)


_saved_rstd: Any = jax.custom_jvp(lambda _x, rstd: rstd)
_saved_rstd.defjvp(_saved_rstd_jvp)


def rms_norm(x: Array, rstd: Array, gamma: Array) -> Array:
    """The product of x, rstd and gamma, with the rstd that is given; its derivative is that of a function of x."""
    rows = x.shape[: x.ndim - gamma.ndim]
    wide = x.astype(jnp.promote_types(x.dtype, rstd.dtype))
    return wide * _saved_rstd(wide, rstd.reshape((*rows, *(1,) * gamma.ndim))) * gamma


def mse_loss(x: Array, target: Array, reduction: int, count: int) -> Array:
    """The squared difference of each element, over their count where the mean is asked for (1)."""
    # JAX's derivative of `square` doubles the difference, which may overflow where the gradient does not.
    difference = x - target
    loss = difference * difference
    return loss / count if reduction == 1 else loss


def nll_loss(
    x: Array,
    target: Array,
    weight: Array,
    reduction: int,
    ignored: int,
    total: Array,
    shape: tuple[int, ...],
) -> Array:
    """The losses of labels, their sum (2), or that over the total weight that is given (1)."""
    labels = target.reshape(-1).astype(jnp.int64)
    kept = labels != ignored
    places = jnp.where(kept, labels, 0)
    weights = jnp.where(kept, weight[places], jnp.zeros((), weight.dtype))
    losses = -weights * x.reshape(-1, weight.shape[0])[jnp.arange(labels.shape[0]), places]
    loss = losses if reduction == 0 else jnp.sum(losses)
    return (loss / total if reduction == 1 else loss).reshape(shape)


def avg_pool2d(
    x: Array,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    includes_padding: object,
    divisor: int,
    shape: tuple[int, ...],
) -> Array:
    """Averages over windows of the last two axes; `shape` is that of the result, which ceil_mode decides."""
    sizes, steps, pads = ((*items, *items)[:2] for items in (kernel, stride or kernel, padding))
    ends: list[tuple[int, int]] = []
    counts = []
    for axis, (size, step, pad) in enumerate(zip(sizes, steps, pads, strict=True), start=x.ndim - 2):
        starts = np.arange(shape[axis]) * step - pad
        last = np.minimum(starts + size, x.shape[axis] + pad)
        counts.append(last - starts if includes_padding else np.minimum(last, x.shape[axis]) - np.maximum(starts, 0))
        ends.append((pad, max(int(starts[-1]) + size - x.shape[axis], 0)))
    lead = x.ndim - 2
    total = lax.reduce_window(
        x,
        np.zeros((), x.dtype)[()],
        lax.add,
        (*(1,) * lead, *sizes),
        (*(1,) * lead, *steps),
        [*((0, 0),) * lead, *ends],
    )
    total = total[tuple(slice(size) for size in shape)]
    return total / (divisor or jnp.asarray(counts[0][:, None] * counts[1][None, :], x.dtype))


def max_pool2d(x: Array, indices: Array) -> Array:
    """The elements of each plane at the places that were saved as those of the largest."""
    planes, places = (array.reshape(*array.shape[:-2], -1) for array in (x, indices))
    return jnp.take_along_axis(planes, places.astype(jnp.int64), axis=-1).reshape(indices.shape)


_Three: TypeAlias = tuple[Array, Array, Array]


def _normal(x: Array, mean: Array, rstd: Array) -> Array:
    return (x - mean) * rstd


def _normal_jvp(primals: _Three, tangents: _Three) -> tuple[Array, Array]:
    (_, _, rstd), (direction, _, _) = primals, tangents
    normal = _normal(*primals)
    count = max(normal.shape[-1], 1)
    # In terms of the normalised input: a cube of rstd may leave the range where the gradient does not.
    along, common = (jnp.sum(item, axis=-1, keepdims=True) / count for item in (normal * direction, direction))
    return normal, rstd * (direction - common - normal * along)


_normalised: Any = jax.custom_jvp(_normal)
_normalised.defjvp(_normal_jvp)


def layer_norm(x: Array, mean: Array, rstd: Array, weight: Array, bias: Array) -> Array:
    """A normalisation with the mean and rstd that are given; its derivative is that of functions of x."""
    rows = x.reshape(-1, math.prod(weight.shape))
    normal: Array = _normalised(rows, mean.reshape(-1, 1), rstd.reshape(-1, 1))
    return normal.reshape(x.shape) * weight + bias


@dataclass(frozen=True, slots=True)
class JaxFunction:
    """A function, and the names of its arguments in order."""

    compute: Callable[..., Any]
    arguments: tuple[str, ...]


FUNCTIONS: Mapping[str, JaxFunction] = MappingProxyType(
    {
        "add": JaxFunction(jnp.add, ("x", "y")),
        "broadcast_to": JaxFunction(jnp.broadcast_to, ("x", "shape")),
        "conjugate": JaxFunction(jnp.conjugate, ("x",)),
        "full": JaxFunction(jnp.full, ("shape", "value")),
        "multiply": JaxFunction(jnp.multiply, ("x", "y")),
        "reshape": JaxFunction(jnp.reshape, ("x", "shape")),
        "split": JaxFunction(jnp.split, ("x", "parts", "axis")),
        "square": JaxFunction(jnp.square, ("x",)),
        "subtract": JaxFunction(jnp.subtract, ("x", "y")),
        "nn.gelu": JaxFunction(nn.gelu, ("x", "approximate")),
        "nn.glu": JaxFunction(nn.glu, ("x", "axis")),
        "nn.hard_sigmoid": JaxFunction(nn.hard_sigmoid, ("x",)),
        "nn.hard_silu": JaxFunction(nn.hard_silu, ("x",)),
        "nn.leaky_relu": JaxFunction(nn.leaky_relu, ("x", "negative_slope")),
        "nn.mish": JaxFunction(nn.mish, ("x",)),
        "nn.sigmoid": JaxFunction(nn.sigmoid, ("x",)),
        "nn.silu": JaxFunction(nn.silu, ("x",)),
        "avg_pool2d": JaxFunction(
            avg_pool2d, ("x", "kernel", "stride", "padding", "includes_padding", "divisor", "shape")
        ),
        "conv_tbc": JaxFunction(conv_tbc, ("input", "weight", "bias", "pad")),
        "embedding": JaxFunction(embedding, ("table", "indices", "padding_index", "scale_by_frequency")),
        "layer_norm": JaxFunction(layer_norm, ("x", "mean", "rstd", "weight", "bias")),
        "log_softmax_tangent": JaxFunction(log_softmax_tangent, ("x", "output", "dim")),
        "max_pool2d": JaxFunction(max_pool2d, ("x", "indices")),
        "mse_loss": JaxFunction(mse_loss, ("x", "target", "reduction", "count")),
        "nearest_exact": JaxFunction(nearest_exact, ("x", "size", "scale")),
        "nll_loss": JaxFunction(nll_loss, ("x", "target", "weight", "reduction", "ignored", "total", "shape")),
        "reflection_pad": JaxFunction(reflection_pad, ("x", "padding")),
        "rms_norm": JaxFunction(rms_norm, ("x", "rstd", "gamma")),
        "softmax_tangent": JaxFunction(softmax_tangent, ("x", "output", "dim")),
    }
)
"""All of a function's arguments are given, by these names."""
