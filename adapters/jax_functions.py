"""What a binding on JAX may call: functions of JAX, and forward passes of ours for operators with saved tensors.

The list is closed: JAX's modules hold functions that read files too. A forward pass that is given what the operator
saved is differentiated as if it had computed it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax
from jax import lax, nn
from jax import numpy as jnp

__all__ = ["FUNCTIONS", "Function"]


def conv_tbc(input: Any, weight: Any, bias: Any, pad: int) -> Any:  # noqa: A002, ANN401 - arrays; the documented name
    """A one-dimensional convolution over time, batch and channels."""
    product = lax.conv_general_dilated(input, weight, (1,), [(pad, pad)], dimension_numbers=("WNC", "WIO", "WNC"))
    return product + bias


def embedding(table: Any, indices: Any, padding_index: int, scale_by_frequency: Any) -> Any:  # noqa: ANN401 - arrays
    """Rows of a table; those of the padding index take no gradient, and the others its mean where that is asked for."""
    if scale_by_frequency:
        counts = jnp.zeros(table.shape[0], jnp.float32).at[indices].add(1)
        table = (table / jnp.maximum(counts, 1)[:, None]).astype(table.dtype)
    rows = jnp.take(table, indices, axis=0)
    return jnp.where((indices == padding_index)[..., None], jnp.zeros((), table.dtype), rows)


def nearest_exact(x: Any, size: tuple[int, ...], scale: float) -> Any:  # noqa: ANN401 - an array
    """Resize the last axis; `scale` is output size over input size, and not given where it is not above 0."""
    if scale <= 0:
        return jax.image.resize(x, (*x.shape[:-1], *size), "nearest")
    places = jnp.floor((jnp.arange(size[0], dtype=jnp.float32) + 0.5) / jnp.float32(scale)).astype(jnp.int32)
    return jnp.take(x, jnp.minimum(places, x.shape[-1] - 1), axis=-1)


def softmax_tangent(x: Any, output: Any, dim: int) -> Any:  # noqa: ANN401 - arrays
    """The derivative of a softmax in the direction x, from the softmax itself, as JAX's own rule has it."""
    return output * (x - jnp.sum(output * x, axis=dim, keepdims=True))


def log_softmax_tangent(x: Any, output: Any, dim: int) -> Any:  # noqa: ANN401 - arrays
    """The derivative of a logarithm of a softmax in the direction x, from that logarithm."""
    return x - jnp.sum(jnp.exp(output) * x, axis=dim, keepdims=True)


def _saved_rstd_jvp(primals: Any, tangents: Any) -> Any:  # noqa: ANN401 - JAX's signature
    (x, rstd), (direction, _) = primals, tangents
    axes = tuple(axis for axis in range(x.ndim) if rstd.shape[axis] == 1 and x.shape[axis] != 1)
    count = math.prod(x.shape[axis] for axis in axes)
    return rstd, -(rstd**3) * jnp.sum(x * direction, axis=axes, keepdims=True) / max(count, 1)


_saved_rstd: Any = jax.custom_jvp(lambda _x, rstd: rstd)
_saved_rstd.defjvp(_saved_rstd_jvp)


def rms_norm(x: Any, rstd: Any, gamma: Any) -> Any:  # noqa: ANN401 - arrays
    """The product of x, rstd and gamma, with the rstd that is given; its derivative is that of a function of x."""
    rows = x.shape[: x.ndim - gamma.ndim]
    wide = x.astype(jnp.promote_types(x.dtype, rstd.dtype))
    return wide * _saved_rstd(wide, rstd.reshape((*rows, *(1,) * gamma.ndim))) * gamma


@dataclass(frozen=True, slots=True)
class Function:
    """A function, and the names of its arguments in order."""

    compute: Callable[..., Any]
    arguments: tuple[str, ...]


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "multiply": Function(jnp.multiply, ("x", "y")),
        "reshape": Function(jnp.reshape, ("x", "shape")),
        "split": Function(jnp.split, ("x", "parts", "axis")),
        "square": Function(jnp.square, ("x",)),
        "subtract": Function(jnp.subtract, ("x", "y")),
        "nn.gelu": Function(nn.gelu, ("x", "approximate")),
        "nn.glu": Function(nn.glu, ("x", "axis")),
        "nn.hard_sigmoid": Function(nn.hard_sigmoid, ("x",)),
        "nn.hard_silu": Function(nn.hard_silu, ("x",)),
        "nn.leaky_relu": Function(nn.leaky_relu, ("x", "negative_slope")),
        "nn.mish": Function(nn.mish, ("x",)),
        "nn.sigmoid": Function(nn.sigmoid, ("x",)),
        "nn.silu": Function(nn.silu, ("x",)),
        "conv_tbc": Function(conv_tbc, ("input", "weight", "bias", "pad")),
        "embedding": Function(embedding, ("table", "indices", "padding_index", "scale_by_frequency")),
        "log_softmax_tangent": Function(log_softmax_tangent, ("x", "output", "dim")),
        "nearest_exact": Function(nearest_exact, ("x", "size", "scale")),
        "rms_norm": Function(rms_norm, ("x", "rstd", "gamma")),
        "softmax_tangent": Function(softmax_tangent, ("x", "output", "dim")),
    }
)
"""All of a function's arguments are given, by these names."""
