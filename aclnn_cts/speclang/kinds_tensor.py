"""Rules about pointers, ranks, layouts, words, and lists of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from aclnn_cts.core.case import Case, TensorList
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression_parser import compile_text
from aclnn_cts.speclang.kinds import CaseChange, Test, Words, tensor_of
from aclnn_cts.speclang.kinds_size import LengthRule
from aclnn_cts.speclang.model import ParameterRule, Rule
from aclnn_cts.speclang.shape import INDEX

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec


MAX_RANK = 25
"""Dimensions that the operator library's shape object has room for.

It drops more of them silently and keeps their count all the same: undefined, so never sent.
"""


@dataclass(frozen=True, slots=True)
class _Pointer(ParameterRule):
    """A pointer is not null."""

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} is not a null pointer", f"{self.of} 不是空指针")


@dataclass(frozen=True, slots=True)
class PresentRule(_Pointer):
    """The pointer is not null."""

    @property
    def wants_given(self) -> bool:
        return True

    @property
    def test(self) -> Test:
        of = self.of
        return lambda arguments, _target: arguments[of] is not None

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        yield CaseChange(text=f"{self.of}: null pointer", null=self.of)


@dataclass(frozen=True, slots=True)
class CallPointerRule(_Pointer):
    """A pointer of the interface itself (`workspaceSize`, `executor`) is not null; evaluated on the call options."""

    @property
    def test(self) -> Test:
        return lambda _arguments, _target: True

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        yield CaseChange(text=f"{self.of}: null pointer", call_null=(self.of,))


@dataclass(frozen=True, slots=True)
class RankRangeRule(ParameterRule):
    """The number of dimensions lies in a range."""

    low: int
    high: int

    @property
    def test(self) -> Test:
        of, low, high = self.of, self.low, self.high
        return lambda arguments, _target: low <= len(arguments[of].shape) <= high

    def _change(self, case: Case, rank: int) -> CaseChange:
        old = len(tensor_of(case, self.of).shape)
        return CaseChange(text=f"{self.of}: rank {old} -> {rank}", ranks={self.of: rank})

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        for rank in dict.fromkeys((self.high + 1, self.low - 1, self.high + 2, 0, min(self.high * 2, MAX_RANK))):
            if 0 <= rank <= MAX_RANK and not self.low <= rank <= self.high:
                yield self._change(case, rank)

    def limits(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        for rank in sorted({self.low - 1, self.low, self.low + 1, self.high - 1, self.high, self.high + 1}):
            if 0 <= rank <= MAX_RANK:
                yield self._change(case, rank)

    def describe(self, product: str) -> Words:
        return Words(
            f"rank of {self.of} is {self.low}" + (f" to {self.high}" if self.high != self.low else ""),
            f"{self.of} 的维数为 {self.low}" + (f" 至 {self.high}" if self.high != self.low else ""),
        )


@dataclass(frozen=True, slots=True)
class RankRule(ParameterRule):
    """The number of dimensions equals an expression."""

    text: str

    @property
    def test(self) -> Test:
        of, expected = self.of, compile_text(self.text)
        return lambda arguments, target: len(arguments[of].shape) == expected(arguments, target)

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        old = len(tensor_of(case, self.of).shape)
        for rank in (old + 1, old - 1, old + 2):
            if 0 <= rank <= MAX_RANK:
                yield CaseChange(text=f"{self.of}: rank {old} -> {rank}", ranks={self.of: rank})

    def describe(self, product: str) -> Words:
        return Words(f"rank of {self.of} is {self.text}", f"{self.of} 的维数为 {self.text}")


@dataclass(frozen=True, slots=True)
class ContiguousRule(ParameterRule):
    """The tensor is contiguous. The strides of a single element move nothing: there, those that are written count."""

    @property
    def test(self) -> Test:
        of = self.of

        def contiguous(arguments: Mapping[str, Any], _target: Target) -> bool:
            tensor = arguments[of]
            strides = () if tensor.strides is None or tensor.numel != 1 else tensor.strides
            return bool(tensor.is_contiguous) and all(stride == 1 for stride in strides)

        return contiguous

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        yield CaseChange(text=f"{self.of}: contiguous -> strided with gaps", strided=self.of)

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} is contiguous", f"{self.of} 是连续的")


@dataclass(frozen=True, slots=True)
class NotEmptyRule(ParameterRule):
    """No dimension is 0."""

    @property
    def test(self) -> Test:
        of = self.of
        return lambda arguments, _target: 0 not in arguments[of].shape

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        shape = tensor_of(case, self.of).shape
        for axis in range(len(shape) - 1, -1, -1):
            yield CaseChange(text=f"{self.of}: dimension {axis} {shape[axis]} -> 0", axes={(self.of, axis): 0})

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} is not empty", f"{self.of} 非空")


@dataclass(frozen=True, slots=True)
class WordRule(ParameterRule):
    """The text is one of the words, letter by letter."""

    words: tuple[str, ...]

    @property
    def test(self) -> Test:
        of, words = self.of, frozenset(self.words)

        def listed(arguments: Mapping[str, Any], _target: Target) -> bool:
            if arguments[of] is None:
                raise TypeError(of)
            return arguments[of] in words

        return listed

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        old = str(case.arguments[self.of])
        # Another word, the same word in other letters, no word at all, and the word cut short and continued.
        for word in dict.fromkeys(("unlisted", old.upper(), "", old.capitalize(), old[:-1], f"{old}_", f" {old}")):
            if word not in self.words:
                yield CaseChange(text=f"{self.of}: {old!r} -> {word!r}", values={self.of: word})

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} is one of {', '.join(self.words)}", f"{self.of} 为 {'、'.join(self.words)} 之一")


_Key = TypeVar("_Key", bound="str | tuple[str, int]")


@dataclass(frozen=True, slots=True)
class EachItemRule(ParameterRule):
    """A rule on a tensor that every tensor of a list keeps; it reads its place as `index`."""

    rule: Rule
    """The rule, in which the list's name stands for one tensor of it."""

    @property
    def test(self) -> Test:
        of, test = self.of, self.rule.test

        def every(arguments: Mapping[str, Any], target: Target) -> bool | None:
            items = arguments[of].items
            own = dict(arguments)
            for place, own[of] in enumerate(items):
                own[INDEX] = place
                if not test(own, target):
                    return False
            return True

        return every

    def _each(self, spec: Spec, case: Case, *, limits: bool) -> Iterator[CaseChange]:
        """The changes of each tensor by itself: the first, the last, then those between."""
        value = case.arguments[self.of]
        if not isinstance(value, TensorList):
            raise TypeError(f"{self.of} is no list in a case that should hold all constraints")
        last = len(value) - 1
        for place in dict.fromkeys((last, 0, *range(1, last))) if last >= 0 else ():
            arguments = {**case.arguments, self.of: value[place], INDEX: place}
            own = msgspec.structs.replace(case, arguments=arguments)
            for change in (self.rule.limits if limits else self.rule.changes)(spec, own):
                yield _of_item(change, self.of, f"{self.of}[{place}]")

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        return self._each(spec, case, limits=False)

    def limits(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        return self._each(spec, case, limits=True)

    def describe(self, product: str) -> Words:
        words = self.rule.describe(product)
        return Words(f"each tensor: {words.en}", f"每个张量：{words.zh}")


def _of_item(change: CaseChange, of: str, name: str) -> CaseChange:
    """A change to a list's only tensor as one to a tensor of it."""

    def renamed(entries: Mapping[_Key, Any]) -> dict[Any, Any]:
        return {
            (name, key[1]) if isinstance(key, tuple) and key[0] == of else name if key == of else key: value
            for key, value in entries.items()
        }

    text = name + change.text.removeprefix(of) if change.text.startswith(of) else change.text
    return replace(
        change,
        text=text,
        dtypes=renamed(change.dtypes),
        formats=renamed(change.formats),
        ranks=renamed(change.ranks),
        axes=renamed(change.axes),
        data=renamed(change.data),
        strided=name if change.strided == of else change.strided,
    )


@dataclass(frozen=True, slots=True)
class ListLengthRule(LengthRule):
    """A list has as many tensors as an expression says."""

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        value = case.arguments[self.of]
        old = len(value) if isinstance(value, TensorList) else 0
        for count in dict.fromkeys((old - 1, old + 1, 0, 2 * old)):
            if count >= 0 and count != old:
                yield CaseChange(text=f"{self.of}: {old} -> {count} tensors", lengths={self.of: count})

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} has {self.text} tensors", f"{self.of} 有 {self.text} 个张量")
