"""Lint by drawing: whether each name can be drawn, and the drawings that lint looks at."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aclnn_cts.core.case import Case, tensors_in
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import ChoiceError, Choices, StreamChoices
from aclnn_cts.generate.configuration import Drawing
from aclnn_cts.generate.names import NameDrawer
from aclnn_cts.generate.recipes import RECIPES
from aclnn_cts.generate.sampler import Sampler, dtype_rows
from aclnn_cts.generate.sizes import BUDGETS, mixed_sizes
from aclnn_cts.speclang.binding import check_prototype
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.model import Draw, Spec
from aclnn_cts.speclang.shape import compile_shape


def unknown_recipes(spec: Spec) -> list[Doubt]:
    """Data whose recipe there is not."""
    names = {
        (item.name, str(entry.get("recipe"))) for item in spec.parameters for row in item.data.values() for entry in row
    }
    return [
        Doubt("parameters", of, f"{of}: unknown recipe {name!r}", f"expected one of {', '.join(RECIPES)}")
        for of, name in sorted(names)
        if name not in RECIPES
    ]


def empty_tables(spec: Spec, product: str) -> list[Doubt]:
    """Tables that hold nothing for a product that the operator supports."""
    advice = "list what the document names, or leave the product out"
    found = [
        Doubt("parameters", item.name, f"{item.name}: no dtype to draw from", advice)
        for item in spec.parameters
        if item.holds_tensors and item.dtype_as is None and item.name not in spec.row_parameters
        if not item.dtypes.get(product)
    ]
    if spec.rows is not None and not spec.rows.get(product):
        found.append(Doubt("rows", product, "rows: none", advice))
    if spec.modes is not None:
        dtypes = spec.modes.operand.get(product, {})
        if not any(spec.modes.supported(product, dtype) for dtype in dtypes):
            found.append(Doubt("modes", "operand", "modes: none is supported", advice))
    return found


def undrawable_names(spec: Spec, target: Target, drawings: int, seed: int) -> list[Doubt]:
    """Draws that raise, or whose bounds hold nothing."""
    drawer = NameDrawer(spec, target)
    rows = dtype_rows(spec, target) or ({},)
    tally = DoubtTally()
    for number, choices in enumerate(drawing_choices(spec, target.product, drawings, seed)):
        names: dict[str, Any] = {}
        try:
            sizes = mixed_sizes(choices, BUDGETS[number % len(BUDGETS)])
            drawer.draw(choices, sizes, dtypes=rows[number % len(rows)], names=names)
        except FAILURES as error:
            name = spec.draws[len(names)].name
            tally.add(number, "draws", name, f"draw {name}: fails", f"{assignments(names)}: {error_text(error)}")
            continue
        for draw in spec.draws:
            if (failure := _empty_bounds(draw, names, target)) is not None:
                what, seen = failure
                tally.add(
                    number, "draws", draw.name, f"draw {draw.name}: {what}", f"{seen}{_before(spec, draw, names)}"
                )
    return tally.doubts(drawings, "bound the draws before it so that this one cannot fail")


def _empty_bounds(draw: Draw, names: Mapping[str, Any], target: Target) -> tuple[str, str] | None:
    """Why a name's value lies outside its own bounds (a draw from nothing gives the lower bound), and what it met."""
    pairs = []
    if draw.low is not None and draw.high is not None:
        pairs.append(("value" if draw.kind == "integer" else "length", draw.low, draw.high))
    if draw.sizes is not None and draw.kind != "partition" and names[draw.name]:
        pairs.append(("size", *draw.sizes))
    for what, lower, upper in pairs:
        low, high = lower(names, target), upper(names, target)
        if low > high:
            return f"no {what} lies within its bounds", f"[{low}, {high}]"
    if draw.kind == "factorisation" and draw.value is not None:
        wanted = draw.value(names, target)
        if math.prod(names[draw.name]) != wanted:
            return "the number of elements cannot be had", f"{wanted} from {list(names[draw.name])}"
    if draw.kind == "partition" and draw.value is not None and draw.sizes is not None:
        wanted, least = draw.value(names, target), draw.sizes[0](names, target)
        sizes = names[draw.name]
        if sum(sizes) != wanted or min(sizes, default=least) < least:
            return "the total cannot be had", f"{wanted} from {list(sizes)}, each at least {least}"
    return None


