from __future__ import annotations

import os
from pathlib import Path

import pytest

from aclnn_cts.adapters.registry import parse_adapter_word
from aclnn_cts.core.target import Target
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.runs.gate import gate_options
from aclnn_cts.sandbox import limits
from aclnn_cts.sandbox.limits import RunnerLimits, machine_memory, memory_of_runner, share_of_memory
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import load_specs

PHYSICAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_all_workers_together_have_what_one_has() -> None:
    assert share_of_memory(1) == machine_memory() // 2
    assert all(workers * share_of_memory(workers) <= share_of_memory(1) for workers in range(1, 100))


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("memory.max", "1000000\n", 1_000_000),
        ("memory.max", "max\n", PHYSICAL),
        ("memory/memory.limit_in_bytes", "2000000\n", 2_000_000),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", PHYSICAL),
        ("other", "", PHYSICAL),
    ],
)
def test_a_container_with_less_memory_is_the_machine(tmp_path: Path, file: str, text: str, expected: int) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert machine_memory(tmp_path) == expected


def test_the_runners_of_workers_have_shares() -> None:
    settings = RunnerSettings(adapter="loopback", target=Target(product="atlas-a2"), workers=4)
    with settings.open_host(load_specs()) as host:
        assert isinstance(host, ProcessHost)
        assert host._runners._memory_bytes == share_of_memory(4)


@pytest.mark.parametrize(
    ("max_bytes", "python", "expected"),
    [(1 << 30, True, 4 << 30), (1 << 20, True, 4 << 30), (2 << 30, True, 8 << 30), (1 << 30, False, 32 << 30)],
)
def test_python_has_four_times_its_arguments(
    monkeypatch: pytest.MonkeyPatch, max_bytes: int, python: bool, expected: int
) -> None:
    monkeypatch.setattr(limits, "machine_memory", lambda: 64 << 30)
    assert memory_of_runner(1, python=python, max_bytes=max_bytes)[0] == expected
    # A share that is less counts.
    assert memory_of_runner(64, python=python, max_bytes=max_bytes) == (1 << 29, ", a share of 64 workers")


@pytest.mark.parametrize(("adapter", "python"), [("mine:Adapter", True), ("torch", True), ("cann", False)])
def test_an_adapter_of_ones_own_is_python(adapter: str, *, python: bool) -> None:
    assert parse_adapter_word(adapter).is_python == python


def test_a_limit_that_was_given_is_not_shared() -> None:
    with ProcessHost(
        "reference", target=Target(), limits=RunnerLimits(memory_bytes=1 << 30), workers=4, spare=False
    ) as host:
        assert host._runners._memory_bytes == 1 << 30


@pytest.mark.parametrize(("count", "workers"), [("3", 3), ("", 1), ("many", 1), ("0", 1)])
def test_gates_of_xdist_workers_share_the_machine(monkeypatch: pytest.MonkeyPatch, count: str, workers: int) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", count)
    assert gate_options(adapter="reference").settings.workers == workers
