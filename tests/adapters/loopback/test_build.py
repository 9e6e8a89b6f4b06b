from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_cts.adapters import loopback_build
from aclnn_cts.adapters.loopback_build import (
    HOST_LIBRARY,
    HOST_LINKS,
    INCLUDE,
    LIBRARY,
    LINKS,
    SOURCES,
    build,
    cache_folder,
)
from aclnn_cts.core.errors import HarnessError
from tests.adapters.loopback.support import home, needs_compiler

COMPILER = """#!/bin/sh
case "$*" in
--version) echo 'a compiler for tests'; exit 0 ;;
esac
echo "$*" >> "$CALLS"
if [ -n "$BROKEN" ]; then echo 'no such luck' >&2; exit 1; fi
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then : > "$2"; fi
  shift
done
"""
"""It makes empty files, and keeps its command lines."""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command lines of a compiler go that takes no time."""
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "calls"


def test_it_is_built_once(calls: Path) -> None:
    first = build()
    made = calls.read_text()
    assert build() == first
    assert calls.read_text() == made
    lines = made.splitlines()
    assert len(lines) == len(SOURCES) + 3
    assert sum("-shared" in line for line in lines) == 2
    assert all("-Werror" in line and "-ffp-contract=off" in line for line in lines if " -c " in line)


def test_the_folder_is_laid_out_as_a_toolkit(calls: Path, tmp_path: Path) -> None:
    made = build()
    assert made.folder.is_relative_to(tmp_path / "cache" / "aclnn-cts")
    assert {link: (made.lib64 / link).readlink() for link in LINKS} == dict.fromkeys(LINKS, Path(LIBRARY))
    host = made.host / "lib64"
    assert {path.name for path in host.iterdir()} == {HOST_LIBRARY, *HOST_LINKS}
    assert {(host / link).readlink() for link in HOST_LINKS} == {Path(HOST_LIBRARY)}
    headers = {path.relative_to(INCLUDE) for path in INCLUDE.rglob("*.h")}
    assert {path.relative_to(made.include) for path in made.include.rglob("*.h")} == headers
    assert [path for path in made.folder.parent.iterdir() if path.name.startswith("building-")] == []


def test_processes_that_ask_at_once_build_once(calls: Path) -> None:
    command = [sys.executable, "-m", loopback_build.__name__]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = {process.communicate()[0].strip() for process in started}
    assert [process.returncode for process in started] == [0] * 4
    assert answers == {str(build().folder)}
    assert sum("-shared" in line for line in calls.read_text().splitlines()) == 2


def test_another_compiler_builds_anew(calls: Path) -> None:
    first = build()
    compiler = Path(os.environ["CXX"])
    compiler.write_text(compiler.read_text().replace("a compiler", "another compiler"))
    assert build().folder != first.folder


def test_without_a_compiler_the_message_tells_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(HarnessError, match=r"no-such-compiler: no such compiler; .* install g\+\+"):
        build(cache=tmp_path)
    assert loopback_build.main() == 3
    assert capsys.readouterr().err.startswith("no-such-compiler: no such compiler")


def test_a_compiler_that_fails_leaves_nothing(
    calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(HarnessError, match=r"exit code 1.*\nno such luck"):
        build()
    assert [path.suffix for path in (cache_folder() / "loopback").iterdir()] == [".lock"]
    monkeypatch.delenv("BROKEN")
    assert build().library.is_file()
    assert loopback_build.main() == 0
    assert capsys.readouterr().out == f"{build().folder}\n"


def test_a_folder_that_cannot_be_made_is_named(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HarnessError, match=r"file/loopback.*make room"):
        build(cache=tmp_path / "file")


def symbols(library: Path) -> set[str]:
    command = ["/usr/bin/env", "nm", "-D", "--defined-only", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


@needs_compiler
def test_the_host_build_lacks_the_runtime_and_nothing_else() -> None:
    runtime = {name for name in symbols(home().library) if name.startswith("aclrt")}
    runtime |= {"aclInit", "aclFinalize", "aclFinalizeReference", "aclGetRecentErrMsg"}
    runtime |= {"aclGetCannAttribute", "aclGetDeviceCapability"}
    assert symbols(home().library) - symbols(home().host / "lib64" / HOST_LIBRARY) == runtime


@needs_compiler
def test_the_library_exports_the_interface_and_nothing_else() -> None:
    exported = symbols(home().library)
    text = "\n".join(header.read_text() for header in INCLUDE.rglob("*.h"))
    declared = set(re.findall(r"\b(acl\w+)\(", text))
    assert exported == declared
    assert len(exported) > 90
