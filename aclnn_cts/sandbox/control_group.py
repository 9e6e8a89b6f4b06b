"""A control group for a runner and all that it starts: the kernel's own memory limit, where this user may set one.

The judge looks at a runner's memory 20 times a second; between two looks the group is the limit. Memory that no process
shows any more, such as a closed file in /dev/shm, counts in it too. Both versions of control groups are used (Linux,
Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_REMOVE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A group that was made for one runner."""

    folder: Path

    def add(self, process: int) -> None:
        """Put a process into it, and with it all that it starts from now on, where that can be done."""
        with contextlib.suppress(OSError):
            (self.folder / "cgroup.procs").write_text(str(process))

    @property
    def has_killed(self) -> bool:
        """Whether the kernel ended a process for want of memory within the limit."""
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError, ValueError):
                counts = dict(line.split() for line in (self.folder / name).read_text().splitlines())
                return int(counts.get("oom_kill", "0")) > 0
        return False

    def remove(self) -> None:
        """End what is left in it, and remove it; a process that hangs in the system keeps it."""
        end = time.monotonic() + _REMOVE_SECONDS
        while self.folder.is_dir():
            with contextlib.suppress(OSError, ValueError):
                for process in (self.folder / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(int(process), signal.SIGKILL)
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            if time.monotonic() >= end:
                return
            time.sleep(0.002)


def make_group(memory_bytes: int, *, root: Path = _ROOT, own: Path = _OWN) -> ControlGroup | None:
    """A group below ours with this limit; None where the system has no such groups, or this user may make none."""
    for base, limit in _places(root, own):
        folder = base / f"aclnn-cts-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            folder.mkdir()
            (folder / limit).write_text(str(memory_bytes))
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
        else:
            return ControlGroup(folder)
    return None


def _places(root: Path, own: Path) -> list[tuple[Path, str]]:
    """Our own groups that can have others with a memory limit, and the file of that limit."""
    found = []
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            inside = path.lstrip("/")
            if controllers == "memory":
                found.append((root / "memory" / inside, "memory.limit_in_bytes"))
            elif not controllers:
                base = root / inside
                with contextlib.suppress(OSError):
                    if "memory" in (base / "cgroup.subtree_control").read_text().split():
                        found.append((base, "memory.max"))
    return found