def drawn_cases(sampler: Sampler, drawings: int, seed: int) -> tuple[list[tuple[Drawing, Case]], list[Doubt]]:
    """Valid cases, and the parameters of which none can be made."""
    spec, tally = sampler.spec, DoubtTally()
    made: list[tuple[Drawing, Case]] = []
    for number, choices in enumerate(drawing_choices(spec, sampler.target.product, drawings, seed)):
        drawing = sampler.draw(choices)
        try:
            case = sampler.case(drawing)
        except FAILURES as error:
            name = _failing_parameter(spec, drawing)
            tally.add(
                number, "parameters", name, f"{name}: has no shape", f"{names_text(drawing)}: {error_text(error)}"
            )
            continue
        try:
            check_prototype(spec, case, where="")
        except UsageError as error:
            name = next((item.name for item in spec.parameters if f"$.arguments.{item.name}:" in str(error)), "")
            said = str(error).rpartition("$.arguments.")[2]
            tally.add(number, "parameters", name, f"{name}: does not fit its C type", f"{names_text(drawing)}: {said}")
            continue
        if (found := _no_integer(case)) is not None:
            name, size = found
            said = f"{names_text(drawing)}: {size} by /, which gives fractions; write //"
            tally.add(number, "parameters", name, f"{name}: a size or item is no integer", said)
            continue
        for name, tensor in case.tensors():
            if min(tensor.shape, default=0) < 0:
                tally.add(number, "parameters", name, f"{name}: a size is negative", names_text(drawing))
        made.append((drawing, case))
    return made, tally.doubts(drawings, "bound the draws so that every drawing makes a case")


def _no_integer(case: Case) -> tuple[str, object] | None:
    """The first parameter with a size or an item of an int array that is no integer, and that."""
    for name, value in case.arguments.items():
        every: list[tuple[object, ...]] = [tensor.shape for tensor in tensors_in(value)]
        for size in value if isinstance(value, tuple) else itertools.chain.from_iterable(every):
            if not isinstance(size, int):
                return name, size
    return None


def _failing_parameter(spec: Spec, drawing: Drawing) -> str:
    environment: dict[str, Any] = dict(drawing.names)
    for item in spec.parameters:
        if item.shape is None:
            continue
        try:
            environment[item.name] = compile_shape(item.shape)(environment, drawing.target)
        except FAILURES:
            return item.name
    return spec.parameters[0].name


def _before(spec: Spec, draw: Draw, names: Mapping[str, Any]) -> str:
    """What was drawn before a draw, in parentheses; nothing for the first."""
    earlier = {item.name: names[item.name] for item in spec.draws[: spec.draws.index(draw)]}
    return f" ({assignments(earlier)})" if earlier else ""


class ExtremeChoices(Choices):
    """Turns three in four of another source's integers into the lower or the upper bound."""

    __slots__ = ("_source",)

    def __init__(self, source: Choices) -> None:
        self._source = source

    def integer(self, low: int, high: int) -> int:
        """The lower bound, the upper bound (three in eight each), or the source's integer."""
        value = self._source.integer(low, high)
        side = self._source.integer(0, 7)
        return low if side < 3 else high if side < 6 else value

    def chance(self, numerator: int, denominator: int) -> bool:
        """As the source has it: a chance has no ends."""
        return self._source.chance(numerator, denominator)


FAILURES = (*UNDEFINED, ArithmeticError, ChoiceError, UsageError, ValueError)
"""How a draw or a shape that has no value ends."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that drawing showed to be wrong with an entry of a spec file."""

    section: str
    """The list of the file in which the entry stands: `draws`, `parameters` or `constraints`."""
    name: str
    what: str
    advice: str
    seen: str = field(default="", compare=False)
    """How often, and in which drawing first; it differs from product to product."""


@dataclass(slots=True)
class DoubtTally:
    """In how many drawings each doubt arose, and which of them showed it first."""

    seen: dict[tuple[str, str, str], set[int]] = field(default_factory=dict)
    shown: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def add(self, number: int, section: str, name: str, what: str, example: str) -> None:
        """Count a doubt about one drawing, once."""
        key = (section, name, what)
        self.seen.setdefault(key, set()).add(number)
        self.shown.setdefault(key, example)

    def doubts(self, of: int, advice: str) -> list[Doubt]:
        """What arose, each with the same advice."""
        counts = {key: "every one" if len(numbers) == of else len(numbers) for key, numbers in self.seen.items()}
        return [
            Doubt(*key, advice, f" in {count} of {of} drawings, first with {self.shown[key]}")
            for key, count in counts.items()
        ]


def drawing_choices(spec: Spec, product: str, drawings: int, seed: int) -> Iterator[Choices]:
    """The decisions behind lint's drawings of a product; every second keeps to the ends of the ranges."""
    for index in range(drawings):
        stream = StreamChoices(seed, f"{spec.operator}/{product}/lint", index)
        yield ExtremeChoices(stream) if index % 2 else stream


def error_text(error: Exception) -> str:
    """What an exception says, or its name where it says nothing."""
    return str(error) or type(error).__name__


def names_text(drawing: Drawing) -> str:
    """The names of a drawing, for a message."""
    return assignments(drawing.names)


def assignments(names: Mapping[str, Any]) -> str:
    """Names and their values, for a message."""
    text = ", ".join(f"{name} = {list(value) if isinstance(value, tuple) else value}" for name, value in names.items())
    return text or "nothing drawn before it"
