from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import failure_name
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result, SkipReason
from aclnn_cts.findings.findings import findings_in
from aclnn_cts.findings.fingerprint import display_order
from aclnn_cts.store.case_files import read_case_file
from aclnn_cts.store.events import (
    BatchJudged,
    Consumer,
    Notice,
    PhaseStarted,
    RunFinished,
    RunStarted,
    TrialsPlanned,
    TrialsSkipped,
)
from aclnn_cts.store.run_directory import RunDirectory, default_run_path
from aclnn_cts.store.run_writer import RunWriter, create_run, resume_run
from aclnn_cts.store.store import ResultStore
from tests.support.build_records import EMBEDDING, SOFTMAX, make_manifest, make_record

SPECS = {"softmax_backward.yaml": b"operator: aclnnSoftmaxBackward\n", "interface.yaml": b"interface: x\n"}
FAILURES = [
    make_record(number, result=Result.FAILED, kind=Fault.VALUE, dtype=dtype)
    for number, dtype in enumerate(("FLOAT", "BF16", "FLOAT"))
]


def create(path: Path, *, blob_limit: int = 1000) -> RunWriter:
    return create_run(path, manifest=make_manifest(), specs=SPECS, blob_limit=blob_limit, grouping=findings_in)


def test_a_run_from_its_events(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    records = (make_record(7), *FAILURES)
    with create(path) as writer:
        consumer: Consumer = writer
        consumer(RunStarted(manifest=make_manifest()))
        consumer(TrialsPlanned(operator=SOFTMAX, kind="valid", number=4))
        consumer(TrialsPlanned(operator=EMBEDDING, kind="valid", number=2))
        consumer(TrialsSkipped(operator=EMBEDDING, kind="valid", reason=SkipReason.UNSUPPORTED, number=2))
        consumer(PhaseStarted(name="valid", operator=SOFTMAX))
        consumer(BatchJudged(records=records[:2]))
        assert not RunDirectory(path).finished
        consumer(Notice(message="a worker was lost"))
        consumer(BatchJudged(records=records[2:], state={"chunk": 1}))
        consumer(RunFinished(summary=writer.summary, seconds=1.5))
    assert sorted(entry.name for entry in path.iterdir()) == [
        "blobs",
        "failures",
        "manifest.json",
        "results.sqlite",
        "specs",
        "summary.json",
    ]
    run = RunDirectory(path)
    assert run.finished
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in SPECS.items()}
    assert run.manifest == make_manifest(specs=hashes)
    assert {spec.name: spec.read_bytes() for spec in run.specs()} == SPECS
    with run.results() as results:
        assert [record.trial_id for record in results.records()] == [record.trial_id for record in records]
        assert results.state("chunk") == 1
    document = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    expected = {"cases": 6, "passed": 1, "failed": 3, "waived": 0, "errors": 0, "skipped": 2, "verdict": "fails"}
    assert {key: document[key] for key in expected} == expected
    assert document["skipped_by_reason"] == {SkipReason.UNSUPPORTED: 2}
    assert (document["interrupted"], document["seconds"]) == (False, 1.5)
    assert run.summary() == writer.summary


def test_one_trial_file_for_each_finding(tmp_path: Path) -> None:
    with create(tmp_path / "run") as writer:
        writer.append(FAILURES)
        writer.append([make_record(result=Result.ERROR, kind="lost")])
        [early] = RunDirectory(writer.path).failures()
        writer.finish()
    [file] = RunDirectory(writer.path).failures()
    assert (file, file.name) == (early, failure_name(FAILURES[0].key))
    [entry] = read_case_file(file)
    assert isinstance(entry.content, Trial)
    assert entry.content.id == min(FAILURES, key=display_order).trial_id


