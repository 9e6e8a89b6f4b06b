"""The catalogue of public documents, made from a folder of them: `python -m tools.catalogue FOLDER`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from aclnn_cts.authoring.catalogue import FORMAT, CatalogueEntry, catalogue_path, family_of
from aclnn_cts.authoring.draft import draft_spec
from aclnn_cts.authoring.model import Document
from aclnn_cts.authoring.read import read_document


def catalogue_of(folder: Path) -> str:
    """The catalogue of the documents in a folder. Raises UsageError where one cannot be read."""
    return catalogue_text(catalogue_entry(read_document(path)) for path in folder.glob("aclnn*.md"))


def catalogue_entry(document: Document) -> CatalogueEntry:
    """The figures of a document, drafted as `spec draft` does."""
    return CatalogueEntry(
        operator=document.operator,
        family=family_of(document.operator),
        products=tuple(product for product, supported in document.products.items() if supported),
        parameters=len(document.parameters),
        statements=len(document.statements),
        open=len(draft_spec(document).open),
    )


def catalogue_text(entries: Iterable[CatalogueEntry]) -> str:
    """The file, one line for each document in the order of their names."""
    found: Sequence[CatalogueEntry] = sorted(entries, key=lambda entry: entry.operator)
    lines = ",\n".join(f"  {json.dumps(msgspec.to_builtins(entry))}" for entry in found)
    return f'{{"format": "{FORMAT}", "documents": [\n{lines}\n]}}\n'


def main(arguments: Sequence[str]) -> int:
    """Write the catalogue of the package."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tools.catalogue FOLDER\n")
        return 2
    catalogue_path().write_text(catalogue_of(Path(arguments[0])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
