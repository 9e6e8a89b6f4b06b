"""The directory that a run leaves behind: its layout, made, resumed and read again.

    manifest.json   specs/   waivers/   results.sqlite   blobs/   failures/   summary.json

`summary.json` comes last: a directory without it belongs to a run that is under way or was killed.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import final

import msgspec

from aclnn_cts.core.case_json import strict_json
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.trial import Trial, trial_to_json
from aclnn_cts.core.verdict import Record, Result, Signature
from aclnn_cts.engine.coverage import Coverage
from aclnn_cts.engine.events import BatchJudged, Event, Planned, RunFinished, Skipped
from aclnn_cts.engine.files import storage_failure, write_atomically
from aclnn_cts.engine.manifest import Manifest, manifest_from_json
from aclnn_cts.engine.record_codec import signature_key
from aclnn_cts.engine.store import ResultStore
from aclnn_cts.engine.store_reader import Query, ResultReader
from aclnn_cts.engine.summary import Summary, summary_from_json, summary_to_json

__all__ = ["BLOB_LIMIT", "RunDirectory", "RunWriter", "create_run", "default_run_path", "failure_name", "resume_run"]

BLOB_LIMIT = 256 * 1024 * 1024
"""Bytes of recorded outputs that a run keeps unless it is told otherwise."""

_MANIFEST, _SUMMARY, _RESULTS = "manifest.json", "summary.json", "results.sqlite"
_SPECS, _WAIVERS, _BLOBS, _FAILURES = "specs", "waivers", "blobs", "failures"
_STATE = "summary"
"""Key under which the store keeps the counts of the records that it holds."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A run read from its directory, finished or not."""

    path: Path

    def __post_init__(self) -> None:
        if not (self.path / _MANIFEST).is_file():
            raise UsageError(f"{self.path}: holds no {_MANIFEST}; expected the directory that a run wrote")

    @property
    def finished(self) -> bool:
        """Whether the run came to its end, or was interrupted and could still write its summary."""
        return (self.path / _SUMMARY).is_file()

    @property
    def manifest(self) -> Manifest:
        """What was run, and on what."""
        path = self.path / _MANIFEST
        return manifest_from_json(_read(path), where=str(path))

    def results(self) -> ResultReader:
        """The records; to be closed."""
        return ResultReader(self.path / _RESULTS)

    def summary(self) -> Summary:
        """The counts: of `summary.json`, or of all batches that a killed run had stored."""
        path = self.path / _SUMMARY
        if self.finished:
            return summary_from_json(strict_json(_read(path), where=str(path)), where=str(path))
        with self.results() as results:
            return summary_from_json(results.state(_STATE) or {}, where=str(results.path))

    def specs(self) -> tuple[Path, ...]:
        """The spec files as they were used."""
        return tuple(sorted((self.path / _SPECS).iterdir()))

    def waivers(self) -> tuple[Path, ...]:
        """The waiver files as they were used; none where the run kept none."""
        folder = self.path / _WAIVERS
        return tuple(sorted(folder.iterdir())) if folder.is_dir() else ()

    def failures(self) -> tuple[Path, ...]:
        """One trial file for each distinct finding, by name."""
        return tuple(sorted((self.path / _FAILURES).glob("*.json")))

    def blob(self, digest: str) -> bytes:
        """Recorded bytes by their SHA-256; raises HarnessError where they are not there or not those."""
        path = self.path / _BLOBS / digest
        content = _read(path)
        if (found := hashlib.sha256(content).hexdigest()) != digest:
            raise HarnessError(f"{path}: its SHA-256 is {found}; the file has been changed or its disk is damaged")
        return content


