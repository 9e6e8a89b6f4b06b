"""By what a published measurement was made: the command, the harness and its commit, when, and on what machine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from aclnn_cts import __version__
from aclnn_cts.store.harness_parts import harness_parts
from aclnn_cts.store.manifest import Fact, environment_facts, sources_hash, timestamp

_ROOT = Path(__file__).resolve().parents[2]
_PRIVATE = ("machine.name", "python.executable")
"""What a run's own manifest tells of its machine, and a published document need not."""
_PATH = re.compile(r"(-\w(?=[/~.])|[^/~]*[=,:]|)((?:[/~]|\.\.?/).*)", re.DOTALL)
"""A word that names a file from the root, a home or the current folder, alone or behind an option."""
_NO_PART = (":!benchmarks", ":!docs", ":!tests", ":!tools", ":!*.md")
"""Files of a checkout that have no part in what is measured; some are written from what was."""


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the sources."""

    commit: str
    clean: bool
    """Whether no file that has a part in the harness was changed or added since."""


class MadeBy(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that differ between two measurements of the same thing."""

    command: str
    """As it would be typed at the top of the checkout; a file elsewhere has its name alone."""
    harness: str
    """The version."""
    sha256: str
    """As the environment of a run's manifest has it under `harness.sha256`."""
    parts: Mapping[str, str]
    """SHA-256 of each part of the harness that has a say in what is found (`harness_parts`)."""
    checkout: Checkout | None = None
    """None where the harness was installed and not checked out, or git is not there to ask."""
    started: str
    """UTC, ISO 8601."""
    seconds: float
    environment: Mapping[str, Fact]
    """As manifests have it, but the names of the machine and of folders on it."""


class Beginning:
    """A measurement that has begun: what it is made by is read now, before files may change under it."""

    def __init__(self, words: Sequence[str]) -> None:
        """By the command line's words after `aclnn-cts`."""
        self._began = time.monotonic()
        environment = environment_facts()
        self._made = MadeBy(
            command=shlex.join(["aclnn-cts", *(_published(word) for word in words)]),
            harness=__version__,
            sha256=sources_hash(),
            parts=dict(harness_parts()),
            checkout=checkout(),
            started=timestamp(),
            seconds=0.0,
            environment={
                name: fact
                for name, fact in environment.items()
                if name not in _PRIVATE and not name.startswith("harness.")
            },
        )

    def made_by(self) -> MadeBy:
        """What it was made by, with the seconds up to now."""
        return msgspec.structs.replace(self._made, seconds=round(time.monotonic() - self._began, 1))


def _published(word: str) -> str:
    """The word without folders of this machine."""
    found = _PATH.fullmatch(word)
    if found is None:
        return word
    before, text = found.groups()
    path = Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111 - links are not followed, `..` is
    return before + (path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else path.name)


def checkout(root: Path = _ROOT, *, leave_out: Sequence[str] = _NO_PART) -> Checkout | None:
    """The commit of the checkout that `root` is the top of, and whether it is clean but for git's paths `leave_out`."""
    git = shutil.which("git")
    if git is None:
        return None
    try:
        # An installed package may lie in somebody else's repository.
        if Path(_said(git, root, "rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return None
        commit = _said(git, root, "rev-parse", "HEAD")
        changes = _said(git, root, "status", "--porcelain", "--", ":/", *leave_out)
    except (OSError, subprocess.CalledProcessError):
        return None
    return Checkout(commit=commit, clean=not changes)


def _said(git: str, root: Path, *words: str) -> str:
    done = subprocess.run([git, *words], cwd=root, check=True, capture_output=True, text=True)  # noqa: S603 - our words
    return done.stdout.strip()
