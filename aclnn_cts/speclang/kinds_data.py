"""Rules about the contents of tensors: values, and integers with a structure."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aclnn_cts.core.case import Case, Data, Tensor, owner, tensors_in
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import Compiled
from aclnn_cts.speclang.expression_parser import compile_text
from aclnn_cts.speclang.kinds import CaseChange, Test, Words
from aclnn_cts.speclang.model import ParameterRule, Rule

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec


INTEGER_LIMITS: Mapping[str, int] = {
    "INT8": 128,
    "UINT8": 256,
    "BOOL": 2,
    "INT16": 2**15,
    "UINT16": 2**16,
    "INT32": 2**31,
}
INDEX_RECIPES = frozenset(
    {
        "indices",
        "few_indices",
        "equal_indices",
        "hot_indices",
        "zipf_indices",
        "distinct_indices",
        "end_indices",
        "ramp",
        "argmax",
    }
)
"""Recipes of integers from low to high - 1."""
_FAR = -100
"""A number far from every range, the usual one for a label that is ignored."""
DEFAULT_INTEGERS = (-4, 4)
"""Bounds of the recipe `integers` where it names none."""


def data_is_finite(tensor: Tensor, *, infinite: bool = False) -> bool:
    """Whether the contents hold neither inf nor nan, `infinite` besides inf.

    A tensor without stated contents has no answer (TypeError).
    """
    data = tensor.data
    if data is None:
        raise TypeError("no data")
    if data.values is not None:
        values = (float(value) for value in data.values)
        return all(math.isfinite(value) or (infinite and value == math.inf) for value in values)
    return data.recipe not in (("special",) if infinite else ("special", "infinite"))


_POSITIVE = (0.0, math.inf)
_RANGES: Mapping[str | None, tuple[int | float, int | float]] = {
    "band": (0, 1),
    "one_hot": (0, 1),
    "zeros": (0, 0),
    "positive": _POSITIVE,
    "rstd": _POSITIVE,
    "invstd": _POSITIVE,
}
"""Those of recipes that have one whatever their parameters."""


def data_range(tensor: Tensor) -> tuple[int | float, int | float]:
    """Bounds of the contents, from the values or from the recipe's own; TypeError where the recipe has none."""
    data = tensor.data
    if data is None:
        raise TypeError("no data")
    if data.values is not None:
        numbers = [float(value) for value in data.values] or [0.0]
        return min(numbers), max(numbers)
    if data.recipe in INDEX_RECIPES:
        high = min(data.high if data.high is not None else 1, INTEGER_LIMITS.get(tensor.dtype, 2**62))
        return min(data.low or 0, high - 1), high - 1
    if data.recipe in _RANGES:
        return _RANGES[data.recipe]
    if data.recipe == "constant":
        value = 1.0 if data.mean is None else data.mean
        return value, value
    if data.recipe == "integers" and not data.exponent:
        low, high = DEFAULT_INTEGERS
        return (data.low if data.low is not None else low), (data.high if data.high is not None else high)
    if data.recipe in ("uniform", "repeated") and data.low is not None and data.high is not None:
        return data.low * 2.0 ** (data.exponent or 0), data.high * 2.0 ** (data.exponent or 0)
    if data.recipe in (*SEGMENTS, "seen_indices") and data.high is not None:
        return (0, data.high) if data.recipe in SEGMENTS else (-1, data.high - 1)
    if data.recipe == "permutation":
        low = data.low or 0
        return low, low + (tensor.numel if data.axis is None else tensor.shape[data.axis]) - 1
    raise TypeError(f"recipe {data.recipe} has no known range")


def _given(value: object) -> tuple[Tensor, ...]:
    """The tensors of an argument; a null pointer has no answer (TypeError)."""
    if value is None:
        raise TypeError("null pointer")
    return tensors_in(value)


@dataclass(frozen=True, slots=True)
class FiniteRule(Rule):
    """The inputs named hold no inf and no nan."""

    of: tuple[str, ...]
    infinite: bool = False
    """Whether they may hold inf: then -inf and nan alone are excluded."""

    @property
    def test(self) -> Test:
        names, infinite = self.of, self.infinite
        return lambda arguments, _target: all(
            [data_is_finite(tensor, infinite=infinite) for name in names for tensor in _given(arguments[name])]
        )

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        for name in self.of:
            for key, tensor in case.tensors():
                if owner(key) == name and tensor.data is not None:
                    data = Data(recipe="special", seed=tensor.data.seed)
                    yield CaseChange(text=f"{key}: data with inf and nan", data={key: data})

    def describe(self, product: str) -> Words:
        inf = "-inf" if self.infinite else "inf"
        return Words(f"{', '.join(self.of)} hold neither {inf} nor nan", f"{'、'.join(self.of)} 不含 {inf} 与 nan")


