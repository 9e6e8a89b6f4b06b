from __future__ import annotations

import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Record, Result, SkipReason
from aclnn_cts.store.store import COLUMNS, SCHEMA_VERSION, ResultStore
from aclnn_cts.store.store_reader import Query, ResultReader
from tests.support.build_records import EMBEDDING, SOFTMAX, make_record

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.sqlite"


def mixed() -> list[Record]:
    failed: dict[str, Any] = {"result": Result.FAILED, "kind": Fault.VALUE, "output": "out"}
    return [
        make_record(0, error_ratio=0.5),
        make_record(1, operator=EMBEDDING, case_kind="invalid", check="status", constraint="grad.dtype"),
        make_record(2, error_ratio=math.inf, **failed),
        make_record(3, error_ratio=2.0, waiver="known", **failed),
        make_record(4, dtype="BF16", error_ratio=math.nan, **failed),
        make_record(5, result=Result.SKIPPED, kind=SkipReason.OPEN),
        make_record(6, result=Result.ERROR, kind="lost device", mode="USE_FP16"),
    ]


@pytest.fixture
def reader(path: Path) -> Iterator[ResultReader]:
    with ResultStore(path) as store:
        store.append(mixed()[:4], state={"chunk:1": {"done": True}, "seed": 1})
        store.append(mixed()[4:], state={"chunk:2": math.inf, "seed": 2})
        store.finish()
    with ResultReader(path) as reader:
        yield reader


def test_records_come_back_in_order(reader: ResultReader) -> None:
    assert [repr(record) for record in reader.records()] == [repr(record) for record in mixed()]


def test_one_file_when_finished(reader: ResultReader, path: Path) -> None:
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert reader.count() == 7


def test_every_column_is_filled(reader: ResultReader) -> None:
    [row] = (row for row in reader.rows_by_trial(*COLUMNS) if row[1] == mixed()[1].trial_id)
    assert dict(zip(COLUMNS, row, strict=True)) == {
        "sequence": 2,
        "trial_id": mixed()[1].trial_id,
        "operator": EMBEDDING,
        "product": "atlas-a2",
        "check_id": "status",
        "kind": "invalid",
        "constraint_id": "grad.dtype",
        "result": "passed",
        "fault": "",
        "skip_reason": "",
        "waiver": "",
        "fingerprint": None,
        "dtype": "FLOAT",
        "mode": "",
        "share": 0.25,
        "seconds": 0.002,
    }


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (Query(operator=EMBEDDING), [1]),
        (Query(check_id="status"), [1]),
        (Query(constraint_id="grad.dtype"), [1]),
        (Query(result=Result.FAILED), [2, 3, 4]),
        (Query(fingerprint=mixed()[2].key), [2, 3, 4]),
    ],
)
def test_queries(reader: ResultReader, query: Query, numbers: list[int]) -> None:
    expected = [mixed()[number].trial_id for number in numbers]
    assert [record.trial_id for record in reader.records(query)] == expected
    assert reader.count(query) == len(numbers)


def test_worst_first(reader: ResultReader) -> None:
    error_ratios = [record.verdict.deviations[0].error_ratio for record in reader.records(worst_first=True, limit=4)]
    assert error_ratios[0] == math.inf
    assert math.isnan(error_ratios[1])  # an error ratio that is no number counts as the worst
    assert error_ratios[2:] == [2.0, 0.5]


def test_tally(reader: ResultReader) -> None:
    assert reader.tally("operator", "result") == {
        (EMBEDDING, "passed"): 1,
        (SOFTMAX, "error"): 1,
        (SOFTMAX, "failed"): 3,
        (SOFTMAX, "passed"): 1,
        (SOFTMAX, "skipped"): 1,
    }
    with pytest.raises(ValueError, match=r"no column 'dtyp'.*did you mean 'dtype'"):
        list(reader.rows_by_trial("dtyp"))


