"""The tree of processes below one: which there are, and how much memory they take."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterator, Sequence
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


def processes_of_session(session: int) -> list[int]:
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


_BLOCK = 512
"""Bytes: the unit of st_blocks, whatever the file system (stat(2))."""
_SHARED = ("/memfd:", "/dev/shm/")  # noqa: S108 - nothing is put there
"""How links to files that lie in memory begin."""


def memory_of(processes: Sequence[int], *, known: Collection[int], known_bytes: int, enough: int) -> int:
    """Bytes that the processes take together.

    - `known`: inodes of shared files that do not count, since the judge has made them.
    - `known_bytes`: so much of what a process has mapped may be theirs.
    - `enough`: beyond it pages that processes share since a fork are counted once, which takes longer to find out.
    """
    files: dict[int, int] = {}
    private = mapped = 0
    for process in processes:
        anonymous, attached = _fields(process, "status", (b"RssAnon:", b"RssShmem:"))
        private += anonymous
        mapped += max(attached - known_bytes, 0)
        _open_files(process, files)
    opened = sum(size for inode, size in files.items() if inode not in known)
    shared = max(mapped, opened)
    if private + shared > enough and len(processes) > 1:
        private = sum(_fields(process, "smaps_rollup", (b"Pss_Anon:",))[0] for process in processes)
    return private + shared


def allocated_bytes(descriptor: int) -> int:
    """Bytes of a file that have memory behind them."""
    return os.fstat(descriptor).st_blocks * _BLOCK


def _fields(process: int, file: str, names: Sequence[bytes]) -> list[int]:
    """Values in bytes of lines such as `RssAnon:  1024 kB`; 0 where there is none."""
    try:
        text = Path(f"/proc/{process}/{file}").read_bytes()
    except OSError:
        return [0] * len(names)
    found = []
    for name in names:
        _, _, rest = text.partition(b"\n" + name)
        words = rest[:40].split(maxsplit=1)
        found.append(int(words[0]) * 1024 if words else 0)
    return found


def _open_files(process: int, found: dict[int, int]) -> None:
    folder = f"/proc/{process}/fd"
    try:
        descriptors = os.listdir(folder)  # noqa: PTH208 - twenty times a second
    except OSError:
        return
    for descriptor in descriptors:
        path = f"{folder}/{descriptor}"
        try:
            # Others are left alone: asking a file system that the implementation serves might never end.
            if os.readlink(path).startswith(_SHARED):  # noqa: PTH115 - as above
                status = os.stat(path)  # noqa: PTH116 - as above
                found[status.st_ino] = status.st_blocks * _BLOCK
        except OSError:
            continue
