"""Ctrl-C, SIGTERM and SIGHUP: who hears them, and what every command that takes long keeps and says."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.trial import trial_to_json
from aclnn_cts.sandbox.interrupts import ENDINGS, endings_are_interrupts, interrupts_held_back
from aclnn_cts.store.case_files import read_case_file
from aclnn_cts.store.run_directory import RunDirectory
from tests.reports.synthetic import record, softmax_case, synthetic_run
from tests.triage.test_shrink import softmax

ROOT = Path(__file__).parents[2]
TANH_ARGUMENTS = {"gradOutput": "gradOutput", "output": "output", "gradInput": "out"}
"""By name of TanhBackward, of SoftmaxBackward."""
NOISY = "tests.support.signals_adapter:Signals"

WORKER = """\
import os, signal, sys
print("started", flush=True)
sys.stdin.readline()
from aclnn_cts.sandbox.interrupts import ENDINGS, leave_interrupts_to_the_head
leave_interrupts_to_the_head(os.getppid())
for number in (signal.SIGINT, *ENDINGS):
    os.kill(os.getpid(), number)
print("lives on")
"""

CALLER = """\
import os, signal
from aclnn_cts.sandbox.interrupts import interrupts_held_back
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with interrupts_held_back():
        os.kill(os.getpid(), signal.SIGINT)
        print("went on", flush=True)
except KeyboardInterrupt:
    print("heard", flush=True)
