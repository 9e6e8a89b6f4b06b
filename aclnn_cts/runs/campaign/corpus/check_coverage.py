"""Coverage of what documents promise: their rules, and pairs of the factors of supported calls.

Three sorts of things count: each constraint held and broken, each limit met from both sides, and each
pair of values of the factors of a supported call (`CoverageFactors`), single values among them. Limits and
pairs that were tried and never judged, since the implementation cannot be given them or nothing can be said of what it
does, are counted apart: all of the others can be met.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.generate.choices import StreamChoices, stream_block
from aclnn_cts.generate.configuration import (
    LENGTH_CLASSES,
    SIZE_CLASSES,
    VIEWS,
    Configuration,
    Drawing,
    row_labels,
    size_class,
)
from aclnn_cts.generate.hazard import hazard_of
from aclnn_cts.generate.names import choice_label
from aclnn_cts.generate.negative import boundary_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import ATTRIBUTE_CLASSES
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import CoverageCount, OperatorSummary

ATTEMPTS = 48
"""Drawings narrowed to a pair before it is known not to occur."""

ORDINARY = 1500
"""Ordinary drawings that are looked at first."""

Value = tuple[str, str]
"""A factor and a label of it."""

Bits = NDArray[np.bool_]


@dataclass(slots=True)
class CoverageFactors:
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
            modes = spec.modes
            used = {value for row in sampler.dtype_rows for value in modes.supported(product, modes.dtype_of(row))}
            yield "mode", [name for value, name in modes.names.items() if value in used]
        for draw in spec.draws:
            if draw.is_run:
                yield f"rank:{draw.name}", LENGTH_CLASSES
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


TRIES = 8
"""Cases with a pair that are not judged, and none that is, until the pair is known not to be judged here."""

_MOST = np.uint8(255)


class CoveredPairs(msgspec.Struct):
    """What one operator's trials have met, as it is kept; squares of bits are packed row by row."""

    judged: bytes = b""
    """Pairs of values in a case that was judged."""
    unjudged: bytes = b""
    """How often each pair was in a case that was not judged, a byte each, 255 for all that is more."""
    limits: list[str] = []
    limits_unjudged: list[str] = []
    """Limits whose cases were left out or not judged."""

    def include(self, other: CoveredPairs) -> None:
        """Add what other trials have met."""
        self.judged = _either(self.judged, other.judged)
        self.unjudged = _sum(self.unjudged, other.unjudged)
        self.limits = sorted({*self.limits, *other.limits})
        self.limits_unjudged = sorted({*self.limits_unjudged, *other.limits_unjudged})


def _either(mine: bytes, theirs: bytes) -> bytes:
    if not mine or not theirs:
        return mine or theirs
    return (int.from_bytes(mine, "big") | int.from_bytes(theirs, "big")).to_bytes(len(mine), "big")


def _sum(mine: bytes, theirs: bytes) -> bytes:
    if not mine or not theirs:
        return mine or theirs
    left = _MOST - np.frombuffer(mine, np.uint8)
    more: bytes = (np.frombuffer(mine, np.uint8) + np.minimum(left, np.frombuffer(theirs, np.uint8))).tobytes()
    return more


class CoveredShare(CoverageCount):
    """So many of so many."""

    @property
    def part(self) -> float:
        """1 where there is nothing to meet."""
        return self.met / self.of if self.of else 1.0

    def __add__(self, other: CoveredShare) -> CoveredShare:
        return CoveredShare(self.met + other.met, self.of + other.of, self.apart + other.apart)