def test_state_keeps_the_last_value(reader: ResultReader) -> None:
    assert reader.state("seed") == 2
    assert reader.state("nothing") is None
    assert list(reader.states("chunk:")) == [("chunk:1", {"done": True}), ("chunk:2", math.inf)]


def test_a_batch_is_stored_in_whole_or_not_at_all(path: Path) -> None:
    with ResultStore(path) as store:
        store.append([make_record(0)], state={"chunk": 0})
        broken = make_record(1)
        with pytest.raises(HarnessError, match="cannot be stored"):
            store.append([make_record(2), make_record(3, facts={"a": object()})], state={"chunk": 1})
        assert store._connection is not None
        store._connection.execute("CREATE TRIGGER t BEFORE INSERT ON state BEGIN SELECT RAISE(ABORT, 'no'); END")
        with pytest.raises(HarnessError, match="cannot be written: no; what earlier batches stored can be read"):
            store.append([broken], state={"chunk": 1})
        store._connection.execute("DROP TRIGGER t")
        store.append([make_record(4)])
    with ResultReader(path) as reader:
        assert [record.trial_id for record in reader.records()] == [make_record(0).trial_id, make_record(4).trial_id]
        assert reader.state("chunk") == 0


def test_readable_while_it_is_written(path: Path) -> None:
    with ResultStore(path) as store:
        store.append([make_record(0)])
        with ResultReader(path) as reader:
            assert reader.count() == 1
            store.append([make_record(1)])
            assert reader.count() == 2


