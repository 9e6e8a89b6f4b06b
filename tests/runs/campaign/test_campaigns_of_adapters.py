"""Campaigns with findings on every kind of implementation: programs of each finding, also after a kill."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import pytest

from aclnn_cts.repro.write import WRITTEN_BY_US, languages_of
from aclnn_cts.store.programs import SUFFIXES, program_name
from tests.adapters.loopback.support import home, needs_compiler
from tests.runs.campaign.test_campaigns import findings
from tests.runs.campaign.test_kills import committed, finished
from tests.support.ran import Ran

Run = Callable[..., Ran]
ROOT = Path(__file__).parents[3]
FAULT = "ACLNN_LOOPBACK_FAULT"
WRONG_BINDING = """\
bindings:
  aclnnSoftmaxBackward:
    call: _softmax_backward_data
    arguments: {grad_output: output, output: gradOutput, dim: dim, input_dtype: {dtype: gradOutput}}
    outputs: [out]
    result: {like: gradOutput}
    cast: true
"""


def expect_programs(run: Ran, languages: Sequence[str]) -> None:
    """Each finding without a waiver is confirmed, and has its programs beside its trial."""
    assert languages_of(run.directory.manifest) == tuple(languages)
    found = [finding for finding in findings(run) if not finding.waiver]
    assert found
    assert all(finding.confirmed for finding in found)
    for finding in found:
        file = run.path / "failures" / finding.file
        for language in languages:
            text = file.with_name(program_name(file.name, language)).read_bytes()
            assert WRITTEN_BY_US[language](BytesIO(text))
            if language != "cpp":
                ast.parse(text)


def test_findings_of_a_class_of_ones_own_have_programs(ran: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tests" / "adapters")
    words = ("fuzz", "softmax_backward", "--adapter", "own_adapter:Softmax,scale=2")
    run = ran(*words, "--chunk-trials", "8", "--chunks", "1")
    assert run.code == 1, run.err
    expect_programs(run, ("numpy",))


def reference_like(folder: Path) -> tuple[str, Mapping[str, str]]:
    return "rare_adapter:Rare,fault=slow", {}


def own_class(folder: Path) -> tuple[str, Mapping[str, str]]:
    (folder / "mine.py").write_bytes((ROOT / "tests" / "adapters" / "own_adapter.py").read_bytes())
    return "mine:Softmax,scale=2", {}


def wrong_binding(folder: Path) -> tuple[str, Mapping[str, str]]:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    file = folder / "wrong.yaml"
    file.write_text(WRONG_BINDING, encoding="utf-8")
    return f"torch:bindings={file}", {}


def software_device(folder: Path) -> tuple[str, Mapping[str, str]]:
    return "loopback", {FAULT: "softmax.tail-unwritten"}


def own_library(folder: Path) -> tuple[str, Mapping[str, str]]:
    file = folder / "libmine.so"
    file.write_bytes(home().library.read_bytes())
    return f"cann:library={file}", {FAULT: "softmax.tail-unwritten"}


def host_library(folder: Path) -> tuple[str, Mapping[str, str]]:
    library = home().host / "lib64" / "libloopback_host.so"
    return f"cann:library={library}", {"ACLNN_LOOPBACK_INJECT": "refuse/one@numel=1"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("implementation", "languages", "more"),
    [
        (reference_like, ("cpp", "python"), ()),
        (own_class, ("numpy",), ()),
        (wrong_binding, ("torch",), ()),
        pytest.param(software_device, ("cpp", "python"), (), marks=needs_compiler),
        pytest.param(own_library, ("cpp", "python"), (), marks=needs_compiler),
        pytest.param(
            host_library, ("cpp", "python"), ("--phases", "one", "--product", "atlas-a2"), marks=needs_compiler
        ),
    ],
)
def test_a_killed_campaign_goes_on_and_each_finding_has_programs_in_every_language(
    implementation: Callable[[Path], tuple[str, Mapping[str, str]]],
    languages: Sequence[str],
    more: Sequence[str],
    tmp_path: Path,
    ran: Run,
) -> None:
    adapter, variables = implementation(tmp_path)
    path = tmp_path / "run"
    words = ["fuzz", "softmax_backward", "--adapter", adapter, "--chunks", "3", "--chunk-trials", "16", *more]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}", "COLUMNS": "100", **variables}

    def start(*resume: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "aclnn_cts", *words, *resume, "-o", str(path)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    process = start()
    deadline = time.monotonic() + 120
    while not committed(path) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    _, told = process.communicate(timeout=60)
    assert committed(path), told
    run = finished(start("--resume"), path)
    assert run.code == 1, run.err
    expect_programs(run, languages)
    for file in run.directory.failures():
        folder = tmp_path / file.stem
        made = ran("repro", str(file), "--language", ",".join(SUFFIXES), out=folder)
        assert made.code == 0, made.err
        assert {item.name for item in folder.iterdir()} == {f"repro{suffix}" for suffix in SUFFIXES.values()}
