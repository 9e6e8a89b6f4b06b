"""For tests of several pages: the wheel of this checkout, and a folder of the packages that are installed here."""

from __future__ import annotations

import shlex
import shutil
import sys
import venv
from pathlib import Path

import pytest

from aclnn_cts.speclang.load import compile_shipped
from tests.docs.test_pages import ROOT, blocks
from tests.support.processes import done

NOT_COPIED = (".*", "build", "dist", "*.egg-info", "__pycache__")


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """What no clone has: of `runs`, the folder at the top alone."""
    runs = {"runs"} if Path(folder) == ROOT else set()
    return shutil.ignore_patterns(*NOT_COPIED)(folder, names) | runs


@pytest.fixture(scope="session", name="wheels")
def build_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, built by the line of the page."""
    compile_shipped()
    checkout = tmp_path_factory.mktemp("checkout") / "aclnn-cts"
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=_not_copied)
    [line] = [
        line
        for block in blocks(ROOT / "docs" / "ci.md", "console")
        for line in block.splitlines()
        if line.startswith("pip wheel ")
    ]
    # What builds is installed here, as torch needs it; pip would fetch it.
    done([sys.executable, "-m", *shlex.split(line), "--no-build-isolation"], checkout)
    return checkout / "wheels"


@pytest.fixture(scope="session", name="installed")
def share_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with links to all packages that are installed here, without this one."""
    folder = tmp_path_factory.mktemp("packages")
    for path in map(Path, sys.path):
        if path.name not in ("site-packages", "dist-packages"):
            continue
        for entry in path.iterdir():
            ours = entry.name.startswith(("aclnn_cts", "__editable__"))
            if not ours and entry.suffix != ".pth" and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture(scope="session", name="python")
def install_wheel(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """The Python of an environment that has the wheel and this machine's packages, and not this checkout.

    A candidate's process sees folders of the path, and not what links in them point to.
    """
    folder = tmp_path_factory.mktemp("wheel") / "environment"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    [found] = folder.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    done([*pip, "install", "--quiet", "--no-deps", "--no-index", "--find-links", str(wheels), "aclnn-cts"], folder)
    # Afterwards: pip would find this checkout's package among them.
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (found / "installed.pth").write_text("\n".join(packages), encoding="utf-8")
    return python
