"""Bundles that tests sign, change and check again."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aclnn_cts.bundle.archive import add_entry
from aclnn_cts.bundle.signature import Signer, signature_path
from aclnn_cts.bundle.verify import Verification, verify_bundle
from aclnn_cts.bundle.write import WrittenBundle, write_bundle
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory

Change = Callable[[dict[str, bytes]], None]
"""Of the entries of a bundle by name."""


def write_signed(run: RunDirectory, path: Path, key: Path, **options: Any) -> WrittenBundle:
    written = write_bundle(run, OutputFile(path), **options)
    signature_path(path).write_bytes(Signer(key).sign(written.sha256))
    return written


def verified(content: bytes, folder: Path, **options: Any) -> Verification:
    path = folder / "bundle.zip"
    path.write_bytes(content)
    return verify_bundle(path, **options)


def rebuilt(path: Path, change: Change) -> bytes:
    """A bundle packed again after a change: what somebody makes who means to deceive."""
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    change(entries)
    return packed(entries)


def packed(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in entries.items():
            add_entry(file, name, [content], size=len(content))
    return buffer.getvalue()
