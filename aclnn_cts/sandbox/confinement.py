"""A process that sees little of the machine: its own users, mounts, processes and network, where the system allows it.

`sandbox.keeper` calls `enter` in the process that is going to execute a candidate. Nothing but the standard library is
imported here, and after `exec` nothing of the process's memory is left.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

_NEW_MOUNTS, _NEW_USERS, _NEW_PROCESSES = 0x00020000, 0x10000000, 0x20000000
_NEW_NETWORK, _NEW_IPC = 0x40000000, 0x08000000
"""CLONE_NEW* of unshare(2)."""
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18
"""MS_* of mount(2)."""
_MOUNT_SETATTR = 442
_FROM_HERE, _BELOW, _ATTR_READ_ONLY = -100, 0x8000, 1
"""AT_FDCWD, AT_RECURSIVE and MOUNT_ATTR_RDONLY of mount_setattr(2)."""
_NO_NEW_PRIVILEGES = 38
"""PR_SET_NO_NEW_PRIVS of prctl(2)."""
_NICE = 10
"""A tenth of the processor's time against a process of the judge (`sched(7)`)."""
_INNER_USER = 65534
"""No root inside either: without capabilities it cannot undo a mount."""
_SCRATCH_BYTES = 1 << 28
"""Of the private temporary folder."""

SCRATCH = "/tmp"  # noqa: S108 - a private one is mounted there


class ConfinementPlan(NamedTuple):
    """What a confined process may see and take. Travels as JSON."""

    hidden: Sequence[str]
    """Folders that are empty inside, outer ones first."""
    kept: Sequence[str]
    """Folders and files below hidden ones that are visible all the same."""
    limits: Mapping[str, int]
    """By the name of a limit of `resource`, without `RLIMIT_`."""
    program: str
    """Text of the Python program to execute. Its arguments are the descriptors, and what could not be had."""

    def to_json(self) -> str:
        """The plan as text."""
        return json.dumps(self._asdict())


def run_confined(plan_text: str, descriptors: Sequence[str]) -> NoReturn:
    """Confine this process as far as the system allows, and become the program."""
    plan = ConfinementPlan(**json.loads(plan_text))
    missing = _separated(plan)
    for name, most in plan.limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        resource.setrlimit(number, (most if hard == resource.RLIM_INFINITY else min(most, hard),) * 2)
    # Whatever it starts leaves the judge time to end it.
    os.nice(_NICE)
    _c().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ACLNN_CTS"))}
    environment |= {"TMPDIR": SCRATCH, "HOME": SCRATCH}
    arguments = [sys.executable, "-I", "-S", "-u", "-c", plan.program, *descriptors, json.dumps(missing)]
    os.execve(sys.executable, arguments, environment)  # noqa: S606 - no shell is wanted


def _c() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _separated(plan: ConfinementPlan) -> list[str]:
    """Enter namespaces of its own; what could not be had. The process that returns is another one."""
    user, group = os.getuid(), os.getgid()
    if _c().unshare(_NEW_USERS | _NEW_MOUNTS | _NEW_PROCESSES | _NEW_NETWORK | _NEW_IPC):
        reason = os.strerror(ctypes.get_errno())
        return [f"namespaces of users, files, processes and network ({reason})"]
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_INNER_USER} {user} 1"),
        ("gid_map", f"{_INNER_USER} {group} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    missing = _hide(plan)
    _in_child()
    # The first process of the namespace: the mount of /proc shows what is in there.
    if _mount("proc", "/proc", "proc", 0):
        missing.append("a process list of its own")
    _in_child()
    return missing


def _in_child() -> None:
    """Go on in a child; this process waits for it, and ends as it does."""
    sys.stdout.flush()
    before = os.getpid()
    child = os.fork()
    if not child:
        # In a namespace the parent may have no number here.
        _c().prctl(1, signal.SIGKILL, 0, 0, 0)
        if os.getppid() not in (before, 0):
            os._exit(os.EX_OK)
        return
    os.closerange(0, 1024)
    while True:
        process, status = os.wait()
        if process == child:
            code = os.waitstatus_to_exitcode(status)
            _end(code if code >= 0 else 128 - code)


def _end(code: int) -> NoReturn:
    """End with a code; as a signal would have, where the code says so and the system lets it."""
    if code > 128 and os.getpid() != 1:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(code - 128, signal.SIG_DFL) if code - 128 not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), code - 128)
    os._exit(code)


def _hide(plan: ConfinementPlan) -> list[str]:
    """Replace folders by empty ones, and make all else read-only; what could not be done."""
    missing = []
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    attributes = (ctypes.c_uint64 * 4)(_ATTR_READ_ONLY, 0, 0, 0)
    if _c().syscall(_MOUNT_SETATTR, _FROM_HERE, b"/", _BELOW, attributes, ctypes.sizeof(attributes)):
        missing.append("read-only files")
    missing += _hide_disks()
    for folder in plan.hidden:
        inside = [path for path in plan.kept if _is_below(path, folder) and Path(path).exists()]
        held = {path: os.open(path, os.O_PATH) for path in inside}
        if not Path(folder).is_dir():
            continue
        if _mount("none", folder, "tmpfs", _NO_SETUID | _NO_DEVICES, f"size={_SCRATCH_BYTES},mode=1777"):
            missing.append(f"{folder} hidden")
        else:
            for path, descriptor in held.items():
                if Path(path).exists():
                    continue
                _stand_in(Path(path), of=descriptor)
                if _mount(f"/proc/self/fd/{descriptor}", path, "", _BIND | _RECURSIVE):
                    missing.append(f"{path} visible")
        for descriptor in held.values():
            os.close(descriptor)
    _enter_working_folder()
    return missing


def _enter_working_folder() -> None:
    """Enter the working folder by its path, which shows what is visible of it; what was entered before shows all."""
    try:
        os.chdir(Path("/proc/self/cwd").readlink())
    except OSError:
        os.chdir("/")


def _hide_disks() -> list[str]:
    """Put nothing in the place of block devices, whose bytes hold what is hidden; those where that failed."""
    disks = [str(item) for item in Path("/dev").iterdir() if item.is_block_device()]
    return [f"{disk} hidden" for disk in disks if _mount("/dev/null", disk, "", _BIND)]


def _stand_in(path: Path, *, of: int) -> None:
    """A folder or file at a path, where what a descriptor is of can be mounted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISDIR(os.fstat(of).st_mode):
        path.mkdir()
    else:
        path.touch()


def _is_below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> int:
    mount: Callable[..., int] = _c().mount
    return mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode())
