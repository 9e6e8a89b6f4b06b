from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aclnn_cts.cli.main import main

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = "ACLNN_CTS_UPDATE_SNAPSHOTS"


class Called(NamedTuple):
    """What one call of the command gave; as a string, what a snapshot holds."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"{self.out}--- standard error\n{self.err}--- exit code {self.code}\n"

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines: it fails where anything else stands there."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(name="call")
def call_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Called]:
    """Call the command in this process, in an empty folder and 80 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("ACLNN_CTS_TRACEBACK", raising=False)

    def call(*arguments: str) -> Called:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Called(code, captured.out, captured.err)

    return call


@pytest.fixture(name="matches_snapshot")
def compare_with_snapshot() -> Callable[[str, object], None]:
    """Compare with `snapshots/<name>.txt`, or write it where ACLNN_CTS_UPDATE_SNAPSHOTS is set."""

    def compare(name: str, got: object) -> None:
        path = SNAPSHOTS / f"{name}.txt"
        text = str(got)
        if os.environ.get(UPDATE):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing; {UPDATE}=1 writes it"
        assert text == path.read_text(encoding="utf-8"), f"if the change is meant, {UPDATE}=1 writes it"

    return compare
