"""Writes the directory of a run: made, resumed, filled with what the run emits, and finished."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias, final

import msgspec

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.finding import Finding, failure_name
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.store.case_files import trial_text
from aclnn_cts.store.events import BatchJudged, Event, RunFinished, TrialsPlanned, TrialsSkipped
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.store.output_file import no_new_folders_on_failure, storage_failure, write_atomically
from aclnn_cts.store.run_directory import (
    BLOBS,
    FAILURES,
    FINDINGS,
    MANIFEST,
    RESULTS,
    SPECS,
    STATE,
    SUMMARY,
    WAIVERS,
    RunDirectory,
    enclosing_run,
)
from aclnn_cts.store.run_verdict import Terms
from aclnn_cts.store.store import STORE_ENDS, ResultStore, remove_unused
from aclnn_cts.store.store_reader import ResultReader
from aclnn_cts.store.summary import Summary, summary_from_json, summary_to_json

BLOB_LIMIT = 256 * 1024 * 1024
"""Bytes of recorded outputs that a run keeps unless it is told otherwise."""

Grouping: TypeAlias = Callable[[ResultReader], Sequence[Finding]]
"""What makes findings of all failures that a store holds."""

MakePrograms: TypeAlias = Callable[[RunDirectory], Mapping[str, object]]
"""What writes the programs of a run's findings, and gives what its store keeps of them."""

_RESULTS = frozenset({f".{RESULTS}.lock", *(RESULTS + end for end in STORE_ENDS)})


