"""What a candidate finds of the machine. Where the system allows no namespaces, the judgement must say so."""

from __future__ import annotations

import ast
import py_compile
import sys
from pathlib import Path

import pytest

import aclnn_cts
from aclnn_cts.candidates.verdict import Judgement
from aclnn_cts.sandbox.control_group import PROCESSES
from aclnn_cts.sandbox.visible_files import SYSTEM, visible_files_of
from tests.candidates import kernels

_PROBE = """
import os
from pathlib import Path

import numpy as np


def probe(grad_output, output, dim):
    {body}
"""


def said(tmp_path: Path, body: str) -> str:
    """What a probe raises in a candidate's process."""
    tmp_path.mkdir(exist_ok=True)
    file = tmp_path / "probe.py"
    file.write_text(_PROBE.format(body=body), encoding="utf-8")
    found = aclnn_cts.judge(f"{file}:probe", "softmax_backward", budget="60s", seed=1)
    _skip_without_namespaces(found)
    return found.reason


def _skip_without_namespaces(found: Judgement) -> None:
    if found.missing:
        pytest.skip(f"the system does not allow {', '.join(found.missing)}")


def test_package_is_neither_importable_nor_on_the_disk(tmp_path: Path) -> None:
    package = Path(aclnn_cts.__file__).resolve().parent
    assert "No module named 'aclnn_cts'" in said(tmp_path, "import aclnn_cts.speclang")
    assert "files: []" in said(tmp_path, f"raise ValueError('files: %s' % list(Path({str(package)!r}).glob('*')))")
    assert "oracles: False" in said(
        tmp_path, f"raise ValueError('oracles: %s' % Path({str(package.parent / 'oracles')!r}).exists())"
    )


def suite_in(folder: Path, *, is_clone: bool = False) -> Path:
    """Something that looks like a copy of the suite."""
    package = folder / "aclnn_cts"
    (package / "speclang").mkdir(parents=True)
    (package / "__init__.py").touch()
    if is_clone:
        (folder / "pyproject.toml").touch()
        (folder / "oracles").mkdir()
        (folder / "oracles" / "softmax.py").touch()
    return package


@pytest.mark.parametrize("is_clone", [False, True])
@pytest.mark.parametrize(
    ("candidate", "copy"),
    [
        ("home/kernels", "home/work"),
        ("home/kernels", "home/kernels"),
        ("home/kernels", "home/kernels/vendored"),
        ("home/kernels", "home/kernels/vendored/deeper"),
        ("home/kernels", "home/.venvs/other/lib/python3.11/site-packages"),
        ("home/kernels", "home/kernels/.venv/lib/python3.11/site-packages"),
        ("home", "home"),
        ("home", "home/work"),
        ("home", "home/work/deep/deeper/deepest"),
        ("kernels", "path"),
        ("kernels", "elsewhere"),
    ],
)
def test_no_other_copy_of_the_suite_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidate: str, copy: str, *, is_clone: bool
) -> None:
    package = suite_in(tmp_path / copy, is_clone=is_clone)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(exist_ok=True)
    if copy == "path":
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / copy)])
    looked = [str(package), *([str(package.parent / "oracles")] if is_clone else [])]
    body = f"raise ValueError('seen: %s' % [list(Path(place).glob('*')) for place in {looked!r}])"
    assert f"seen: {[[] for _ in looked]}" in said(tmp_path / candidate, body)


def test_a_copy_in_another_python_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = suite_in(tmp_path / "envs" / "other" / "lib" / "python3.12" / "site-packages")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    assert str(package) in visible_files_of(None).hidden


def test_nothing_but_the_system_and_the_candidate_s_own_is_at_the_root(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    own = tmp_path / "kernels"
    system = sorted(SYSTEM)
    body = f"raise ValueError('seen: %s' % [str(i) for i in Path('/').glob('*/*') if i.parts[1] not in {system!r}])"
    below = {item for item in ast.literal_eval(said(own, body).partition("seen: ")[2]) if "/candidate-" not in item}
    kept = (*visible_files_of(own).kept, "/var/tmp")  # noqa: S108 - an empty folder
    assert below
    assert {item for item in below if not any(f"{place}/".startswith(f"{item}/") for place in kept)} == set()
    assert "seen: False" in said(own, f"raise ValueError('seen: %s' % Path({str(tmp_path / 'secret')!r}).exists())")


@pytest.mark.parametrize("folder", ["home", "home/kernels"])
def test_a_candidate_imports_its_neighbours_and_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    package = tmp_path / folder / "helpers"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "rows.py").write_text("ROWS = 41", encoding="utf-8")
    (tmp_path / folder / "columns.py").write_text("COLUMNS = 1", encoding="utf-8")
    body = """
    import importlib.util
    from columns import COLUMNS
    from helpers.rows import ROWS
    if FOLDER == "home" and importlib.util.find_spec("torch"):
        import torch
    raise ValueError("found %s" % (COLUMNS + ROWS))
""".replace("FOLDER", repr(folder))
    assert "found 42" in said(tmp_path / folder, body.lstrip())


