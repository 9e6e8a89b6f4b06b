"""Text from outside made fit for a terminal, a table and a report: nothing hidden, nothing that moves other text.

Names, messages and paths of files, adapters and command lines may hold escape sequences, bidirectional controls or NUL.
Every place that shows such text calls `printable`, and every message that repeats a value calls `quote`.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Sequence
from itertools import islice
from typing import Any

ECHO_LIMIT = 200
"""Characters of an outside value that a message repeats at most."""

LINE_LIMIT = 4000
"""Characters of a line of a message: the longest list of expected words fits."""

MOST_LINES = 200
"""Lines of a message."""

_FORMAT = (
    "\\x7f-\\x9f\\xad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff"
    "\\ufff9-\\ufffb\\ud800-\\udfff\\U000e0000-\\U000e0fff"
)
"""Controls, format characters (Unicode's Cf, the bidirectional ones among them), line separators and surrogates."""
_HIDDEN = re.compile(f"[\\x00-\\x1f{_FORMAT}]")
_HIDDEN_IN_LINES = re.compile(f"[\\x00-\\x08\\x0b-\\x1f{_FORMAT}]")


def printable(text: str, limit: int | None = None) -> str:
    r"""The text on one line, with every character that shows nothing or moves others in the form of `\x1b`.

    `limit`: characters at most.
    """
    if limit is not None:
        text = text[: limit + 1]
    plain = text if text.isprintable() else _HIDDEN.sub(_spelled, text)
    return plain if limit is None else _cut(plain, limit)


def printable_lines(text: str) -> str:
    """A message of several lines as `printable`: lines stay, each at most `LINE_LIMIT` long, at most `MOST_LINES`."""
    if len(text) <= LINE_LIMIT and text.isprintable():
        return text
    lines = text.split("\n", MOST_LINES)
    more = ["..."] if len(lines) > MOST_LINES else []
    return "\n".join([*(printable(line, LINE_LIMIT) for line in lines[:MOST_LINES]), *more])


def quote(value: object, limit: int = ECHO_LIMIT) -> str:
    """A value as a message repeats it: its representation, at most `limit` characters, whatever its size."""
    return _cut(repr(value[: limit + 1]) if isinstance(value, str) else _SHORT.repr(value), limit)


def number_text(value: float | str, digits: int = 3) -> str:
    """A measured number to so many digits; the words for inf and nan as they are."""
    return value if isinstance(value, str) else f"{value:.{digits}g}"


def alternatives_text(words: Sequence[str]) -> str:
    """Words in a sentence: `a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), *words[-1:]] if len(words) > 1 else words)


def printable_document(text: str) -> str:
    """A whole document as `printable`, whose line ends and tabs stay."""
    return _HIDDEN_IN_LINES.sub(_spelled, text)


def printable_json(text: str) -> str:
    """JSON with the same meaning, in which every hidden character is an escape sequence of JSON.

    Such characters stand in strings alone, since JSON has no other place for them.
    """
    return _HIDDEN_IN_LINES.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _spelled(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


class _Short(reprlib.Repr):
    """Looks at no more of a container than a message can show."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 6
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 64
        self.maxstring = self.maxother = self.maxlong = ECHO_LIMIT

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """A mapping in its own order."""
        if level <= 0 and x:
            return "{...}"
        shown = [f"{self.repr1(key, level - 1)}: {self.repr1(x[key], level - 1)}" for key in islice(x, self.maxdict)]
        return f"{{{', '.join([*shown, *(['...'] if len(x) > self.maxdict else [])])}}}"

    def repr_int(self, x: int, level: int) -> str:
        """An integer; the digits of a long one are not counted out, since that takes quadratic time."""
        return repr(x) if x.bit_length() <= 1024 else f"an integer of {x.bit_length()} bits"


_SHORT = _Short()
