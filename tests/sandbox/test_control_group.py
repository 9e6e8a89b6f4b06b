"""The kernel's own limit for a runner and all that it starts, where this user may set one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_cts.sandbox.control_group import PROCESSES, make_group

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
            assert str(process.pid) in {
                item for folder in group.folders for item in (folder / "cgroup.procs").read_text().split()
            }
            process.communicate(b"x")
            assert process.returncode == -signal.SIGKILL
        assert group.has_killed
    finally:
        group.remove()
    assert not any(folder.exists() for folder in group.folders)


def test_no_more_processes_begin_than_the_limit() -> None:
    group = make_group(LIMIT << 4, processes=PROCESSES)
    if group is None or not group.limits_processes:
        pytest.skip("this user may make no control group with a limit on processes")
    forks = "import os, time\nfor _ in range(2000):\n    if not os.fork():\n        time.sleep(60)"
    try:
        with taking(forks) as process:
            group.add(process.pid)
            process.communicate(b"x")
            assert process.returncode == 1  # BlockingIOError: fork: retry
            group.remove()
    finally:
        group.remove()


def test_what_a_group_still_holds_ends_with_it() -> None:
    group = make_group(LIMIT)
    if group is None:
        pytest.skip("this user may make no control group with a memory limit")
    with taking("import os, time\nos.fork(); os.setsid() if os.getpid() % 2 else None; time.sleep(60)") as process:
        group.add(process.pid)
        assert str(process.pid) in {
            item for folder in group.folders for item in (folder / "cgroup.procs").read_text().split()
        }
        assert process.stdin is not None
        process.stdin.write(b"x")
        process.stdin.flush()
        group.remove()
        assert process.wait(10) == -signal.SIGKILL
    assert not any(folder.exists() for folder in group.folders)


def folders(tmp_path: Path, own: str) -> tuple[Path, Path]:
    root = tmp_path / "cgroup"
    (root / "memory" / "job").mkdir(parents=True)
    (root / "unified").mkdir()
    (tmp_path / "own").write_text(own)
    return root, tmp_path / "own"


def test_the_first_version_has_a_hierarchy_for_each_controller(tmp_path: Path) -> None:
    root, own = folders(tmp_path, "9:name=systemd:/\n4:memory:/job\n8:pids:/\n0::/\n")
    (root / "pids").mkdir()
    group = make_group(LIMIT, processes=PROCESSES, root=root, own=own)
    assert group is not None
    memory, processes = group.folders
    assert (memory.parent, processes.parent) == (root / "memory" / "job", root / "pids")
    assert (memory / "memory.limit_in_bytes").read_text() == str(LIMIT)
    assert (processes / "pids.max").read_text() == str(PROCESSES)
    assert group.limits_processes


def test_the_second_version_needs_the_controller(tmp_path: Path) -> None:
    root, own = folders(tmp_path, "0::/unified\n")
    assert make_group(LIMIT, processes=PROCESSES, root=root, own=own) is None
    for controllers, files in (("cpu memory", {"memory.max"}), ("cpu memory pids", {"memory.max", "pids.max"})):
        (root / "unified" / "cgroup.subtree_control").write_text(f"{controllers}\n")
        group = make_group(LIMIT, processes=PROCESSES, root=root, own=own)
        assert group is not None
        [folder] = group.folders
        assert {file.name for file in folder.iterdir()} == files
        assert (folder / "memory.max").read_text() == str(LIMIT)
        assert group.limits_processes == ("pids.max" in files)


def test_processes_of_a_runner_that_is_not_confined_are_not_limited(tmp_path: Path) -> None:
    root, own = folders(tmp_path, "8:pids:/\n")
    (root / "pids").mkdir()
    group = make_group(LIMIT, root=root, own=own)
    assert group is not None
    assert (group.folders[0] / "pids.max").read_text() == "max"
    assert not group.limits_processes


def test_without_groups_there_is_none(tmp_path: Path) -> None:
    assert make_group(LIMIT, root=tmp_path, own=tmp_path / "none") is None