@pytest.mark.parametrize("folder", ["kernels", "a link"])
def test_a_candidate_finds_its_data_beside_its_file(tmp_path: Path, folder: str) -> None:
    kernels_folder = tmp_path / "kernels"
    kernels_folder.mkdir()
    (kernels_folder / "table.txt").write_text("table: 42", encoding="utf-8")
    (tmp_path / "a link").symlink_to(kernels_folder)
    assert "table: 42" in said(tmp_path / folder, "raise ValueError((Path(__file__).parent / 'table.txt').read_text())")


def test_a_candidate_in_a_hidden_folder_finds_its_own_text() -> None:
    found = aclnn_cts.judge(f"{kernels.__file__}:own_text", "softmax_backward", budget="60s", seed=1)
    _skip_without_namespaces(found)
    assert "own text: True" in found.reason


def test_bytecode_of_another_text_is_not_run(tmp_path: Path) -> None:
    file = tmp_path / "probe.py"
    file.write_text(_PROBE.format(body="raise ValueError('old')"), encoding="utf-8")
    py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert "new" in said(tmp_path, "raise ValueError('new')")


@pytest.mark.parametrize("place", [".", "/proc/1/cwd"])
def test_the_working_folder_shows_nothing_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    package = suite_in(tmp_path / "home" / "work", is_clone=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(package.parent)
    body = f"raise ValueError('found: %s' % os.path.exists({place!r} + '/oracles/softmax.py'))"
    assert "found: False" in said(tmp_path / "kernels", body)


def test_a_candidate_works_where_the_judge_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.txt").write_text("table: 42", encoding="utf-8")
    assert "table: 42" in said(tmp_path, "raise ValueError(Path('table.txt').read_text())")


def test_no_other_process_is_seen(tmp_path: Path) -> None:
    body = "raise ValueError('seen: %s' % len(list(Path('/proc').glob('[0-9]*'))))"
    assert "seen: 2" in said(tmp_path, body)


def test_a_candidate_starts_few_processes(tmp_path: Path) -> None:
    body = """
    try:
        while os.fork():
            pass
        import time; time.sleep(60)
    except OSError:
        raise ValueError("processes: %s" % len(list(Path("/proc").glob("[0-9]*"))))
"""
    assert 10 < int(said(tmp_path, body.lstrip()).rpartition("processes: ")[2]) <= PROCESSES


def test_there_is_no_network(tmp_path: Path) -> None:
    body = "import socket; raise ValueError('links: %s' % [name for _, name in socket.if_nameindex()])"
    assert said(tmp_path, body).endswith(("links: ['lo']", "links: []"))


def test_files_cannot_be_written_outside_the_private_folder(tmp_path: Path) -> None:
    reason = said(tmp_path, f"open({str(Path(kernels.__file__).parent / 'x')!r}, 'w')")
    assert "Read-only file system" in reason or "FileNotFoundError" in reason
    assert "written 5" in said(tmp_path, "raise ValueError('written %s' % Path('/tmp/x').write_text('hello'))")
    assert not Path("/tmp/x").exists()  # noqa: S108 - the other one


def test_candidate_has_no_privileges(tmp_path: Path) -> None:
    reason = said(tmp_path, "raise ValueError([l for l in open('/proc/self/status') if l.startswith('CapEff')])")
    assert "0000000000000000" in reason


def test_no_disk_can_be_read(tmp_path: Path) -> None:
    body = "raise ValueError('disks: %s' % [str(item) for item in Path('/dev').iterdir() if item.is_block_device()])"
    assert "disks: []" in said(tmp_path, body)


def test_environment_has_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_CTS_SECRET", "x")
    body = "raise ValueError([n for n in os.environ if n.startswith(('ACLNN', 'PYTHON'))])"
    assert "ValueError: []" in said(tmp_path, body)
