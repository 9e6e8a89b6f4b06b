"""Control groups for a runner and all that it starts: the kernel's own limits, where this user may set them.

The judge looks at a runner's memory 20 times a second; between two looks the group is the limit. Memory that no process
shows any more, such as a closed file in /dev/shm, counts in it too. The number of processes has no other limit for a
superuser, whom RLIMIT_NPROC leaves out (setrlimit(2)). Both versions of control groups are used (Linux,
Documentation/admin-guide/cgroup-v1/memory.rst, pids.rst and cgroup-v2.rst).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_REMOVE_SECONDS = 1.0
PROCESSES = 64 + 4 * (os.cpu_count() or 1)
"""Of a candidate, threads counted: those of a few libraries, each of which has one for each core."""
_FIRST_VERSION = {"memory": "memory.limit_in_bytes", "pids": "pids.max"}
_SECOND_VERSION = {"memory": "memory.max", "pids": "pids.max"}
"""The file of a limit by controller."""


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """Groups that were made for one runner."""

    folders: tuple[Path, ...]
    """One; of the first version one for each controller."""
    limits_processes: bool

    def add(self, process: int) -> None:
        """Put a process into it, and with it all that it starts from now on, where that can be done."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                (folder / "cgroup.procs").write_text(str(process))

    @property
    def has_killed(self) -> bool:
        """Whether the kernel ended a process for want of memory within the limit."""
        for name in ("memory.events", "memory.oom_control"):
            for folder in self.folders:
                with contextlib.suppress(OSError, ValueError):
                    counts = dict(line.split() for line in (folder / name).read_text().splitlines())
                    return int(counts.get("oom_kill", "0")) > 0
        return False

    def remove(self) -> None:
        """End what is left in it, and remove it; a process that hangs in the system keeps it."""
        end = time.monotonic() + _REMOVE_SECONDS
        for folder in self.folders:
            with contextlib.suppress(OSError):
                if (folder / "pids.max").is_file():
                    # Else each that ends makes room for another one.
                    (folder / "pids.max").write_text("0")
            while folder.is_dir():
                with contextlib.suppress(OSError, ValueError):
                    for process in (folder / "cgroup.procs").read_text().split():
                        with contextlib.suppress(ProcessLookupError, PermissionError):
                            os.kill(int(process), signal.SIGKILL)
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                if time.monotonic() >= end:
                    return
                time.sleep(0.002)


def make_group(
    memory_bytes: int, *, processes: int | None = None, root: Path = _ROOT, own: Path = _OWN
) -> ControlGroup | None:
    """Groups below ours with limits; None where the system has no such groups, or this user may make none.

    `processes`: how many there may be at once; None: as many as the system allows, which a device's runtime may need.
    """
    limits = {
        "memory.limit_in_bytes": str(memory_bytes),
        "memory.max": str(memory_bytes),
        "pids.max": "max" if processes is None else str(processes),
    }
    made: dict[Path, Sequence[str]] = {}
    for base, files in _places(root, own):
        folder = base / f"aclnn-cts-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            folder.mkdir()
            for file in files:
                (folder / file).write_text(limits[file])
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
        else:
            made[folder] = files
    limited = processes is not None and any("pids.max" in files for files in made.values())
    return ControlGroup(tuple(made), limited) if made else None


def _places(root: Path, own: Path) -> list[tuple[Path, Sequence[str]]]:
    """Our own groups that can have others with limits, and the files of these limits."""
    found: list[tuple[Path, Sequence[str]]] = []
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            inside = path.lstrip("/")
            if controllers in _FIRST_VERSION:
                found.append((root / controllers / inside, (_FIRST_VERSION[controllers],)))
            elif not controllers:
                base = root / inside
                with contextlib.suppress(OSError):
                    known = (base / "cgroup.subtree_control").read_text().split()
                    files = [file for name, file in _SECOND_VERSION.items() if name in known]
                    found += [(base, files)] if files else []
    return found
