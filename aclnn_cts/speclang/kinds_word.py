"""The rule about texts: a `char *` holds one of the words that the document lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.kinds import ParameterRule, Test, Way, Words

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec


@dataclass(frozen=True, slots=True)
class WordIn(ParameterRule):
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

    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        old = str(case.arguments[self.of])
        # Another word, the same word in other letters, no word at all, and the word cut short and continued.
        for word in dict.fromkeys(("unlisted", old.upper(), "", old.capitalize(), old[:-1], f"{old}_", f" {old}")):
            if word not in self.words:
                yield Way(text=f"{self.of}: {old!r} -> {word!r}", values={self.of: word})

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} is one of {', '.join(self.words)}", f"{self.of} 为 {'、'.join(self.words)} 之一")
