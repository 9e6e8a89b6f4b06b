"""Mistakes of a file, gathered so that a person is shown all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from aclnn_cts.core.errors import did_you_mean
from aclnn_cts.core.outside import MESSAGE_LIMIT
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.form import form_mistakes
from aclnn_cts.speclang.yaml_file import YamlFile, YamlPath

_Form = TypeVar("_Form")


@dataclass
class Problems:
    """Collects messages of one file."""

    file: YamlFile
    messages: dict[str, None] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether so many mistakes are recorded that more are left out."""
        return len(self.messages) >= MESSAGE_LIMIT

    def add(self, path: Sequence[str | int], message: str) -> None:
        """Record a mistake at a path; the first `MESSAGE_LIMIT` of a file."""
        if not self.is_full:
            self.messages[f"{self.file.location_of(path)}: {message}"] = None

    def add_if(self, wrong: object, path: Sequence[str | int], message: str) -> None:
        """Record a mistake where something is wrong."""
        if wrong:
            self.add(path, message)

    def sorted(self) -> tuple[str, ...]:
        """The messages in the order of the file."""
        opening = len(self.file.name) + 1
        found = sorted(self.messages, key=lambda text: int(text[opening:].split(":", 1)[0]))
        more = (f"{self.file.name}: {MESSAGE_LIMIT} mistakes are shown; correct them to see the rest",)
        return (*found, *(more if self.is_full else ()))

    def read(self, form: type[_Form], value: object, path: YamlPath = ()) -> _Form | None:
        """A value as what it should be; None after a mistake of form, all of which are recorded."""
        mistakes = [*form_mistakes(self.file, value, form, path)]
        if not mistakes:
            return msgspec.convert(value, form)
        for place, message in mistakes:
            self.add(place, message)
        return None

    def known(self, word: str, names: Collection[str], path: Sequence[str | int], what: str) -> bool:
        """Whether `word` is among `names`; a mistake where not."""
        if word in names:
            return True
        options = list(dict.fromkeys(names))
        known = (
            f"expected any of {', '.join(options)}{did_you_mean(word, options)}" if options else "none is known here"
        )
        self.add(path, f"unknown {what} {quote(word)}; {known}")
        return False

    def all_known(
        self,
        words: Iterable[str],
        names: Collection[str],
        path: Sequence[str | int],
        what: str,
        *,
        numbered: bool = False,
    ) -> bool:
        """Whether all words are among `names`; a mistake for each that is not, in its place where they are numbered."""
        found = True
        for number, word in enumerate(words):
            found = self.known(word, names, (*path, number) if numbered else path, what) and found
        return found
