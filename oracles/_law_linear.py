"""Laws of what is linear in its gradient: combinations, powers of two, and nothing at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.law import (
    Draw,
    Law,
    LawCall,
    LawCheck,
    LawInput,
    Parameters,
    exactly_stored,
    with_arguments,
    with_values,
)
from aclnn_cts.core.rounding import BinaryFormat, binary_format, round_to
from aclnn_cts.oracles._law_relations import all_finite, combined, shuffled

_COEFFICIENTS = (1, -1, 2, -2, 3, -3, 5, -4)
_MOST_EXPONENT = 1023
_HEADROOM = 4
"""Bits that a sum of two products with such coefficients grows by at most: 5 + 5 < 2^4."""


def linear(gradient: str) -> Law:
    """f(a g1 + b g2) = a f(g1) + b f(g2), within |a| e1 + |b| e2 + e3.

    The combination must be exact in the gradient's dtype. Three ways see to that: two gradients on a grid that leaves
    room for small coefficients, a gradient split into the upper and lower half of its digits, and one split into two
    sets of elements. Source: the operator's formula, which has the gradient as a factor of every term.
    """

    def draw(choose: Draw) -> Parameters:
        last = len(_COEFFICIENTS) - 1
        return {"way": choose(0, 3), "a": choose(0, last), "b": choose(0, last), "key": choose(0, 2**32 - 1)}

    def parts(base: LawInput) -> tuple[Float64, Float64, int, int]:
        g: Float64 = base.tensors[gradient]
        form = base.form(gradient)
        way, start = base.parameters["way"], base.parameters["key"]
        if way == 0:
            half = binary_format(
                f"half of {form.name}",
                significand=form.significand // 2,
                min_exponent=form.min_exponent,
                max_exponent=form.max_exponent,
            )
            high = round_to(g, half)
            high[~np.isfinite(high)] = 0.0
            return high, g - high, 1, 1
        if way == 1:
            chosen = (shuffled(g.size, start) % 2 == 0).reshape(g.shape)
            return np.where(chosen, g, 0.0), np.where(chosen, 0.0, g), 1, 1
        first = _on_grid(g, form)
        second = first.reshape(-1)[shuffled(g.size, start)].reshape(g.shape)
        a, b = (_COEFFICIENTS[base.parameters[name]] for name in ("a", "b"))
        return first, second, a, b

    def calls(base: LawInput) -> tuple[Case, ...]:
        if not all_finite(base, gradient):
            return ()
        first, second, a, b = parts(base)
        tensor = base.tensor(gradient)
        made = (first, second, a * first + b * second)
        if not all(exactly_stored(values, tensor.dtype) for values in made):
            return ()
        return tuple(with_arguments(base.case, {gradient: with_values(tensor, values)}) for values in made)

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        _, _, a, b = parts(base)
        relation = f"{a} f(g1) + {b} f(g2), and f({a} g1 + {b} g2)"
        for name, right in done[2].outputs.items():
            terms = ((float(a), done[0].outputs[name]), (float(b), done[1].outputs[name]))
            yield combined(name, terms, right, relation)

    return Law(
        id="linear",
        en="the result is linear in the gradient",
        zh="结果对梯度是线性的",
        applies=lambda case: _floating(case, gradient),
        draw=draw,
        calls=calls,
        check=check,
    )


def _floating(case: Case, name: str) -> bool:
    tensor = case.arguments[name]
    return isinstance(tensor, Tensor) and tensor.dtype in INEXACT


def _on_grid(g: Float64, form: BinaryFormat) -> Float64:
    """G cut to multiples of one power of two, with the format's digits less `_HEADROOM`, far enough from its end."""
    largest = float(np.abs(g).max(initial=0.0))
    exponent = math.frexp(largest)[1]
    beyond = max(exponent - (form.max_exponent - _HEADROOM), 0)
    step = max(math.ldexp(1.0, exponent - beyond - (form.significand - _HEADROOM)), form.smallest_subnormal)
    cut: Float64 = np.trunc(np.ldexp(g, -beyond) / step) * step
    return cut


def scaling(gradient: str) -> Law:
    """f(2^k g) = 2^k f(g), within 2^k e1 + e2.

    Multiplying by a power of two is exact, and changes no rounding while nothing leaves a format's range. k reaches
    from small numbers to the ends of the gradient's format, where an intermediate in too narrow a format overflows or
    loses digits. Source: the operator's formula is linear in the gradient.
    """

    def draw(choose: Draw) -> Parameters:
        return {"k": choose(-24, 24), "far": choose(0, 5)}

    def exponent(base: LawInput) -> int:
        magnitudes = np.abs(base.tensors[gradient])
        magnitudes = magnitudes[magnitudes > 0.0]
        if not magnitudes.size:
            return 0
        form = base.form(gradient)
        most = form.max_exponent + 1 - math.frexp(float(magnitudes.max()))[1]
        least = form.min_exponent + 1 - math.frexp(float(magnitudes.min()))[1]
        far = base.parameters["far"]
        k = most if far == 0 else least if far == 1 else base.parameters["k"]
        # The power itself is a float64 number.
        return max(min(k, most, _MOST_EXPONENT), min(least, 0), -_MOST_EXPONENT)

    def calls(base: LawInput) -> tuple[Case, ...]:
        if not all_finite(base, gradient):
            return ()
        k = exponent(base)
        tensor = base.tensor(gradient)
        scaled = np.ldexp(base.tensors[gradient], k)
        if k == 0 or not exactly_stored(scaled, tensor.dtype):
            return ()
        return base.case, with_arguments(base.case, {gradient: with_values(tensor, scaled)})

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        k = exponent(base)
        for name, right in done[1].outputs.items():
            terms = ((math.ldexp(1.0, k), done[0].outputs[name]),)
            yield combined(name, terms, right, f"2^{k} f(g), and f(2^{k} g)")

    return Law(
        id="scaling",
        en="a gradient times a power of two gives the result times that power",
        zh="梯度乘以 2 的幂，结果也乘以同一个幂",
        applies=lambda case: _floating(case, gradient),
        draw=draw,
        calls=calls,
        check=check,
    )


def zero(gradient: str, *, overflows: bool = False) -> Law:
    """f(0) = 0, exactly: no operation on zeros and finite numbers rounds or underflows.

    `overflows`: what the gradient is multiplied by may overflow, as exp does, so that elements that the document leaves
    open may be nan. Else they are sums of some of the zeros too. Source: the operator's formula is linear in the
    gradient.
    """

    def calls(base: LawInput) -> tuple[Case, ...]:
        others = [name for name in base.tensors if name != gradient]
        if others and not all_finite(base, *others):
            return ()
        tensor = base.tensor(gradient)
        return (with_arguments(base.case, {gradient: with_values(tensor, np.zeros(base.tensors[gradient].shape))}),)

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        for name, output in done[0].outputs.items():
            nothing = np.zeros(output.got.shape)
            held = output.judged if overflows else output.judged | output.open
            bound = np.where(held, 0.0, np.inf)
            yield LawCheck(output=name, left=output.got, right=nothing, bound=bound, relation="f(0), and 0")

    return Law(id="zero", en="a gradient of zeros gives zeros", zh="梯度全为零时结果全为零", calls=calls, check=check)
