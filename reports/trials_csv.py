"""Every trial as a line of CSV (RFC 4180), in UTF-8 with a byte order mark, so that spreadsheets read its Chinese."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import fields

from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.model.acceptance import Acceptance, TrialRow

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_bytes(report: Acceptance, rows: Callable[[], Iterable[TrialRow]], language: str) -> bytes:
    """The whole table."""
    names = [field.name for field in fields(TrialRow)]
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\r\n")
    writer.writerow(names)
    for row in rows():
        writer.writerow([harmless(getattr(row, name)) for name in names])
    return target.getvalue().encode("utf-8-sig")


def harmless(value: object) -> object:
    """A cell that no spreadsheet takes for a formula (OWASP, CSV injection): text gets an apostrophe before it.

    Hidden characters are spelled out; many readers and Python 3.10's writer of CSV refuse a NUL.
    """
    if not isinstance(value, str):
        return value
    text = printable_document(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
