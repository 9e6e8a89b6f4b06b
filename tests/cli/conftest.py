from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aclnn_cts.cli.main import main


def named(arguments: str | tuple[str, ...], cases: Iterable[tuple[Any, ...]]) -> pytest.MarkDecorator:
    """Parametrize by cases whose first value is the test's id, which names the file of its snapshot."""
    return pytest.mark.parametrize(arguments, [pytest.param(*values, id=name) for name, *values in cases])


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
