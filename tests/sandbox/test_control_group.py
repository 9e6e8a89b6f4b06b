"""The kernel's own limit for a runner and all that it starts, where this user may set one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_cts.sandbox.control_group import make_group

LIMIT = 64 << 20
TAKES = "import os; f = os.memfd_create('x'); [os.write(f, bytes(1 << 20)) for _ in range(300)]"


def taking(program: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", f"import sys; sys.stdin.read(1)\n{program}", *words], stdin=-1)


def test_memory_beyond_the_limit_ends_the_process_that_takes_it() -> None:
    group = make_group(LIMIT)
    if group is None:
        pytest.skip("this user may make no control group with a memory limit")
    try:
        with taking(TAKES) as process:
            group.add(process.pid)
            assert str(process.pid) in (group.folder / "cgroup.procs").read_text().split()
            process.communicate(b"x")
            assert process.returncode == -signal.SIGKILL
        assert group.has_killed
    finally:
        group.remove()
    assert not group.folder.exists()


def test_what_a_group_still_holds_ends_with_it() -> None:
    group = make_group(LIMIT)
    if group is None:
        pytest.skip("this user may make no control group with a memory limit")
    with taking("import os, time\nos.fork(); os.setsid() if os.getpid() % 2 else None; time.sleep(60)") as process:
        group.add(process.pid)
        assert str(process.pid) in (group.folder / "cgroup.procs").read_text().split()
        assert process.stdin is not None
        process.stdin.write(b"x")
        process.stdin.flush()
        group.remove()
        assert process.wait(10) == -signal.SIGKILL
    assert not group.folder.exists()


def folders(tmp_path: Path, own: str) -> tuple[Path, Path]:
    root = tmp_path / "cgroup"
    (root / "memory" / "job").mkdir(parents=True)
    (root / "unified").mkdir()
    (tmp_path / "own").write_text(own)
    return root, tmp_path / "own"


def test_the_first_version_has_a_hierarchy_for_memory(tmp_path: Path) -> None:
    root, own = folders(tmp_path, "9:name=systemd:/\n4:memory:/job\n0::/\n")
    group = make_group(LIMIT, root=root, own=own)
    assert group is not None
    assert group.folder.parent == root / "memory" / "job"
    assert (group.folder / "memory.limit_in_bytes").read_text() == str(LIMIT)


def test_the_second_version_needs_the_controller(tmp_path: Path) -> None:
    root, own = folders(tmp_path, "0::/unified\n")
    assert make_group(LIMIT, root=root, own=own) is None
    (root / "unified" / "cgroup.subtree_control").write_text("cpu memory pids\n")
    group = make_group(LIMIT, root=root, own=own)
    assert group is not None
    assert (group.folder / "memory.max").read_text() == str(LIMIT)


def test_without_groups_there_is_none(tmp_path: Path) -> None:
    assert make_group(LIMIT, root=tmp_path, own=tmp_path / "none") is None
