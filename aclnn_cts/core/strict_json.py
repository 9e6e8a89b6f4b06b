"""JSON from outside: valid, of bounded size, depth and digits, and no key twice in an object.

RFC 8259 leaves open what two equal keys mean, so that two programs may read two documents from one file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import shown

__all__ = ["JSON_CONTAINERS", "JSON_DEPTH", "JSON_DIGITS", "JSON_ITEMS", "strict_json"]

JSON_DEPTH = 64
JSON_DIGITS = 400
"""Digits of a number: more than the largest double has."""
JSON_ITEMS = 4_000_000
"""Items of all lists and objects of a document."""
JSON_CONTAINERS = 500_000
"""Lists and objects of a document."""

_DIGITS = re.compile(rb"[0-9]{%d}" % (JSON_DIGITS + 1))
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class _Twice(Exception):  # noqa: N818 - carries the key
    """A key stands twice in an object."""


def strict_json(
    text: bytes,
    *,
    where: str,
    expected: str = "one JSON object",
    error: type[UsageError | HarnessError] = UsageError,
) -> Any:  # noqa: ANN401 - any value
    """Decode JSON. Every mistake in it is an `error` that names `where` and what was expected there."""
    if (excess := _excess(text)) is not None:
        raise error(f"{where}: {excess}; expected {expected}")
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


def _unique(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that has a key twice. Nothing is built: another decoder has made the value."""
    if len(pairs) > 1 and len(keys := dict(pairs)) != len(pairs):
        raise _Twice(_repeated(pairs, keys))


_KEYS = json.JSONDecoder(object_pairs_hook=_unique, parse_int=len, parse_float=len)
"""Looks at keys alone; numbers become their lengths, which takes no memory."""


def _repeated(pairs: list[tuple[str, Any]], keys: Mapping[str, Any]) -> str:
    left = set(keys)
    for key, _ in pairs:
        if key not in left:
            return key
        left.remove(key)
    raise AssertionError("no key stands twice")


def _excess(text: bytes) -> str | None:
    """What a document has too much of; counted without building anything, so that strings count as well."""
    if text.count(b"[") + text.count(b"{") > JSON_CONTAINERS:
        return f"more than {JSON_CONTAINERS} lists and objects"
    if text.count(b",") > JSON_ITEMS:
        return f"more than {JSON_ITEMS} items"
    if len(text) > JSON_DIGITS and _DIGITS.search(text) is not None:
        return f"a number of more than {JSON_DIGITS} digits"
    return None


def _is_deep(text: bytes) -> bool:
    """Whether valid JSON is nested too deep. Brackets within strings count only at a first glance."""
    if text.count(b"[") + text.count(b"{") <= JSON_DEPTH or _depth(text) <= JSON_DEPTH:
        return False
    return _depth(_STRING.sub(b"", text)) > JSON_DEPTH


def _depth(text: bytes) -> int:
    deepest = depth = 0
    for byte in text.translate(None, _NO_BRACKETS):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest
