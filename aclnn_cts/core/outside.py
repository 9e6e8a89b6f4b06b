"""Files from outside: opened so that nothing waits for ever, read up to a limit, and JSON of bounded form.

Every reader takes its limits from here. A pipe is read like a file, so that `/dev/stdin` and `<(command)` work; a pipe
that nobody writes to ends with a message after `SILENCE_SECONDS`. Devices other than a terminal are refused.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
import select
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import ECHO_LIMIT, printable, quote

T = TypeVar("T")

DOCUMENT_BYTES = 64 * 1024 * 1024
"""Bytes of one JSON document: explicit data of several million elements."""
MARKDOWN_BYTES = 256 * 1024
"""Bytes of an operator's document in Markdown: five times the longest that is published."""
YAML_BYTES = 1024 * 1024
"""Bytes of a spec or waiver file."""
YAML_DEPTH = 24
YAML_ITEMS = 50_000
"""Scalars, lists and mappings of a YAML file."""
BLANK_LINES = 100_000
"""Empty lines in a file with one document a line."""
RANK_LIMIT = 16
"""Dimensions of a tensor: twice the most that a document allows, and few enough that no size exceeds a double."""
ARRAY_LIMIT = 4096
"""Items of an aclIntArray."""
MESSAGE_LIMIT = 100
"""Mistakes that are reported of one file."""
SILENCE_SECONDS = 30.0
"""How long a pipe may be silent."""

_CHUNK = 1 << 20
HOLLOW = "it is mostly holes, which would be read as zeros for hours"
_HOLLOW_BYTES = 64 * 1024 * 1024
_HOLLOW_TIMES = 100


@contextlib.contextmanager
def open_outside(
    path: Path,
    *,
    expected: str,
    error: type[UsageError | HarnessError] = UsageError,
    name: str = "",
    regular: bool = False,
) -> Iterator[BinaryIO]:
    """Open a file for reading. Whatever fails, also while it is read, is an `error` that names the file.

    - `expected`: what the file should have been.
    - `name`: how messages call it, instead of its path.
    - `regular`: refuse a pipe too, as in a directory that another person made.
    """
    try:
        with _opened(path, regular=regular) as file:
            yield file
    except OSError as failure:
        reason = failure.strerror or str(failure)
        raise error(f"{name or path}: cannot be read: {reason}; expected {expected}") from None


def read_outside(
    path: Path,
    *,
    limit: int,
    expected: str,
    error: type[UsageError | HarnessError] = UsageError,
    name: str = "",
    regular: bool = False,
) -> bytes:
    """The bytes of a file of at most `limit` bytes; all else as `open_outside`."""
    with open_outside(path, expected=expected, error=error, name=name, regular=regular) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise error(f"{name or path}: longer than {limit} bytes; expected {expected}")
    return content


def sha256_of(path: Path, *, expected: str, error: type[UsageError | HarnessError] = UsageError) -> str:
    """SHA-256 of a regular file in hexadecimal; empty for a pipe, whose contents are gone once they are read."""
    digest = hashlib.sha256()
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(path.stat().st_mode):
            return ""
    with open_outside(path, expected=expected, error=error) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _opened(path: Path, *, regular: bool) -> BinaryIO:
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except ValueError:
        raise OSError(errno.EINVAL, "its name holds a NUL or another character that no file name has") from None
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        if regular and is_hollow(os.fstat(number)):
            os.close(number)
            raise OSError(errno.EINVAL, HOLLOW)
        os.set_blocking(number, True)
        return os.fdopen(number, "rb")
    if not regular and (stat.S_ISFIFO(mode) or os.isatty(number)):
        return io.BufferedReader(_Pipe(number))
    os.close(number)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "it is no regular file" if regular else "it is a device")


def is_hollow(status: os.stat_result) -> bool:
    """Whether a large file takes so little of its disk that no compression explains it."""
    return status.st_size > _HOLLOW_BYTES and status.st_size > _HOLLOW_TIMES * 512 * status.st_blocks


class _Pipe(io.RawIOBase):
    """Reads a descriptor that does not block, and waits at most `SILENCE_SECONDS` for each piece."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._poll = select.poll()
        self._poll.register(number, select.POLLIN)

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # bytes-like in the stub, a view in CPython
        """As `RawIOBase.readinto`; TimeoutError where nothing comes."""
        while True:
            if not self._poll.poll(SILENCE_SECONDS * 1000):
                raise TimeoutError(errno.ETIMEDOUT, f"it is a pipe, and nothing came for {SILENCE_SECONDS:g} s")
            try:
                return os.readv(self._number, [buffer])
            except BlockingIOError:
                continue

    def close(self) -> None:
        """Let go of the descriptor."""
        if not self.closed:
            super().close()
            os.close(self._number)


NON_FINITE: Mapping[str, float] = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
"""The words for numbers that JSON has none for."""
JSON_DEPTH = 64
JSON_DIGITS = 400
"""Digits of a number: more than the largest double has."""
JSON_ITEMS = 4_000_000
"""Items of all lists and objects of a document."""
JSON_CONTAINERS = 500_000
"""Lists and objects of a document."""
FEW_CONTAINERS = 200_000
"""The same of a run's manifest or summary, which has 240 to 690 for each operator."""
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


def number_or_word(value: float) -> float | str:
    """A number, or the word that stands for it where JSON has none."""
    return value if math.isfinite(value) else str(value)


def numbers_as_words(value: Any) -> Any:  # noqa: ANN401 - any plain value
    """Plain values with the words for the numbers that JSON has none for."""
    kind = type(value)
    if kind is float:
        return number_or_word(value)
    if kind is dict:
        return {key: numbers_as_words(item) for key, item in value.items()}
    return [numbers_as_words(item) for item in value] if kind in (list, tuple) else value


def strict_json(
    text: bytes,
    *,
    where: str,
    expected: str = "one JSON object",
    error: type[UsageError | HarnessError] = UsageError,
    containers: int = JSON_CONTAINERS,
) -> Any:  # noqa: ANN401 - any value
    """Decode JSON. Every mistake in it is an `error` that names `where` and what was expected there."""
    check_json_size(text, where=where, expected=expected, error=error, containers=containers)
    try:
        value = msgspec.json.decode(text)
        _KEYS.decode(text.decode())
    except _Twice as twice:
        raise error(f"{where}: the key {quote(twice.args[0])} stands twice in one object; keep one") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as failure:
        raise error(f"{where}: not valid JSON ({failure}); expected {expected}") from None
    if _is_deep(text):
        raise error(f"{where}: nested deeper than {JSON_DEPTH} levels; expected {expected}")
    return value


def check_json_size(
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


def convert_document(
    document: object,
    kind: type[T],
    *,
    where: str,
    expected: str,
    form: str = "",
    error: type[UsageError | HarnessError] = UsageError,
) -> T:
    """A decoded document as a struct. An `error` where it is none, or has another format than `form`."""
    try:
        found = msgspec.convert(document, kind)
    except msgspec.ValidationError as failure:
        raise error(f"{where}: {printable(str(failure), ECHO_LIMIT)}; expected {expected}") from None
    if form and (name := getattr(found, "format", "")) != form:
        raise error(f"{where}: $.format: {quote(name)}; this version reads {form!r}")
    return found


def read_json(path: Path, kind: type[T], *, expected: str, form: str = "", limit: int = YAML_BYTES) -> T:
    """A file that a command of ours wrote, as a struct; UsageError for any other file, as `convert_document`."""
    document = strict_json(read_outside(path, limit=limit, expected=expected), where=str(path), expected=expected)
    return convert_document(document, kind, where=str(path), expected=expected, form=form)
