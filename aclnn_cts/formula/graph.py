"""A formula as a graph, and single elements of it in 50 digits: only what an element depends on is evaluated."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath
import numpy as np
from mpmath.libmp import to_rational
from numpy.typing import NDArray

from aclnn_cts.core.expected import OracleInput
from aclnn_cts.formula.array import Array, Backend, Cells, Operand
from aclnn_cts.formula.contraction import contract, subscripts_of
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.functions import FUNCTIONS
from aclnn_cts.judgement.figures import index_of

Index: TypeAlias = "tuple[int, ...]"
Number: TypeAlias = Any
"""A number of an mpmath context, or a truth value."""
Place: TypeAlias = "tuple[GraphNode, Index]"

DIGITS = 50
MOST_NODES = 20_000
"""Elements of nodes that one element may depend on."""


class TooManyNodesError(Exception):
    """An element depends on more elements than it may."""


class _MissingError(Exception):
    """Elements that must be known first."""

    def __init__(self, places: Sequence[Place]) -> None:
        super().__init__()
        self.places = places


class GraphNode(Array):
    """One array of a graph: its shape, and how an element of it follows from others, or of which it is a copy."""

    __slots__ = ("_shape", "element", "source")

    f: Graph

    def __init__(
        self,
        f: Graph,
        shape: Iterable[int],
        element: Callable[[GraphElements, Index], Number],
        source: Callable[[Index], Place] | None = None,
    ) -> None:
        self.f, self._shape, self.element = f, tuple(int(size) for size in shape), element
        self.source = source

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape


class GraphElements:
    """Elements of a graph in an mpmath context of its own, each found once.

    `follows`: whether it is noted what follows from which, for `moved`.
    """

    def __init__(self, *, digits: int = DIGITS, most: int = MOST_NODES, follows: bool = False) -> None:
        self.context = _context(digits)
        self._most = most
        self._found: dict[Place, Number] = {}
        self._users: dict[Place, list[Place]] | None = {} if follows else None
        self._asked: list[Place] = []
        """What the element that is being evaluated has asked for."""
        self.count = 0
        """Elements that were evaluated."""

    def __call__(self, node: GraphNode, index: Index) -> Number:
        """One element. TooManyNodesError where it takes too many, ZeroDivisionError where it divides by 0."""
        first = original(node, index)
        waiting = [first]
        while waiting:
            place = waiting[-1]
            if place not in self._found:
                self._asked = []
                try:
                    self._found[place] = place[0].element(self, place[1])
                except _MissingError as missing:
                    waiting.extend(missing.places)
                    if len(waiting) + self.count > self._most:
                        raise TooManyNodesError from None
                    continue
                self.count += 1
                if self._users is not None:
                    for used in self._asked:
                        self._users.setdefault(used, []).append(place)
            waiting.pop()
        return self._found[first]

    def known(self, places: Sequence[Place]) -> list[Number]:
        """Elements that others follow from; only to be called by `GraphNode.element`."""
        asked = [original(*place) for place in places]
        try:
            found = [self._found[place] for place in asked]
        except KeyError:
            raise _MissingError([place for place in asked if place not in self._found]) from None
        self._asked += asked
        return found

    def following(self, start: Place) -> dict[Place, None]:
        """An element and all found so far that follow from it, in the order in which they were found.

        TypeError where that was not noted.
        """
        if self._users is None:
            raise TypeError("what follows from an element was not noted")
        reached, waiting = {start}, [start]
        while waiting:
            fresh = {user for user in self._users.get(waiting.pop(), ()) if user not in reached}
            reached |= fresh
            waiting.extend(fresh)
        return dict.fromkeys(place for place in self._found if place in reached)

    def moved(self, following: Mapping[Place, None], change: Number) -> GraphElements:
        """The same elements where the first of those that follow is so much larger: only they are evaluated again."""
        made = GraphElements(most=self._most)
        made.context = self.context
        made._found = {place: value for place, value in self._found.items() if place not in following}
        first, *others = following
        made._found[first] = self._found[first] + change
        for node, index in others:
            made(node, index)
        return made


def original(node: GraphNode, index: Index) -> Place:
    """The element that an element is a copy of: moves cost nothing."""
    while node.source is not None:
        node, index = node.source(index)
    return node, index


def _copied(elements: GraphElements, index: Index) -> Number:
    raise TypeError("an element that is a copy is looked up where it comes from")


@functools.cache
def _context(digits: int) -> Any:  # noqa: ANN401 - mpmath has no types
    context = mpmath.MPContext()
    context.dps = digits
    return context


def _low(node: GraphNode, index: Index) -> Index:
    """The index into an operand that was broadcast."""
    ahead = len(index) - len(node.shape)
    return tuple(0 if size == 1 else place for size, place in zip(node.shape, index[ahead:], strict=True))


def _cell(index: Index, shape: tuple[int, ...]) -> int:
    cell = 0
    for place, size in zip(index, shape, strict=True):
        cell = cell * size + place
    return cell


class Graph(Backend[GraphNode]):
    """Records a formula. `given` holds inputs, or elements of them, that take the place of the call's own."""

    __slots__ = ("given", "leaves")

    def __init__(self, given: Mapping[str, Mapping[Index, Number]] | None = None) -> None:
        self.given = given or {}
        self.leaves: dict[str, GraphNode] = {}
        """The inputs that the formula has taken."""

    def leaf(self, name: str, values: NDArray[Any]) -> GraphNode:
        given = self.given.get(name, {})

        def element(elements: GraphElements, index: Index) -> Number:
            return given[index] if index in given else elements.context.mpf(float(values[index]))

        self.leaves[name] = GraphNode(self, values.shape, element)
        return self.leaves[name]

    def lift(self, value: Operand) -> GraphNode:
        if isinstance(value, GraphNode):
            return value
        if isinstance(value, Array):
            raise TypeError(f"{type(value).__name__} belongs to another backend")
        array = np.asarray(value, np.float64)
        return GraphNode(self, array.shape, lambda elements, index: elements.context.mpf(float(array[index])))

    def _pairs(self, left: GraphNode, right: GraphNode, combine: Callable[[Number, Number], Number]) -> GraphNode:
        def element(elements: GraphElements, index: Index) -> Number:
            first, second = elements.known([(left, _low(left, index)), (right, _low(right, index))])
            return combine(first, second)

        return GraphNode(self, np.broadcast_shapes(left.shape, right.shape), element)

    def add(self, left: GraphNode, right: GraphNode) -> GraphNode:
        return self._pairs(left, right, lambda first, second: first + second)

    def sub(self, left: GraphNode, right: GraphNode) -> GraphNode:
        return self._pairs(left, right, lambda first, second: first - second)

    def mul(self, left: GraphNode, right: GraphNode) -> GraphNode:
        return self._pairs(left, right, lambda first, second: first * second)

    def div(self, left: GraphNode, right: GraphNode) -> GraphNode:
        return self._pairs(left, right, lambda first, second: first / second)

    def gt(self, left: GraphNode, right: GraphNode) -> GraphNode:
        return self._pairs(left, right, lambda first, second: first > second)

    def _reduced(
        self,
        array: GraphNode,
        axes: tuple[int, ...],
        combine: Callable[[GraphElements, list[Number]], Number],
        *,
        keepdims: bool,
    ) -> GraphNode:
        shape = [
            1 if place in axes else size for place, size in enumerate(array.shape) if keepdims or place not in axes
        ]

        def element(elements: GraphElements, index: Index) -> Number:
            rest = iter(index)
            fixed = [next(rest) if keepdims or place not in axes else 0 for place in range(array.ndim)]
            places = []
            for inner in np.ndindex(*(array.shape[place] for place in axes)):
                for place, value in zip(axes, inner, strict=True):
                    fixed[place] = value
                places.append((array, tuple(fixed)))
            return combine(elements, elements.known(places))

        return GraphNode(self, shape, element)

    def sum(self, array: GraphNode, axes: tuple[int, ...], *, keepdims: bool) -> GraphNode:
        return self._reduced(array, axes, lambda elements, terms: elements.context.fsum(terms), keepdims=keepdims)

    def max(self, array: GraphNode, axes: tuple[int, ...], *, keepdims: bool) -> GraphNode:
        return self._reduced(array, axes, lambda elements, terms: max(terms), keepdims=keepdims)

    def einsum(self, subscripts: str, left: GraphNode, right: GraphNode) -> GraphNode:
        plan = contract(subscripts, left.shape, right.shape)
        first, second, out = subscripts_of(subscripts)
        sizes = dict(zip(first, left.shape, strict=True)) | dict(zip(second, right.shape, strict=True))
        summed = [letter for letter in first if letter not in out]

        def element(elements: GraphElements, index: Index) -> Number:
            fixed = dict(zip(out, index, strict=True))
            places: list[Place] = []
            for inner in np.ndindex(*(sizes[letter] for letter in summed)):
                at = fixed | dict(zip(summed, inner, strict=True))
                places.append((left, tuple(at[letter] for letter in first)))
                places.append((right, tuple(at[letter] for letter in second)))
            values = elements.known(places)
            return elements.context.fdot(zip(values[::2], values[1::2], strict=True))

        return GraphNode(self, plan.shape, element)

    def moved(self, array: GraphNode, move: Callable[[NDArray[Any]], NDArray[Any]]) -> GraphNode:
        cells = move(np.arange(array.size).reshape(array.shape))
        return GraphNode(self, cells.shape, _copied, lambda index: (array, index_of(int(cells[index]), array.shape)))

    def joined(self, arrays: Sequence[GraphNode], axis: int) -> GraphNode:
        ends = np.cumsum([array.shape[axis] for array in arrays])
        shape = list(arrays[0].shape)
        shape[axis] = int(ends[-1])

        def source(index: Index) -> Place:
            which = int(np.searchsorted(ends, index[axis], side="right"))
            array = arrays[which]
            within = index[axis] - int(ends[which]) + array.shape[axis]
            return array, (*index[:axis], within, *index[axis + 1 :])

        return GraphNode(self, shape, _copied, source)

    def take(self, array: GraphNode, cells: Cells, fill: float = 0.0) -> GraphNode:
        def element(elements: GraphElements, index: Index) -> Number:
            cell = int(cells[index])
            if cell < 0:
                return elements.context.mpf(fill)
            return elements.known([(array, index_of(cell, array.shape))])[0]

        return GraphNode(self, cells.shape, element)

    def scatter_add(self, array: GraphNode, cells: Cells, shape: tuple[int, ...]) -> GraphNode:
        flat = np.broadcast_to(cells, array.shape).reshape(-1)
        order = np.argsort(flat, kind="stable")
        sorted_cells = flat[order]

        def element(elements: GraphElements, index: Index) -> Number:
            first, last = np.searchsorted(sorted_cells, [_cell(index, shape), _cell(index, shape) + 1])
            terms = elements.known([(array, index_of(int(place), array.shape)) for place in order[first:last]])
            return elements.context.fsum(terms)

        return GraphNode(self, shape, element)

    def where(self, condition: GraphNode | NDArray[np.bool_], left: Operand, right: Operand) -> GraphNode:
        chosen, first, second = self.lift(condition), self.lift(left), self.lift(right)

        def element(elements: GraphElements, index: Index) -> Number:
            [holds] = elements.known([(chosen, _low(chosen, index))])
            branch = first if holds else second
            return elements.known([(branch, _low(branch, index))])[0]

        return GraphNode(self, np.broadcast_shapes(chosen.shape, first.shape, second.shape), element)

    def function(self, name: str, array: GraphNode) -> GraphNode:
        exact = FUNCTIONS[name].exact
        return GraphNode(
            self,
            array.shape,
            lambda elements, index: exact(elements.context, elements.known([(array, index)])[0]),
        )

    def binade(self, array: GraphNode, *, of: float = 1.0) -> GraphNode:
        def element(elements: GraphElements, index: Index) -> Number:
            size = abs(elements.known([(array, index)])[0])
            half, exponent = elements.context.frexp(size)
            return elements.context.ldexp(1, exponent - (2 if 2 * half < of else 1)) if size else size

        return GraphNode(self, array.shape, element)

    def either(self, first: GraphNode, second: GraphNode) -> GraphNode:
        return first


