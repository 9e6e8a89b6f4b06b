"""The five operators tested the plain way: Hypothesis' arrays, torch's kernel, NumPy in float64, `assert_close`.

This is what one writes without a harness, and what `make bench` compares the harness with. Each entry draws dtype,
shape, attributes and arrays (at most 256 elements each), calls the kernel and compares; layouts, memory, statuses and
modes stay untested.

Two sorts of arrays: `dense` draws every element, which is data as fit for a reduction as a recipe's; `filled` is the
default of `hypothesis.extra.numpy.arrays`, which draws a few and makes all others equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

Draw: TypeAlias = Callable[[Any], Any]
Array: TypeAlias = NDArray[Any]

EPSILON = 1e-6
_DTYPES = st.sampled_from([torch.float32, torch.float16, torch.bfloat16])
_VALUES = st.floats(-4.0, 4.0, width=16)  # every one of them is a number of all three dtypes, or of two
MOST_ELEMENTS = 256

_aten: Any = torch.ops.aten


@dataclass(frozen=True, slots=True)
class PlainTest:
    """One operator: arguments, the call of torch's kernel, and what NumPy says of it."""

    draw: Callable[[Draw, bool], tuple[Any, ...]]
    """Takes Hypothesis' draw function, and whether arrays are dense."""
    call: Callable[..., tuple[torch.Tensor, ...]]
    expected: Callable[..., tuple[Array, ...]]

    def check(self, *arguments: Any) -> None:  # noqa: ANN401 - as drawn
        """Call and compare; AssertionError where the kernel is wrong."""
        for got, wanted in zip(self.call(*arguments), self.expected(*arguments), strict=True):
            _close(got, wanted)

    def check_itself(self, *arguments: Any) -> None:  # noqa: ANN401 - as drawn
        """The same without the kernel: what is expected, rounded to the arguments' dtype, stands for its result."""
        dtype = arguments[0].dtype
        for wanted in self.expected(*arguments):
            _close(torch.from_numpy(wanted).to(dtype), wanted)


def use_one_thread() -> None:
    """What our torch adapter does too: calls this small only lose by more."""
    torch.set_num_threads(1)


def _shape(draw: Draw, longest: int) -> tuple[int, ...]:
    """Sizes up to `longest`, set so that inputs come out about as large as those of our generator."""
    room, sides = MOST_ELEMENTS, []
    for _ in range(draw(st.integers(1, 4))):
        sides.append(draw(st.integers(1, min(room, longest))))
        room //= sides[-1]
    return tuple(sides)


def _floats(draw: Draw, shape: tuple[int, ...], dtype: torch.dtype, dense: bool) -> torch.Tensor:  # noqa: FBT001 - as PlainTest.draw
    fill = st.nothing() if dense else None
    return torch.from_numpy(draw(arrays(np.float32, shape, elements=_VALUES, fill=fill))).to(dtype)


def _wide(tensor: torch.Tensor) -> Array:
    array: Array = tensor.to(torch.float64).numpy()
    return array


def _close(got: torch.Tensor, expected: Array) -> None:
    torch.testing.assert_close(got, torch.from_numpy(expected).to(got.dtype), equal_nan=True)


def _draw_softmax(draw: Draw, dense: bool) -> tuple[Any, ...]:  # noqa: FBT001 - as PlainTest.draw
    dtype, shape = draw(_DTYPES), _shape(draw, 13)
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    return _floats(draw, shape, dtype, dense), _floats(draw, shape, dtype, dense), dim


def _call_softmax(grad: torch.Tensor, output: torch.Tensor, dim: int) -> tuple[torch.Tensor, ...]:
    return (_aten._softmax_backward_data(grad, output, dim, grad.dtype),)  # noqa: SLF001 - the kernel's own name


def _expected_softmax(grad: torch.Tensor, output: torch.Tensor, dim: int) -> tuple[Array, ...]:
    g, y = _wide(grad), _wide(output)
    return (y * (g - (y * g).sum(axis=dim, keepdims=True)),)


def _draw_rms_norm(draw: Draw, dense: bool) -> tuple[Any, ...]:  # noqa: FBT001 - as PlainTest.draw
    dtype, shape = draw(_DTYPES), _shape(draw, 70)
    shapes = (shape, shape, shape[-1:])
    return tuple(_floats(draw, each, dtype, dense) for each in shapes)


def _call_rms_norm(dy: torch.Tensor, x: torch.Tensor, gamma: torch.Tensor) -> tuple[torch.Tensor, ...]:
    leaf, weight = x.detach().requires_grad_(), gamma.detach().requires_grad_()
    return tuple(torch.autograd.grad(torch.rms_norm(leaf, gamma.shape, weight, EPSILON), (leaf, weight), dy))


def _expected_rms_norm(dy: torch.Tensor, x: torch.Tensor, gamma: torch.Tensor) -> tuple[Array, ...]:
    grad, values, scale = _wide(dy), _wide(x), _wide(gamma)
    rstd = 1.0 / np.sqrt((values * values).mean(axis=-1, keepdims=True) + EPSILON)
    scaled, unit = grad * scale, values * rstd
    of_x = rstd * (scaled - unit * (scaled * unit).mean(axis=-1, keepdims=True))
    return of_x, (grad * unit).reshape(-1, gamma.shape[0]).sum(axis=0)


