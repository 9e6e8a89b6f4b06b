"""Reads `results.sqlite`: finished, running, or left behind by a kill; also where nothing may be written."""

from __future__ import annotations

import contextlib
import math
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, final

from aclnn_cts.core.case_json import check_case
from aclnn_cts.core.errors import HarnessError, UsageError, did_you_mean
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outside import DOCUMENT_BYTES, HOLLOW, is_hollow
from aclnn_cts.core.printable import quote
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.store.record_codec import decode_record, decode_value, key_text
from aclnn_cts.store.scratch import scratch_folder
from aclnn_cts.store.store import COLUMN_TYPES, COLUMNS, check_schema

_FETCH = 256
"""Rows in memory at a time."""
_TICK = 100_000
"""Steps of SQLite's machine between two looks at what a statement may take."""
_STEPS = 100
_STEPS_PER_BYTE = 10
"""A record has hundreds of bytes and takes some hundred steps; a damaged tree of pages can be walked for ever."""
_TEXT = 1 << 20
"""Bytes of a value that is neither a record nor a state."""
_RECORD = ("sequence", "trial_id", "operator", "check_id", "result", "fingerprint", "record")
_INTEGER = (int,)
_DAMAGED = "the file is damaged or its disk is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which records: all that equal every field that is given."""

    trial_id: str | None = None
    operator: str | None = None
    check_id: str | None = None
    kind: str | None = None
    constraint_id: str | None = None
    result: str | None = None
    waiver: str | None = None
    fingerprint: Fingerprint | None = None

    def clause(self) -> tuple[str, list[str]]:
        """The SQL condition and its values."""
        given = [(field.name, getattr(self, field.name)) for field in fields(self)]
        pairs = [(name, value) for name, value in given if value is not None]
        if not pairs:
            return "", []
        values = [key_text(value) if isinstance(value, Fingerprint) else value for _, value in pairs]
        return "WHERE " + " AND ".join(f"{name} = ?" for name, _ in pairs), values


_ALL = Query()


