from __future__ import annotations

import re
from pathlib import Path

import pytest

from aclnn_cts.runs import doctor
from aclnn_cts.runs.doctor import LIBRARIES, describe_surroundings


@pytest.fixture(autouse=True)
def _without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_torch_devices", list)


def test_every_dependency_is_looked_for() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    block = text.partition("\ndependencies = [")[2].partition("\n]")[0]
    named = re.findall(r'^\s*"([A-Za-z0-9_-]+)', block, re.MULTILINE)
    assert named
    assert set(named) <= set(LIBRARIES)


def test_an_adapter_that_cannot_be_used_says_why() -> None:
    words = ("no_such_module:Adapter", "json:no_such_name", "builtins:dict", "reference")
    missing, nameless, wrong, sound = describe_surroundings(words)["adapters"]
    assert "no_such_module" in missing["problem"]
    assert "no_such_name" in nameless["problem"]
    assert "AttributeError: " in wrong["problem"]
    assert [item["usable"] for item in (missing, nameless, wrong, sound)] == [False, False, False, True]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    assert doctor._store(tmp_path)["writable"] is True
    assert doctor._store(tmp_path / "nowhere") == {
        "folder": str(tmp_path / "nowhere"),
        "writable": False,
        "problem": "No such file or directory",
    }
    assert list(tmp_path.iterdir()) == []
