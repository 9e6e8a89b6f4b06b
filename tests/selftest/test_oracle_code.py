"""The code that an oracle consists of: what changes its digest, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclnn_cts.selftest import oracle_code
from aclnn_cts.selftest.oracle_code import oracle_digest

OWN = """
from aclnn_cts.oracles._shared import used as helper

def backward(f, x):
    \"\"\"A docstring.\"\"\"
    return helper(x)
"""
SHARED = """
from aclnn_cts.oracles._other import far

LIMIT = 3

def used(x):
    return far(x, LIMIT)

def unused(x):
    return x
"""
OTHER = """
def far(x, limit):
    return near(x) * limit

def near(x):
    return x + 1
"""


def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, shared: str, other: str) -> str:
    (tmp_path / "my_grad.yaml").touch()
    (tmp_path / "my_grad.py").write_text(own, encoding="utf-8")
    texts = {"aclnn_cts.oracles._shared": shared, "aclnn_cts.oracles._other": other}
    monkeypatch.setattr(oracle_code, "_content", lambda place: (texts.get(place) or own).encode())
    return oracle_digest("my_grad", [tmp_path])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return helper(x)", "return helper(x + x)"),
        ("LIMIT = 3", "LIMIT = 4"),
        ("far(x, LIMIT)", "far(x + x, LIMIT)"),
        ("return x + 1", "return x + 2"),
    ],
)
def test_code_that_an_oracle_calls_changes_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    before = digest(tmp_path, monkeypatch, OWN, SHARED, OTHER)
    after = digest(tmp_path, monkeypatch, *(text.replace(old, new) for text in (OWN, SHARED, OTHER)))
    assert before != after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return x\n", "    return x * 2\n"),
        ("def near(x):", "# why\ndef near(x):\n    '''Words.'''"),
        ("A docstring.", "Another."),
        ("far(x, LIMIT)", "far(\n        x, LIMIT\n    )"),
    ],
)
def test_helpers_that_it_does_not_call_and_words_leave_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    before = digest(tmp_path, monkeypatch, OWN, SHARED, OTHER)
    texts = [text.replace(old, new) for text in (OWN, SHARED, OTHER)]
    assert texts != [OWN, SHARED, OTHER]
    assert digest(tmp_path, monkeypatch, *texts) == before


def test_a_folder_without_an_oracle_has_no_digest(tmp_path: Path) -> None:
    assert oracle_digest("no_such_operator", [tmp_path]) == ""