@final
class ResultReader(contextlib.AbstractContextManager["ResultReader"]):
    """Reads a store in a stream: memory does not grow with the number of records.

    Raises UsageError where there is no such file, HarnessError where it is no store of this version or is damaged. A
    store that is being written is read as of the moment when a stream begins.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._exit = contextlib.ExitStack()
        if not path.is_file():
            raise UsageError(f"{path}: no such file; expected the results of a run")
        # Not by opening it: to close any descriptor of a file gives up the locks of all, a writer's too.
        if is_hollow(path.stat()):
            raise HarnessError(f"{path}: cannot be read: {HOLLOW}; expected the results of a run")
        self._steps = 0
        self._statement_steps = _STEPS + _STEPS_PER_BYTE * path.stat().st_size // _TICK
        try:
            self._connection = self._connect()
        except BaseException:
            self._exit.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        log = self.path.with_name(f"{self.path.name}-wal")
        has_log = log.is_file() and log.stat().st_size > 0
        try:
            return self._checked(_uri(self.path, "mode=ro"))
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not isinstance(error, sqlite3.OperationalError):
                raise HarnessError(f"{self.path}: cannot be read: {error}; {_DAMAGED}") from None
            # Reading a log needs a file of shared memory beside it, which a folder that may not be written refuses.
            if not has_log:
                return self._explained_connect(_uri(self.path, "mode=ro&immutable=1"), error)
            folder = self._exit.enter_context(scratch_folder(Path(tempfile.gettempdir())))
            copy = folder / self.path.name
            try:
                shutil.copyfile(self.path, copy)
                shutil.copyfile(log, copy.with_name(log.name))
            except OSError as failure:
                raise HarnessError(
                    f"{self.path}: cannot be copied to {folder} to be read: {failure.strerror or failure}"
                ) from None
            return self._explained_connect(_uri(copy, "mode=rw"), error)

    def _explained_connect(self, uri: str, first: sqlite3.Error) -> sqlite3.Connection:
        try:
            return self._checked(uri)
        except sqlite3.Error as error:
            raise HarnessError(f"{self.path}: cannot be read: {error} (at first: {first})") from None

    def _checked(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        try:
            self._steps = self._statement_steps
            connection.set_progress_handler(self._tick, _TICK)
            check_schema(connection, self.path)
        except BaseException:
            connection.close()
            raise
        self._exit.callback(connection.close)
        return connection

    def _tick(self) -> int:
        """Called by SQLite every `_TICK` steps; whether the statement is to be given up."""
        self._steps -= 1
        return self._steps < 0

    def records(self, query: Query = _ALL, *, worst_first: bool = False, limit: int | None = None) -> Iterator[Record]:
        """The records in order of arrival, or with the largest error ratio first."""
        condition, values = query.clause()
        order = "share DESC, sequence" if worst_first else "sequence"
        count = -1 if limit is None else limit
        # SQLite would hold a long text beside Python's copy of it.
        names = ", ".join(f"substr({name}, 1, {_TEXT + 1})" if str in COLUMN_TYPES[name] else name for name in _RECORD)
        sql = f"SELECT {names} FROM records {condition} ORDER BY {order} LIMIT ?"  # noqa: S608 - our own names
        before = -math.inf
        for sequence, trial_id, operator, check, result, fingerprint, content in self._rows(
            sql, (*values, count), _types(_RECORD)
        ):
            where = f"{self.path} (record {sequence})"
            record = decode_record(content, where=where)
            said = (record.trial_id, record.trial.case.operator, record.trial.check, record.verdict.result)
            failed = record.verdict.result == Result.FAILED
            if (
                said != (trial_id, operator, check, result)
                or fingerprint != (key_text(record.key) if failed else None)
                or not (worst_first or sequence > before)
            ):
                raise HarnessError(f"{where}: its columns contradict it; the file was changed or is damaged")
            check_case(record.trial.case, where=where, error=HarnessError)
            before = sequence
            yield record

    def worst(self, query: Query) -> Record:
        """The record with the largest error ratio among those that the store says it has."""
        for record in self.records(query, worst_first=True, limit=1):
            return record
        raise HarnessError(f"{self.path}: holds no record that another of its tables counts; the file was changed")

    def rows_by_trial(self, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Columns of all records in the order of their trials' ids, so that two stores can be read side by side."""
        sql = f"SELECT {_listed(columns)} FROM records ORDER BY trial_id, sequence"  # noqa: S608 - as above
        yield from self._rows(sql, (), _types(columns))

    def tally(self, *columns: str, query: Query = _ALL) -> dict[tuple[Any, ...], int]:
        """How many records there are for each combination of the columns' values."""
        condition, values = query.clause()
        names = _listed(columns)
        sql = f"SELECT {names}, count(*) FROM records {condition} GROUP BY {names} ORDER BY {names}"  # noqa: S608 - as above
        return {row[:-1]: row[-1] for row in self._rows(sql, values, (*_types(columns), _INTEGER))}

    def count(self, query: Query = _ALL) -> int:
        """How many records there are."""
        condition, values = query.clause()
        [[number]] = self._rows(f"SELECT count(*) FROM records {condition}", values, (_INTEGER,))  # noqa: S608 - as above
        return int(number)

    def state(self, key: str) -> object:
        """What was last stored under the key; None where nothing was."""
        for (content,) in self._rows("SELECT value FROM state WHERE key = ?", (key,), ((bytes,),)):
            return decode_value(content, where=f"{self.path} (state {key})")
        return None

    def states(self, prefix: str) -> Iterator[tuple[str, object]]:
        """All that was stored under keys with the prefix, in order of the keys."""
        sql = "SELECT key, value FROM state WHERE substr(key, 1, ?) = ? ORDER BY key"
        for key, content in self._rows(sql, (len(prefix), prefix), ((str,), (bytes,))):
            yield key, decode_value(content, where=f"{self.path} (state {key})")

    def _rows(
        self, sql: str, values: Mapping[str, Any] | list[str] | tuple[Any, ...], kinds: Sequence[tuple[type, ...]]
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement, each of values of the Python types `kinds`."""
        self._steps = self._statement_steps
        longest = DOCUMENT_BYTES if any(bytes in kind for kind in kinds) else _TEXT
        try:
            self._limit(longest)
            cursor = self._connection.execute(sql, values)
            while rows := cursor.fetchmany(_FETCH):
                for row in rows:
                    for value, kind in zip(row, kinds, strict=True):
                        if type(value) not in kind or (type(value) is str and len(value) > _TEXT):
                            raise HarnessError(
                                f"{self.path}: holds {quote(value)} where a {kind[0].__name__} belongs; the file was"
                                " changed or is damaged"
                            )
                    yield row
                # Another statement may have run meanwhile.
                self._limit(longest)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise HarnessError(f"{self.path}: cannot be read: {error}; {_DAMAGED}") from error

    def _limit(self, longest: int) -> None:
        """Have SQLite hand out no value of more bytes, nor copy it; Python has a word for that from 3.11 on."""
        if sys.version_info >= (3, 11):
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)

    def close(self) -> None:
        """Let go of the file."""
        self._exit.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


def _listed(columns: tuple[str, ...]) -> str:
    for name in columns:
        if name not in COLUMNS:
            raise ValueError(f"no column {name!r}; expected any of {', '.join(COLUMNS)}{did_you_mean(name, COLUMNS)}")
    return ", ".join(columns)


def _types(columns: Sequence[str]) -> tuple[tuple[type, ...], ...]:
    return tuple(COLUMN_TYPES[name] for name in columns)


def _uri(path: Path, options: str) -> str:
    return f"{path.absolute().as_uri()}?{options}"
