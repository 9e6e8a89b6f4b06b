"""What the tests of the oracles share: calls from plain arrays, the simple bound, float32 sums in several orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import settings
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, Tensor
from aclnn_cts.core.expected import ExpectedOutput, OracleInput

Array = NDArray[Any]

UNIT_FLOAT = 2.0**-24
SUBNORMAL_FLOAT = 2.0**-149
NORMAL_FLOAT = 2.0**-126
LARGEST_FLOAT = float(np.finfo(np.float32).max)
ORDERS = ("forward", "reversed", "pairwise", "random", "blocked")

few = settings(max_examples=15, deadline=None, database=None, derandomize=True)
many = settings(few, max_examples=60)


def make_call(
    inputs: Mapping[str, Any], attributes: Mapping[str, Argument] | None = None, **outputs: tuple[int, ...]
) -> OracleInput:
    """A call as the engine would make it: floats widened to float64, integers to int64, bools kept; FLOAT outputs."""
    tensors = {name: _widened(np.asarray(value)) for name, value in inputs.items()}
    shapes = {name: value.shape for name, value in tensors.items()} | outputs
    arguments: dict[str, Argument] = {name: Tensor(shape=shape, dtype="FLOAT") for name, shape in shapes.items()}
    arguments.update(attributes or {})
    return OracleInput(tensors=tensors, arguments=arguments)


def _widened(array: Array) -> Array:
    if array.dtype.kind == "b":
        return array
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def assert_within(output: ExpectedOutput, got: Array) -> None:
    """Every element that is not open lies within the bound (plus half a float32 step for the output)."""
    limit = output.error + UNIT_FLOAT * np.abs(output.value) + SUBNORMAL_FLOAT
    beyond = ~(np.abs(got.astype(np.float64) - output.value) <= limit)
    if output.open is not None:
        beyond &= ~output.open
    assert not beyond.any(), f"{beyond.sum()} beyond, first at {np.argwhere(beyond)[0]}"


def assert_conforms(output: ExpectedOutput, got: Array, *, flush: bool = False) -> None:
    """The rule for any data: open elements and overflowing ones aside, the value's inf and nan and else the bound."""
    with np.errstate(all="ignore"):
        judged = np.ones(output.value.shape, np.bool_) if output.partial is None else output.partial <= LARGEST_FLOAT
        if output.open is not None:
            judged = judged & ~output.open
        got = got.astype(np.float64)
        special = ~np.isfinite(output.value)
        alike = (got == output.value) | (np.isnan(got) & np.isnan(output.value))
        last = UNIT_FLOAT * np.abs(output.value) + (NORMAL_FLOAT if flush else SUBNORMAL_FLOAT)
        limit = output.error + last
        within = np.abs(got - output.value) <= limit
    wrong = judged & ~np.where(special, alike, within)
    assert not wrong.any(), f"{wrong.sum()} wrong, first at {np.argwhere(wrong)[0]}"


def rounding(*, flush: bool) -> Callable[[Array], Array]:
    """What follows each float32 operation: nothing, or the flush of subnormal results to zero."""
    return (lambda array: np.where(np.abs(array) < NORMAL_FLOAT, np.float32(0), array)) if flush else np.asarray


def sum_float32(terms: Array, order: str, generator: np.random.Generator, *, flush: bool = False) -> Array:
    """The sum over the last axis with every partial sum rounded to float32, in one of `ORDERS`."""
    fl = rounding(flush=flush)
    assert terms.dtype == np.float32
    count = terms.shape[-1]
    if order == "random":
        terms = terms[..., generator.permutation(count)]
    elif order == "reversed":
        terms = terms[..., ::-1]
    elif order == "pairwise":
        while terms.shape[-1] > 1:
            odd = terms[..., terms.shape[-1] // 2 * 2 :]
            terms = np.concatenate([fl(terms[..., :-1:2] + terms[..., 1::2]), odd], axis=-1)
        return terms[..., 0] if count else np.zeros(terms.shape[:-1], np.float32)
    elif order == "blocked":
        parts = [sum_float32(terms[..., k : k + 8], "forward", generator, flush=flush) for k in range(0, count, 8)]
        return sum_float32(np.stack(parts, axis=-1), "forward", generator, flush=flush) if count else terms.sum(axis=-1)
    total = np.zeros(terms.shape[:-1], np.float32)
    for k in range(count):
        total = fl(total + terms[..., k])
    return total


def differences(function: Callable[[Array], float], at: Array, *, step: float = 2.0**-10) -> Array:
    """The gradient of a scalar function by central differences (exact for polynomials of degree two)."""
    gradient = np.zeros(at.shape)
    for index in np.ndindex(*at.shape):
        shift = np.zeros(at.shape)
        shift[index] = step
        gradient[index] = (function(at + shift) - function(at - shift)) / (2 * step)
    return gradient


def integers(generator: np.random.Generator, shape: tuple[int, ...], *, size: int = 8) -> Array:
    """Integers from -size to size as float64."""
    return generator.integers(-size, size + 1, size=shape).astype(np.float64)


def floats(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Normal numbers that are float32 numbers, in float64, with a wide spread of exponents."""
    spread = 2.0 ** generator.integers(-6, 7, size=shape)
    return (generator.normal(size=shape) * spread).astype(np.float32).astype(np.float64)


def wild(generator: np.random.Generator, shape: tuple[int, ...], *, share: float = 0.05) -> Array:
    """Float32 numbers of every exponent, subnormal ones and zeros, a share of them inf or nan, in float64."""
    significand = generator.uniform(1, 2, size=shape) * generator.choice([-1, 1], size=shape)
    spread = generator.choice([10, 60, 126])
    with np.errstate(all="ignore"):
        array = np.ldexp(significand, generator.integers(-spread - 20, spread + 1, size=shape)).astype(np.float32)
    array[generator.random(shape) < 0.1] = 0
    chosen = generator.random(shape) < share
    array[chosen] = generator.choice([np.inf, -np.inf, np.nan], size=int(chosen.sum()))
    wide: Array = array.astype(np.float64)
    return wide
