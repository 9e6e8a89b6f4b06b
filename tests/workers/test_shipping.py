"""What the nodes of a cluster are given: an adapter of the user's own is found where a run finds it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aclnn_cts.core.errors import UsageError
from aclnn_cts.workers.shipping import ship


@pytest.fixture(name="here")
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that the command installed by pip does not look in."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(folder))])
    return folder


def shipped(folder: Path, adapter: str, *specs: Path) -> set[str]:
    ship(folder, adapter, specs)
    assert (folder / "aclnn_cts" / "runs" / "campaign" / "head.py").exists()
    assert not list(folder.rglob("*.pyc"))
    return {path.name for path in folder.iterdir()} - {"aclnn_cts"}


def test_a_module_in_the_working_directory_and_those_beside_it(here: Path, tmp_path: Path) -> None:
    (here / "of_mine_beside.py").write_text("class Adapter: ...\n")
    (here / "helps_it.py").touch()
    assert shipped(tmp_path / "out", "of_mine_beside:Adapter,device=1") == {"of_mine_beside.py", "helps_it.py"}


@pytest.mark.parametrize("files", [("__init__.py", "inner.py"), ("inner.py",)])
def test_a_package_in_the_working_directory(here: Path, tmp_path: Path, files: tuple[str, ...]) -> None:
    name = f"package_of_mine_{len(files)}"
    (here / name).mkdir()
    for file in files:
        (here / name / file).touch()
    assert shipped(tmp_path / "out", f"{name}.inner:Adapter") == {name}
    assert (tmp_path / "out" / name / "inner.py").exists()


def test_adapters_and_specs_of_the_suite_and_of_the_user(here: Path, tmp_path: Path) -> None:
    (here / "specs").mkdir()
    (here / "specs" / "mine.yaml").touch()
    assert shipped(tmp_path / "out", "reference", here / "specs") == {"specs"}
    assert (tmp_path / "out" / "specs" / "0" / "mine.yaml").exists()


def test_what_is_installed_must_be_so_on_the_nodes(here: Path, tmp_path: Path) -> None:
    assert shipped(tmp_path / "out", "pytest:main") == set()


@pytest.mark.usefixtures("here")
def test_a_module_that_is_nowhere(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--adapter nowhere_at_all:Adapter: no module 'nowhere_at_all'"):
        ship(tmp_path / "out", "nowhere_at_all:Adapter", ())
