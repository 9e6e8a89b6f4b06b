"""What a candidate finds of the machine. Where the system allows no namespaces, the judgement must say so."""

from __future__ import annotations

from pathlib import Path

import pytest

import aclnn_cts
from aclnn_cts.candidates.verdict import Judgement
from aclnn_cts.sandbox.control_group import PROCESSES
from tests.candidates import kernels

_PROBE = """
import os
from pathlib import Path

import numpy as np


def probe(grad_output, output, dim):
    {body}
"""


def said(tmp_path: Path, body: str) -> str:
    """What a probe raises in a candidate's process."""
    file = tmp_path / "probe.py"
    file.write_text(_PROBE.format(body=body), encoding="utf-8")
    found = aclnn_cts.judge(f"{file}:probe", "softmax_backward", budget="60s", seed=1)
    _skip_without_namespaces(found)
    return found.reason


def _skip_without_namespaces(found: Judgement) -> None:
    if found.missing:
        pytest.skip(f"the system does not allow {', '.join(found.missing)}")


def test_package_is_neither_importable_nor_on_the_disk(tmp_path: Path) -> None:
    package = Path(aclnn_cts.__file__).resolve().parent
    assert "No module named 'aclnn_cts'" in said(tmp_path, "import aclnn_cts.speclang")
    assert "files: []" in said(tmp_path, f"raise ValueError('files: %s' % list(Path({str(package)!r}).glob('*')))")
    assert "oracles: False" in said(
        tmp_path, f"raise ValueError('oracles: %s' % Path({str(package.parent / 'oracles')!r}).exists())"
    )


def test_no_other_process_is_seen(tmp_path: Path) -> None:
    body = "raise ValueError('seen: %s' % len(list(Path('/proc').glob('[0-9]*'))))"
    assert "seen: 2" in said(tmp_path, body)


def test_a_candidate_starts_few_processes(tmp_path: Path) -> None:
    body = """
    try:
        while os.fork():
            pass
        import time; time.sleep(60)
    except OSError:
        raise ValueError("processes: %s" % len(list(Path("/proc").glob("[0-9]*"))))
"""
    assert 10 < int(said(tmp_path, body.lstrip()).rpartition("processes: ")[2]) <= PROCESSES


def test_there_is_no_network(tmp_path: Path) -> None:
    body = "import socket; raise ValueError('links: %s' % [name for _, name in socket.if_nameindex()])"
    assert said(tmp_path, body).endswith(("links: ['lo']", "links: []"))


def test_files_cannot_be_written_outside_the_private_folder(tmp_path: Path) -> None:
    reason = said(tmp_path, f"open({str(Path(kernels.__file__).parent / 'x')!r}, 'w')")
    assert "Read-only file system" in reason or "FileNotFoundError" in reason
    assert "written 5" in said(tmp_path, "raise ValueError('written %s' % Path('/tmp/x').write_text('hello'))")
    assert not Path("/tmp/x").exists()  # noqa: S108 - the other one


def test_candidate_has_no_privileges(tmp_path: Path) -> None:
    reason = said(tmp_path, "raise ValueError([l for l in open('/proc/self/status') if l.startswith('CapEff')])")
    assert "0000000000000000" in reason


def test_environment_has_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_CTS_SECRET", "x")
    body = "raise ValueError([n for n in os.environ if n.startswith(('ACLNN', 'PYTHON'))])"
    assert "ValueError: []" in said(tmp_path, body)
