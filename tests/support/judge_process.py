"""The process whose runner this one is."""

from __future__ import annotations

import os
from pathlib import Path


def judge_process() -> int:
    """Its id: between it and the runner is the keeper."""
    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])
