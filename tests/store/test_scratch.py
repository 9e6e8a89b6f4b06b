"""Folders that a killed process leaves behind are cleared away by the next, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.store.scratch import memory_folder, scratch_folder

HOLD = """
import sys
from pathlib import Path
from aclnn_cts.store.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "worker-0").write_text("notes")
    print(folder, flush=True)
    sys.stdin.read()
"""


def held(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    killed, left = held(tmp_path)
    alive, kept = held(tmp_path)
    try:
        assert (left / "worker-0").exists()
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=60)
        others = tmp_path / ".aclnn-cts-of-somebody"
        others.mkdir()
        file = tmp_path / ".aclnn-cts-file"
        file.touch()
        link = tmp_path / ".aclnn-cts-link"
        link.symlink_to(left)
        with scratch_folder(tmp_path) as mine:
            assert not left.exists()
            assert (kept / "worker-0").exists()
            assert mine.stat().st_mode & 0o077 == 0
            assert others.exists(), "without a lock nobody can tell"
            assert file.exists()
            assert link.is_symlink()
        assert not mine.exists()
    finally:
        alive.communicate(timeout=60)
    assert not kept.exists()


def test_where_it_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="nowhere: cannot be written"), scratch_folder(tmp_path / "nowhere"):
        pass


def test_notes_lie_in_memory_where_there_is_such_a_file_system() -> None:
    shared = Path("/dev/shm")  # noqa: S108 - nothing is made in it
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    assert memory_folder() == (shared if usable else Path(tempfile.gettempdir()))
