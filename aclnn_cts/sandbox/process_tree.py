"""Which processes a process has started, and theirs: from /proc, since nobody else is asked."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path


def children(process: int) -> list[int]:
    """The ids of a process's children, those that are waited for included; empty where it has ended."""
    if not _has_children_files():
        return [child for child, parent, _ in _all() if parent == process]
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - twenty times a second
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/{process}/task/{thread}/children", "rb") as file:  # noqa: PTH123 - as above
                found += map(int, file.read().split())
        except OSError:
            continue
    return found


def descendants(process: int) -> list[int]:
    """The ids of a process's children, of theirs, and so on; parents come before their children."""
    found = children(process)
    for each in found:
        found += children(each)
    return found


def of_session(session: int) -> list[int]:
    """The ids of all processes of a session, wherever they hang."""
    return [process for process, _, of in _all() if of == session]


@functools.cache
def _has_children_files() -> bool:
    """A kernel may be built without them (CONFIG_PROC_CHILDREN)."""
    return Path("/proc/thread-self/children").exists()


def _all() -> Iterator[tuple[int, int, int]]:
    """Each process with its parent and its session (proc(5), /proc/PID/stat)."""
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names alone
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_bytes()
        except OSError:
            continue
        _, parent, _, session = stat.rpartition(b")")[2].split()[:4]
        yield int(entry), int(parent), int(session)
