"""The terms of a formula at one element: every operation that the element follows from, with its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from aclnn_cts.core.expected import OracleInput
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.graph import Graph, GraphElements, GraphNode, Index, Number, Place, TooManyNodesError, original

Given: TypeAlias = "Mapping[str, Mapping[Index, Number]]"

MOST_TERMS = 24
"""Lines that one element gets; those nearest to the inputs are left out."""
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "gt": ">"}


def formula_terms(
    operator: Operator, call: OracleInput, output: str, index: Index, *, given: Given | None = None
) -> tuple[str, ...]:
    """A line for each operation of the formula that judges, inputs first; nothing where it cannot be evaluated.

    `given`: elements of inputs that take the place of the call's own.
    """
    graph = _NamedGraph(given)
    elements = _Listed(graph)
    try:
        node = operator.evaluate(operator.judging, graph, call)[output]
        return elements.lines(node, index, output) if isinstance(node, GraphNode) else ()
    except (TooManyNodesError, ZeroDivisionError, KeyError):
        return ()


class _NamedGraph(Graph):
    """A graph that knows which operation each node is the result of."""

    __slots__ = ("names",)

    def __init__(self, given: Given | None) -> None:
        super().__init__(given)
        self.names: dict[GraphNode, str] = {}

    def leaf(self, name: str, values: Any) -> GraphNode:  # noqa: ANN401 - as Graph has it
        node = super().leaf(name, values)
        self.names[node] = f"leaf {name}"
        return node

    def function(self, name: str, array: GraphNode) -> GraphNode:
        node = super().function(name, array)
        self.names[node] = name
        return node


def _named(operation: str) -> Callable[..., GraphNode]:
    made = getattr(Graph, operation)

    def call(self: _NamedGraph, *operands: Any, **options: Any) -> GraphNode:  # noqa: ANN401 - those of the operation
        node: GraphNode = made(self, *operands, **options)
        self.names[node] = operation
        return node

    return call


for _operation in ("add", "sub", "mul", "div", "gt", "sum", "max", "einsum", "scatter_add", "where", "binade"):
    setattr(_NamedGraph, _operation, _named(_operation))


class _Listed(GraphElements):
    """Elements of a graph that notes which others an element asks for."""

    def __init__(self, graph: _NamedGraph) -> None:
        super().__init__()
        self._graph = graph
        self._asked_for: list[Place] = []

    def known(self, places: Sequence[Place]) -> list[Number]:
        found = super().known(places)
        self._asked_for += [original(*place) for place in places]
        return found

    def lines(self, node: GraphNode, index: Index, output: str) -> tuple[str, ...]:
        """The operations that an element follows from, each once, and last the element."""
        self(node, index)
        names: dict[Place, str] = {}
        made: list[str] = []
        self._write(original(node, index), names, made)
        last = made[-1].partition(" = ")[2] if made else names[original(node, index)]
        return (*made[:-1][1 - MOST_TERMS :], f"{output}{list(index)} = {last}")

    def _write(self, place: Place, names: dict[Place, str], made: list[str]) -> None:
        """Name an element and all that it follows from; iteration by a stack, since sums may be deep."""
        waiting = [place]
        while waiting:
            current = waiting[-1]
            if current in names:
                waiting.pop()
                continue
            self._asked_for = []
            value = current[0].element(self, current[1])
            asked = list(self._asked_for)
            left = [other for other in asked if other not in names]
            if left:
                waiting += reversed(left)
                continue
            waiting.pop()
            operation = self._graph.names.get(current[0], "")
            number = str(value) if isinstance(value, bool) else f"{float(value):.9g}"
            if operation.startswith("leaf "):
                names[current] = f"{operation.removeprefix('leaf ')}{list(current[1])}"
                made.append(f"{names[current]} = {number}")
            elif not asked:
                names[current] = number
            elif not operation:
                # What copies an element is that element.
                names[current] = names[asked[-1]]
            else:
                words = [names[other] for other in asked]
                text = (
                    f" {_INFIX[operation]} ".join(words) if operation in _INFIX else f"{operation}({', '.join(words)})"
                )
                names[current] = f"t{sum(line.startswith('t') for line in made) + 1}"
                made.append(f"{names[current]} = {text} = {number}")
