"""Is `backward` the derivative of `forward`? Both in high precision, on small calls.

L(x) = sum_j g_j F_j(x), with the incoming gradients g, has the derivative backward(g). It is found by a central
difference in 200 digits with a step of 10^-60, which leaves room for numbers of all sizes that FLOAT has. Saved tensors
are computed again from x, in the same precision, so that neither their rounding nor stale contents disturb.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import tensor_of
from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.formula.array import Array
from aclnn_cts.formula.definition import Derivative, Form, Operator, is_complex, output_shapes
from aclnn_cts.formula.emulator import Emulated, Emulator
from aclnn_cts.formula.evaluation import DOUBLE
from aclnn_cts.formula.graph import Graph, GraphElements, GraphNode, Index, Number, original
from aclnn_cts.formula.mistakes import Results

_DIGITS = 200
_STEP = "1e-60"
_NOISE = "1e-190"
"""Of the terms of a difference, or of 1 where those are smaller: their last digits.

A saturated sigmoid has a slope below that, and so has `1 + erf(x)` far below 0, whose digits cancel to 0.
"""
_MOST = 1_000_000
"""Elements that the difference for one element may depend on."""
_TOLERANCE = 2.0**-46
"""Constants of a formula are float64 numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivativeElement:
    """One element of one output: what the formula gives, and what the difference of `forward` does."""

    output: str
    index: Index
    formula: float
    difference: float
    agree: bool
    saved: Mapping[str, Mapping[Index, Number]]
    """What the formula was given in the place of saved tensors."""


def differences(
    operator: Operator, call: OracleInput, *, elements: int = 2, key: int = 0
) -> Iterator[DerivativeElement]:
    """Some elements of every output of a small call whose inputs are finite.

    What `forward` takes and `backward` does not, such as the argument of a softmax, is drawn from a normal
    distribution.
    Gives nothing for an operator that is no derivative, for complex tensors, and for a call whose gradients and saved
    tensors have other shapes than `forward` gives or takes, since they broadcast. It leaves out elements at which
    `forward` has a kink.
    TooManyNodesError where the call is no small one.
    """
    derivative = operator.derivative
    if isinstance(derivative, str) or any(is_complex(call, name) for name in call.arguments):
        return
    random = np.random.Generator(np.random.Philox(key))
    derivative = derivative.by_tensor(call)
    if any(call.tensors[name].dtype != np.float64 for name in derivative.saved if name in call.tensors):
        return  # a result that is kept as integers is none of these
    setup = _Setup.of(operator, derivative, call, random)
    if not setup.fits():
        return
    saved = setup.saved()
    backward, forward = setup.backward(saved), _Differences(setup)
    for output, parameter in derivative.wrt.items():
        if output not in setup.shapes or parameter not in setup.call.tensors:
            continue  # one of them is a null tensor
        if setup.call.tensors[parameter].dtype != np.float64:
            continue  # integers have no differences
        shape = setup.shapes[output]
        if not all(shape):
            continue
        places = list(np.ndindex(*shape))
        for chosen in random.permutation(len(places))[:elements]:
            index = tuple(int(place) for place in places[chosen])
            by_formula = setup.exact(backward[output], index)
            found = forward(parameter, _same_place(index, shape, setup.call.tensors[parameter].shape))
            if found is None:
                continue
            by_difference, size, noise = found
            agree = abs(by_formula - by_difference) <= _TOLERANCE * (abs(by_formula) + size) + noise
            yield DerivativeElement(
                output=output,
                index=index,
                formula=float(by_formula),
                difference=float(by_difference),
                agree=bool(agree),
                saved=saved,
            )


def forward_call(
    derivative: Derivative, call: OracleInput, make: Callable[[str, tuple[int, ...]], Float64]
) -> OracleInput:
    """What `forward` takes of a call of the operator: its inputs, but for incoming gradients and saved tensors.

    `make` gives the contents of a parameter that the operator does not have, such as the argument of a softmax.
    """
    shapes = output_shapes(call)
    hidden = (*derivative.gradients, *derivative.saved, *shapes)
    made = {
        parameter: make(parameter, shapes[output])
        for output, parameter in derivative.wrt.items()
        if output in shapes and not _has(call, parameter)
    }
    tensors: dict[str, NDArray[Any]] = {
        name: array for name, array in call.tensors.items() if name not in hidden
    } | made
    # The parameter of a gradient that the call does not compute has no shape: a null tensor.
    unknown = {name: None for name in derivative.wrt.values() if not _has(call, name) and name not in made}
    return msgspec.structs.replace(call, tensors=tensors, arguments={**call.arguments, **unknown})