_FARTHEST = 1 << 16
"""Exponents beyond it become it: float64 ends at 1023 and -1074, so that nobody tells such numbers apart."""


def exact_element(operator: Operator, call: OracleInput, output: str, index: Index) -> Fraction | None:
    """One element of an output in 50 digits, by the last of the forms; None where it takes more than `MOST_NODES`.

    Inputs must be finite. ZeroDivisionError where the formula divides by 0, KeyError where it has no such output.
    """
    node = operator.evaluate(operator.forms[-1], Graph(), call)[output]
    if not isinstance(node, GraphNode):
        raise TypeError(f"{output} is no node of a graph")
    elements = GraphElements()
    try:
        value = elements(node, index)
    except TooManyNodesError:
        return None
    if not math.isfinite(float(value)) and not elements.context.isfinite(value):
        raise ZeroDivisionError(f"{output}{list(index)} is {value}")
    sign, digits, exponent, length = value._mpf_
    if digits and abs(exponent + length) > _FARTHEST:
        # exp(-3e38) has an exponent that no integer of its digits fits into memory with.
        size = Fraction(2) ** int(math.copysign(_FARTHEST, exponent))
        return -size if sign else size
    numerator, denominator = to_rational(value._mpf_)
    return Fraction(int(numerator), int(denominator))
