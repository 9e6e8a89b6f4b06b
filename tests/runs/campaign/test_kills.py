"""SIGKILL at random moments, on the head or on any process below it: what was finished stays, what was not comes.

`ACLNN_CTS_KILLS` sets how many kills (`make soak-fuzz`: 50).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.summary import summary_from_json
from tests.runs.campaign.test_campaigns import chunks, expect_the_same, findings
from tests.support.ran import RESULT, Ran

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("ACLNN_CTS_KILLS", "5"))
CHUNKS, TRIALS = (10, 64) if KILLS <= 5 else (40, 16)
LIMIT = 1200.0


def command(path: Path, *more: str) -> list[str]:
    words = ["fuzz", "softmax_backward", "--seed", "1", "--adapter", "rare_adapter:Rare,fault=slow", "--workers", "2"]
    return [
        sys.executable,
        "-m",
        "aclnn_cts",
        *words,
        "--chunk-trials",
        str(TRIALS),
        "--chunks",
        str(CHUNKS),
        *more,
        "-o",
        str(path),
    ]


def start(path: Path, *more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}", "COLUMNS": "100"}
    return subprocess.Popen(
        command(path, *more),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_all,  # noqa: PLW1509 - no other thread is at work
    )


def _hear_all() -> None:
    """What ends a campaign may be ignored here: in a background job, under nohup."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def finished(process: subprocess.Popen[str], path: Path) -> Ran:
    out, err = process.communicate(timeout=LIMIT)
    return Ran(process.returncode, out, err, path)


def below(process: int) -> Iterator[int]:
    """The processes that a process has started, and theirs."""
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(word) for word in file.read_text().split()]
        except OSError:
            continue
        for child in children:
            yield child
            yield from below(child)


def committed(path: Path) -> dict[int, float]:
    """Finished chunks and the seconds that each took: one that is run again takes others."""
    try:
        with RunDirectory(path).results() as results:
            return {
                value["index"]: value["seconds"] for _, value in results.states("chunk/") if isinstance(value, dict)
            }
    except (UsageError, HarnessError):
        return {}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, float]:
    path = tmp_path_factory.mktemp("whole") / "run"
    began = time.monotonic()
    run = finished(start(path), path)
    return run, time.monotonic() - began


@pytest.mark.slow
def test_kills_at_random_moments(whole: tuple[Ran, float], tmp_path: Path) -> None:
    uninterrupted, seconds = whole
    assert uninterrupted.code == 1, uninterrupted.err
    chance = random.Random(20)  # noqa: S311 - moments, no secrets
    path = tmp_path / "killed"
    kills = 0
    kept: dict[int, float] = {}
    process = start(path)
    while kills < KILLS:
        try:
            process.wait(chance.uniform(0.0, max(seconds, 4.0) * (0.7 if KILLS <= 5 else 0.15)))
        except subprocess.TimeoutExpired:
            victims = [process.pid, *below(process.pid)]
            victim = process.pid if kills % 2 == 0 else chance.choice(victims)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            kills += 1
            if victim != process.pid:
                continue
            process.communicate(timeout=60)
        else:
            process.communicate(timeout=60)
            if process.returncode == 1:
                break
        now = committed(path)
        assert now.items() >= kept.items(), "a finished chunk was lost, or run again"
        kept = now
        process = start(path, *(["--resume"] if (path / "manifest.json").exists() else []))
    run = finished(process, path)
    if run.code != 1:
        run = finished(start(path, "--resume"), path)
    assert run.code == 1, run.err
    assert kills
    assert committed(path).items() >= kept.items()
    assert [entry["index"] for entry in chunks(run)] == list(range(CHUNKS))
    expect_the_same(run, uninterrupted)
    result = RESULT.fullmatch(run.out.splitlines()[-1])
    assert result is not None, run.out
    assert all(item.confirmed for item in findings(run))
    for finding in findings(run):
        assert finding.trial is not None
        assert msgspec.json.encode(finding.key)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_ends_it_prints_the_command_that_resumes(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "run"
    # So many that it is not at its end by the time of the interrupt.
    process = start(path, "--chunks", "1000")
    deadline = time.monotonic() + 300
    while not committed(path) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(number)
    run = finished(process, path)
    assert run.code == 130
    assert "go on with\n" in run.err
    assert (f"{number.name} was sent; " in run.err) == (number != signal.SIGINT)
    again = run.err.split("go on with\n")[1].splitlines()[0].strip()
    assert again.startswith("aclnn-cts fuzz softmax_backward ")
    assert again.endswith(f"-o {path} --resume")
    assert RunDirectory(path).finished
    assert committed(path)
    # What is exported is what is stored, the coverage of finished chunks among it.
    exported = [json.loads(line) for line in (path / "campaign.jsonl").read_text().splitlines()]
    assert {line["index"] for line in exported if line["type"] == "chunk"} == set(committed(path))
    assert [line["operator"] for line in exported if line["type"] == "coverage"] == ["aclnnSoftmaxBackward"]
    with RunDirectory(path).results() as results:
        stored = summary_from_json(results.state("summary"), where="results.sqlite")
    assert exported[0]["cases"] == stored.total.cases > 0


def test_ctrl_c_before_anything_was_begun_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run"
    process = start(path, "--chunks", "1000")
    assert process.stderr is not None
    assert process.stderr.readline().startswith("begins ")
    process.send_signal(signal.SIGINT)
    run = finished(process, path)
    assert run.code == 130
    if path.exists():
        # It took so long to be heard.
        assert f"what had finished is kept in {path}" in run.err
    else:
        assert f"nothing was begun, and {path} was not made" in run.err
        assert "--resume" not in run.err


@pytest.mark.slow
def test_a_reader_of_its_notes_that_goes_does_not_end_it(tmp_path: Path) -> None:
    path = tmp_path / "run"
    process = start(path, "--chunks", "3", "--waivers", str(_not_needed(tmp_path)))
    assert process.stderr is not None
    process.stderr.close()
    out, _ = process.communicate(timeout=LIMIT)
    assert "RESULT verdict=" in out
    assert process.returncode in (0, 1)
    assert len(committed(path)) >= 3


def _not_needed(folder: Path) -> Path:
    """A waiver of which there is something to say at the end."""
    path = folder / "w.yaml"
    path.write_text(
        "subject: nothing\nwaivers:\n  - id: idle\n    reason: none\n    owner: nobody\n    expiry: 2999-12-31\n    "
        "scope: {adapter: 'rare_adapter:Rare', operator: aclnnSoftmaxBackward, kind: [crash]}\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.slow
def test_a_full_disk_stops_it_cleanly(tmp_path: Path) -> None:
    """A limit on the size of files makes writes fail as a full disk does."""
    path = tmp_path / "run"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}"}
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000));"
        "from aclnn_cts.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    # The reference, since the memory of a runner is a file too.
    words = [sys.executable, "-c", script, "fuzz", "softmax_backward", "--adapter", "reference", "--chunks", "30"]
    words += ["--chunk-trials", "16", "-o", str(path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 3, done.stderr
    assert "results.sqlite: cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert f"what had finished is kept in {path}; when this is mended, go on with\n  aclnn-cts fuzz" in done.stderr
    assert done.stderr.rstrip().endswith(f"-o {path} --resume")
    before = committed(path)
    assert before
    again = [sys.executable, "-m", "aclnn_cts", *words[3:], "--resume"]
    more = subprocess.run(again, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert more.returncode == 0, more.stderr
    assert committed(path).items() >= before.items()
