"""Laws that are the same mathematics for several operators, among them those of what is linear in its gradient.

Throughout, f is the operator as a function of its gradient g, s an exact result and y the computed one of a call, with
|y - s| <= e: e is the distance that the compute model leaves that call (`LawOutput.distance`, the error before the last
rounding and that rounding). Nothing else enters a bound but the float64 arithmetic of the comparison itself, where it
rounds at all: sums are rounded once (`math.fsum`), and n products computed and added in float64 are off by at most
gamma_n(2^-53) times the sum of their absolute values (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd
ed., chapter 3). Where every e is 0 both sides are exact in float64 too, and must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import msgspec
import numpy as np

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.law import (
    Draw,
    Law,
    LawCall,
    LawCheck,
    LawInput,
    LawOutput,
    Parameters,
    exactly_stored,
    with_arguments,
    with_values,
)
from aclnn_cts.core.rounding import BinaryFormat, binary_format, round_to
from aclnn_cts.oracles._law_axes import (
    Axis,
    all_finite,
    combined,
    gamma64,
    key,
    permute,
    same,
    shuffled,
    split,
    split_law,
    totals,
)

__all__ = [
    "Axis",
    "Forward",
    "adjoint",
    "all_finite",
    "combined",
    "gamma64",
    "key",
    "layout",
    "linear",
    "permute",
    "repeat",
    "same",
    "scaling",
    "shuffled",
    "split",
    "split_law",
    "totals",
    "zero",
]

_ALIKE_IN_EVERY_ORDER = frozenset({"integers", "constant", "zeros", "one_hot"})
"""Recipes of numbers whose sums are exact, so that they hide in which order they were added."""

_REPEAT_CALLS = 4
"""How often `repeat` makes its call: what varies seldom is met the more often."""
_REPEAT_ELEMENTS = 1024
"""Its calls carry recipes, so that its bases may be as large as random cases are."""


def repeat(gradient: str) -> Law:
    """The same call four times: equal bits where the compute model has a basis for that, else at most e1 + e2 apart.

    Where it has none, a difference is recorded. What varies as a rule is the order of a sum, so bases have long sums,
    and two gradients in three have terms that swamp the others and cancel, which shows in narrow outputs too. A
    gradient of small integers, whose sums come out alike in every order, gives way to one that rounds. Source:
    `repeatable` in specs/precision.yaml.
    """

    def draw(choose: Draw) -> Parameters:
        return {"data": choose(0, 2)}

    def calls(base: LawInput) -> tuple[Case, ...]:
        tensor = base.tensor(gradient)
        recipe = "swamped" if base.parameters.get("data", 0) else None
        if recipe is None and (tensor.data is None or tensor.data.recipe in _ALIKE_IN_EVERY_ORDER):
            recipe = "normal"
        case = base.case
        if recipe is not None and tensor.data is not None:
            data = Data(recipe=recipe, seed=tensor.data.seed)
            case = with_arguments(case, {gradient: msgspec.structs.replace(tensor, data=data)})
        return (case,) * _REPEAT_CALLS

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        first, *others = done
        for name, left in first.outputs.items():
            most = max(_differing(left, call.outputs[name]) for call in others)
            facts = {f"{name} of the same call": f"{most} elements differ" if most else "the same bits"}
            for call in others:
                check = same(name, left, call.outputs[name], "a call, and the same call again")
                bound = np.zeros(check.bound.shape) if left.repeatable else check.bound
                yield replace(check, bound=bound, facts=facts)

    return Law(
        id="repeat",
        en="the same call again gives the same bits where something promises it",
        zh="在有承诺依据之处，同一调用重复执行，结果逐位相同",
        draw=draw,
        calls=calls,
        check=check,
        base_elements=_REPEAT_ELEMENTS,
        long_sums=True,
    )


def _differing(left: LawOutput, right: LawOutput) -> int:
    """How many elements of two results are not alike; nans are."""
    alike = (left.got == right.got) | (np.isnan(left.got) & np.isnan(right.got))
    return int(np.count_nonzero(~alike))


def layout() -> Law:
    """Strided views and their contiguous copies: at most e1 + e2 apart, equal bits where one result alone conforms.

    The base has the views. Source: the document allows tensors that are not contiguous, and a view's strides are no
    part of its contents.
    """

    def calls(base: LawInput) -> tuple[Case, ...]:
        plain = {
            name: msgspec.structs.replace(tensor, strides=None, offset=0, storage_shape=None)
            for name, tensor in base.case.tensors()
        }
        return base.case, with_arguments(base.case, plain)

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        for name, strided in done[0].outputs.items():
            yield same(name, strided, done[1].outputs[name], "strided views, and contiguous copies of their contents")

    return Law(
        id="layout",
        en="strided views give what their contiguous copies give",
        zh="非连续视图与其连续副本给出相同结果",
        applies=lambda case: not all(tensor.is_contiguous for _, tensor in case.tensors()),
        calls=calls,
        check=check,
    )


Forward: TypeAlias = Callable[[LawInput, str, Float64], tuple[float, float]]
"""<F v, g> for an output's probe v, and the same sum over absolute values: F the forward operator's derivative with
respect to what the output is the gradient of."""


def adjoint(forward: Forward) -> Law:
    """<v, f(g)> = <F v, g> for any v, within sum |v| e: f is the adjoint of F, computed here in float64.

    v has small integers, dense ones or all but two of them 0, and is 0 where nothing is judged. The float64 error of
    <F v, g> is at most gamma_n times the sum of the absolute values of its terms; n is at most the number of all
    elements of the inputs and of v and 8 (each term has up to 7 factors). Source: the forward operator, in `forward`.
    """

    def calls(base: LawInput) -> tuple[Case, ...]:
        return (base.case,) if all_finite(base) else ()

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        for number, (name, output) in enumerate(done[0].outputs.items()):
            v = np.where(output.judged, _probe(output.got.shape, base.parameters["key"] + number), 0.0)
            if not v.any():
                continue
            with np.errstate(all="ignore"):
                products = np.where(v == 0.0, 0.0, v * output.got).reshape(-1)
                left = math.fsum(products.tolist()) if np.isfinite(products).all() else float(products.sum())
                bound = float(np.where(v == 0.0, 0.0, np.abs(v) * output.distance).sum())
                right, size = forward(base, name, v)
            if bound > 0.0:
                count = v.size + sum(tensor.size for tensor in base.tensors.values()) + 8
                bound += gamma64(count) * (size + abs(left))
            yield LawCheck(
                output=name,
                left=np.array(left),
                right=np.array(right),
                bound=np.array(bound),
                relation="<v, f(g)>, and <F v, g> with the forward operator F",
                place="the scalar product",
            )

    return Law(
        id="adjoint",
        en="the result is the adjoint of the forward operator, applied to the gradient",
        zh="结果是前向算子的伴随作用于梯度",
        draw=key,
        calls=calls,
        check=check,
    )


def _probe(shape: tuple[int, ...], start: int) -> Float64:
    """Small integers for a scalar product: all different from 0, or all 0 but two."""
    count = math.prod(shape)
    values = (shuffled(count, start) % 7 - 3).astype(np.float64)
    values[values == 0.0] = 4.0
    if start % 2:
        values[shuffled(count, start + 1)[2:]] = 0.0
    return values.reshape(shape)


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
