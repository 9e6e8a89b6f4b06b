"""An implementation whose process, or whose worker, is killed while it is opened: one message that says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Called, named

ROOT = Path(__file__).parents[2]
CASE = ROOT / "waivers/cases/softmax-backward-strided-output.jsonl"
SUPPORT = ROOT / "tests" / "support"
ADAPTER = "dying_adapter:Dying"


def ended(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(ROOT), str(SUPPORT)))
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@named(
    "words",
    [
        ("run", ("run", "--cases", "c.json")),
        ("fuzz", ("fuzz", "softmax_backward", "--chunks", "1")),
        ("replay", ("replay", "c.json")),
        ("shrink", ("shrink", "c.json", "-o", "small.json")),
    ],
)
def test_an_implementation_that_is_killed_while_it_is_opened(
    call: Callable[..., Called], words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(SUPPORT)
    (tmp_path / "c.json").write_text(CASE.read_text().splitlines()[0])
    called = call(*words, "--adapter", ADAPTER)
    message = f"error: --adapter {ADAPTER}: its runner ended while opening it: the runner died by SIGKILL"
    assert (called.code, called.out, called.err.splitlines()[-1]) == (3, "", message)


def test_the_gate_says_so_too(tmp_path: Path) -> None:
    words = ("pytest", "-q", "-p", "no:cacheprovider", "-p", "aclnn_cts.plugin", "--pyargs", "aclnn_cts.suites")
    done = ended(tmp_path, *words, "--aclnn-adapter", ADAPTER, "--aclnn-op", "softmax_backward")
    assert done.returncode == 3, done
    assert "its runner ended while opening it: the runner died by SIGKILL" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.slow
@named("words", [("run", ("run", "softmax_backward")), ("fuzz", ("fuzz", "softmax_backward", "--chunks", "1"))])
def test_a_worker_that_is_killed_while_it_is_opened(words: tuple[str, ...], tmp_path: Path) -> None:
    done = ended(tmp_path, "aclnn_cts", *words, "--workers", "2", "--adapter", f"{ADAPTER},who=worker")
    assert done.returncode == 3, done
    message = f"a worker's process ended while opening --adapter {ADAPTER},who=worker: it was ended by SIGKILL"
    assert f"error: {message}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_run_survives_a_worker_that_is_killed(tmp_path: Path) -> None:
    done = _with_killed_workers(tmp_path, times=1)
    assert done.returncode == 0, done
    assert (tmp_path / "marks" / "0").exists()


@pytest.mark.slow
def test_a_part_of_the_plan_that_costs_two_workers_ends_the_run(tmp_path: Path) -> None:
    done = _with_killed_workers(tmp_path, times=99)
    assert done.returncode == 3, done
    # Both workers are lost with a part each, again and again; which part is the first with two is chance.
    assert "error: aclnnSoftmaxBackward, check " in done.stderr
    assert ": 2 workers were lost with it, the last since" in done.stderr
    assert "Traceback" not in done.stderr


def _with_killed_workers(folder: Path, *, times: int) -> subprocess.CompletedProcess[str]:
    (folder / "marks").mkdir()
    adapter = f"{ADAPTER},who=working,marks={folder}/marks,times={times}"
    return ended(folder, "aclnn_cts", "run", "softmax_backward", "--workers", "2", "--adapter", adapter)