@final
class RunWriter(AbstractContextManager["RunWriter"]):
    """Stores what a run emits; a consumer of its events. To be used as a context manager."""

    def __init__(
        self,
        path: Path,
        *,
        store: ResultStore,
        summary: Summary,
        blob_limit: int,
        grouping: Grouping | None = None,
        programs: MakePrograms | None = None,
    ) -> None:
        self.path = path
        self._grouping = grouping
        self._programs = programs
        self._findings: Sequence[Finding] | None = None
        self.summary = summary
        """The counts of what is stored, and of what is planned."""
        self.blobs_refused = 0
        """Recorded outputs that the limit kept out."""
        self._store = store
        self._blob_room = blob_limit - sum(blob.stat().st_size for blob in (path / BLOBS).iterdir())
        self._failures = {file.name for file in (path / FAILURES).iterdir()}

    def __call__(self, event: Event, /) -> None:
        """Take one event of the run."""
        if isinstance(event, TrialsPlanned):
            self.summary.plan(event.operator, event.kind, number=event.number)
        elif isinstance(event, TrialsSkipped):
            self.summary.skip(event.operator, event.kind, reason=event.reason, number=event.number, result=event.result)
        elif isinstance(event, BatchJudged):
            self.append(event.records, coverage=event.coverage, state=event.state)
            for content in event.blobs:
                self.blob(content)
        elif isinstance(event, RunFinished):
            self.finish(seconds=event.seconds, interrupted=event.interrupted)

    def append(
        self, records: Sequence[Record], *, coverage: Summary | None = None, state: Mapping[str, object] | None = None
    ) -> None:
        """Store a batch, its counts and `state` in one commit, then the trial file of each new finding."""
        operators = {record.trial.case.operator for record in records}
        summary = self.summary.apart(operators if coverage is None else {*operators, *coverage.operators})
        for record in records:
            summary.add(record)
        if coverage is not None:
            summary.include(coverage)
        self._commit(summary, records, state=state)

    def append_part(
        self,
        part: Summary,
        records: Sequence[Record] = (),
        *,
        state: Mapping[str, object] | None = None,
        forget: Sequence[str] = (),
    ) -> None:
        """Store the counts of many trials with the records of a few of them, in one commit with `state`."""
        summary = self.summary.apart(part.operators)
        summary.include(part)
        self._commit(summary, records, state=state, forget=forget)

    def _commit(
        self,
        summary: Summary,
        records: Sequence[Record],
        *,
        state: Mapping[str, object] | None,
        forget: Sequence[str] = (),
    ) -> None:
        self._store.append(records, state={**(state or {}), STATE: summary}, forget=forget)
        self.summary = summary
        for record in records:
            if record.verdict.result == Result.FAILED:
                self._write_failure(record)

    def replace_failure(self, key: Fingerprint, trial: Trial) -> Path:
        """Let a smaller trial stand for a finding; the path of its file."""
        path = self.path / FAILURES / failure_name(key)
        write_atomically(path, trial_text(trial))
        self._failures.add(path.name)
        return path

    def blob(self, content: bytes) -> str | None:
        """Keep recorded bytes; their SHA-256, or None where the limit is reached (counted in `blobs_refused`)."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.path / BLOBS / digest
        if path.exists():
            return digest
        if len(content) > self._blob_room:
            self.blobs_refused += 1
            return None
        write_atomically(path, content)
        self._blob_room -= len(content)
        return digest

    def conclude(self, findings: Sequence[Finding]) -> None:
        """Let these be the findings that are stored when the run ends; nothing is appended after them."""
        self._findings = findings

    def finish(self, *, seconds: float = 0.0, interrupted: bool = False) -> None:
        """Make the results one file and write `summary.json`."""
        if interrupted:
            self.take_committed()
        self.summary.finished = not interrupted
        state: dict[str, object] = {STATE: self.summary}
        counted: dict[str, object] = {}
        if self._grouping is not None:
            with ResultReader(self._store.path) as results:
                found = self._grouping(results) if self._findings is None else self._findings
                state[FINDINGS] = tuple(found)
            counted["findings"] = sum(not item.waiver for item in found)
            self._write_findings(found)
        self._store.append((), state=state)
        if self._programs is not None and self._failures and not interrupted:
            self._store.append((), state=self._programs(RunDirectory(self.path)))
        self._store.finish()
        document = (
            summary_to_json(self.summary)
            | counted
            | {
                "interrupted": interrupted,
                "seconds": seconds,
                "blobs_refused": self.blobs_refused,
            }
        )
        write_atomically(self.path / SUMMARY, _pretty(document))

    def _write_findings(self, findings: Sequence[Finding]) -> None:
        """One trial file for each finding; those that were written as failures came go, with their programs."""
        for item in findings:
            if item.trial is not None:
                write_atomically(self.path / FAILURES / item.file, trial_text(item.trial))
        stems = tuple(item.file.removesuffix(".json") for item in findings)
        for path in (self.path / FAILURES).iterdir():
            if not path.name.startswith(stems):
                path.unlink(missing_ok=True)
        self._failures = {item.file for item in findings}

    def take_committed(self) -> None:
        """Ctrl-C may have come after a batch's commit and before its counts were taken: they are in the same commit."""
        committed = summary_from_json(self._store.state(STATE) or {}, where=str(self._store.path))
        if committed.total.ended > self.summary.total.ended:
            self.summary = committed

    def _write_failure(self, record: Record) -> None:
        name = failure_name(record.key, waiver=record.waiver)
        # One that needs other calls before it is shown with them, and stands before one that conforms alone.
        if name not in self._failures or record.after:
            write_atomically(self.path / FAILURES / name, trial_text(record.reproducing_trial))
            self._failures.add(name)

    def close(self) -> None:
        """Let go of the files; without `finish` the run can be resumed."""
        self._store.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


def create_run(
    path: Path,
    *,
    manifest: Manifest,
    specs: Mapping[str, bytes],
    terms: Terms | None = None,
    waivers: Mapping[str, bytes] | None = None,
    blob_limit: int = BLOB_LIMIT,
    grouping: Grouping | None = None,
    programs: MakePrograms | None = None,
) -> RunWriter:
    """Make the directory of a new run; `specs` and `waivers` are the contents of these files by name.

    - `terms`: what its counts will be measured by.
    - `grouping`: makes its findings, which are stored when it ends.
    - `programs`: writes the programs that show them, unless it is interrupted.

    The manifest is stored with their hashes, last of all: in the directory of a run that was killed before that, a new
    one begins. Raises UsageError where the directory holds anything else or cannot be made, HarnessError where the disk
    is full; what was made is then removed.
    """
    with no_new_folders_on_failure(path):
        return _created(
            path,
            manifest=manifest,
            specs=specs,
            summary=Summary(terms=terms, scope=manifest.scope),
            waivers=waivers or {},
            blob_limit=blob_limit,
            grouping=grouping,
            programs=programs,
        )


