"""What a run says of an adapter of the user's own: its file, and that nobody has measured what it declares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.adapters.registry import own_file
from aclnn_cts.reports.markdown import markdown_bytes
from aclnn_cts.reports.model.build import acceptance
from tests.runs.test_run import softmax, written
from tests.support.ran import Ran

Run = Callable[..., Ran]
SOURCE = """
from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.adapters.reference import ReferenceAdapter


class Mine(ReferenceAdapter):
    def open(self, target, specs):
        session = super().open(target, specs)
        session.capabilities = Capabilities(description="Ascend910B3", statuses=True, phases=True, in_place=True)
        session.environment = {"description": "Ascend910B3"}
        return session
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "numpy_adapter_of_mine.py"
    file.write_text(SOURCE)
    return file


def test_the_manifest_names_the_file_and_the_screen_says_who_declares_the_device(
    ran: Run, tmp_path: Path, mine: Path
) -> None:
    cases = written(tmp_path / "case.json", softmax(2, 3))
    run = ran("run", "--adapter", "numpy_adapter_of_mine:Mine", "--cases", cases)
    facts = json.loads((run.path / "manifest.json").read_text())["environment"]
    assert facts["own_adapter.file"] == {"value": str(mine), "known": "measured"}
    assert facts["own_adapter.sha256"]["value"] == hashlib.sha256(mine.read_bytes()).hexdigest()
    assert facts["adapter.description"]["known"] == "declared"
    assert "Ran on: Ascend910B3 (declared by the adapter); " in run.out
    report = acceptance([run.path])
    assert "Ascend910B3 (declared by the adapter)" in markdown_bytes(report, None, "en").decode().replace("\\", "")


def test_adapters_that_ship_have_no_file_of_the_user_s(ran: Run, tmp_path: Path) -> None:
    assert own_file("reference") is None
    assert own_file("torch:device=cpu") is None
    assert own_file("no_such_module:Adapter") is None
    run = ran("run", "--adapter", "reference", "--cases", written(tmp_path / "case.json", softmax(2, 3)))
    assert not any(name.startswith("own_adapter.") for name in run.directory.manifest.environment)
    assert "declared by the adapter" not in run.out


@pytest.mark.slow
def test_a_campaign_does_not_go_on_with_a_changed_adapter_file(ran: Run, tmp_path: Path, mine: Path) -> None:
    words = ("fuzz", "softmax_backward", "--adapter", "numpy_adapter_of_mine:Mine", "--chunk-trials", "16")
    began = ran(*words, "--chunks", "1")
    mine.write_text(SOURCE + "\n# changed\n")
    again = ran(*words, "--chunks", "2", "--resume", out=began.path)
    assert again.code == 2
    assert f"the adapter's file {mine} has changed since the campaign began" in again.err
    mine.write_text(SOURCE)
    assert ran(*words, "--chunks", "2", "--resume", out=began.path).code == 0


def test_findings_of_a_class_without_phases_have_programs_that_call_a_function(ran: Run, tmp_path: Path) -> None:
    run = ran(
        "run", "--adapter", "own_adapter:Softmax,scale=3", "--cases", written(tmp_path / "case.json", softmax(2, 3))
    )
    assert run.code == 1
    [card] = acceptance([run.path]).findings
    [program] = card.made.programs
    assert program.language == "numpy"
    assert "python3 repro.py module:function" in program.text
