"""`make release-check`: whether this checkout can be released. Each line is one condition, with what is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from packaging.version import Version

from aclnn_cts import __version__
from aclnn_cts.cli.ops import Demand, completeness_of
from aclnn_cts.speclang.load import compile_shipped, load_specs
from tools.generate import FOLDER, pages

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 4_000_000
"""Of the wheel: what a person downloads to judge one kernel stays small."""
_SECONDS = 1_200
"""For the slowest condition, which installs the wheel with its dependencies."""


def _lines(*words: str, cwd: Path = ROOT) -> list[str]:
    """What a command prints; ValueError with its last line where it fails."""
    # A checkout on PYTHONPATH would stand for the wheel.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=variables, capture_output=True, text=True, timeout=_SECONDS, check=False)
    printed = done.stdout.splitlines() or [""]
    if done.returncode:
        raise ValueError(f"{' '.join(words)}: {(done.stderr.strip() or printed[-1]).splitlines()[-1]}")
    return printed


def tree_is_clean() -> Iterator[str]:
    """Everything is committed."""
    for line in filter(None, _lines("git", "status", "--porcelain")):
        yield f"not committed: {line[3:]}"


def version_is_described(version: str, changelog: str) -> Iterator[str]:
    """The version is final, and the newest page of the changelog is about it; nothing waits for the next."""
    if Version(version).is_prerelease:
        yield f"__version__ is {version}: expected a final version"
    pages = re.split(r"^## \[", changelog, flags=re.MULTILINE)[1:]
    names = [page.partition("]")[0] for page in pages]
    if version not in names[1:2]:
        yield f"CHANGELOG.md: expected a page of {version} below Unreleased"
    if pages and re.search(r"^- ", pages[0], re.MULTILINE):
        yield "CHANGELOG.md: expected nothing under Unreleased"


def _version() -> Iterator[str]:
    yield from version_is_described(__version__, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def pages_are_current() -> Iterator[str]:
    """`make docs` would change nothing."""
    for name, text in pages(load_specs()).items():
        if (FOLDER / name).read_text(encoding="utf-8") != text:
            yield f"docs/{name}: not current; call `make docs`"


def operators_are_audited() -> Iterator[str]:
    """Every document is audited, which a wheel cannot tell: it holds no claims."""
    for spec in load_specs().values():
        for demand in completeness_of(spec).missing:
            if demand in (Demand.AUDITED, Demand.TESTABLE):
                yield f"{spec.operator}: {demand.value}; call `aclnn-cts ops --all`"


def wheel_works() -> Iterator[str]:
    """The wheel holds every file, is small, and runs in an environment that has nothing else."""
    compile_shipped()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _lines(sys.executable, "-m", "build", "--outdir", name, ".")
        _lines(sys.executable, ".ci/distributions.py", name)
        [wheel] = folder.glob("*.whl")
        if wheel.stat().st_size > MOST_BYTES:
            yield f"{wheel.name}: {wheel.stat().st_size:,} bytes; expected at most {MOST_BYTES:,}"
        _lines(sys.executable, "-m", "venv", str(folder / "empty"))
        python = str(folder / "empty" / "bin" / "python")
        install = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        _lines(*install, "--constraint", str(ROOT / "constraints.txt"), str(wheel))
        run = (str(folder / "empty" / "bin" / "aclnn-cts"), "run", "tanh_backward", "--adapter", "reference")
        printed = _lines(*run, "-o", "run", cwd=folder)
        if "verdict=conforms" not in printed[-1]:
            yield f"the reference from the wheel: {printed[-1]}"


CONDITIONS: Mapping[str, Callable[[], Iterator[str]]] = {
    "everything is committed": tree_is_clean,
    "the version is described": _version,
    "generated pages are current": pages_are_current,
    "operators are audited": operators_are_audited,
    "the wheel works": wheel_works,
}


def main() -> int:
    """Exit code 1 where a condition does not hold."""
    code = 0
    for name, condition in CONDITIONS.items():
        try:
            missing = list(condition())
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            missing = [str(error)]
        print(f"{'no ' if missing else 'yes'} {name}")
        for line in missing:
            print(f"      {line}")
        code |= bool(missing)
    return code


if __name__ == "__main__":
    sys.exit(main())
