"""Measurements as they are published: JSON with one row a line, so that two of them can be compared line by line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outside import DOCUMENT_BYTES, read_outside
from aclnn_cts.core.printable import ECHO_LIMIT, printable, shown
from aclnn_cts.core.strict_json import strict_json


class _Published(Protocol):
    @property
    def format(self) -> str: ...


D = TypeVar("D", bound=_Published)


def document_of(measurement: msgspec.Struct, *, rows: Sequence[str]) -> bytes:
    """The document; the fields `rows`, which stand last, have one row a line."""
    document = msgspec.to_builtins(measurement)
    encode = msgspec.json.encode
    lines = [f'  "{key}": {encode(document[key]).decode()}' for key in document if key not in rows]
    for key in rows:
        encoded = ",\n".join(f"    {encode(row).decode()}" for row in document[key])
        lines.append(f'  "{key}": [\n{encoded}\n  ]' if encoded else f'  "{key}": []')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def read_document(path: Path, kind: type[D], *, form: str, expected: str) -> D:
    """Read what `document_of` wrote; UsageError for a file of another kind or `form` (its field `format`)."""
    content = read_outside(path, limit=DOCUMENT_BYTES, expected=expected)
    try:
        found = msgspec.convert(strict_json(content, where=str(path), expected=expected), kind)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}: {printable(str(error), ECHO_LIMIT)}; expected {expected}") from None
    if found.format != form:
        raise UsageError(f"{path}: format {shown(found.format)}; expected {form!r}")
    return found
