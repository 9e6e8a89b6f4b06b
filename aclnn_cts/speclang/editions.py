"""Editions: a document is published more than once, and each edition has a spec file of its own.

`editions/NAME/STEM.yaml` beside `STEM.yaml` is the whole spec of that edition.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.printable import quote

_FOLDER = "editions"


def edition_file(path: Path, edition: str) -> Path:
    """The file of a spec in an edition: the spec itself where it has none of its own."""
    own = path.parent / _FOLDER / edition / path.name
    return own if edition and own.exists() else path


def edition_files(folder: Path, edition: str = "") -> list[Path]:
    """The specs of an edition in a folder of specs; of all editions where none is named."""
    return sorted((folder / _FOLDER).glob(f"{edition or '*'}/*.yaml"))


def check_edition(edition: str, folders: Sequence[Path], *, where: str = "--edition") -> None:
    """UsageError, opened by `where`, for an edition that no folder has."""
    known = sorted({path.parent.name for folder in folders for path in edition_files(folder)})
    if edition and edition not in known:
        raise UsageError(
            f"{where}: {quote(edition)} is not known; expected one of {', '.join(known) or 'none'}, or leave it out"
            f"{did_you_mean(edition, known)}"
        )
