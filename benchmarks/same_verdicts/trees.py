"""The tree of a commit and the current one, side by side in a temporary folder, and their commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from aclnn_cts.core.errors import HarnessError, UsageError
from benchmarks.same_verdicts.rows import Line, Renamed

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
READER = FOLDER / "reader.py"
_SHOWN = 2000
"""Characters of what a failing command printed."""


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A benchmark whose figures are compared."""

    module: str
    stored: str
    """Where `--store` keeps the figures."""
    figures: Mapping[str, str]
    """`rate` or `seconds`, by the figure's name."""
    words: tuple[str, ...] = ()


class Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`names.yaml`."""

    code: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, tuple[str, ...]]
    commands: Mapping[str, tuple[str, ...]]
    renamed: Renamed
    speed: Mapping[str, Measured]


def read_names(path: Path = FOLDER / "names.yaml") -> Names:
    """Read the table of names; UsageError where it is malformed."""
    try:
        return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), Names)
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: {error}") from None


def _git(*words: str, environment: Mapping[str, str] | None = None) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *words],  # noqa: S607 - the user's git
            capture_output=True,
            check=True,
            env={**os.environ, **(environment or {})},
        )
    except FileNotFoundError:
        raise HarnessError("git is not installed; it is needed to unpack the commit BASE") from None
    except subprocess.CalledProcessError as error:
        raise UsageError(f"git {words[0]}: {error.stderr.decode(errors='replace').strip()}") from None
    return done.stdout


def commit_of(word: str) -> str:
    """The full id of a commit; UsageError where there is none of that name."""
    return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}").decode().strip()


def working_tree(scratch: Path) -> str:
    """The id of a git tree that holds the files of the checkout as they are now, new ones included."""
    index = {"GIT_INDEX_FILE": str(scratch / "index")}
    _git("read-tree", "HEAD", environment=index)
    _git("add", "--all", environment=index)
    return _git("write-tree", environment=index).decode().strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One side of the comparison."""

    name: str
    folder: Path

    def python(self, *words: str, variables: Mapping[str, str] | None = None, text: str = "") -> tuple[int, str, str]:
        """Run this interpreter on the tree's code; exit code, standard output and standard error."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ACLNN_")}
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={**kept, "PYTHONPATH": str(self.folder), **(variables or {})},
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def checked(self, *words: str, variables: Mapping[str, str] | None = None, text: str = "") -> tuple[int, str]:
        """As `python`; HarnessError where the exit code is neither 0 nor 1, which are verdicts."""
        code, out, errors = self.python(*words, variables=variables, text=text)
        if code not in (0, 1) or "Traceback (most recent call last)" in errors:
            raise HarnessError(f"{self.name}: python {' '.join(words[:8])}: exit code {code}\n{errors[-_SHOWN:]}")
        return code, out

    def command(self, words: Sequence[str]) -> str:
        """The first of these words that is a command here."""
        for word in words:
            if self.python("-m", "aclnn_cts", word, "--help")[0] == 0:
                return word
        raise HarnessError(f"{self.name}: no command {' or '.join(words)}; add its name to names.yaml")

    def read(self, what: str, path: Path, names: Names) -> list[Line]:
        """What `reader.py` finds at a path."""
        given = msgspec.json.encode({"code": names.code, "attributes": names.attributes}).decode()
        program = READER.read_text(encoding="utf-8")
        code, out, errors = self.python("-", what, str(path), given, text=program)
        if code:
            raise HarnessError(f"{self.name}: {path} cannot be read: {errors[-_SHOWN:]}")
        return [msgspec.json.decode(line, type=Line) for line in out.splitlines()]


def unpack(name: str, treeish: str, folder: Path) -> Tree:
    """Unpack a commit or tree into a folder; HarnessError where its code is not what Python then imports."""
    index = {"GIT_INDEX_FILE": str(folder.with_suffix(".index"))}
    _git("read-tree", treeish, environment=index)
    _git("checkout-index", "--all", f"--prefix={folder}/", environment=index)
    tree = Tree(name=name, folder=folder)
    code, out, errors = tree.python("-c", "import aclnn_cts; print(aclnn_cts.__file__)")
    if code or not Path(out.strip()).is_relative_to(folder):
        raise HarnessError(f"{name}: Python imports {out.strip() or errors[-_SHOWN:]}; expected the code in {folder}")
    return tree
