"""Rules about lists of tensors: how many there are, and a rule on tensors that every one of them keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from aclnn_cts.core.case import Case, TensorList
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression_parser import compiled
from aclnn_cts.speclang.kinds import ParameterRule, Rule, Test, Way, Words
from aclnn_cts.speclang.shape import INDEX

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec

_Key = TypeVar("_Key", bound="str | tuple[str, int]")


@dataclass(frozen=True, slots=True)
class EachItem(ParameterRule):
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

    def _each(self, spec: Spec, case: Case, *, limits: bool) -> Iterator[Way]:
        """The ways of each tensor by itself: the first, the last, then those between."""
        value = case.arguments[self.of]
        if not isinstance(value, TensorList):
            raise TypeError(f"{self.of} is no list in a case that should hold all constraints")
        last = len(value) - 1
        for place in dict.fromkeys((last, 0, *range(1, last))) if last >= 0 else ():
            arguments = {**case.arguments, self.of: value[place], INDEX: place}
            own = msgspec.structs.replace(case, arguments=arguments)
            for way in (self.rule.limits if limits else self.rule.ways)(spec, own):
                yield _of_item(way, self.of, f"{self.of}[{place}]")

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        return self._each(spec, case, limits=False)

    def limits(self, spec: Spec, case: Case) -> Iterator[Way]:
        return self._each(spec, case, limits=True)

    def describe(self, product: str) -> Words:
        words = self.rule.describe(product)
        return Words(f"each tensor: {words.en}", f"每个张量：{words.zh}")


def _of_item(way: Way, of: str, name: str) -> Way:
    """A change to a list's only tensor as one to a tensor of it."""

    def renamed(entries: Mapping[_Key, Any]) -> dict[Any, Any]:
        return {
            (name, key[1]) if isinstance(key, tuple) and key[0] == of else name if key == of else key: value
            for key, value in entries.items()
        }

    text = name + way.text.removeprefix(of) if way.text.startswith(of) else way.text
    return replace(
        way,
        text=text,
        dtypes=renamed(way.dtypes),
        formats=renamed(way.formats),
        ranks=renamed(way.ranks),
        axes=renamed(way.axes),
        data=renamed(way.data),
        strided=name if way.strided == of else way.strided,
    )


@dataclass(frozen=True, slots=True)
class ListLength(ParameterRule):
    """A list has as many tensors as an expression says."""

    text: str

    @property
    def test(self) -> Test:
        of, expected = self.of, compiled(self.text)
        return lambda arguments, target: len(arguments[of]) == expected(arguments, target)

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        value = case.arguments[self.of]
        old = len(value) if isinstance(value, TensorList) else 0
        for count in dict.fromkeys((old - 1, old + 1, 0, 2 * old)):
            if count >= 0 and count != old:
                yield Way(text=f"{self.of}: {old} -> {count} tensors", lengths={self.of: count})

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} has {self.text} tensors", f"{self.of} 有 {self.text} 个张量")