@dataclass(slots=True)
class CheckCoverage:
    """Everything that counts of one operator."""

    factors: CoverageFactors
    constraints: tuple[str, ...]
    limits: frozenset[str]

    def _bits(self, packed: bytes) -> Bits:
        if not packed:
            return self.factors.square()
        size = len(self.factors.values)
        raw = np.unpackbits(np.frombuffer(packed, np.uint8), count=size * size)
        return raw.reshape(size, size).astype(np.bool_)

    def _tries(self, covered: CoveredPairs) -> NDArray[np.uint8]:
        size = len(self.factors.values)
        return np.frombuffer(covered.unjudged or bytes(size * size), np.uint8).reshape(size, size)

    def _pairs(self, covered: CoveredPairs) -> tuple[Bits, Bits, Bits]:
        """The pairs that were judged, those that are yet to be, and those that cannot be judged here."""
        judged = self._bits(covered.judged)
        left = self.factors.possible & ~judged
        apart = left & (self._tries(covered) >= TRIES)
        return judged, left & ~apart, apart

    def _limits(self, covered: CoveredPairs) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """The same of limits."""
        met = self.limits & frozenset(covered.limits)
        apart = (self.limits & frozenset(covered.limits_unjudged)) - met
        return met, self.limits - met - apart, apart

    def shares(self, covered: CoveredPairs, summary: OperatorSummary) -> Mapping[str, CoveredShare]:
        """How much is covered, by sort of thing."""
        sides = self._sides(summary)
        judged, left, apart = (len(self.factors.pairs(bits)) for bits in self._pairs(covered))
        met, missing, hopeless = map(len, self._limits(covered))
        return {
            "constraints": CoveredShare(sum(sides.values()), len(sides)),
            "limits": CoveredShare(met, met + missing, hopeless),
            "pairs": CoveredShare(judged, judged + left, apart),
        }

    def _sides(self, summary: OperatorSummary) -> Mapping[str, bool]:
        """Each side of each constraint, and whether a case was on it."""
        found: dict[str, bool] = {}
        for name in self.constraints:
            count = summary.constraints.get(name)
            found[f"{name} held"] = count is not None and count.held > 0
            found[f"{name} broken"] = count is not None and count.broken > 0
        return found

    def by_factor(self, covered: CoveredPairs) -> Mapping[str, CoveredShare]:
        """Of each factor: how many of the pairs that its values stand in are covered."""
        counts = [bits.sum(axis=1) for bits in self._pairs(covered)]
        found: dict[str, CoveredShare] = {}
        for number, (factor, _) in enumerate(self.factors.values):
            judged, left, apart = (int(count[number]) for count in counts)
            found[factor] = found.get(factor, CoveredShare(0, 0)) + CoveredShare(judged, judged + left, apart)
        return found

    def missing(self, covered: CoveredPairs) -> list[tuple[Value, Value]]:
        """The pairs that can be judged and were not yet; those that were tried come where there are no others."""
        _, left, _ = self._pairs(covered)
        untried = left & (self._tries(covered) == 0)
        return self._named(untried if untried.any() else left)

    def _named(self, bits: Bits) -> list[tuple[Value, Value]]:
        values = self.factors.values
        return [(values[first], values[second]) for first, second in self.factors.pairs(bits)]

    def gaps(self, covered: CoveredPairs, summary: OperatorSummary) -> Mapping[str, list[str]]:
        """What is missing, by sort of thing, in words: `rank:A 3, layout:out gaps`."""
        _, left, _ = self._pairs(covered)
        return {
            "constraints": [side for side, met in self._sides(summary).items() if not met],
            "limits": sorted(self._limits(covered)[1]),
            "pairs": [_words(*pair) for pair in self._named(left)],
        }

    def never_judged(self, covered: CoveredPairs) -> Mapping[str, list[str]]:
        """What was tried and never judged, likewise."""
        return {
            "limits": sorted(self._limits(covered)[2]),
            "pairs": [_words(*pair) for pair in self._named(self._pairs(covered)[2])],
        }


def _words(first: Value, second: Value) -> str:
    return " ".join(first) if first == second else f"{' '.join(first)}, {' '.join(second)}"


def pack_coverage(
    factors: CoverageFactors,
    *,
    judged: Sequence[Sequence[int]],
    unjudged: Sequence[Sequence[int]],
    limits: Iterable[str],
    limits_unjudged: Iterable[str] = (),
) -> CoveredPairs:
    """What trials have met: the numbers of each case's values (judged, and tried without a verdict), keys of limits."""
    return CoveredPairs(
        judged=np.packbits(factors.among(judged)).tobytes(),
        unjudged=_counts(factors, unjudged),
        limits=sorted(set(limits)),
        limits_unjudged=sorted(set(limits_unjudged)),
    )


def _counts(factors: CoverageFactors, rows: Sequence[Sequence[int]]) -> bytes:
    """How many cases have each pair, as `CoveredPairs.unjudged` keeps it."""
    if not rows:
        return b""
    marks = factors.marks(rows)
    counts = np.stack([marks[has].sum(axis=0) for has in marks.T])
    content: bytes = np.minimum(counts, _MOST).astype(np.uint8).tobytes()
    return content


def limit_key(case: Case, *, beyond: bool) -> str:
    """What a boundary case meets: the constraint, the change that leads to its limit, and the side."""
    return f"{case.origin.constraint}: {case.origin.change}, {'beyond' if beyond else 'within'}"


def check_coverage(factors: CoverageFactors, *, seed: int, unsafe: bool = False, phases: int = 2) -> CheckCoverage:
    """What counts of an operator.

    The limits are those that the seed's boundary cases reach, as in a run; without those that are not sent to a
    device unless `unsafe` is asked for.
    """
    sampler = factors.sampler
    constraints = sampler.spec.constraints_for(sampler.target.product)
    return CheckCoverage(
        factors=factors,
        constraints=tuple(item.id for item in constraints),
        limits=frozenset(
            limit_key(derived.case, beyond=bool(derived.broken))
            for constraint in constraints
            for derived in boundary_cases(sampler, constraint, seed=seed)
            if unsafe or not _hazardous(sampler.spec, derived.case, phases)
        ),
    )


def _hazardous(spec: Spec, case: Case, phases: int) -> bool:
    both = phases == 2 and case.call.phases != 1
    return bool(hazard_of(spec, case, both_phases=both, evaluation=evaluate(spec, case)))
