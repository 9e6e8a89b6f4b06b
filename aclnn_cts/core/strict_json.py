"""JSON from outside: valid, of bounded size, depth and digits, and no key twice in an object.

RFC 8259 leaves open what two equal keys mean, so that two programs may read two documents from one file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import shown

NON_FINITE: Mapping[str, float] = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
"""The words for numbers that JSON has none for."""
JSON_DEPTH = 64
JSON_DIGITS = 400
"""Digits of a number: more than the largest double has."""
JSON_ITEMS = 4_000_000
"""Items of all lists and objects of a document."""
JSON_CONTAINERS = 500_000
"""Lists and objects of a document."""
FEW_CONTAINERS = 50_000
"""The same of a run's manifest or summary, which have some thousand."""
JSON_STRINGS = 2_000_000
"""Strings of a document, names of members included."""
JSON_WIDE_BYTES = 16 * 1024 * 1024
"""Bytes of a document with characters beyond ASCII: one of them makes each character of its string take four bytes."""

_DIGITS = re.compile(rb"[0-9]{%d}" % (JSON_DIGITS + 1))
_STRING = re.compile(rb'"[^"]*"')
"""A string without quotation marks inside. A pattern that knows escapes takes fifty times the string's memory."""
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class _Twice(Exception):  # noqa: N818 - carries the key
    """A key stands twice in an object."""


def spelled(value: float) -> float | str:
    """A number, or the word that stands for it where JSON has none."""
    return value if math.isfinite(value) else str(value)


def strict_json(
    text: bytes,
    *,
    where: str,
    expected: str = "one JSON object",
    error: type[UsageError | HarnessError] = UsageError,
    containers: int = JSON_CONTAINERS,
) -> Any:  # noqa: ANN401 - any value
    """Decode JSON. Every mistake in it is an `error` that names `where` and what was expected there."""
    check_size(text, where=where, expected=expected, error=error, containers=containers)
    try:
        value = msgspec.json.decode(text)
        _KEYS.decode(text.decode())
    except _Twice as twice:
        raise error(f"{where}: the key {shown(twice.args[0])} stands twice in one object; keep one") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as failure:
        raise error(f"{where}: not valid JSON ({failure}); expected {expected}") from None
    if _is_deep(text):
        raise error(f"{where}: nested deeper than {JSON_DEPTH} levels; expected {expected}")
    return value


def check_size(
    text: bytes,
    *,
    where: str,
    expected: str,
    error: type[UsageError | HarnessError] = UsageError,
    containers: int = JSON_CONTAINERS,
) -> None:
    """Raise `error` where a document has too much of anything: before it is decoded, since that takes the memory."""
    if (excess := _excess(text, containers)) is not None:
        raise error(f"{where}: {excess}; expected {expected}")


def _unique(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that has a key twice. Nothing is built: another decoder has made the value."""
    if len(pairs) < 2 or len(left := dict(pairs)) == len(pairs):
        return
    for key, _ in pairs:
        if key not in left:
            raise _Twice(key)
        del left[key]


_KEYS = json.JSONDecoder(object_pairs_hook=_unique, parse_int=len, parse_float=len)
"""Looks at keys alone; numbers become their lengths, which takes no memory."""


def _excess(text: bytes, containers: int) -> str | None:
    """What a document has too much of; counted without building anything, so that strings count as well."""
    if text.count(b"[") + text.count(b"{") > containers:
        return f"more than {containers} lists and objects"
    if text.count(b",") > JSON_ITEMS:
        return f"more than {JSON_ITEMS} items"
    if text.count(b'"') > 2 * JSON_STRINGS:
        return f"more than {JSON_STRINGS} strings"
    if len(text) > JSON_WIDE_BYTES and not (text.isascii() and b"\\u" not in text):
        return f"more than {JSON_WIDE_BYTES} bytes, with characters beyond ASCII"
    if len(text) > JSON_DIGITS and _DIGITS.search(text) is not None:
        return f"a number of more than {JSON_DIGITS} digits"
    return None


def _is_deep(text: bytes) -> bool:
    """Whether valid JSON is nested too deep. Brackets within strings count only at a first glance."""
    if text.count(b"[") + text.count(b"{") <= JSON_DEPTH or _depth(text) <= JSON_DEPTH:
        return False
    # In valid JSON a backslash stands in strings alone, and after these two no quotation mark does.
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return _depth(_STRING.sub(b"", plain)) > JSON_DEPTH


def _depth(text: bytes) -> int:
    deepest = depth = 0
    for byte in text.translate(None, _NO_BRACKETS):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest
