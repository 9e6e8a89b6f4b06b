"""Cases as a vendor's acceptance standard asks for them (`core.standard`): generated ones, and its special cases.

Case `n` of a plan is a pure function of its number. Its dtypes, formats, ranks and attributes are digits of a number
that walks through all combinations in steps that share no factor with how many there are: dtypes come equally often,
any first cases are spread, and where there are no more combinations than cases each is tried.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from aclnn_cts.core.case import Case, Data, Origin, Tensor, with_arguments
from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.standard import (
    COMBINED_STATE,
    GENERATED,
    LONGEST_DIMENSION,
    POWER_SIZES,
    SPECIAL_VALUES,
    STANDARDS,
    STEPS,
    Distribution,
    SizeChoice,
    SpecialCases,
    Standard,
    source_text,
)
from aclnn_cts.generate.choices import Choices, StreamChoices, stream_block
from aclnn_cts.generate.configuration import MAX_DATA_ELEMENTS, Configuration, Drawing, RecipeTemplate
from aclnn_cts.generate.corner_calls import CornerCall
from aclnn_cts.generate.corners import Factor, FactorKind, factors_of
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import first_broken
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds import CaseChange
from aclnn_cts.speclang.model import Parameter

_KINDS = frozenset(
    {FactorKind.DTYPES, FactorKind.FORMATS, FactorKind.RANK, FactorKind.ATTRIBUTE, FactorKind.MASK, FactorKind.NULL}
)
"""Factors that a standard combines."""
_TRIES = 3
"""Options of a factor that are tried in one call; then it stays as it was drawn."""
_GOLDEN = 0.6180339887498949
"""Steps of this share of a circle spread any number of places over it, and so do those of its multiples."""
_BUDGET = (1 << 6, 1 << 14)
"""Most elements of a tensor of a case without a size that it must have."""
_SMALL = 64
"""Most elements of a tensor with explicit contents."""
_ATTEMPTS = 32
"""Drawings tried for a special case."""
_BYTES = 8
"""Of the widest element."""
_FREE = RecipeTemplate("normal", {}, {})
"""The first contents of an input of which its spec says nothing."""


@dataclass(slots=True)
class StandardSizes:
    """Sizes of one case by a standard's rule; one dimension has a size that the case must have, where it has room."""

    rule: SizeChoice
    budget: int
    wanted: int = 0
    """0: none."""
    least_rank: int = field(default=0, init=False)
    _is_met: bool = False

    def size(self, choices: Choices, low: int, high: int, *, later: int, is_last: bool, unit: int = 0) -> int:
        """A dimension in [low, high], with `later` dimensions to be drawn after it."""
        if high <= low:
            return low
        room = high
        if self.wanted and not self._is_met:
            if low <= self.wanted <= high and (is_last or choices.integer(0, later) == later):
                self._is_met = True
                return self.wanted
            room = max(high // self.wanted, 1)
        share = max(low, int(room ** (1 / (1 + min(later, 2)))))
        return self._drawn(choices, low, share)

    def _drawn(self, choices: Choices, low: int, high: int) -> int:
        if self.rule is SizeChoice.POWERS:
            fitting = [size for size in POWER_SIZES if low <= size <= high]
            return choices.pick(fitting) if fitting else low
        if self.rule is SizeChoice.STEPS:
            step = choices.pick(STEPS)
            first, last = -(-low // step), high // step
            return step * choices.integer(max(first, 1), last) if last >= max(first, 1) else choices.integer(low, high)
        return choices.integer(low, high)


class StandardCases:
    """Makes the cases of one standard for one operator and target."""

    def __init__(self, sampler: Sampler, standard: Standard, *, seed: int, max_bytes: int) -> None:
        self._sampler, self._standard, self._seed = sampler, standard, seed
        tensors = max(sum(item.holds_tensors for item in sampler.spec.parameters), 1)
        # So many elements for each tensor that all of them together are within the limit.
        self._most = max(min(MAX_DATA_ELEMENTS, max_bytes // (_BYTES * tensors) if max_bytes else MAX_DATA_ELEMENTS), 1)
        self.factors = combined_factors(sampler)
        self._number = math.prod(len(factor.corners) for factor in self.factors)
        self._step = _step([len(factor.corners) for factor in self.factors])

    @property
    def _stream(self) -> str:
        return f"{self._sampler.spec.operator}/{self._sampler.target.product}/{self._standard.name}"

    def generated_cases(self, first: int, count: int) -> Iterator[Case]:
        """Generated cases from number `first` on."""
        for number, choices in enumerate(stream_block(self._seed, self._stream, first, count), first):
            yield self._generated(choices, number)

    def _generated(self, choices: Choices, number: int) -> Case:
        digits = self._digits(number)
        chosen = {factor.name: (factor, digit) for factor, digit in zip(self.factors, digits, strict=True)}
        values = self._distribution(number)
        drawing, row_mode = self._drawing(choices, number, chosen, values)
        call = CornerCall(self._sampler, choices, most=self._most, first={FactorKind.DTYPES: row_mode}, drawing=drawing)
        for factor, digit in chosen.values():
            if factor.kind is not FactorKind.DTYPES:
                self._settle(call, choices, factor, digit)
        had = {"values": values.name}
        for factor in self.factors:
            label = next((corner.label for corner in factor.corners if call.has_corner(factor, corner)), None)
            if label is not None:
                had[factor.name] = label
        return _with_source(call.case, source_text(self._standard, GENERATED, had))

    def _digits(self, number: int) -> list[int]:
        """The option of each factor."""
        place, digits = number * self._step % self._number, []
        for factor in self.factors:
            place, digit = divmod(place, len(factor.corners))
            digits.append(digit)
        return digits

    def _distribution(self, number: int) -> Distribution:
        """Of a hundred cases with the same dtypes as many have each as the standard says."""
        place = number // max(len(self._sampler.dtype_rows), 1) * 61 % 100
        for entry in self._standard.values:
            if place < entry.percent:
                return entry
            place -= entry.percent
        return self._standard.values[-1]

    def _drawing(
        self, choices: Choices, number: int, chosen: Mapping[str, tuple[Factor, int]], values: Distribution
    ) -> tuple[Drawing, Any]:
        sampler = self._sampler
        row_mode = next(
            (factor.corners[digit].value for factor, digit in chosen.values() if factor.kind is FactorKind.DTYPES),
            (0, None),
        )
        ranks = {
            f"rank:{factor.of}": (factor.corners[digit].label,)
            for factor, digit in chosen.values()
            if factor.kind is FactorKind.RANK
        }
        row, mode = row_mode
        base = sampler.draw(choices, budget=_SMALL, row=row, mode=mode, data_kind="realistic")
        names, picks = sampler.names.draw(
            choices, self._sizes(choices, number), Configuration(ranks), dtypes=base.dtypes
        )
        if sampler.spec.modes is not None:
            attribute = sampler.spec.modes.attribute
            names[attribute] = base.names[attribute]
        data = {
            item.name: standard_template(sampler, item, base.dtypes[item.name], values, choices)
            for item in sampler.spec.parameters
            if item.name in base.data
        }
        return msgspec.structs.replace(base, names=names, picks=picks, views={}, data=data), row_mode

    def _sizes(self, choices: Choices, number: int) -> StandardSizes:
        low, high = (power.bit_length() - 1 for power in _BUDGET)
        budget = min(1 << choices.integer(low, high), self._most)
        if self._standard.sizes is not SizeChoice.POWERS:
            return StandardSizes(self._standard.sizes, budget)
        wanted = POWER_SIZES[number // max(len(self._sampler.dtype_rows), 1) % len(POWER_SIZES)]
        return StandardSizes(SizeChoice.POWERS, min(max(budget, wanted), self._most), wanted)

    def _settle(self, call: CornerCall, choices: Choices, factor: Factor, digit: int) -> None:
        """Give the call the option of a factor, else another one that it can have."""
        corners = factor.corners
        for option in range(_TRIES):
            corner = corners[(digit + option * max(len(corners) // _TRIES, 1)) % len(corners)]
            if call.has_corner(factor, corner) or not call.set_corner(factor, corner):
                return

    def refusals(self) -> Iterator[tuple[str, str, str]]:
        """Each option of each factor: factor, label, and why no call that was tried has it; an empty text: one has."""
        for factor in self.factors:
            for digit, corner in enumerate(factor.corners):
                yield factor.name, corner.label, self._refusal(factor, digit)

    def _refusal(self, factor: Factor, digit: int) -> str:
        corner, refusal = factor.corners[digit], ""
        for attempt in range(_ATTEMPTS):
            choices = StreamChoices(self._seed, f"{self._stream}/{factor.name}/{digit}", attempt)
            digits = self._digits(attempt)
            chosen = {one.name: (one, place) for one, place in zip(self.factors, digits, strict=True)}
            chosen[factor.name] = factor, digit
            drawing, row_mode = self._drawing(choices, attempt, chosen, self._standard.values[0])
            call = CornerCall(
                self._sampler, choices, most=self._most, first={FactorKind.DTYPES: row_mode}, drawing=drawing
            )
            if call.has_corner(factor, corner) or not (refusal := call.set_corner(factor, corner)):
                return ""
        return refusal

    def special_cases(self) -> Iterator[Case]:
        """The cases that stand apart from the combinations."""
        for row in range(len(self._sampler.dtype_rows)):
            yield from self._empty(row)
            yield from self._shaped(row, SpecialCases.ONE_ELEMENT, is_long=False)
            yield from self._shaped(row, SpecialCases.ALL_ONES, is_long=True)
            yield from self._special_values(row)
        yield from self._longest()

    def _base(self, label: str, row: int, attempt: int, *, budget: int = _SMALL) -> Drawing:
        choices = StreamChoices(self._seed, f"{self._stream}/{label}/{row}", attempt)
        drawing = self._sampler.draw(choices, budget=budget, row=row, data_kind="realistic")
        values = self._standard.values[0]
        data = {
            item.name: standard_template(self._sampler, item, drawing.dtypes[item.name], values, choices)
            for item in self._sampler.spec.parameters
            if item.name in drawing.data
        }
        return msgspec.structs.replace(drawing, views={}, data=data)

    def _case(self, drawing: Drawing, assign: Mapping[str, Any]) -> Case | None:
        """The case with names assigned; None where the document does not allow it."""
        try:
            case = self._sampler.case(drawing, change=CaseChange(text="", assign=assign))
        except (*UNDEFINED, ArithmeticError, UsageError):
            return None
        return None if first_broken(self._sampler.spec, case) else case

    def _named(self, special: SpecialCases, case: Case, what: str = "") -> Case:
        return _with_source(case, source_text(self._standard, special.value, {"of": what} if what else {}))

    def _empty(self, row: int) -> Iterator[Case]:
        """For each dimension that may have no element, a case in which it has none."""
        for name in self._sampler.names.free_sizes():
            for attempt in range(_ATTEMPTS):
                drawing = self._base(f"empty {name}", row, attempt)
                value = drawing.names[name]
                if value == ():
                    continue
                place = attempt % len(value) if isinstance(value, tuple) else 0
                new = (*value[:place], 0, *value[place + 1 :]) if isinstance(value, tuple) else 0
                case = self._case(drawing, {name: new})
                if case is not None and any(tensor.numel == 0 for _, tensor in case.tensors()):
                    yield self._named(SpecialCases.EMPTY, case, name)
                    break

    def _shaped(self, row: int, special: SpecialCases, *, is_long: bool) -> Iterator[Case]:
        """A case whose sizes are all 1; runs of dimensions have one, or as many as are drawn."""
        kinds = {draw.name: draw.kind for draw in self._sampler.spec.draws}
        for attempt in range(_ATTEMPTS):
            drawing = self._base(special.value, row, attempt)
            assign = {
                name: ((1,) * (len(drawing.names[name]) if is_long else 1)) if kinds[name] == "run" else 1
                for name in self._sampler.names.free_sizes()
            }
            case = self._case(drawing, assign)
            if case is not None and _is_shaped(self._inputs(case), is_long=is_long):
                yield self._named(special, case)
                return

    def _inputs(self, case: Case) -> list[Tensor]:
        found = (case.tensor(name) for name in self._sampler.spec.inputs)
        return [tensor for tensor in found if tensor is not None]

    def _special_values(self, row: int) -> Iterator[Case]:
        """Floating inputs full of each special value, in different shapes."""
        for name, numbers in SPECIAL_VALUES.items():
            shapes: set[tuple[tuple[int, ...], ...]] = set()
            for attempt in range(_ATTEMPTS):
                drawing = self._base(name, row, attempt)
                case = self._case(drawing, {})
                if case is None or case.call.phases == 1:
                    continue
                case = self._full_of(case, numbers)
                mine = tuple(tensor.shape for tensor in self._inputs(case))
                if mine in shapes or first_broken(self._sampler.spec, case) or not _holds(case, numbers):
                    continue
                shapes.add(mine)
                yield self._named(SpecialCases.VALUES, case, name)
                if len(shapes) == self._standard.special_shapes:
                    break

    def _full_of(self, case: Case, numbers: Sequence[str]) -> Case:
        """The case with special values in all floating inputs, or where a rule forbids that, in those that are free."""
        names = [item.name for item in self._sampler.spec.parameters if item.is_input]
        whole = _filled(case, names, numbers)
        if not first_broken(self._sampler.spec, whole):
            return whole
        templates = {name: self._sampler.templates(name, "float", kinds=("realistic",))[0] for name in names}
        return _filled(case, [name for name in names if templates[name] == _FREE], numbers)

    def _longest(self) -> Iterator[Case]:
        """For each dimension, a case in which it is as long as the document allows, and one as long as has data."""
        sampler = self._sampler
        for place, name in enumerate(sampler.names.free_sizes()):
            row = place % len(sampler.dtype_rows)
            for special, most in ((SpecialCases.LONGEST, LONGEST_DIMENSION), (SpecialCases.LONG, self._most)):
                case = self._with_long(
                    f"{special.value} {name}", name, row, most, has_data=special is SpecialCases.LONG
                )
                if case is not None:
                    yield self._named(special, case, name)

    def _with_long(self, label: str, name: str, row: int, size: int, *, has_data: bool) -> Case | None:
        """A case with a dimension as long as can be up to a size, all others as short as can be."""
        for attempt in range(_ATTEMPTS // 4):
            drawing = self._base(label, row, attempt)
            if drawing.names[name] == ():
                continue
            wanted = size
            while wanted > _SMALL:
                names = self._sampler.names.with_sizes(drawing, defaultdict(lambda: 1, {name: wanted}).__getitem__)
                found = self._case(msgspec.structs.replace(drawing, names=names), {})
                if found is not None and (not has_data or self._fits(found)):
                    return found
                wanted //= 2
        return None

    def _fits(self, case: Case) -> bool:
        return case.call.phases != 1 and all(tensor.numel <= self._most for _, tensor in case.tensors())


def _step(counts: Sequence[int]) -> int:
    """A step through all combinations of so many options that moves each of them far, and each by another share."""
    step, before = 0, 1
    for place, count in enumerate(counts, 1):
        step += before * max(int(count * math.fmod(place * _GOLDEN, 1.0)), 1)
        before *= count
    while math.gcd(step, before) > 1:
        step += 1
    return step


def combined_factors(sampler: Sampler) -> tuple[Factor, ...]:
    """The factors that a standard combines, dtypes first."""
    return tuple(factor for factor in factors_of(sampler) if factor.kind in _KINDS)


def combined_state(
    sampler: Sampler, standard: str, *, seed: int, max_bytes: int
) -> tuple[str, Mapping[str, Mapping[str, str]]]:
    """What a run keeps of the factors: a key, and of each its options with why no call has one."""
    options: dict[str, dict[str, str]] = {}
    for factor, label, refusal in standard_cases(sampler, standard, seed=seed, max_bytes=max_bytes).refusals():
        options.setdefault(factor, {})[label] = refusal
    return COMBINED_STATE + sampler.spec.operator, options


def standard_template(
    sampler: Sampler, item: Parameter, dtype: str, values: Distribution, choices: Choices
) -> RecipeTemplate:
    """The contents of an input: the standard's values, or what its spec names first where that is something else.

    What a forward pass saved, a probability or an index has a meaning that a standard's numbers lack.
    """
    family = "float" if dtype in INEXACT else "other"
    first = sampler.templates(item.name, family, kinds=("realistic",))[0]
    if family == "other" or first != _FREE:
        return first
    if values.recipe == "uniform":
        bound, exponent = values.bound, 0
        if not bound.is_integer():
            bound, exponent = math.floor(math.ldexp(bound, 40)), -40
        fixed: dict[str, Any] = {"low": -int(bound), "high": int(bound)}
        return RecipeTemplate("uniform", {**fixed, "exponent": exponent} if exponent else fixed, {})
    low, high = values.deviation
    mean = values.mean * (choices.integer(0, 2048) - 1024) / 1024
    std = low + (high - low) * choices.integer(0, 1024) / 1024
    return RecipeTemplate(values.recipe, {"mean": mean, "std": std}, {})


def _with_source(case: Case, text: str) -> Case:
    return msgspec.structs.replace(case, origin=Origin("valid", source=text))


def _is_shaped(tensors: Sequence[Tensor], *, is_long: bool) -> bool:
    if is_long:
        return bool(tensors) and all(set(tensor.shape) <= {1} for tensor in tensors)
    return any(tensor.shape == (1,) for tensor in tensors)


def _filled(case: Case, names: Sequence[str], numbers: Sequence[str]) -> Case:
    """The case with special values in all floating inputs whose contents follow from no other."""
    changes = {
        name: msgspec.structs.replace(
            tensor, data=Data(values=tuple(numbers[k % len(numbers)] for k in range(tensor.numel)))
        )
        for name, tensor in case.tensors()
        if name.partition("[")[0] in names
        and tensor.dtype in INEXACT
        and tensor.data is not None
        and tensor.data.of is None
        and 0 < tensor.numel <= _SMALL
    }
    return with_arguments(case, changes)


def _holds(case: Case, numbers: Sequence[str]) -> bool:
    """Whether some input has all of the values."""
    held = (tensor.data.values for _, tensor in case.tensors() if tensor.data is not None)
    return any(values is not None and {*numbers} <= {*values} for values in held)


@functools.lru_cache(maxsize=4)
def standard_cases(sampler: Sampler, standard: str, *, seed: int, max_bytes: int) -> StandardCases:
    """What makes the cases of a plan; a part of it asks for the same as the part before."""
    return StandardCases(sampler, STANDARDS[standard], seed=seed, max_bytes=max_bytes)
