"""Lint of spec files: what reading them finds, and in those that read well what drawing from them finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.generate.proof import prove_spec
from aclnn_cts.speclang.load import lint_files

__all__ = ["LintReport", "lint_specs"]


@dataclass(frozen=True, slots=True)
class LintReport:
    """What lint has to say of some spec files."""

    stems: tuple[str, ...]
    """The files that read well."""
    mistakes: tuple[str, ...]
    open: tuple[str, ...]
    """Places of drafts that a person has to settle."""


def lint_specs(files: Sequence[Path] = (), *, edition: str = "") -> LintReport:
    """Lint these files, in this edition where one is named; all of the package where no file is.

    Nothing is drawn from a draft with open places.
    """
    linted, messages = lint_files(files, edition=edition)
    for item in linted:
        if not item.open:
            messages.extend(prove_spec(item.spec, item.file))
    places = tuple(place for item in linted for place in item.open)
    return LintReport(
        tuple(f"{item.spec.stem}{item.spec.edition and f' ({item.spec.edition})'}" for item in linted),
        tuple(messages),
        places,
    )
