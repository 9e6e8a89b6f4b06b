"""A formula in the arithmetic of an implementation: every operation rounded to a format, sums in one of five orders.

Any `Variant` of the compute model's arithmetic is a correct implementation, and the bound must be silent on it. With a
`Mutant` one operation of it is wrong, and the bound must find that.

Results are right when float64 rounds them to FLOAT or a narrower format: it has more than twice their bits (Figueroa,
*When is double rounding innocuous?*, SIGNUM Newsletter 30, 1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.expected import Arithmetic
from aclnn_cts.core.rounding import BINARY_FORMATS, covers, rounded, toward_zero
from aclnn_cts.formula.array import Array, Backend, Cells, Operand, taken
from aclnn_cts.formula.contraction import contract
from aclnn_cts.formula.functions import FUNCTIONS
from aclnn_cts.formula.mutants import KINDS, SCATTER_KINDS, TERM_KINDS, Mutant, Operation, mutated

Real: TypeAlias = NDArray[Any]
_ADD: Any = np.add.reduce
"""Without NumPy's overloads, which know no `keepdims` that is decided later."""

ORDERS = ("forward", "reversed", "pairwise", "blocked", "random")
"""Of a sum: first to last, last to first, in pairs, in blocks of 16, in random order."""
LANES = "lanes"
"""The order of four accumulators that take turns."""
FASTEST = "fastest"
"""The order in which NumPy sums fastest: for values, and for no emulation."""
_BLOCK, _LANES = 16, 4
_MOST_STEPS = 512
"""Additions in a row that NumPy cannot make together."""
MOST_TERMS = 1 << 20
"""Terms of one sum that are made at once."""


class TooManyTermsError(HarnessError):
    """A sum has more terms than an emulation makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One of the ways in which a correct implementation may compute."""

    order: str = "forward"
    fused: bool = False
    """Whether a product is rounded together with the sum that it goes into."""
    reciprocal: bool = False
    """Whether a division is a product with the rounded reciprocal."""
    flushes: bool = False
    """Whether inputs and results below the normal range become 0."""
    truncates: bool = False
    """Whether sums are truncated."""
    tilt: float = 0.0
    """How much of their stated error functions make, with its sign; beyond 1 in magnitude: each element at random."""
    undecided: float | None = None
    """What elements hold that the document leaves undecided, whatever they are computed from; None: what the formula
    gives."""
    key: int = 0
    """Of the random decisions."""
    form: int = 0
    """Which form of the formula is evaluated."""


class Emulated(Array):
    """An array of `Emulator`: numbers of the format, and which of them are terms of a later sum."""

    __slots__ = ("product", "there", "v")

    f: Emulator

    def __init__(
        self, f: Emulator, v: Real, *, there: NDArray[np.bool_] | None = None, product: Real | None = None
    ) -> None:
        self.f, self.v, self.there, self.product = f, v, there, product

    @property
    def shape(self) -> tuple[int, ...]:
        return self.v.shape