"""


def test_an_interrupt_ends_no_worker_that_is_still_starting() -> None:
    with interrupts_held_back():
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"started\n"
    worker.send_signal(signal.SIGINT)
    output, errors = worker.communicate(b"\n")
    assert (worker.returncode, output, errors) == (0, b"lives on\n", b"")


def test_the_caller_hears_it_afterwards() -> None:
    # In a process of its own, which has one thread: any other thread of a process may hear what one holds back.
    done = subprocess.run([sys.executable, "-c", CALLER], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"went on\nheard\n", b"")


@pytest.fixture
def hears() -> Iterator[None]:
    """This process hears the signals as one that nobody has told to ignore them."""
    usual = dict.fromkeys(ENDINGS, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("hears")
@pytest.mark.parametrize("number", ENDINGS)
def test_the_end_of_a_batch_job_and_of_a_terminal_is_an_interrupt_once(number: signal.Signals) -> None:
    told = ""
    with endings_are_interrupts():
        try:
            os.kill(os.getpid(), number)
            signal.sigtimedwait([], 5.0)
        except KeyboardInterrupt as error:
            told = str(error)
        # While what was done is saved, another one changes nothing.
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
    assert told == f"{number.name} was sent"
    assert signal.getsignal(number) == signal.SIG_DFL


def interrupt(_dead: object) -> None:
    raise KeyboardInterrupt


def lose_an_interrupt() -> None:
    class Module:
        pass

    module = Module()
    watched = weakref.ref(module, interrupt)
    del module
    assert watched() is None
    # It comes from another thread, for which no wait of this one ends.
    for _ in range(100):
        signal.sigtimedwait([], 0.05)


@pytest.mark.usefixtures("hears")
def test_an_interrupt_lost_in_a_callback_comes_again() -> None:
    with endings_are_interrupts(), pytest.raises(KeyboardInterrupt):
        lose_an_interrupt()


@pytest.mark.usefixtures("hears")
def test_what_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with endings_are_interrupts():
        os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def hear_all() -> None:
    """What interrupts may be ignored here: in a background job, under nohup."""
    for number in (signal.SIGINT, *ENDINGS):
        signal.signal(number, signal.SIG_DFL)


def ignore_hangups() -> None:
    hear_all()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def start(*words: str, folder: Path, before: Callable[[], None] = hear_all) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "aclnn_cts", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=before,  # noqa: PLW1509 - no other thread is at work
    )


WAITS = {
    "run": ("run", "--adapter", "reference", "--cases", "pipe.json"),
    "fuzz": ("fuzz", "--adapter", "reference", "--chunks", "1", "--waivers", "pipe.json"),
    "replay": ("replay", "pipe.json", "--adapter", "reference"),
    "shrink": ("shrink", "pipe.json", "--adapter", "reference", "-o", "small.json"),
    "report": ("report", "run", "--waivers", "pipe.json", "-o", "report.html"),
    "bundle": ("bundle", "run", "--sign", "pipe.json", "-o", "x.bundle"),
}
"""Commands that read an input from a pipe before they begin."""


def waiting(*words: str, folder: Path, before: Callable[[], None] = hear_all) -> tuple[subprocess.Popen[str], int]:
    """A command that waits for `pipe.json`, and the other end of that."""
    os.mkfifo(folder / "pipe.json")
    process = start(*words, folder=folder, before=before)
    # It opens when the command waits for it.
    return process, os.open(folder / "pipe.json", os.O_WRONLY)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), [*((name, signal.SIGTERM) for name in WAITS), ("run", signal.SIGHUP)])
def test_a_command_that_has_not_begun_ends_with_130_and_leaves_nothing(
    name: str, number: signal.Signals, tmp_path: Path
) -> None:
    synthetic_run(tmp_path / "run", [record(softmax_case())])
    before = {*tmp_path.rglob("*"), tmp_path / "pipe.json"}
    process, pipe = waiting(*WAITS[name], folder=tmp_path)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    os.close(pipe)
    assert (process.returncode, out) == (130, "")
    assert err == f"error: interrupted; {number.name} was sent\n"
    assert set(tmp_path.rglob("*")) == before


def test_a_hangup_that_nohup_ignores_ends_nothing(tmp_path: Path) -> None:
    process, pipe = waiting(*WAITS["replay"], "-o", "made", folder=tmp_path, before=ignore_hangups)
    process.send_signal(signal.SIGHUP)
    os.write(pipe, json.dumps(case_to_json(softmax_case())).encode())
    os.close(pipe)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines()[-1].endswith("run=made")


@pytest.mark.slow
@pytest.mark.parametrize("number", ENDINGS)
@pytest.mark.parametrize("command", ["run", "replay"])
def test_a_run_keeps_what_had_finished(command: str, number: signal.Signals, tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    lines = [json.dumps(case_to_json(softmax_case(seed))) for seed in range(400)]
    cases.write_text("\n".join(lines), encoding="utf-8")
    source = ("run", "--cases", "cases.jsonl") if command == "run" else ("replay", "cases.jsonl")
    # So late that a batch has been stored, and so early that one is left.
    adapter = f"{NOISY},fault=none,number={int(number)},after=300"
    process = start(*source, "--adapter", adapter, "-o", "made", folder=tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err == f"error: interrupted; {number.name} was sent; what had finished is kept in made\n"
    # `run` shows what was found so far; that is no verdict.
    assert re.findall(r"^RESULT verdict=(\S+)", out, re.MULTILINE) == ["inconclusive"] * (command == "run")
    made = RunDirectory(tmp_path / "made")
    assert json.loads((made.path / "summary.json").read_text())["interrupted"] is True
    with made.results() as results:
        assert 0 < sum(1 for _ in results.records()) == made.summary().total.ended < len(lines)


def test_the_smallest_trial_so_far_is_kept(tmp_path: Path) -> None:
    (tmp_path / "large.json").write_text(json.dumps(trial_to_json(softmax((5, 11)))), encoding="utf-8")
    # Shrinking ends after eight executions where the machine is busy.
    adapter = f"{NOISY},number={int(signal.SIGTERM)},after=6"
    process = start("shrink", "large.json", "--adapter", adapter, "-o", "small.json", folder=tmp_path)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.startswith(
        "error: interrupted; SIGTERM was sent; the smallest trial found so far is kept in small.json: 165 elements "
    )
    [entry] = read_case_file(tmp_path / "small.json")
    assert entry.content != softmax((5, 11))


@pytest.mark.slow
def test_findings_that_were_shrunk_are_kept(tmp_path: Path) -> None:
    # A second finding is one of another operator.
    tanh = trial_to_json(softmax((2, 11), "FLOAT"))
    arguments = tanh["case"]["arguments"]
    tanh["case"]["operator"] = "aclnnTanhBackward"
    tanh["case"]["arguments"] = {name: arguments[old] for name, old in TANH_ARGUMENTS.items()}
    cases = [trial_to_json(softmax((5, 11))), tanh]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)), "utf-8")
    # More calls than the run makes, and than shrinking one of the two findings takes.
    adapter = f"{NOISY},fault=two,number={int(signal.SIGTERM)},after=34"
    run = start("run", "--cases", "cases.jsonl", "--adapter", adapter, "-o", "made", folder=tmp_path)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 1, err
    first = start("shrink", "made", "--adapter", adapter, folder=tmp_path)
    out, err = first.communicate(timeout=120)
    assert first.returncode == 130, out
    assert err == "error: interrupted; SIGTERM was sent; what was shrunk is kept in made\n"
    assert out.count(" now, ") == 1
    second = start("shrink", "made", "--adapter", adapter, folder=tmp_path)
    out, err = second.communicate(timeout=120)
    assert second.returncode == 1, err
    assert (out.count("shrunk before"), out.count(" now, ")) == (1, 1)


def test_a_terminal_that_is_closed_costs_nothing(tmp_path: Path) -> None:
    wal = tmp_path / "made" / "results.sqlite-wal"
    process, terminal = pty.fork()
    if process == 0:
        hear_all()
        os.chdir(tmp_path)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
        words = ["run", "softmax_backward", "--adapter", "reference", "--profile", "thorough", "-o", "made"]
        os.execve(sys.executable, [sys.executable, "-m", "aclnn_cts", *words], environment)  # noqa: S606 - our own
    deadline = time.monotonic() + 120
    while not (wal.exists() and wal.stat().st_size > 300_000) and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 1 << 16)
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert json.loads((tmp_path / "made" / "summary.json").read_text())["interrupted"] is True


@pytest.mark.slow
def test_workers_end_with_a_head_that_is_killed(tmp_path: Path) -> None:
    words = ["run", "softmax_backward", "--adapter", "reference", "--profile", "thorough", "--workers", "2"]
    process = start(*words, "-o", "made", folder=tmp_path)
    wal = tmp_path / "made" / "results.sqlite-wal"
    deadline = time.monotonic() + 120
    while not (wal.exists() and wal.stat().st_size > 100_000) and time.monotonic() < deadline:
        time.sleep(0.05)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
    workers = [
        Path("/proc", child) for child in children if b"spawn_main" in Path("/proc", child, "cmdline").read_bytes()
    ]
    assert len(workers) == 2
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 20
    while any(worker.exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(worker.exists() for worker in workers)


INSIDE_EXEC = """\
import os, signal, sys
from aclnn_cts.cli import main
def interrupted(**_):
    exec("os.kill(os.getpid(), signal.SIGTERM)")
main._cli.invoke = lambda context: interrupted()
sys.exit(main.main(["ops"]))
"""


def test_an_interrupt_inside_of_exec_ends_with_an_exit_code_and_no_signal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INSIDE_EXEC], capture_output=True, text=True, check=False, preexec_fn=hear_all
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted; SIGTERM was sent\n")