@dataclass(frozen=True, slots=True)
class ElementsRule(ParameterRule):
    """Every element of a tensor lies in a range; a bound may be None."""

    low: str | int | None
    high: str | int | None
    besides: str | None = None
    """An integer attribute whose value elements may have besides."""

    @property
    def test(self) -> Test:
        of, besides = self.of, self.besides
        low, high = _bound(self.low, -math.inf), _bound(self.high, math.inf)

        def within(arguments: Mapping[str, Any], target: Target) -> bool:
            tensor = arguments[of]
            if 0 in tensor.shape:
                return True
            least, most = data_range(tensor)
            bottom, top = low(arguments, target), high(arguments, target)
            if bottom <= least and most <= top:
                return True
            if besides is None:
                return False
            values = (tensor.data.values if tensor.data is not None else None) or ((least,) if least == most else ())
            more = arguments[besides]
            return bool(values) and all(bottom <= float(value) <= top or float(value) == more for value in values)

        return within

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        tensor = case.arguments[self.of]
        if not isinstance(tensor, Tensor) or tensor.data is None:
            return
        beside: list[int] = []
        if self.high is not None:
            high = int(_bound(self.high, 0)(case.arguments, case.target))
            beside += [high + 1, high * 2 + 10]
        if self.low is not None:
            beside.insert(1, int(_bound(self.low, 0)(case.arguments, case.target)) - 1)
        for attribute in dict.fromkeys(_besides(spec, case, self.of) if self.besides is None else ()):
            yield from self._admitted(tensor, attribute, beside)
        for value in beside:
            if _is_storable(value, tensor.dtype):
                is_large = tensor.numel > _MOST_WRITTEN
                data = Data(recipe="constant", mean=value) if is_large else Data(values=(value,) * tensor.numel)
                yield CaseChange(text=f"{self.of}: elements -> {value}", data={self.of: data})

    def _admitted(self, tensor: Tensor, attribute: str, beside: Sequence[int]) -> Iterator[CaseChange]:
        """What a wider rule admits: the value of an attribute, beyond this range, in some elements and in all."""
        low = int(self.low) if isinstance(self.low, int) else 0
        for value in (*beside, _FAR):
            if not _is_storable(value, tensor.dtype) or tensor.numel > _MOST_WRITTEN:
                continue
            for step, where in ((2, "every other element"), (1, "all elements")):
                values = tuple(low if place % step else value for place in range(tensor.numel))
                text = f"{self.of}: {where} -> {attribute} -> {value}"
                yield CaseChange(text=text, values={attribute: value}, data={self.of: Data(values=values)})

    def describe(self, product: str) -> Words:
        besides, besides_zh = (f", or equal {self.besides}", f"，或等于 {self.besides}") if self.besides else ("", "")
        return Words(
            f"elements of {self.of} {self._range('lie in [{}, {}]', 'are at least {}', 'are at most {}')}{besides}",
            f"{self.of} 的元素{self._range('在 [{}, {}] 内', '不小于 {}', '不大于 {}')}{besides_zh}",
        )

    def _range(self, both: str, least: str, most: str) -> str:
        if self.high is None:
            return least.format(self.low)
        return most.format(self.high) if self.low is None else both.format(self.low, self.high)


def _besides(spec: Spec, case: Case, of: str) -> Iterator[str]:
    """The attributes whose values other rules admit among the elements of a tensor."""
    for rule in (item.rule for item in spec.constraints_for(case.product)):
        if isinstance(rule, ElementsRule) and rule.of == of and rule.besides is not None:
            yield rule.besides


def _is_storable(value: int, dtype: str) -> bool:
    return value < INTEGER_LIMITS.get(dtype, 2**31) and not (value < 0 and dtype in ("UINT8", "BOOL"))


def _bound(value: str | int | None, none: float) -> Compiled:
    """A bound over the arguments of a call."""
    return (lambda _arguments, _target: none) if value is None else compile_text(value)