def test_killed_it_is_read_and_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    script = (
        "import os, sys; from pathlib import Path; from tests.store.test_run_directory import *\n"
        "writer = create(Path(sys.argv[1])); writer(TrialsPlanned(operator=SOFTMAX, kind='valid', number=4))\n"
        "writer.append(FAILURES); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL
    run = RunDirectory(path)
    assert not run.finished
    killed = run.summary()
    assert (killed.total.cases, killed.total.failed, killed.verdict) == (4, 3, "fails")
    failure = run.failures()[0]
    failure.unlink()  # as if the kill had come between the records and this file
    with resume_run(path, grouping=findings_in) as writer:
        assert writer.summary == killed
        writer.append([make_record(9)])
        writer.finish()
    assert failure in run.failures()
    assert run.summary().discrepancies() == ()
    with resume_run(path, grouping=findings_in):
        assert not run.finished


def test_a_batch_that_fails_is_not_counted(tmp_path: Path) -> None:
    with create(tmp_path / "run") as writer:
        writer.append([make_record(0)])
        with pytest.raises(HarnessError):
            writer.append([make_record(1), make_record(2, facts={"x": object()})])
        assert writer.summary.total.passed == 1
        writer.finish(interrupted=True)
    assert json.loads((tmp_path / "run" / "summary.json").read_bytes())["interrupted"]


def test_an_interrupt_right_after_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(tmp_path / "run") as writer:
        writer(TrialsPlanned(operator=SOFTMAX, kind="valid", number=2))
        writer.append([make_record(number=1)])
        append = ResultStore.append

        def interrupted(*arguments: Any, **words: Any) -> None:
            append(*arguments, **words)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(ResultStore, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                writer.append([make_record(number=2)])
        writer.finish(interrupted=True)
    directory = RunDirectory(tmp_path / "run")
    with directory.results() as results:
        assert sum(1 for _ in results.records()) == directory.summary().total.ended == 2


def test_blobs_by_hash_within_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with create(path, blob_limit=10) as writer:
        digest = writer.blob(b"12345678")
        assert digest == hashlib.sha256(b"12345678").hexdigest()
        assert writer.blob(b"12345678") == digest
        assert writer.blob(b"123") is None
        assert writer.blob(b"12") is not None
        assert writer.blobs_refused == 1
    with resume_run(path, blob_limit=12) as writer:
        assert writer.blob(b"abc") is None
        assert writer.blob(b"ab") is not None
    assert (path / "blobs" / digest).read_bytes() == b"12345678"


def test_directories_that_are_refused(tmp_path: Path) -> None:
    create(tmp_path / "run").close()
    with pytest.raises(UsageError, match="run: holds a run already; choose another directory with -o"):
        create(tmp_path / "run")
    with pytest.raises(UsageError, match=r"holds other files already \(run\)"):
        create(tmp_path)
    file = tmp_path / "run" / "manifest.json"
    for path in (file, file / "below"):
        with pytest.raises(UsageError, match=r"cannot be used: (File exists|Not a directory)|lies in the run"):
            create(path)
    with pytest.raises(UsageError, match="control characters"):
        create(tmp_path / "a\nb")
    with pytest.raises(UsageError, match=r"holds no manifest\.json; expected the directory that a run wrote"):
        RunDirectory(tmp_path)
    with pytest.raises(UsageError, match=r"holds no manifest\.json"):
        resume_run(tmp_path)
    (tmp_path / "empty").mkdir()
    create(tmp_path / "empty").close()


def test_a_directory_of_a_run_that_was_killed_before_its_manifest_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "run"
    create(path).close()
    (path / "manifest.json").rename(path / ".manifest.json.0a1b2c3d.partial")
    create(path).close()
    assert not list(path.glob(".*"))
    # Half made: a store without its tables.
    for file in [*path.iterdir()]:
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    (path / "results.sqlite").touch()
    (path / "specs").mkdir()
    create(path).close()
    assert RunDirectory(path).manifest.specs


@pytest.mark.parametrize("names", [["specs"], ["waivers"], ["specs", "waivers"], ["failures"]])
def test_a_folder_of_somebody_s_own_is_not_taken_for_a_beginning(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / names[0] / "mine.yaml").write_text("mine")
    with pytest.raises(UsageError, match="holds other files already"):
        create(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == names
    assert (tmp_path / names[0] / "mine.yaml").read_text() == "mine"


def test_a_database_of_somebody_s_own_is_not_taken_for_a_beginning(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "mine.yaml").write_text("mine")
    with contextlib.closing(sqlite3.connect(tmp_path / "results.sqlite")) as connection:
        connection.execute("CREATE TABLE mine (value)")
    with pytest.raises(UsageError, match="holds other files already"):
        create(tmp_path)
    assert (tmp_path / "specs" / "mine.yaml").exists()
    assert (tmp_path / "results.sqlite").exists()


def test_what_a_run_has_stored_is_not_taken_for_a_beginning(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with create(path) as writer:
        writer.append([make_record(1)])
    (path / "manifest.json").unlink()
    with pytest.raises(UsageError, match="holds other files already"):
        create(path)
    assert (path / "results.sqlite").exists()
    other = tmp_path / "other"
    with create(other):
        (other / "manifest.json").unlink()
        with pytest.raises(UsageError, match="another process writes to this run"):
            create(other)


@pytest.mark.parametrize("exists", [False, True])
def test_a_start_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool) -> None:
    path = tmp_path / "run"
    if exists:
        path.mkdir()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(HarnessError, match="No space left on device; free space"):
            create(path)
    assert path.exists() == exists
    create(path).close()


def test_names_of_runs_do_not_meet(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    first = default_run_path("run", "torch:device=npu", now=moment, base=tmp_path)
    assert first.name == "20260102-030405-run-torch-device-npu"
    first.mkdir()
    assert default_run_path("run", "torch:device=npu", now=moment, base=tmp_path).name == f"{first.name}-2"
