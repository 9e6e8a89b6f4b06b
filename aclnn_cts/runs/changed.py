"""Which operators a change touches: those that the path of a changed file names."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.runs.baseline import is_baseline
from aclnn_cts.speclang.model import Spec

_SECONDS = 60
"""For git, which reads an index: more than that is a hang."""


@dataclass(frozen=True, slots=True)
class ChangedSources:
    """What differs from an earlier commit."""

    operators: frozenset[str]
    """By C name."""
    others: tuple[str, ...]
    """Changed files whose path names no operator."""


def changed_files(base: str, folder: Path) -> list[str]:
    """Files that differ between a commit and the working tree of this folder, untracked ones too.

    Untracked runs, and findings of gates, are left out: their files have the names of operators that nobody changed.
    Raises UsageError where git cannot say.
    """
    if base.startswith("-"):
        raise UsageError(f"--changed {quote(base)}: expected a commit, a branch or a tag")
    found: list[str] = []
    # Outside of a repository `diff` answers with its usage, and `ls-files` says so.
    for words in (("ls-files", "--others", "--exclude-standard", "-z"), ("diff", "--name-only", "-z", base, "--")):
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and the commit is no option
                ["git", *words],  # noqa: S607 - git is looked for on the path
                cwd=folder,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"--changed {quote(base)}: git did not run: {error}") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
            raise UsageError(f"--changed {quote(base)}: expected a commit that git knows here; git says {quote(said)}")
        names = [name.decode(errors="replace") for name in done.stdout.split(b"\0") if name]
        found += [name for name in names if words[0] == "diff" or not _is_written(Path(name), folder)]
    return found


def _is_written(file: Path, folder: Path) -> bool:
    return any(is_baseline(folder / parent) for parent in file.parents if parent.name)


def operators_of(files: Iterable[str], specs: Sequence[Spec]) -> ChangedSources:
    """Operators whose stem or C name is in the path of one of these files, in any case.

    Of names that hold each other, the longest counts: `gelu_backward_v2.cpp` is no file of `gelu_backward`.
    """
    names = {word.lower(): spec.operator for spec in specs for word in (spec.stem, spec.operator)}
    longest = sorted(names, key=len, reverse=True)
    operators, others = set(), []
    for file in files:
        rest, found = file.lower(), set()
        for name in longest:
            if name in rest:
                found.add(names[name])
                rest = rest.replace(name, "\0")
        operators |= found
        if not found:
            others.append(file)
    return ChangedSources(frozenset(operators), tuple(others))
