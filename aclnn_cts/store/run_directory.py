"""The directory that a run leaves behind: its layout and names, and how it is read.

    manifest.json   specs/   waivers/   results.sqlite   blobs/   failures/   summary.json

`summary.json` comes last: a directory without it belongs to a run that is under way or was killed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outside import FEW_CONTAINERS, open_outside, read_outside, strict_json
from aclnn_cts.store.manifest import Manifest, manifest_from_json
from aclnn_cts.store.store_reader import ResultReader
from aclnn_cts.store.summary import Summary, summary_from_json

MANIFEST, SUMMARY, RESULTS = "manifest.json", "summary.json", "results.sqlite"
SPECS, WAIVERS, BLOBS, FAILURES = "specs", "waivers", "blobs", "failures"
EXPORT = "campaign.jsonl"
"""What a campaign's directory has beside these."""
STATE = "summary"
"""Key under which the store keeps the counts of the records that it holds."""
FINDINGS = "findings"
"""Key under which the store of a run that has ended keeps its findings (`core.finding.Finding`)."""

_OWN = frozenset({MANIFEST, SUMMARY, SPECS, WAIVERS, BLOBS, FAILURES, EXPORT})
"""What a run's directory holds of its own, beside its results and what is named after them."""
_FILES = frozenset({MANIFEST, SUMMARY, RESULTS, EXPORT})
"""Those that lie in no folder of it."""
_EXPECTED = "the directory of a run as it was written"
RUN_DOCUMENT_BYTES = 32 * 1024 * 1024
"""Bytes of a manifest or summary. A quick run's summary has 30 to 100 kB for each operator."""
_HEAD = 256
"""Bytes of a manifest among which its format stands."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A run read from its directory, finished or not."""

    path: Path

    def __post_init__(self) -> None:
        if not (self.path / MANIFEST).is_file():
            raise UsageError(f"{self.path}: holds no {MANIFEST}; expected the directory that a run wrote")
        if (found := next(_irregular_files(self.path), None)) is not None:
            raise HarnessError(f"{found}: is no regular file; expected {_EXPECTED}")

    @property
    def finished(self) -> bool:
        """Whether the run came to its end, or was interrupted and could still write its summary."""
        return (self.path / SUMMARY).is_file()

    @property
    def manifest(self) -> Manifest:
        """What was run, and on what."""
        path = self.path / MANIFEST
        return manifest_from_json(read_run_file(path), where=str(path))

    def results(self) -> ResultReader:
        """The records; to be closed."""
        return ResultReader(self.path / RESULTS)

    def summary(self) -> Summary:
        """The counts: of `summary.json`, or of all batches that a killed run had stored."""
        path = self.path / SUMMARY
        if self.finished:
            return summary_from_json(read_document(path), where=str(path))
        with self.results() as results:
            return summary_from_json(results.state(STATE) or {}, where=str(results.path))

    def specs(self) -> tuple[Path, ...]:
        """The spec files as they were used."""
        return _listed(self.path / SPECS)

    def waivers(self) -> tuple[Path, ...]:
        """The waiver files as they were used; none where the run kept none."""
        folder = self.path / WAIVERS
        return _listed(folder) if folder.is_dir() else ()

    def failures(self) -> tuple[Path, ...]:
        """One trial file for each distinct finding, by name."""
        return tuple(sorted((self.path / FAILURES).glob("*.json")))


def enclosing_run(path: Path) -> Path | None:
    """The run's directory that a path without links lies in, at whatever depth; None where it lies in none."""
    return next((folder for folder in path.absolute().parents if _is_run(folder)), None)


def belongs_to_run(path: Path) -> bool:
    """Whether a path is one that a run's directory keeps for its own: its files, and all that lies in its folders."""
    run = enclosing_run(path)
    if run is None:
        return False
    name = path.absolute().relative_to(run).parts[0]
    return name in _OWN or name.removeprefix(".").startswith(RESULTS)


def _is_run(folder: Path) -> bool:
    """Also of a run that was killed before it had a manifest, or whose manifest is damaged."""
    if (folder / RESULTS).is_file() and (folder / SPECS).is_dir():
        return True
    try:
        with open_outside(folder / MANIFEST, expected=_EXPECTED, regular=True) as file:
            return b'"aclnn-cts/' in file.read(_HEAD)
    except UsageError:
        return False


def _irregular_files(run: Path) -> Iterator[Path]:
    """Devices, pipes, folders and links to them or to nothing, where a run keeps a file.

    They are looked for before anything is read, so that all commands refuse the same directories.
    """
    for folder in (run, *(run / name for name in (SPECS, WAIVERS, BLOBS, FAILURES))):
        if not folder.is_dir():
            continue
        with os.scandir(folder) as entries:
            for entry in entries:
                # What another process has removed meanwhile is neither.
                if (folder != run or entry.name in _FILES) and not entry.is_file() and os.path.lexists(entry.path):
                    yield Path(entry.path)


def default_run_path(command: str, adapter: str, *, now: datetime | None = None, base: Path = Path("runs")) -> Path:
    """Where a run goes that was not told: `runs/<UTC time>-<command>-<adapter>`, numbered where that stands already."""
    moment = (now or datetime.now(timezone.utc)).astimezone(timezone.utc)
    first = base / f"{moment:%Y%m%d-%H%M%S}-{command}-{re.sub(r'[^A-Za-z0-9_.]+', '-', adapter).strip('-.')[:80]}"
    path, number = first, 1
    while path.exists():
        number += 1
        path = first.with_name(f"{first.name}-{number}")
    return path


def read_run_file(path: Path, *, limit: int = RUN_DOCUMENT_BYTES) -> bytes:
    """A file of a run's directory; HarnessError where it cannot be read, is longer, or is no regular file."""
    return read_outside(path, limit=limit, expected=_EXPECTED, error=HarnessError, regular=True)


def read_document(path: Path) -> Any:  # noqa: ANN401 - any JSON
    """A JSON file of a run's directory; HarnessError as `read_run_file`, and where it is not valid."""
    return strict_json(read_run_file(path), where=str(path), error=HarnessError, containers=FEW_CONTAINERS)


def _listed(folder: Path) -> tuple[Path, ...]:
    try:
        return tuple(sorted(folder.iterdir()))
    except OSError as error:
        raise HarnessError(f"{folder}: cannot be read: {error.strerror}; expected {_EXPECTED}") from None
