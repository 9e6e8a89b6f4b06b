"""Lint of spec files: what reading them finds, and in those that read well what drawing from them finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aclnn_cts.generate.proof import prove_spec
from aclnn_cts.speclang.load import lint_files

__all__ = ["lint_specs"]


def lint_specs(files: Sequence[Path] = ()) -> tuple[list[str], list[str]]:
    """The stems of the files that read well, and every message; all files of the package where none is named."""
    linted, messages = lint_files(files)
    for item in linted:
        messages.extend(prove_spec(item.spec, item.file))
    return [item.spec.stem for item in linted], messages