def saved_tensors(
    operator: Operator, call: OracleInput, make: Callable[[str, tuple[int, ...]], Float64]
) -> Mapping[str, Float64]:
    """What the operator's forward pass saves, by the names of its parameters; empty where it saves nothing.

    In float64. `make` is that of `forward_call`. Raises OracleError for a mistake of the formula.
    """
    if isinstance(operator.derivative, str) or not operator.derivative.saved:
        return {}
    derivative = operator.derivative.by_tensor(call)
    question = forward_call(derivative, call, make)
    with np.errstate(all="ignore"):
        results = operator.evaluate(Form.of(derivative.forward), Emulator(DOUBLE), question)
    found = ((name, results.get(name)) for name in derivative.saved)
    return {name: result.v for name, result in found if isinstance(result, Emulated)}


def _same_place(index: Index, shape: Index, other: Index) -> Index:
    """The place of an element in another shape of as many."""
    if shape == other:
        return index
    return tuple(map(int, np.unravel_index(int(np.ravel_multi_index(index, shape)), other)))


def _has(call: OracleInput, name: str) -> bool:
    """Whether a parameter, or a tensor of a list, is one of the operator's."""
    return name in call.arguments or tensor_of(call.arguments, name) is not None


@dataclass(frozen=True, slots=True)
class _Setup:
    """One call with what `forward` needs besides."""

    operator: Operator
    derivative: Derivative
    call: OracleInput
    """With arrays for the parameters of `forward` that the operator does not have."""
    original: Mapping[str, NDArray[Any]]
    """The operator's own inputs."""
    shapes: Mapping[str, tuple[int, ...]]
    leaves: Mapping[str, GraphNode]
    """What `forward` takes."""
    results: Mapping[str, GraphNode]
    """What it gives."""
    exact: GraphElements

    @classmethod
    def of(cls, operator: Operator, derivative: Derivative, call: OracleInput, random: np.random.Generator) -> _Setup:
        shapes = output_shapes(call)
        question = forward_call(derivative, call, lambda _name, shape: random.standard_normal(shape))
        graph = Graph()
        results = _nodes(operator.evaluate(Form.of(derivative.forward), graph, question))
        exact = GraphElements(digits=_DIGITS, most=_MOST, follows=True)
        return cls(operator, derivative, question, call.tensors, shapes, graph.leaves, results, exact)

    def fits(self) -> bool:
        """Whether incoming gradients and saved tensors have the shapes of the results of `forward`.

        An output may have the elements of its parameter in another shape.
        """
        pairs = [*self.derivative.gradients.items(), *((name, name) for name in self.derivative.saved)]
        moved = (
            (parameter, math.prod(self.shapes[output]))
            for output, parameter in self.derivative.wrt.items()
            if output in self.shapes
        )
        if any(name in self.original and self.original[name].size != size for name, size in moved):
            return False
        return all(
            name not in self.original or self.original[name].shape == self.results[of].shape for name, of in pairs
        )

    def saved(self) -> Mapping[str, Mapping[Index, Number]]:
        """Saved tensors in full precision."""
        return {
            name: {index: self.exact(self.results[name], index) for index in np.ndindex(*self.results[name].shape)}
            for name in self.derivative.saved
        }

    def backward(self, saved: Mapping[str, Mapping[Index, Number]]) -> Mapping[str, GraphNode]:
        """The gradients by the formula that judges, from saved tensors."""
        call = msgspec.structs.replace(self.call, tensors=self.original)
        return _nodes(self.operator.evaluate(self.operator.judging, Graph(saved), call))


class _Differences:
    """Central differences of L, whose terms are found once: with an element moved, only what follows from it is."""

    def __init__(self, setup: _Setup) -> None:
        self._setup, exact = setup, setup.exact
        self._step = exact.context.mpf(_STEP)
        # Those of gradients that are given.
        self._terms = [
            (original(setup.results[result], at), exact.context.mpf(float(setup.original[name][at])))
            for name, result in setup.derivative.gradients.items()
            if name in setup.original
            for at in np.ndindex(*setup.results[result].shape)
        ]
        terms = (max(abs(exact(*place)), 1) * abs(gradient) for place, gradient in self._terms)
        self._noise = sum(terms) * exact.context.mpf(_NOISE) / self._step

    def __call__(self, parameter: str, index: Index) -> tuple[Number, Number, Number] | None:
        """The difference, the sum of the absolute values of its terms, and what digits it lacks at most.

        None at a kink.
        """
        if parameter not in self._setup.leaves:
            return 0, 0, self._noise
        middle, step = self._setup.exact, self._step
        middle(self._setup.leaves[parameter], index)
        following = middle.following((self._setup.leaves[parameter], index))
        above, below = (middle.moved(following, change) for change in (step, -step))
        total = size = bent = middle.context.zero
        for place, gradient in self._terms:
            if place in following:
                first, at, second = (elements(*place) * gradient for elements in (above, middle, below))
                quotient = (first - second) / (2 * step)
                total, size, bent = total + quotient, size + abs(quotient), bent + abs(first - 2 * at + second)
        return None if bent > _TOLERANCE * step * size else (total, size, self._noise)


def _nodes(results: Results[Array]) -> Results[GraphNode]:
    return results.all_of(GraphNode)