SEGMENTS = ("offsets", "ends", "lengths", "partial_lengths")
"""Recipes of lengths that add up to a total, and of where they end."""
STRUCTURES = (*SEGMENTS, "permutation", "distinct_indices", "boxes", "regions")
_MADE_BY = {"partial_lengths": ("partial_lengths", "lengths")}
"""Recipes that make a structure, where there is another one than that of its name."""
_DEFAULT_TOTAL = 16
_MOST_WRITTEN = 2**12
"""Elements of a tensor whose rule is broken by explicit values."""
_WORDS = {
    "offsets": ("0 and the ends of segments that reach {}", "0 与各段终点，最后一个为 {}"),
    "ends": ("the ends of segments that reach {}", "各段终点，最后一个为 {}"),
    "lengths": ("lengths that add up to {}", "各段长度，总和为 {}"),
    "partial_lengths": ("lengths that add up to {} at most", "各段长度，总和不超过 {}"),
    "permutation": ("a permutation of the numbers from {} on", "从 {} 起各数的一个排列"),
    "distinct_indices": ("numbers from 0 on below {}, none twice", "从 0 起小于 {} 且互不相同的数"),
    "boxes": ("an index below {} and pairs of ascending coordinates", "小于 {} 的序号与成对递增的坐标"),
    "regions": ("regions behind an index that is at least 0 and below {}", "区域，其序号不小于 0 且小于 {}"),
    "corners": (
        "corners x1, y1, x2, y2 with 0 <= x1 <= x2 <= {1} and 0 <= y1 <= y2 <= {0}",
        "顶点 x1、y1、x2、y2，满足 0 <= x1 <= x2 <= {1}、0 <= y1 <= y2 <= {0}",
    ),
}