@final
class RunWriter:
    """Stores what a run emits; a consumer of its events. To be used as a context manager."""

    def __init__(self, path: Path, *, store: ResultStore, summary: Summary, blob_limit: int) -> None:
        self.path = path
        self.summary = summary
        """The counts of what is stored, and of what is planned."""
        self.blobs_refused = 0
        """Recorded outputs that the limit kept out."""
        self._store = store
        self._blob_room = blob_limit - sum(blob.stat().st_size for blob in (path / _BLOBS).iterdir())
        self._failures = {file.name for file in (path / _FAILURES).iterdir()}

    def __call__(self, event: Event, /) -> None:
        """Take one event of the run."""
        if isinstance(event, Planned):
            self.summary.plan(event.operator, event.kind, number=event.number)
        elif isinstance(event, Skipped):
            self.summary.skip(event.operator, event.kind, reason=event.reason, number=event.number)
        elif isinstance(event, BatchJudged):
            self.append(event.records, coverage=event.coverage, state=event.state)
            for content in event.blobs:
                self.blob(content)
        elif isinstance(event, RunFinished):
            self.finish(seconds=event.seconds, interrupted=event.interrupted)

    def append(
        self, records: Sequence[Record], *, coverage: Coverage | None = None, state: Mapping[str, object] | None = None
    ) -> None:
        """Store a batch, its counts and `state` in one commit, then the trial file of each new finding."""
        summary = copy.deepcopy(self.summary)
        for record in records:
            summary.add(record)
        if coverage is not None:
            summary.cover(coverage)
        self._store.append(records, state={**(state or {}), _STATE: summary})
        self.summary = summary
        for record in records:
            if record.verdict.result == Result.FAILED:
                self._write_failure(record)

    def append_part(
        self,
        part: Summary,
        records: Sequence[Record] = (),
        *,
        state: Mapping[str, object] | None = None,
        forget: Sequence[str] = (),
    ) -> None:
        """Store the counts of many trials with the records of a few of them, in one commit with `state`."""
        summary = copy.deepcopy(self.summary)
        summary.include(part)
        self._store.append(records, state={**(state or {}), _STATE: summary}, forget=forget)
        self.summary = summary
        for record in records:
            if record.verdict.result == Result.FAILED:
                self._write_failure(record)

    def replace_failure(self, signature: Signature, trial: Trial) -> Path:
        """Let a smaller trial stand for a finding; the path of its file."""
        path = self.path / _FAILURES / failure_name(signature)
        write_atomically(path, _pretty(trial_to_json(trial)))
        self._failures.add(path.name)
        return path

    def blob(self, content: bytes) -> str | None:
        """Keep recorded bytes; their SHA-256, or None where the limit is reached (counted in `blobs_refused`)."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.path / _BLOBS / digest
        if path.exists():
            return digest
        if len(content) > self._blob_room:
            self.blobs_refused += 1
            return None
        write_atomically(path, content)
        self._blob_room -= len(content)
        return digest

    def state(self, key: str) -> object:
        """What the last batch that named the key said of the run; None where none did."""
        return self._store.state(key)

    def finish(self, *, seconds: float = 0.0, interrupted: bool = False) -> None:
        """Make the results one file and write `summary.json`."""
        if interrupted:
            self._take_committed()
        self._store.append((), state={_STATE: self.summary})
        self._store.finish()
        with ResultReader(self._store.path) as results:
            for finding in results.findings():
                if failure_name(finding.signature) not in self._failures:
                    self._write_failure(next(results.records(Query(signature=finding.signature), limit=1)))
        document = summary_to_json(self.summary) | {
            "interrupted": interrupted,
            "seconds": seconds,
            "blobs_refused": self.blobs_refused,
        }
        write_atomically(self.path / _SUMMARY, _pretty(document))

    def _take_committed(self) -> None:
        """Ctrl-C may have come after a batch's commit and before its counts were taken: they are in the same commit."""
        committed = summary_from_json(self._store.state(_STATE) or {}, where=str(self._store.path))
        if committed.total.ended > self.summary.total.ended:
            self.summary = committed

    def _write_failure(self, record: Record) -> None:
        name = failure_name(record.signature)
        if name not in self._failures:
            write_atomically(self.path / _FAILURES / name, _pretty(trial_to_json(record.trial)))
            self._failures.add(name)

    def close(self) -> None:
        """Let go of the files; without `finish` the run can be resumed."""
        self._store.close()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def create_run(
    path: Path,
    *,
    manifest: Manifest,
    specs: Mapping[str, bytes],
    waivers: Mapping[str, bytes] | None = None,
    blob_limit: int = BLOB_LIMIT,
) -> RunWriter:
    """Make the directory of a new run; `specs` and `waivers` are the contents of these files by name.

    The manifest is stored with their hashes. Raises UsageError where the directory holds anything already or cannot be
    made, HarnessError where the disk is full; what was made is then removed.
    """
    if not str(path).isprintable():
        raise UsageError(f"{str(path)!r}: a run's directory cannot have line breaks or control characters in its name")
    made = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        held = next(path.iterdir(), None)
    except OSError as error:
        raise UsageError(f"{path}: cannot be used: {error.strerror}; choose another directory with -o") from None
    if held is not None:
        what = "a run already" if (path / _MANIFEST).exists() else f"other files already ({held.name})"
        raise UsageError(f"{path}: holds {what}; choose another directory with -o, or one that is empty")
    store = None
    try:
        # First of all, as its lock keeps out a second run that found the directory empty too.
        store = ResultStore(path / _RESULTS)
        for folder in (_SPECS, _BLOBS, _FAILURES):
            _make(path / folder)
        for name, content in specs.items():
            write_atomically(path / _SPECS / name, content)
        if waivers:
            _make(path / _WAIVERS)
        for name, content in (waivers or {}).items():
            write_atomically(path / _WAIVERS / name, content)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(specs.items())}
        write_atomically(path / _MANIFEST, _pretty(msgspec.structs.replace(manifest, specs=hashes)))
        return RunWriter(path, store=store, summary=Summary(), blob_limit=blob_limit)
    except BaseException:
        if store is not None:
            store.close()
            _remove(path, itself=made)
        raise


