"""Files that other programs read while we write: whole or not at all, and a message that says what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from aclnn_cts.core.errors import HarnessError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomically(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file so that readers see the old contents or all of the new, also after a kill or a power failure.

    A file that is replaced hands its permissions on.
    Raises HarnessError where the disk is full or the folder cannot be written; the old file then stands as it was.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        try:
            with partial.open("xb") as file:
                with contextlib.suppress(FileNotFoundError):
                    os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
                file.writelines([content] if isinstance(content, bytes) else content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
    except OSError as error:
        raise storage_failure(path, error) from error


def storage_failure(path: Path, error: OSError) -> HarnessError:
    """The HarnessError for a write to `path` that failed."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return HarnessError(f"{path}: cannot be written: {reason}; free space on this file system and run again")
    if isinstance(error, BrokenPipeError):
        return HarnessError(f"{path}: cannot be written: its reader is gone; start one that reads to the end")
    return HarnessError(f"{path}: cannot be written: {reason}; check that the folder exists and may be written")
