from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mypy.modulefinder import FindModuleCache, SearchPaths
from mypy.options import Options
from packaging.requirements import Requirement

from tools.packages import PACKAGE, ROOT, modules

MODULES = sorted(modules())

LINKED = ("adapters", "oracles", "reports", "specs", "suites", "waivers")
LINKED_FILES = {"constraints.txt": "constraints.txt", "kill_matrix.json": "benchmarks/figures/power/kill_matrix.json"}


def test_mypy_sees_every_module() -> None:
    options = Options()
    # What `repro` writes into the programs of users, who may have an older Python.
    options.exclude = ["aclnn_cts/repro/templates/", "aclnn_cts/candidates/templates/"]
    finder = FindModuleCache(SearchPaths((str(ROOT),), (), (), ()), None, options)
    seen = {
        source.module
        for source in finder.find_modules_recursive(PACKAGE)
        if source.path and source.path.endswith((".py", ".pyi"))
    }
    expected = {".".join((PACKAGE, *module.with_suffix("").parts)).removesuffix(".__init__") for module in MODULES}
    assert seen == expected
    for room in set(LINKED) - {"specs", "waivers"}:
        assert f"{PACKAGE}.{room}" in seen


@pytest.mark.parametrize(("name", "target"), [*((name, name) for name in LINKED), *LINKED_FILES.items()])
def test_what_lies_outside_the_package_is_a_relative_link(name: str, target: str) -> None:
    link = ROOT / PACKAGE / name
    assert link.readlink() == Path("..") / target
    assert not link.exists() or link.samefile(ROOT / target)


def test_a_clone_without_symbolic_links_says_so(tmp_path: Path) -> None:
    """Git writes the target of a link into a file there."""
    package = tmp_path / PACKAGE
    package.mkdir()
    shutil.copy(ROOT / PACKAGE / "__init__.py", package)
    (package / "adapters").write_text("../adapters")
    command = [sys.executable, "-c", f"import {PACKAGE}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "git config core.symlinks true" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.13"])
def test_every_python_has_one_pin_of_each_package(python: str) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    taken = [pin.name for pin in pins if pin.marker is None or pin.marker.evaluate({"python_version": python})]
    assert len(taken) == len(set(taken))
    # What a Python needs alone is in its standard library from the next on.
    assert {pin.name for pin in pins} - set(taken) <= {"exceptiongroup", "tomli"}
