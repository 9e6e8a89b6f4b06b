"""Case and trial files: read with the place of every mistake, written whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outside import BLANK_LINES, DOCUMENT_BYTES, MESSAGE_LIMIT, open_outside, strict_json
from aclnn_cts.core.trial import Trial, trial_from_json, trial_to_json
from aclnn_cts.store.output_file import OutputFile

_LINES = ".jsonl"


def trial_text(trial: Trial) -> bytes:
    """The content of a file that holds one trial."""
    return msgspec.json.format(msgspec.json.encode(trial_to_json(trial)), indent=2) + b"\n"


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """One document of a file. A bare case stands for the trial that its check makes of it."""

    where: str
    """The file, and the line in a file of lines."""
    content: Trial | Case


def read_case_file(path: Path, *, limit: int = DOCUMENT_BYTES, regular: bool = False) -> Iterator[CaseEntry]:
    """The documents of a file: one a line where its name ends in `.jsonl`, else one.

    A stream: a file of lines is never in memory as a whole. Every mistake (no such file, no document in it, a document
    beyond `limit` bytes, and all that `trial_from_json` refuses) is a UsageError that names the file and the line.
    `regular`: so is a pipe, as in a directory that another person made.
    """
    for entry in read_entries(path, limit=limit, regular=regular):
        if isinstance(entry, UsageError):
            raise entry
        yield entry


def read_entries(path: Path, *, limit: int = DOCUMENT_BYTES, regular: bool = False) -> Iterator[CaseEntry | UsageError]:
    """The same, with each mistake where it stands: the lines after a wrong one are read too, up to `MESSAGE_LIMIT`."""
    wrong = 0
    try:
        with open_outside(path, expected="a case file (.json or .jsonl)", regular=regular) as file:
            documents = _lines(file, path, limit) if path.suffix == _LINES else _whole(file, path, limit)
            for where, text in documents:
                try:
                    _check_size(text, limit, where)
                    yield CaseEntry(where, trial_from_json(strict_json(text, where=where), where=where))
                except UsageError as error:
                    yield error
                    wrong += 1
                if wrong >= MESSAGE_LIMIT:
                    yield UsageError(f"{where}: {wrong} lines are wrong; the rest of the file is not read")
                    return
    except UsageError as error:
        yield error


def _whole(file: BinaryIO, path: Path, limit: int) -> Iterator[tuple[str, bytes]]:
    text = file.read(limit + 1)
    if not text.strip() and len(text) <= limit:
        raise UsageError(f"{path}: empty; expected one JSON object")
    first, _, rest = text.partition(b"\n")
    if first.startswith(b"{") and first.rstrip().endswith(b"}") and rest.strip():
        raise UsageError(f"{path}: several lines, each with a JSON object; name such a file *{_LINES}")
    yield str(path), text


def _lines(file: BinaryIO, path: Path, limit: int) -> Iterator[tuple[str, bytes]]:
    number = blank = 0
    while text := file.readline(limit + 1):
        number += 1
        if text.strip() or len(text) > limit:
            yield f"{path}:{number}", text
        elif (blank := blank + 1) > BLANK_LINES:
            raise UsageError(f"{path}:{number}: more than {BLANK_LINES} empty lines; expected one JSON object a line")
        rest = text
        while len(rest) > limit and not rest.endswith(b"\n"):
            rest = file.readline(limit + 1)
    if blank == number:
        raise UsageError(f"{path}: empty; expected one JSON object a line")


def _check_size(text: bytes, limit: int, where: str) -> None:
    if len(text) > limit:
        raise UsageError(f"{where}: longer than {limit} bytes; describe large data by a recipe instead of values")


def write_case_file(output: OutputFile, entries: Iterable[Trial | Case]) -> int:
    """Write one document a line, all or none; how many. Raises HarnessError where the file cannot be written."""
    number = 0

    def lines() -> Iterator[bytes]:
        nonlocal number
        for entry in entries:
            document = trial_to_json(entry) if isinstance(entry, Trial) else case_to_json(entry)
            number += 1
            yield msgspec.json.encode(document) + b"\n"

    output.write(lines())
    return number
