"""What the base dependencies suffice for."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.packages import ROOT

# In the standard library from Python 3.11 on.
tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"no module named {{name}}", name=name)

sys.meta_path.insert(0, Blocker())
from aclnn_cts.cli.main import main
sys.exit(main({arguments!r}))
"""


def modules_of_extras() -> set[str]:
    """The modules of all packages that only extras install."""
    base = {Requirement(line).name.lower() for line in _PROJECT["dependencies"]}
    extras = {Requirement(line).name.lower() for lines in _PROJECT["optional-dependencies"].values() for line in lines}
    # rich needs markdown-it-py itself.
    wanted = extras - base - {"markdown-it-py"}
    return {module for module, names in packages_distributions().items() if wanted & {name.lower() for name in names}}


def result_of(names: set[str], out: Path) -> str:
    arguments = ["run", "tanh_backward", "--adapter", "reference", "-o", str(out)]
    program = _BLOCKER.format(names=names, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.search(r"RESULT .*?(?= run=)", " ".join(done.stdout.split()))
    assert found is not None, done.stdout
    return found[0]


def test_there_are_few_base_dependencies() -> None:
    # Nine are wanted; the tenth has yet to go.
    assert len({Requirement(line).name for line in _PROJECT["dependencies"]}) <= 9


@pytest.mark.slow
def test_run_without_any_extra_gives_the_same_result(tmp_path: Path) -> None:
    names = modules_of_extras()
    assert {"pytest", "selectolax"} <= names
    assert result_of(names, tmp_path / "without") == result_of(set(), tmp_path / "with")
