"""Private folders for what a command works on, which go with it, also when it is killed: the next one removes them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aclnn_cts.store.output_file import storage_failure

_PREFIX, _UNLOCKED = ".aclnn-cts-", ".aclnn-cts."
_LOCK = ".lock"
"""The file in a folder that its process holds locked: the system lets go of it whatever ends the process, and tells so
to processes of other containers too, in which that process's id means nothing."""


def memory_folder() -> Path:
    """Where a file lies in memory, if there is such a file system: a full disk must not end who only takes notes."""
    shared = Path("/dev/shm")  # noqa: S108 - the folders made in it are private
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


@contextlib.contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A private folder, removed at the end. What killed processes have left in `parent` is removed first.

    Raises HarnessError where it cannot be made.
    """
    _sweep(parent)
    try:
        # Under another name until it is locked, so that nobody takes it for one that was left.
        made = Path(tempfile.mkdtemp(prefix=_UNLOCKED, dir=parent))
        lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = made.rename(made.with_name(_PREFIX + made.name.removeprefix(_UNLOCKED)))
    except OSError as error:
        raise storage_failure(parent, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _sweep(parent: Path) -> None:
    """Remove the folders of ours whose process is gone. Those of other users, and without a lock, stay."""
    with contextlib.suppress(OSError):
        for folder in parent.glob(f"{_PREFIX}*"):
            if _left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _left(folder: Path) -> bool:
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return False
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(lock)