def test_finishing_waits_for_no_reader_and_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr("aclnn_cts.store.store.sqlite3.connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0.01}))
    store = ResultStore(path)
    store.append([make_record(number) for number in range(600)])
    with ResultReader(path) as reader:
        stream = reader.records()
        next(stream)
        assert not store.finish()
    with ResultReader(path) as reader:
        assert reader.count() == 600


def test_one_writer(path: Path) -> None:
    with ResultStore(path) as store:
        store.append([make_record(0)])
        with pytest.raises(UsageError, match="another process writes to this run"):
            ResultStore(path, resume=True)
        with pytest.raises(UsageError, match="holds the results of a run already"):
            ResultStore(path)
        store.append([make_record(1)])
    with ResultStore(path, resume=True) as store:
        assert store.state("x") is None
    with pytest.raises(HarnessError, match="has been closed"):
        store.append([make_record(2)])


def test_resume_needs_a_store(path: Path) -> None:
    with pytest.raises(UsageError, match="no results to resume"):
        ResultStore(path, resume=True)
    assert list(path.parent.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere: cannot be written: No such file or directory; choose another"):
        ResultStore(tmp_path / "nowhere" / "results.sqlite")


def test_other_files_are_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        ResultReader(path)
    path.write_bytes(b"no database at all, but long enough to be looked at as if it were one" * 20)
    for open_it in (ResultReader, lambda path: ResultStore(path, resume=True)):
        with pytest.raises(HarnessError, match="not the results of a run"):
            open_it(path)
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE schema (version)")
        connection.execute("INSERT INTO schema VALUES (?)", (SCHEMA_VERSION + 1,))
    connection.close()
    with pytest.raises(HarnessError, match=f"schema version {SCHEMA_VERSION + 1}; expected {SCHEMA_VERSION}"):
        ResultReader(path)


def test_damage_inside_is_an_error_and_not_a_wrong_answer(path: Path) -> None:
    with ResultStore(path) as store:
        store.append([make_record(number) for number in range(200)])
        store.finish()
    content = bytearray(path.read_bytes())
    middle = len(content) // 3
    content[middle : middle + 4096 * 8] = os.urandom(4096 * 8)
    path.write_bytes(content)
    with ResultReader(path) as reader, pytest.raises(HarnessError, match=r"results\.sqlite"):
        list(reader.records())


WRITER = """
import sys
from pathlib import Path
from aclnn_cts.store.store import ResultStore
from tests.support.build_records import make_record

store = ResultStore(Path(sys.argv[1]), resume=Path(sys.argv[1]).exists())
number = int(store.state("next") or 0)
while True:
    batch = [make_record(number + offset) for offset in range(10)]
    number += 10
    store.append(batch, state={"next": number})
    print(number, flush=True)
"""


def kill_writer(path: Path, *, after: int) -> int:
    """Start a writer, kill it after so many batches; the number of records that it had confirmed."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for _ in range(after):
            confirmed = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = [int(line) for line in child.stdout.read().splitlines()]
    assert child.returncode == -signal.SIGKILL
    return rest[-1] if rest else confirmed


def test_killed_and_resumed_loses_nothing_that_was_confirmed(path: Path) -> None:
    for after in (1, 7, 30):
        confirmed = kill_writer(path, after=after)
        with ResultReader(path) as reader:
            numbers = [record.trial.case.arguments["out"].shape[1] - 1 for record in reader.records()]  # type: ignore[union-attr]  # a tensor
            assert len(numbers) >= confirmed
            assert numbers == list(range(len(numbers)))
            assert reader.state("next") == len(numbers)
    assert path.with_name("results.sqlite-wal").exists() or path.stat().st_size
    with ResultStore(path, resume=True) as store:
        store.finish()
    assert {file.name for file in path.parent.iterdir()} == {path.name}


def read_only(folder: Path) -> None:
    """Make a folder one that nobody can write, root neither; skip where this machine does not allow that."""
    done = subprocess.run(["mount", "--bind", folder, folder], check=False, capture_output=True, text=True)
    if done.returncode == 0:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
    elif os.geteuid() == 0:
        pytest.skip(f"root can write everywhere, and no folder can be mounted read-only here: {done.stderr.strip()}")
    else:
        folder.chmod(0o555)


def writable(folder: Path) -> None:
    if subprocess.run(["umount", folder], check=False, capture_output=True).returncode:
        folder.chmod(0o755)


@pytest.mark.parametrize("kept", [("-wal", "-shm"), ("-wal",), ()])
def test_a_killed_run_in_a_folder_that_may_not_be_written(path: Path, tmp_path: Path, kept: tuple[str, ...]) -> None:
    kill_writer(path, after=3)
    folder = tmp_path / "evidence"
    folder.mkdir()
    if not kept:  # copied by someone who took the database alone: what had gone into it can be read
        sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()
    for suffix in ("", *kept):
        shutil.copyfile(f"{path}{suffix}", folder / f"{path.name}{suffix}")
    read_only(folder)
    try:
        with ResultReader(folder / path.name) as reader:
            assert reader.count() >= 30
            assert len(list(reader.records())) == reader.state("next")
    finally:
        writable(folder)


FILLER = """
import resource, sys
from pathlib import Path
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.store.store import ResultStore
from tests.support.build_records import make_record

limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
store = ResultStore(Path(sys.argv[1]))
number = 0
try:
    while True:
        store.append([make_record(number + offset) for offset in range(20)], state={"next": number + 20})
        number += 20
except HarnessError as error:
    print(number, error)
    store.close()
"""


def fill(path: Path, *, limit: int) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", FILLER, str(path), str(limit)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    number, _, message = done.stdout.partition(" ")
    return int(number), message


def check_full(path: Path, number: int, message: str) -> None:
    assert message.startswith(f"{path}: cannot be written: ")
    assert "free space" in message
    assert number > 0
    with ResultReader(path) as reader:
        assert reader.count() == reader.state("next") == number


def test_a_file_that_may_not_grow(path: Path) -> None:
    number, message = fill(path, limit=300_000)
    check_full(path, number, message)
    with ResultStore(path, resume=True) as store:
        store.append([make_record(number)])
        store.finish()


def test_a_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
    try:
        path = folder / "results.sqlite"
        number, message = fill(path, limit=0)
        assert "full" in message
        check_full(path, number, message)
    finally:
        writable(folder)
