"""What a supported call is made of, for coverage: factors such as dtype, layout or rank, and the pairs of their values.

A pair can occur where the generator can be made to draw it: every pair is looked for once, first in ordinary drawings
and then by drawings that are narrowed to it. What is never found, in `ATTEMPTS` of them, is known not to occur, so that
everything that counts can be reached, by the same narrowing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.generate.choices import StreamChoices, stream_block
from aclnn_cts.generate.configuration import SIZE_CLASSES, Configuration, row_labels, size_class
from aclnn_cts.generate.drawing import Drawing
from aclnn_cts.generate.names import choice_label
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import ATTRIBUTE_CLASSES
from aclnn_cts.generate.views import VIEWS

ATTEMPTS = 48
"""Drawings narrowed to a pair before it is known not to occur."""

ORDINARY = 1500
"""Ordinary drawings that are looked at first."""

Value = tuple[str, str]
"""A factor and a label of it."""

Bits = NDArray[np.bool_]


@dataclass(slots=True)
class Factors:
    """The factors of one operator on one target. Values have numbers; a set of pairs is a symmetric square of bits."""

    sampler: Sampler
    values: tuple[Value, ...] = ()
    _numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    """Of the values, by factor and label."""
    _layouts: dict[str, dict[str, int]] = field(default_factory=dict)
    _recipes: dict[str, dict[str, int]] = field(default_factory=dict)
    """The same of layouts and of data, by tensor."""
    _dtype_labels: dict[int, str] = field(default_factory=dict)
    _format_labels: dict[int, str] = field(default_factory=dict)
    _possible: Bits | None = None

    def __post_init__(self) -> None:
        """Number the values."""
        sampler = self.sampler
        self._dtype_labels = dict(zip(map(id, sampler.dtype_rows), row_labels(sampler.dtype_rows), strict=True))
        self._format_labels = dict(zip(map(id, sampler.format_rows), row_labels(sampler.format_rows), strict=True))
        self.values = tuple((name, label) for name, labels in self._declared() for label in dict.fromkeys(labels))
        for number, (factor, label) in enumerate(self.values):
            self._numbers.setdefault(factor, {})[label] = number
        self._layouts = {name: self._numbers[f"layout:{name}"] for name in sampler.strided}
        self._recipes = {name: self._numbers[f"data:{name}"] for name in sampler.spec.inputs}

    def _declared(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Every factor with the labels that the spec has of it."""
        sampler = self.sampler
        spec, product = sampler.spec, sampler.target.product
        yield "product", [product]
        yield "dtype", list(self._dtype_labels.values())
        yield "format", list(self._format_labels.values())
        if spec.modes is not None:
            used = {value for row in sampler.dtype_rows for value in spec.modes.supported(product, row[spec.modes.by])}
            yield "mode", [name for value, name in spec.modes.names.items() if value in used]
        for draw in spec.draws:
            if draw.is_run:
                yield f"rank:{draw.name}", [str(length) for length in range(9)]
            elif draw.kind == "choice":
                yield f"attribute:{draw.name}", [choice_label(number) for number in range(len(draw.choices))]
            elif draw.kind == "integer" and sampler.names.is_attribute(draw.name):
                yield f"attribute:{draw.name}", ATTRIBUTE_CLASSES
        yield "size", list(SIZE_CLASSES)
        for name in sampler.strided:
            yield f"layout:{name}", VIEWS
        for name in spec.inputs:
            families = {"float" if row[name] in INEXACT else "other" for row in sampler.dtype_rows}
            yield (
                f"data:{name}",
                [item.recipe for family in sorted(families) for item in sampler.templates(name, family)],
            )

    def of(self, drawing: Drawing, case: Case) -> list[int]:
        """The numbers of a case's values, one a factor."""
        numbers = self._numbers
        found = [
            numbers["product"][drawing.target.product],
            numbers["dtype"][self._dtype_labels[id(drawing.dtypes)]],
            numbers["format"][self._format_labels[id(drawing.formats)]],
        ]
        modes = self.sampler.spec.modes
        if modes is not None:
            found.append(numbers["mode"][modes.names[drawing.names[modes.attribute]]])
        found += [numbers[factor][label] for factor, label in self.sampler.names.classes(drawing.names, drawing.picks)]
        tensors = dict(case.tensors())
        found.append(numbers["size"][size_class(max([tensor.numel for tensor in tensors.values()], default=1))])
        for name, layouts in self._layouts.items():
            view = drawing.views.get(name, 0)
            tensor = tensors.get(name)  # none where it is a null pointer
            # The two last axes of a vector cannot change places.
            if tensor is None or tensor.strides is None or (view == 1 and len(tensor.shape) < 2):
                view = 0
            found.append(layouts[VIEWS[view]])
        found += [self._recipes[name][template.recipe] for name, template in drawing.data.items()]
        return found

    @property
    def possible(self) -> Bits:
        """The pairs that can occur; on the diagonal, the values that can. Found once, which takes about a second."""
        if self._possible is None:
            self._possible = self._search()
        return self._possible

    def square(self) -> Bits:
        """No pair at all."""
        return np.zeros((len(self.values), len(self.values)), np.bool_)

    def pairs(self, bits: Bits) -> list[tuple[int, int]]:
        """The pairs of a set, each once, single values among them."""
        return [(int(first), int(second)) for first, second in zip(*np.nonzero(np.triu(bits)), strict=True)]

    def configuration(self, first: int, second: int) -> Configuration:
        """What narrows drawings to a pair."""
        return Configuration({factor: [label] for factor, label in (self.values[first], self.values[second])})

    def _search(self) -> Bits:
        sampler = self.sampler
        stream = f"{sampler.spec.operator}/{sampler.target.product}/factors"
        rows = []
        for choices in stream_block(0, stream, 0, ORDINARY):
            drawing = sampler.draw(choices)
            rows.append(self.of(drawing, sampler.case(drawing)))
        found = self.among(rows)
        names = list(dict.fromkeys(factor for factor, _ in self.values))
        owner = np.array([names.index(factor) for factor, _ in self.values])
        single = np.eye(len(self.values), dtype=np.bool_)
        index = ORDINARY
        # Single values first: one that cannot occur is in no pair, and those are not looked for.
        for among in (single, owner[:, None] != owner[None, :]):
            for first, second in self.pairs(~found & among):
                if first == second or (found[first, first] and found[second, second] and not found[first, second]):
                    self._look(first, second, found, stream, index)
                    index += ATTEMPTS
        return found

    def _look(self, first: int, second: int, found: Bits, stream: str, index: int) -> None:
        options = self.sampler.options(self.configuration(first, second))
        for attempt in range(ATTEMPTS):
            drawing = self.sampler.draw(StreamChoices(0, stream, index + attempt), options=options)
            numbers = self.of(drawing, self.sampler.case(drawing))
            found[np.ix_(numbers, numbers)] = True
            if found[first, second]:
                return

    def among(self, rows: Sequence[Sequence[int]]) -> Bits:
        """The pairs that cases have, of each its numbers."""
        if not rows:
            return self.square()
        marks = self.marks(rows)
        # No product of matrices: of bits it is slow, and of floats it wakes the threads of BLAS.
        return np.stack([marks[has].any(axis=0) for has in marks.T])

    def marks(self, rows: Sequence[Sequence[int]]) -> Bits:
        """Which values each of some cases has, a row a case."""
        marks = np.zeros((len(rows), len(self.values)), np.bool_)
        marks[np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.concatenate(rows)] = True
        return marks
