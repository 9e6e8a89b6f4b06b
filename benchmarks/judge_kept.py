"""Rows that were counted before: a run of hours that was interrupted goes on where it stopped.

A count holds for the sources that it was made with. Their hash is part of a file's name, so that a count of other
sources is never taken for one of these.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from pathlib import Path
from typing import Any, get_origin

import msgspec

from benchmarks.judge_rows import Amount, Row, RowCount

_CHECKOUT = Path(__file__).parent.parent
_SOURCES = ("checks", "core", "execution", "generate", "judgement", "sandbox", "speclang")
_FOLDERS = (*(f"aclnn_cts/{name}" for name in _SOURCES), "adapters", "benchmarks", "oracles", "specs")


class Kept:
    """The counts in one folder that were made with the sources as they are now."""

    def __init__(self, folder: Path, amount: Amount, *, with_torch: bool) -> None:
        """Make the folder; `amount` and `with_torch` are those of the run."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.name = hashlib.sha256(f"{_sources()} {amount} {with_torch}".encode()).hexdigest()[:16]

    def _file(self, row: Row) -> Path:
        return self.folder / f"{self.name}-{'-'.join(filter(None, (row.operator, row.dtype, row.mode)))}.json"

    def read(self, row: Row) -> RowCount | None:
        """The count of a row, if there is one."""
        file = self._file(row)
        return decoded(file.read_bytes()) if file.exists() else None

    def write(self, count: RowCount) -> None:
        """Keep a count; there is the whole file or none."""
        file = self._file(count.row)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(msgspec.json.encode(count))
        part.replace(file)


def decoded(content: bytes) -> RowCount:
    """A count from its JSON form."""
    return msgspec.json.decode(content, type=RowCount, dec_hook=_counter)


def _counter(kind: type, value: Any) -> Any:  # noqa: ANN401 - msgspec's own signature
    if get_origin(kind) is Counter or kind is Counter:
        return Counter(value)
    raise NotImplementedError(f"{kind} in a count")


def _sources() -> str:
    """One hash of every file that a count depends on."""
    total = hashlib.sha256()
    for folder in _FOLDERS:
        for file in sorted((_CHECKOUT / folder).rglob("*")):
            if file.suffix in (".py", ".yaml") and file.is_file():
                total.update(f"{file.relative_to(_CHECKOUT)} {hashlib.sha256(file.read_bytes()).hexdigest()}".encode())
    return total.hexdigest()
