"""Processes that a test starts and waits for."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def done(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, *, code: int = 0) -> str:
    """What a command prints; it must end with this exit code."""
    ended = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert ended.returncode == code, ended.stdout
    return ended.stdout