class Emulator(Backend[Emulated]):
    """One evaluation. NumPy's warnings are the caller's concern.

    `marks`: nan stands for an input whose value is not to matter, and a decision that meets one is nan as well.
    `operand`: what a mode makes of an input (float64) before it is used. `amount`: the value of the mutant's kind.
    """

    __slots__ = (
        "_form",
        "_native",
        "amount",
        "arithmetic",
        "declined",
        "marks",
        "mutant",
        "operand",
        "operations",
        "variant",
    )

    def __init__(
        self,
        arithmetic: Arithmetic,
        variant: Variant | None = None,
        *,
        mutant: Mutant | None = None,
        amount: Real | float = 0.0,
        marks: bool = False,
        operand: Callable[[Real], Real] | None = None,
    ) -> None:
        self.arithmetic, self.variant, self.mutant, self.marks = arithmetic, variant or Variant(), mutant, marks
        self.operand, self.amount = operand, amount
        self.declined = False
        """Whether the document leaves an element undecided."""
        self._form = form = arithmetic.accumulation
        self._native: Any = None
        if form.name in ("FLOAT", "DOUBLE") and not self.variant.truncates:
            self._native = np.float32 if form.name == "FLOAT" else np.float64
        self.operations: list[Operation] = []
        """What was computed, in order: where a mutant can be, and of which kinds."""

    # Rounding

    def _rounded(self, values: Real) -> Real:
        """The numbers of the format next to values."""
        if self._native is not None:
            result: Real = np.asarray(values, self._native)
        else:
            result = rounded(np.asarray(values, np.float64), self._form)
        return self._flushed(result)

    def _added(self, values: Real) -> Real:
        """A partial sum that was computed in float64, or by the format itself."""
        if not self.variant.truncates:
            return self._rounded(values)
        return self._flushed(toward_zero(np.asarray(values, np.float64), self._form))

    def _flushed(self, values: Real) -> Real:
        if self.variant.flushes:
            return np.where(np.abs(values) < self._form.smallest_normal, values.dtype.type(0.0), values)
        return values

    def _wide(self, values: Real) -> Real:
        return values.astype(np.float64)

    def _done(
        self, name: str, values: Real, *, there: NDArray[np.bool_] | None = None, product: Real | None = None
    ) -> Emulated:
        """A result, with what a mutant makes of it."""
        place = len(self.operations)
        mutant = self._mutant(name, place)
        if mutant is not None:
            values = self._rounded(mutated(mutant.kind, self._wide(values), self._amount))
            product = None
        return Emulated(self, values, there=there, product=product)

    def _mutant(self, name: str, place: int) -> Mutant | None:
        """Note an operation; the mutant that sits on it."""
        self.operations.append(Operation(name, place))
        mutant = self.mutant
        return mutant if mutant is not None and mutant.sits_on(name, place) else None

    def _kind(self, name: str) -> str:
        """The kind of mutant on the operation that comes next, where it changes how that is computed."""
        mutant = self.mutant
        return mutant.kind if mutant is not None and mutant.sits_on(name, len(self.operations)) else ""

    @property
    def _amount(self) -> float:
        return float(np.ravel(self.amount)[0])

    def _decisions(self) -> np.random.Generator:
        """The random decisions of the operation that comes next: the same whatever was computed before it."""
        return np.random.Generator(np.random.Philox(key=[self.variant.key, len(self.operations)]))

    # Where arrays come from

    def leaf(self, name: str, values: Real) -> Emulated:
        """An input tensor, which the format holds."""
        return Emulated(self, self._rounded(values if self.operand is None else self.operand(values)))

    def lift(self, value: Operand) -> Emulated:
        """A number or array of the formula itself, rounded."""
        if isinstance(value, Emulated):
            return value
        if isinstance(value, Array):
            raise TypeError(f"{type(value).__name__} is no operand of an arithmetic operation")
        if isinstance(value, (int, float)):
            kind = self._kind("constant")
            if kind == "constant + 1":
                value += 1.0
            elif kind == "constant * (1 + 2^-8)":
                value *= 1.0 + 2.0**-8
            self._mutant("constant", len(self.operations))
        return Emulated(self, self._rounded(np.asarray(value, np.float64)))

    # Arithmetic

    def add(self, left: Emulated, right: Emulated) -> Emulated:
        return self._sum_of_two(left, right, 1.0)

    def sub(self, left: Emulated, right: Emulated) -> Emulated:
        return self._sum_of_two(left, right, -1.0)

    def _sum_of_two(self, left: Emulated, right: Emulated, sign: float) -> Emulated:
        kind = self._kind("sum of two")
        first, second = left.v, right.v
        if self.variant.fused:
            # One of two products at most can be fused into their sum.
            if right.product is not None:
                first, second = self._wide(first), right.product
            elif left.product is not None:
                first, second = left.product, self._wide(second)
        if kind == "other sign":
            sign = -sign
        elif kind == "left term dropped":
            first = np.zeros_like(first)
        elif kind == "right term dropped":
            second = np.zeros_like(second)
        if not self.variant.fused and self._native is None:
            first, second = self._wide(first), self._wide(second)
        return self._done("sum of two", self._added(first + second if sign > 0 else first - second))

    def mul(self, left: Emulated, right: Emulated) -> Emulated:
        kind = self._kind("product")
        first, second = left.v, right.v
        if kind == "left factor dropped":
            first = np.ones_like(first)
        elif kind == "right factor dropped":
            second = np.ones_like(second)
        elif kind == "left factor twice":
            first = first * first
        elif kind == "zeros of the left skipped":
            second = np.where(first == 0.0, second.dtype.type(0.0), second)
        product = None
        if self.variant.fused and self._form.significand <= 24:
            product = self._wide(first) * self._wide(second)
        return self._done("product", self._rounded(first * second if product is None else product), product=product)

    def div(self, left: Emulated, right: Emulated) -> Emulated:
        kind = self._kind("quotient")
        first, second = left.v, right.v
        if kind == "divisor dropped":
            second = np.ones_like(second)
        elif kind == "inverted":
            first, second = second, first
        elif kind == "multiplied":
            second = 1.0 / second
        elif kind == "divisor + 1":
            second = second + 1.0
        if self.variant.reciprocal or kind == "reciprocal in FLOAT16":
            inverse = self._rounded(1.0 / second)
            if kind == "reciprocal in FLOAT16":
                inverse = self._rounded(rounded(self._wide(inverse), BINARY_FORMATS["FLOAT16"]))
            return self._done("quotient", self._rounded(first * inverse))
        return self._done("quotient", self._rounded(first / second))

    # Sums

    def _total(self, terms: Real, *, wide: bool = False) -> Real:
        """The sum over axis 0; `wide`: the terms are products that are not rounded yet."""
        if not terms.shape[0]:
            return np.zeros(terms.shape[1:], terms.dtype if self._native is None else self._native)
        if wide and (not self.variant.fused or terms.shape[0] > _MOST_STEPS):
            terms, wide = self._rounded(terms), False
        order = self.variant.order
        if order == FASTEST:
            fastest: Real = np.add.reduce(terms, axis=0)
            return fastest
        if order == "reversed":
            terms = terms[::-1]
        elif order == "random":
            terms = terms[self._decisions().permutation(terms.shape[0])]
        if order == "pairwise":
            return self._pairwise(terms, wide=wide)
        parts: list[Real] = []
        if order == "blocked" and terms.shape[0] > _BLOCK:
            parts = [terms[start : start + _BLOCK] for start in range(0, terms.shape[0], _BLOCK)]
        elif order == LANES:
            parts = [terms[lane::_LANES] for lane in range(min(_LANES, terms.shape[0]))]
        if parts:
            return self._forward(np.stack([self._forward(part, wide=wide) for part in parts]), wide=False)
        return self._forward(terms, wide=wide)

    def _forward(self, terms: Real, *, wide: bool) -> Real:
        if not wide and self._native is not None and not self.variant.flushes:
            sums: Real = np.add.accumulate(terms, axis=0, dtype=self._native)[-1]
            return sums
        if terms.shape[0] > _MOST_STEPS:
            raise TooManyTermsError(f"{terms.shape[0]} additions, each by itself")
        total = self._rounded(terms[0])
        for term in terms[1:]:
            total = self._added((self._wide(total) if self._native is None or wide else total) + term)
        return total

    def _pairwise(self, terms: Real, *, wide: bool) -> Real:
        if wide:
            # A fused operation takes one product as it is; the other one was rounded before.
            terms = np.array(terms)
            terms[1::2] = self._rounded(terms[1::2])
            if terms.shape[0] % 2:
                terms[-1] = self._rounded(terms[-1])
        while terms.shape[0] > 1:
            even = terms.shape[0] // 2 * 2
            sums = self._added(terms[0:even:2] + terms[1:even:2])
            terms = np.concatenate([sums, terms[even:]]) if even < terms.shape[0] else sums
        return self._rounded(terms[0])

    def _mutated_terms(self, name: str, terms: Real) -> Real:
        change = TERM_KINDS.get(self._kind(name))
        return terms if change is None else change(terms, self._amount)

    def sum(self, array: Emulated, axes: tuple[int, ...], *, keepdims: bool) -> Emulated:
        if self.variant.order == FASTEST and array.there is None and not self._kind("sum"):
            return self._done("sum", np.asarray(_ADD(array.v, axis=axes, keepdims=keepdims)))
        values = array.v if array.there is None else np.where(array.there, array.v, array.v.dtype.type(0.0))
        wide = False
        if self.variant.fused and array.product is not None and array.there is None:
            values, wide = array.product, True
        moved = np.moveaxis(values, axes, range(len(axes)))
        count = math.prod(moved.shape[: len(axes)])
        terms = self._mutated_terms("sum", moved.reshape(count, *moved.shape[len(axes) :]))
        total = self._total(terms, wide=wide) if axes else values
        if keepdims:
            total = np.expand_dims(total, axes)
        return self._done("sum", np.asarray(total))

    def scatter_add(self, array: Emulated, cells: Cells, shape: tuple[int, ...]) -> Emulated:
        kind = self._kind("scatter")
        size = math.prod(shape)
        if kind == "places":
            places = np.asarray(self.amount, np.int64)
            inside = (cells >= 0) & (places >= 0) & (places < shape[-1])
            cells = np.where(inside, cells // shape[-1] * shape[-1] + places, -1)
        flat = np.broadcast_to(cells, array.shape).reshape(-1)
        values = array.v.reshape(-1)
        keep = flat >= 0
        if array.there is not None:
            keep = keep & array.there.reshape(-1)
        flat, values = flat[keep], values[keep]
        if size and kind in SCATTER_KINDS:
            flat, values = SCATTER_KINDS[kind](flat, values, size)
        return self._done("scatter", self._scattered(flat, values, size).reshape(shape))

    def _scattered(self, cells: Cells, values: Real, size: int) -> Real:
        table = np.zeros(size, values.dtype)
        if not cells.size:
            return table
        changes_terms = self._kind("scatter") in TERM_KINDS.keys() - SCATTER_KINDS.keys()
        if self.variant.order == FASTEST and not changes_terms:
            return self._rounded(np.bincount(cells, weights=values, minlength=size))
        order = np.argsort(cells, kind="stable")
        used, counts = np.unique(cells, return_counts=True)
        most = int(counts.max())
        if most * used.size > MOST_TERMS:
            raise TooManyTermsError(f"{most} terms in some of {used.size} sums")
        place = np.repeat(np.arange(used.size), counts)
        within = np.arange(cells.size) - np.repeat(np.cumsum(counts) - counts, counts)
        terms = np.zeros((most, used.size), values.dtype)
        terms[within, place] = values[order]
        table[used] = self._total(self._mutated_terms("scatter", terms) if changes_terms else terms)
        return table

    def einsum(self, subscripts: str, left: Emulated, right: Emulated) -> Emulated:
        plan = contract(subscripts, left.shape, right.shape)
        fastest, kind = self.variant.order == FASTEST, self._kind("sum of products")
        if fastest and not kind and all(math.isfinite(np.add.reduce(each.v, axis=None)) for each in (left, right)):
            return self._done("sum of products", plan(left.v, right.v))
        of_element = math.prod(plan.left_shape[:-1]) * plan.right_shape[-1]
        there = [each.there for each in (left, right)]
        if kind == "zeros of the left skipped":
            there[0] = (left.v != 0.0) if there[0] is None else there[0] & (left.v != 0.0)
        masks = None
        if any(each is not None for each in there):
            masks = [
                np.ones(each.shape, np.bool_) if at is None else at
                for each, at in zip((left, right), there, strict=True)
            ]

        def products(first: int, last: int) -> Real:
            terms = plan.products(self._wide(left.v), self._wide(right.v), first, last)
            if masks is not None:
                terms = np.where(plan.products(masks[0], masks[1], first, last), terms, 0.0)
            return terms

        if fastest and kind not in TERM_KINDS.keys() - KINDS["sum of products"]:
            step = max(MOST_TERMS // max(of_element, 1), 1)
            count = max(plan.terms - (kind == "last term dropped"), 0)
            parts = [np.add.reduce(products(at, min(at + step, count)), axis=0) for at in range(0, max(count, 1), step)]
            if kind == "last term twice" and count:
                parts.append(np.add.reduce(products(count - 1, count), axis=0))
            return self._done("sum of products", plan.apart(np.add.reduce(np.stack(parts), axis=0)))
        if of_element * plan.terms > MOST_TERMS:
            raise TooManyTermsError(f"{subscripts}: {plan.terms} products for each of {of_element} elements")
        terms = products(0, plan.terms)
        if self._form.significand > 24:
            terms = self._rounded(terms)
        total = self._total(self._mutated_terms("sum of products", terms), wide=self._form.significand <= 24)
        return self._done("sum of products", plan.apart(total))

    def max(self, array: Emulated, axes: tuple[int, ...], *, keepdims: bool) -> Emulated:
        if self._kind("maximum") == "minimum":
            return self._done("maximum", np.asarray(np.min(array.v, axis=axes, keepdims=keepdims)))
        return self._done("maximum", np.asarray(np.max(array.v, axis=axes, keepdims=keepdims)))

    # Structure

    def moved(self, array: Emulated, move: Callable[[Real], Real]) -> Emulated:
        return Emulated(
            self,
            np.asarray(move(array.v)),
            there=None if array.there is None else np.asarray(move(array.there)),
            product=None if array.product is None else np.asarray(move(array.product)),
        )

    def joined(self, arrays: Sequence[Emulated], axis: int) -> Emulated:
        there = None
        if any(array.there is not None for array in arrays):
            masks = [np.ones(array.shape, np.bool_) if array.there is None else array.there for array in arrays]
            there = np.concatenate(masks, axis=axis)
        products = [array.product for array in arrays if array.product is not None]
        return Emulated(
            self,
            np.concatenate([array.v for array in arrays], axis=axis),
            there=there,
            product=np.concatenate(products, axis=axis) if len(products) == len(arrays) else None,
        )

    def take(self, array: Emulated, cells: Cells, fill: float = 0.0) -> Emulated:
        inside = cells >= 0
        if not array.size:
            return self.lift(np.full(cells.shape, fill))
        if self._kind("take") == "next cell":
            cells = np.where(inside, np.minimum(cells + 1, array.size - 1), -1)
        there = None if array.there is None else taken(array.there, cells, fill)
        if there is None and not fill and not inside.all():
            there = inside
        return self._done("take", taken(array.v, cells, fill), there=there)

    # Decisions

    def gt(self, left: Emulated, right: Emulated) -> Any:  # noqa: ANN401 - a condition is no Emulated
        kind = self._kind("comparison")
        self._mutant("comparison", len(self.operations))
        holds = left.v >= right.v if kind == "or equal" else left.v < right.v if kind == "less" else left.v > right.v
        unknown = np.isnan(left.v) | np.isnan(right.v) if self.marks else None
        return _Condition(self, np.asarray(holds), unknown)

    def where(self, condition: Any, left: Operand, right: Operand) -> Emulated:  # noqa: ANN401 - as of `gt`
        first, second = self.lift(left), self.lift(right)
        if not isinstance(condition, _Condition):
            condition = _Condition(self, np.asarray(condition), None)
        if self._kind("choice") == "branches swapped":
            first, second = second, first
        values = np.where(condition.v, first.v, second.v)
        if condition.unknown is not None:
            values = np.where(condition.unknown, values.dtype.type(np.nan), values)
        return self._done("choice", values)

    # Functions and roundings

    def function(self, name: str, array: Emulated) -> Emulated:
        kind = self._kind("function")
        x = self._wide(array.v)
        if kind == "of half the argument":
            x = 0.5 * x
        values = x if kind == "left out" else FUNCTIONS[name].value(x)
        return self._done("function", self._rounded(self._tilted(name, values)))

    def _tilted(self, name: str, values: Real) -> Real:
        """A function's values with as much of its stated error as the last rounding leaves room for."""
        tilt = self.variant.tilt
        if not tilt or self._form.significand > 24:
            return values
        stated = self.arithmetic.function(name)
        unit = self._form.unit_roundoff
        signs: Any = tilt if abs(tilt) <= 1.0 else self._decisions().uniform(-1.0, 1.0, values.shape)
        relative = max((2.0 * stated.ulps - 1.0) * unit, 0.0) + stated.relative
        tilted: Real = values * (1.0 + 0.99 * signs * relative) + 0.99 * signs * stated.absolute
        return tilted

    def binade(self, array: Emulated, *, of: float = 1.0) -> Emulated:
        kind = self._kind("function")
        sizes = np.abs(0.5 * array.v if kind == "of half the argument" else array.v)
        halves, exponents = np.frexp(sizes)
        powers = np.ldexp(np.ones_like(sizes), exponents - np.where(2.0 * halves < of, 2, 1))
        found = np.where(np.isfinite(sizes) & (sizes > 0.0), powers, sizes)
        return self._done("function", sizes if kind == "left out" else self._flushed(found))

    def either(self, first: Emulated, second: Emulated) -> Emulated:
        return second if self.variant.key & OTHER_READING else first

    def narrowed(self, array: Emulated, dtype: str, *, normal: bool = True) -> Emulated:
        form = BINARY_FORMATS[dtype]
        if not self.variant.key // 4 % 2 or covers(form, self._form):
            return array
        values = rounded(self._wide(array.v), form)
        small = np.abs(array.v) < form.smallest_normal
        if self.variant.flushes:
            values = np.where(small, 0.0, values)
        return Emulated(self, np.asarray(values if normal else np.where(small, values, array.v), array.v.dtype))

    def undecided(self, array: Emulated, *, where: NDArray[np.bool_] | bool) -> Emulated:
        self.declined = self.declined or bool(np.any(where))
        instead = self.variant.undecided
        if instead is None:
            return array
        values = np.where(where, array.v.dtype.type(instead), array.v)
        return Emulated(self, values, there=array.there)

    def store(self, array: Emulated) -> Emulated:
        form = self.arithmetic.output
        if covers(form, self._form):
            return self._done("store", array.v)
        values = rounded(self._wide(array.v), form)
        if self.variant.flushes:
            values = np.where(np.abs(values) < form.smallest_normal, 0.0, values)
        return self._done("store", np.asarray(values, array.v.dtype))


class _Condition(Array):
    """A comparison, and where an input whose value is not to matter decided it."""

    __slots__ = ("unknown", "v")

    def __init__(self, f: Emulator, v: NDArray[np.bool_], unknown: NDArray[np.bool_] | None) -> None:
        self.f, self.v, self.unknown = f, v, unknown

    @property
    def shape(self) -> tuple[int, ...]:
        return self.v.shape


OTHER_READING = 2
"""The bit of `Variant.key` that chooses the second of two readings (`Backend.either`)."""
UNDECIDED = (None, 1.5, -0.0, math.inf, -math.inf, math.nan)
"""Values that correct implementations may give an undecided element (`Variant.undecided`)."""


def variants(arithmetic: Arithmetic, number: int) -> list[Variant]:
    """One variant in each order; what else the arithmetic leaves open takes its turns by `number`."""
    found = []
    for place, order in enumerate(ORDERS):
        turn = number * len(ORDERS) + place
        random = np.random.Generator(np.random.Philox(turn))
        found.append(
            Variant(
                order=order,
                fused=bool(turn % 2),
                reciprocal=bool(random.random() < 0.5),
                flushes=arithmetic.flushes and bool(random.random() < 0.25),
                truncates=arithmetic.truncates and bool(random.random() < 0.5),
                tilt=(0.0, 1.0, -1.0, 2.0)[int(random.integers(4))],
                undecided=UNDECIDED[turn % len(UNDECIDED)],
                key=turn,
            )
        )
    return found
