"""The records of a run in `results.sqlite`: one writer, commits by batch, nothing lost to a kill.

While a run writes, SQLite's write-ahead log lies beside the file (WAL mode, `synchronous=NORMAL`: a commit survives
the death of the process; https://www.sqlite.org/wal.html). When it has finished all is one file.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import final

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import printable, quote
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.store.record_codec import decode_value, encode_record, encode_value, key_text

SCHEMA_VERSION = 2

STORE_ENDS = ("", "-wal", "-shm", "-journal")
"""What SQLite's files of one store are called, after its name."""


def _row(record: Record) -> tuple[object, ...]:
    """A record's values in the order of `_COLUMNS`."""
    verdict, fingerprint, case = record.verdict, record.fingerprint, record.trial.case
    skipped = verdict.result in (Result.SKIPPED, Result.OUT_OF_SCOPE)
    error_ratios = [part.error_ratio for part in verdict.deviations]
    return (
        record.trial_id,
        case.operator,
        case.product,
        record.trial.check,
        case.origin.kind,
        case.origin.constraint or fingerprint.clause,
        verdict.result,
        "" if skipped else verdict.kind,
        verdict.kind if skipped else "",
        record.waiver,
        key_text(record.key) if verdict.result == Result.FAILED else None,
        fingerprint.dtype,
        verdict.mode or fingerprint.mode,
        math.inf if any(map(math.isnan, error_ratios)) else max(error_ratios, default=0.0),
        record.seconds,
        encode_record(record),
    )


_COLUMNS = (
    ("trial_id", "TEXT NOT NULL"),
    ("operator", "TEXT NOT NULL"),
    ("product", "TEXT NOT NULL"),
    ("check_id", "TEXT NOT NULL"),
    ("kind", "TEXT NOT NULL"),
    ("constraint_id", "TEXT NOT NULL"),
    ("result", "TEXT NOT NULL"),
    ("fault", "TEXT NOT NULL"),
    ("skip_reason", "TEXT NOT NULL"),
    ("waiver", "TEXT NOT NULL"),
    ("fingerprint", "TEXT"),
    ("dtype", "TEXT NOT NULL"),
    ("mode", "TEXT NOT NULL"),
    ("share", "REAL NOT NULL"),
    ("seconds", "REAL NOT NULL"),
    ("record", "BLOB NOT NULL"),
)

COLUMN_TYPES: Mapping[str, tuple[type, ...]] = {
    "sequence": (int,),
    **{name: {"TEXT": (str,), "REAL": (float,), "BLOB": (bytes,)}[kind.split()[0]] for name, kind in _COLUMNS},
    "fingerprint": (str, type(None)),
}
"""What Python makes of each column; SQLite itself keeps any value in any column."""

COLUMNS: tuple[str, ...] = ("sequence", *(name for name, _ in _COLUMNS[:-1]))
"""What records are filtered and counted by.

`sequence` is the order of arrival, `kind` the case's, `fault` the verdict's kind of a failure,
`skip_reason` the reason to skip or what is out of scope, `share` the
largest error ratio of the outputs, `fingerprint` the key of a failure's (`record_codec.key_text`).
"""