def resume_run(path: Path, *, blob_limit: int = BLOB_LIMIT) -> RunWriter:
    """Go on with a run that was killed, interrupted or is to be made longer; its last summary is taken away."""
    RunDirectory(path)
    store = ResultStore(path / _RESULTS, resume=True)
    try:
        summary = summary_from_json(store.state(_STATE) or {}, where=str(store.path))
        for folder in (_SPECS, _BLOBS, _FAILURES):
            _make(path / folder)
        with contextlib.suppress(FileNotFoundError):
            (path / _SUMMARY).unlink()
        return RunWriter(path, store=store, summary=summary, blob_limit=blob_limit)
    except BaseException:
        store.close()
        raise


def default_run_path(command: str, adapter: str, *, now: datetime | None = None, base: Path = Path("runs")) -> Path:
    """Where a run goes that was not told: `runs/<UTC time>-<command>-<adapter>`, numbered where that stands already."""
    moment = (now or datetime.now(timezone.utc)).astimezone(timezone.utc)
    first = base / f"{moment:%Y%m%d-%H%M%S}-{command}-{_slug(adapter)}"
    path, number = first, 1
    while path.exists():
        number += 1
        path = first.with_name(f"{first.name}-{number}")
    return path


def failure_name(signature: Signature) -> str:
    """The name of a finding's trial file: what a person looks for, and a hash that tells signatures apart."""
    digest = hashlib.sha256(signature_key(signature).encode()).hexdigest()[:10]
    return f"{_slug(f'{signature.operator}-{signature.promise}-{signature.kind}')}-{digest}.json"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:80]


def _pretty(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise HarnessError(f"{path}: cannot be read: {error.strerror}; the directory of the run is not whole") from None


def _make(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise storage_failure(path, error) from error


def _remove(path: Path, *, itself: bool) -> None:
    for entry in path.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    if itself:
        path.rmdir()
