"""The catalogue of public documents, made from a folder of them: `python -m docs.catalogue FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aclnn_cts.document.catalogue import catalogue_entry, catalogue_path, catalogue_text
from aclnn_cts.document.read import read_document

__all__ = ["catalogue_of", "main"]


def catalogue_of(folder: Path) -> str:
    """The catalogue of the documents in a folder. Raises UsageError where one cannot be read."""
    return catalogue_text(catalogue_entry(read_document(path)) for path in folder.glob("aclnn*.md"))


def main(arguments: Sequence[str]) -> int:
    """Write the catalogue of the package."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m docs.catalogue FOLDER\n")
        return 2
    catalogue_path().write_text(catalogue_of(Path(arguments[0])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