_SCHEMA = f"""
CREATE TABLE schema (version INTEGER NOT NULL);
INSERT INTO schema VALUES ({SCHEMA_VERSION});
CREATE TABLE records (
    sequence INTEGER PRIMARY KEY,
    {", ".join(f"{name} {kind}" for name, kind in _COLUMNS)}
);
CREATE INDEX records_by_trial ON records (trial_id);
CREATE INDEX records_by_fingerprint ON records (fingerprint) WHERE fingerprint IS NOT NULL;
CREATE TABLE state (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""  # noqa: S608 - names of the table above

_FINAL_INDEXES = """
CREATE INDEX IF NOT EXISTS records_by_result ON records (result, operator);
CREATE INDEX IF NOT EXISTS records_by_operator ON records (operator, check_id, kind);
CREATE INDEX IF NOT EXISTS records_by_constraint ON records (constraint_id);
CREATE INDEX IF NOT EXISTS records_by_share ON records (operator, mode, dtype, share);
CREATE INDEX IF NOT EXISTS records_by_waiver ON records (waiver) WHERE waiver != '';
CREATE INDEX IF NOT EXISTS records_by_skip ON records (skip_reason) WHERE skip_reason != '';
"""
"""Made when all records are there, which is faster than keeping them up to date; a killed run is read without."""

_INSERT = (
    f"INSERT INTO records ({', '.join(name for name, _ in _COLUMNS)})"  # noqa: S608 - names of the table above
    f" VALUES ({', '.join('?' * len(_COLUMNS))})"
)


@final
class ResultStore(contextlib.AbstractContextManager["ResultStore"]):
    """The one writer of a run's records. Opened with `resume=False` it makes the file, else it goes on with it.

    Raises UsageError where the file stands already (or, to resume, does not), another process writes to it, or the
    folder cannot be written; HarnessError where a write fails later, which leaves all earlier batches readable.
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self.path = path
        if path.exists() != resume:
            raise UsageError(
                f"{path}: no results to resume; expected the directory of an earlier run"
                if resume
                else f"{path}: holds the results of a run already; choose another directory, or resume that run"
            )
        self._lock_path = path.with_name(f".{path.name}.lock")
        self._lock: int | None = _lock(self._lock_path)
        self._connection: sqlite3.Connection | None = None
        try:
            with self._explained("opened"):
                self._connection = sqlite3.connect(path, isolation_level=None)
                self._prepare(self._connection, resume=resume)
        except BaseException:
            if not resume:
                # Made by this process: it holds the lock.
                for end in STORE_ENDS:
                    path.with_name(path.name + end).unlink(missing_ok=True)
            self.close()
            raise

    def _prepare(self, connection: sqlite3.Connection, *, resume: bool) -> None:
        if resume:
            check_schema(connection, self.path)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        if not resume:
            connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")

    def append(
        self, records: Sequence[Record], *, state: Mapping[str, object] | None = None, forget: Sequence[str] = ()
    ) -> None:
        """Commit a batch of records and, in the same transaction, what `state` says of the run.

        Values of `state` are plain (JSON's, and inf and nan); a key that stands already gets the new value, and those
        of `forget` go. A batch is stored in whole or not at all.
        """
        rows = [_row(record) for record in records]
        pairs = [(key, encode_value(value)) for key, value in (state or {}).items()]
        connection = self._open
        with self._explained("written"):
            try:
                # An interrupt may come as soon as the transaction has begun.
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(_INSERT, rows)
                connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", pairs)
                connection.executemany("DELETE FROM state WHERE key = ?", [(key,) for key in forget])
                connection.execute("COMMIT")
            except BaseException:
                # SQLite has rolled back by itself after some failures, a full disk among them.
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def state(self, key: str) -> object:
        """What the last batch that named the key said; None where none did."""
        with self._explained("read"):
            row = self._open.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
        return None if row is None else decode_value(row[0], where=f"{self.path} (state {key})")

    def finish(self) -> bool:
        """Fold the log into the file and close. False where another program reads it, so that the log had to stay."""
        connection = self._open
        with self._explained("finished"):
            connection.executescript(f"BEGIN; {_FINAL_INDEXES} COMMIT;")
            try:
                [mode] = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                mode = "wal"
        self.close()
        return bool(mode == "delete")

    def close(self) -> None:
        """Let go of the file as it is; safe after any failure, and twice."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        if self._lock is not None:
            # Removed while it is held: who has opened it meanwhile finds that it is no longer the one in the folder.
            with contextlib.suppress(OSError):
                self._lock_path.unlink()
            os.close(self._lock)
            self._lock = None

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise HarnessError(f"{self.path}: has been closed; nothing more can be stored")
        return self._connection

    @contextlib.contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise HarnessError(
                f"{self.path}: cannot be {done}: {error}; what earlier batches stored can be read."
                " Check the free space and the permissions of the folder, then resume or run again"
            ) from error


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise HarnessError unless the file is a store of this version."""
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    try:
        objects = set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100"))
        if not any(item[:2] == ("table", "schema") for item in objects):
            raise HarnessError(f"{path}: not the results of a run (no such table: schema)")
        rows = connection.execute("SELECT version FROM schema LIMIT 10").fetchall()
    except sqlite3.DatabaseError as error:
        if "no such table" in str(error) or "not a database" in str(error):
            raise HarnessError(f"{path}: not the results of a run ({error})") from None
        raise
    if rows != [(SCHEMA_VERSION,)]:
        found = ", ".join(quote(version) for (version,) in rows) or "none"
        raise HarnessError(f"{path}: schema version {found}; expected {SCHEMA_VERSION}; use the program that wrote it")
    if strange := objects - _known_objects():
        kind, name, *_ = min(strange, key=str)
        raise HarnessError(
            f"{path}: its {printable(str(kind), 20)} {quote(name)} is none that aclnn-cts makes; the file was"
            " changed, or written by another version"
        )


@functools.cache
def _known_objects() -> frozenset[tuple[object, ...]]:
    """Every table and index of a store as SQLite describes it: a view in a table's place can do what it likes."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA + _FINAL_INDEXES)
        return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def remove_unused(path: Path) -> bool:
    """Remove the files of a store that holds no record; False where it holds one, or is none.

    Raises UsageError while another process writes to it.
    """
    lock_path = path.with_name(f".{path.name}.lock")
    lock = _lock(lock_path)
    try:
        unused = _is_unused(path)
        if unused:
            for end in STORE_ENDS:
                path.with_name(path.name + end).unlink(missing_ok=True)
    finally:
        lock_path.unlink(missing_ok=True)
        os.close(lock)
    return unused


def _is_unused(path: Path) -> bool:
    if not path.exists():
        return True
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            # Of a process that was killed at once it has not even its tables.
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables == {"schema", "records", "state"}:
                return connection.execute("SELECT 1 FROM records LIMIT 1").fetchone() is None
            return not tables
    except sqlite3.Error:
        return False


def _lock(path: Path) -> int:
    """Take the writer's lock: an open descriptor of a file whose lock the kernel drops when the process dies."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise UsageError(f"{path.parent}: cannot be written: {error.strerror}; choose another directory") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise UsageError(f"{path.parent}: another process writes to this run; wait for it or end it") from None
        os.close(descriptor)