@dataclass(frozen=True, slots=True)
class StructureRule(ParameterRule):
    """The elements of a tensor along an axis, or the items of an int array, have a structure."""

    structure: str
    number: str | int
    """The total; of a permutation the least number; of indices, boxes and regions how many an index can name."""
    least: int
    """The least length of a segment."""
    axis: int | None
    """Along which; None: the last, of a permutation all elements together."""
    sides: tuple[str, ...] = ()
    """Of the rule on the corners of regions: the height and the width within which they lie. Without them it is the
    rule on the index in front of each region."""

    @property
    def test(self) -> Test:
        number, sides = compile_text(self.number), [compile_text(side) for side in self.sides]

        def fits(arguments: Mapping[str, Any], target: Target) -> bool:
            value, wanted = arguments[self.of], int(number(arguments, target))
            ends = tuple(side(arguments, target) for side in sides)
            if isinstance(value, tuple):
                return self._fits(value, wanted, ends)
            if 0 in value.shape:
                return True
            if value.data is None:
                raise TypeError("no data")
            if value.data.recipe in _MADE_BY.get(self.structure, (self.structure,)):
                return self._is_made_so(value, value.data, wanted, ends)
            count, inner = self._line(value)
            if value.data.values is not None:
                numbers = [float(item) for item in value.data.values]
                starts = (block + place for block in range(0, len(numbers), count * inner) for place in range(inner))
                return all(self._fits(numbers[start : start + count * inner : inner], wanted, ends) for start in starts)
            if value.data.recipe in ("zeros", "constant"):
                mean = 1.0 if value.data.mean is None else value.data.mean
                return self._fits([0.0 if value.data.recipe == "zeros" else mean] * count, wanted, ends)
            # Of any other contents it is as good as certain that they have no such structure.
            return False

        return fits

    def _line(self, tensor: Tensor) -> tuple[int, int]:
        """How many elements have the structure together, and how far apart they lie."""
        if not tensor.shape or (self.axis is None and self.structure == "permutation"):
            return tensor.numel, 1
        axis = -1 if self.axis is None else self.axis
        return tensor.shape[axis], math.prod(tensor.shape[axis:][1:])

    def _segments(self, count: int) -> int:
        """Of so many elements."""
        return count + {"offsets": -1, "partial_lengths": 1}.get(self.structure, 0)

    def _is_made_so(self, tensor: Tensor, data: Data, wanted: int, ends: Sequence[float]) -> bool:
        rank = max(len(tensor.shape), 1)
        last = None if self.structure == "permutation" else rank - 1
        own, asked = (last if axis is None else axis % rank for axis in (data.axis, self.axis))
        if self.structure == "permutation":
            return own == asked and (data.low or 0) == wanted
        if self.sides:
            return own == asked and data.kernel is not None and all(map(operator.le, data.kernel, ends))
        total = _DEFAULT_TOTAL if data.high is None else data.high
        if self.structure == "distinct_indices":
            low = data.low or 0
            return own == asked and low >= 0 and low + self._line(tensor)[0] <= total <= wanted
        same = 0 < total <= wanted if self.structure in ("boxes", "regions") else total == wanted
        fits = same and 0 <= total < INTEGER_LIMITS.get(tensor.dtype, 2**62)
        least = (data.low or 0) >= self.least and self.least * self._segments(self._line(tensor)[0]) <= total
        return own == asked and fits and least

    def _fits(self, numbers: Sequence[float], wanted: int, ends: Sequence[float] = ()) -> bool:
        if not numbers:
            return True
        if self.structure == "permutation":
            return sorted(numbers) == list(range(wanted, wanted + len(numbers)))
        if self.structure == "distinct_indices":
            return len(set(numbers)) == len(numbers) and set(numbers) <= set(range(wanted))
        if self.structure == "boxes":
            pairs = zip(numbers[1::2], numbers[2::2], strict=False)
            return 0 <= numbers[0] < wanted and numbers[0] % 1 == 0 and all(0 <= low < high for low, high in pairs)
        if self.structure == "regions":
            if not ends:
                return 0 <= numbers[0] < wanted
            corners = zip(numbers[1:], numbers[3:], itertools.cycle(ends[::-1]), strict=False)
            starts = (corner for place, corner in enumerate(corners) if place % 4 < 2)
            return all(0 <= low <= high <= end for low, high, end in starts)
        steps = list(numbers)
        if self.structure in ("ends", "offsets"):
            steps = [after - before for before, after in itertools.pairwise((0, *numbers))]
        if self.structure == "offsets" and steps.pop(0) != 0:
            return False
        reached = sum(steps)
        exact = reached <= wanted if self.structure == "partial_lengths" else reached == wanted or not steps
        return exact and all(step >= self.least for step in steps)

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        value = case.arguments[self.of]
        wanted = int(compile_text(self.number)(case.arguments, case.target))
        ends = tuple(int(compile_text(side)(case.arguments, case.target)) for side in self.sides)
        if isinstance(value, tuple):
            for text, items in self._broken(len(value), wanted, ends):
                yield CaseChange(text=f"{self.of}: {text}", values={self.of: items})
        if not isinstance(value, Tensor) or value.data is None or not 0 < value.numel <= _MOST_WRITTEN:
            return
        count, inner = self._line(value)
        limit = INTEGER_LIMITS.get(value.dtype, 2**62)
        for text, items in self._broken(count, wanted, ends):
            if max(items) < limit and not (min(items) < 0 and value.dtype.startswith(("U", "BOOL"))):
                block = tuple(item for item in items for _ in range(inner))
                data = Data(values=block * (value.numel // len(block)))
                yield CaseChange(text=f"{self.of}: {text}", data={self.of: data})

    def _broken(self, count: int, wanted: int, ends: Sequence[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Elements without the structure, each next to some that have it."""
        if not count:
            return
        good = self._even(count, wanted, ends)
        last = good[-1]
        changes = [
            (f"last element {last} -> {last + 1}", (*good[:-1], last + 1)),
            (f"last element {last} -> {last - 1}", (*good[:-1], last - 1)),
            ("elements in reverse order", good[::-1]),
            (f"first element {good[0]} -> -1", (-1, *good[1:])),
            (f"first element {good[0]} -> {good[0] + 1}", (good[0] + 1, *good[1:])),
            (f"every element -> {good[0]}", (good[0],) * count),
            ("first element less by as much as the last is more", (-1, *good[1:-1], last + good[0] + 1)),
            (f"last element {last} -> {2 * wanted + 10}", (*good[:-1], 2 * wanted + 10)),
        ]
        if self.sides:
            # The number in front of the corners belongs to another rule.
            changes = [
                (f"element {place} {good[place]} -> {number}", (*good[:place], number, *good[place + 1 :]))
                for place in range(1, count)
                for number in (-1, good[place] + 1)
            ]
        for text, items in changes:
            if len(items) == count and not self._fits(items, wanted, ends):
                yield text, items

    def _even(self, count: int, wanted: int, ends: Sequence[int]) -> tuple[int, ...]:
        """Elements that have the structure, with segments as alike as may be."""
        if self.structure == "permutation":
            return tuple(range(wanted, wanted + count))
        if self.structure == "distinct_indices":
            return tuple(range(count))
        if self.structure == "boxes":
            return (max(wanted - 1, 0), *((place + 1) % 2 for place in range(1, count)))
        if self.structure == "regions":
            corners = (0, 0, *ends[::-1]) if ends else (0,)
            return (max(wanted - 1, 0), *itertools.islice(itertools.cycle(corners), count - 1))
        segments = max(self._segments(count), 1)
        stops = [max(wanted, 0) * place // segments for place in range(segments + 1)]
        if self.structure == "offsets":
            return tuple(stops[:count])
        if self.structure == "ends":
            return tuple(stops[1:])
        return tuple(after - before for before, after in itertools.pairwise(stops))[:count]

    def describe(self, product: str) -> Words:
        words = self.words(self.number)
        return Words(f"{self.of} holds {words.en}", f"{self.of} 为{words.zh}")

    def words(self, number: object) -> Words:
        """The structure with its number, which may be an expression or what it gives."""
        least, least_zh = (f", each at least {self.least}", f"，每段不小于 {self.least}") if self.least else ("", "")
        if self.sides:
            words, words_zh = (text.format(*self.sides) for text in _WORDS["corners"])
            return Words(words, words_zh)
        words, words_zh = (text.format(number) for text in _WORDS[self.structure])
        return Words(f"{words}{least}", f"{words_zh}{least_zh}")