def _draw_embedding(draw: Draw, dense: bool) -> tuple[Any, ...]:  # noqa: FBT001 - as PlainTest.draw
    dtype, count = draw(_DTYPES), draw(st.integers(1, 20))
    width = draw(st.integers(1, min(20, MOST_ELEMENTS // count)))
    rows = draw(st.integers(1, 12))
    indices = draw(arrays(np.int64, (count,), elements=st.integers(0, rows - 1)))
    padding = draw(st.integers(-1, rows - 1))
    return _floats(draw, (count, width), dtype, dense), torch.from_numpy(indices), rows, padding, draw(st.booleans())


def _call_embedding(*arguments: Any) -> tuple[torch.Tensor, ...]:  # noqa: ANN401 - as drawn
    return (_aten.embedding_dense_backward(*arguments),)


def _expected_embedding(
    grad: torch.Tensor,
    indices: torch.Tensor,
    rows: int,
    padding: int,
    scale: bool,  # noqa: FBT001 - the kernel's order
) -> tuple[Array, ...]:
    wide, places = _wide(grad), indices.numpy()
    if scale:
        wide = wide / np.bincount(places, minlength=rows)[places, None]
    wide[places == padding] = 0.0
    expected = np.zeros((rows, wide.shape[1]))
    np.add.at(expected, places, wide)
    return (expected,)


def _draw_upsample(draw: Draw, dense: bool) -> tuple[Any, ...]:  # noqa: FBT001 - as PlainTest.draw
    dtype, batch = draw(_DTYPES), draw(st.integers(1, 8))
    channels = draw(st.integers(1, min(8, 64 // batch)))
    most = MOST_ELEMENTS // (batch * channels)
    length, source = draw(st.integers(1, min(32, most))), draw(st.integers(1, min(32, most)))
    return _floats(draw, (batch, channels, length), dtype, dense), source


def _call_upsample(grad: torch.Tensor, source: int) -> tuple[torch.Tensor, ...]:
    batch, channels, length = grad.shape
    return (_aten._upsample_nearest_exact1d_backward(grad, [length], [batch, channels, source], None),)  # noqa: SLF001 - the kernel's own name


def _expected_upsample(grad: torch.Tensor, source: int) -> tuple[Array, ...]:
    batch, channels, length = grad.shape
    places = np.minimum(((np.arange(length) + 0.5) * (source / length)).astype(np.int64), source - 1)
    expected = np.zeros((source, batch, channels))
    np.add.at(expected, places, np.moveaxis(_wide(grad), 2, 0))
    return (np.ascontiguousarray(np.moveaxis(expected, 0, 2)),)


def _draw_conv(draw: Draw, dense: bool) -> tuple[Any, ...]:  # noqa: FBT001 - as PlainTest.draw
    dtype, kernel, pad = draw(_DTYPES), draw(st.integers(1, 4)), draw(st.integers(0, 3))
    length, batch = draw(st.integers(max(1, kernel - 2 * pad), 18)), draw(st.integers(1, 4))
    inputs = draw(st.integers(1, 16 // batch))  # with at most 16 results, no tensor is larger than 256
    outputs = draw(st.integers(1, min(16 // batch, MOST_ELEMENTS // (kernel * inputs))))
    result = length + 2 * pad - kernel + 1
    return (
        _floats(draw, (result, batch, outputs), dtype, dense),
        _floats(draw, (length, batch, inputs), dtype, dense),
        _floats(draw, (kernel, inputs, outputs), dtype, dense),
        _floats(draw, (outputs,), dtype, dense),
        pad,
    )


def _call_conv(*arguments: Any) -> tuple[torch.Tensor, ...]:  # noqa: ANN401 - as drawn
    return tuple(_aten.conv_tbc_backward(*arguments))


def _expected_conv(
    grad: torch.Tensor, source: torch.Tensor, weight: torch.Tensor, _bias: torch.Tensor, pad: int
) -> tuple[Array, ...]:
    g, x, w = _wide(grad), _wide(source), _wide(weight)
    padded = np.pad(x, ((pad, pad), (0, 0), (0, 0)))
    grad_padded, grad_weight = np.zeros_like(padded), np.zeros_like(w)
    for tap in range(w.shape[0]):
        window = slice(tap, tap + g.shape[0])
        grad_padded[window] += g @ w[tap].T
        grad_weight[tap] = np.einsum("tbi,tbo->io", padded[window], g)
    return grad_padded[pad : pad + x.shape[0]], grad_weight, g.sum(axis=(0, 1))


PLAIN: Mapping[str, PlainTest] = MappingProxyType(
    {
        "aclnnConvTbcBackward": PlainTest(_draw_conv, _call_conv, _expected_conv),
        "aclnnEmbeddingDenseBackward": PlainTest(_draw_embedding, _call_embedding, _expected_embedding),
        "aclnnRmsNormGrad": PlainTest(_draw_rms_norm, _call_rms_norm, _expected_rms_norm),
        "aclnnSoftmaxBackward": PlainTest(_draw_softmax, _call_softmax, _expected_softmax),
        "aclnnUpsampleNearestExact1dBackward": PlainTest(_draw_upsample, _call_upsample, _expected_upsample),
    }
)
"""By operator."""