def _created(
    path: Path,
    *,
    manifest: Manifest,
    specs: Mapping[str, bytes],
    summary: Summary,
    waivers: Mapping[str, bytes],
    blob_limit: int,
    grouping: Grouping | None,
    programs: MakePrograms | None,
) -> RunWriter:
    begun = _make_room(path)
    store = None
    try:
        # First of all, as its lock keeps out a second run that found the directory empty too.
        store = ResultStore(path / RESULTS)
        if begun:
            _remove(path, without=_RESULTS)
        for folder in (SPECS, BLOBS, FAILURES):
            _make(path / folder)
        _keep(path / SPECS, specs)
        _keep(path / WAIVERS, waivers)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(specs.items())}
        write_atomically(path / MANIFEST, _pretty(msgspec.structs.replace(manifest, specs=hashes)))
        store.append((), state={STATE: summary})
        return RunWriter(
            path, store=store, summary=summary, blob_limit=blob_limit, grouping=grouping, programs=programs
        )
    except BaseException:
        if store is not None:
            store.close()
            _remove(path)
        raise


def _make_room(path: Path) -> bool:
    """Make the directory, or see that it may be filled; whether a run had begun there. Raises UsageError."""
    if not str(path).isprintable():
        raise UsageError(f"{str(path)!r}: a run's directory cannot have line breaks or control characters in its name")
    if (around := enclosing_run(Path(os.path.realpath(path)))) is not None:
        raise UsageError(f"{path}: lies in the run {around}; choose another directory with -o")
    try:
        path.mkdir(parents=True, exist_ok=True)
        held = next(path.iterdir(), None)
        begun = held is not None and _only_begun(path) and remove_unused(path / RESULTS)
    except OSError as error:
        raise UsageError(f"{path}: cannot be used: {error.strerror}; choose another directory with -o") from None
    if held is not None and not begun:
        what = "a run already" if (path / MANIFEST).exists() else f"other files already ({held.name})"
        raise UsageError(f"{path}: holds {what}; choose another directory with -o, or one that is empty")
    return begun


def _only_begun(path: Path) -> bool:
    """Whether a directory holds nothing but what a run makes before its manifest, its results the first of all.

    Folders alone with the names of ours are somebody's own.
    """
    held = {entry.name for entry in path.iterdir()}
    if RESULTS not in held:
        return held <= _RESULTS
    manifests = {name for name in held if name.startswith(f".{MANIFEST}.") and name.endswith(".partial")}
    filled = (next((path / name).iterdir(), None) for name in held & {BLOBS, FAILURES})
    return held - manifests <= {*_RESULTS, SPECS, WAIVERS, BLOBS, FAILURES} and not any(filled)


def resume_run(
    path: Path,
    *,
    waivers: Mapping[str, bytes] | None = None,
    blob_limit: int = BLOB_LIMIT,
    grouping: Grouping | None = None,
    programs: MakePrograms | None = None,
) -> RunWriter:
    """Go on with a run that was killed, interrupted or is to be made longer; its last summary and findings go.

    `waivers`: the contents of the files that count from now on, by name.
    """
    RunDirectory(path)
    store = ResultStore(path / RESULTS, resume=True)
    try:
        summary = summary_from_json(store.state(STATE) or {}, where=str(store.path))
        for folder in (SPECS, BLOBS, FAILURES):
            _make(path / folder)
        _keep(path / WAIVERS, waivers or {})
        (path / SUMMARY).unlink(missing_ok=True)
        store.append((), forget=(FINDINGS,))
        return RunWriter(
            path, store=store, summary=summary, blob_limit=blob_limit, grouping=grouping, programs=programs
        )
    except BaseException:
        store.close()
        raise


def _pretty(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _make(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise storage_failure(path, error) from error


def _keep(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files by name into a folder, which is made where there are any."""
    for name, content in contents.items():
        _make(folder)
        write_atomically(folder / name, content)


def _remove(path: Path, *, without: frozenset[str] = frozenset()) -> None:
    for entry in path.iterdir():
        if entry.name in without:
            continue
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
