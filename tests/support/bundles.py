"""Bundles that tests change and check again."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.bundle import archive
from aclnn_cts.bundle.archive import Member, archive_bytes
from aclnn_cts.bundle.statement import read_statement
from aclnn_cts.bundle.verify import Verification, verify_bundle


def verified(content: bytes, folder: Path, **options: Any) -> Verification:
    path = folder / "bundle.zip"
    path.write_bytes(content)
    return verify_bundle(path, **options)


def rebuilt(path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> bytes:
    """An unsigned bundle whose sums are right again after a change: what somebody makes who means to deceive."""
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    statement = msgspec.to_builtins(read_statement(entries.pop("MANIFEST.json")))
    change(entries, statement["predicate"])
    statement["subject"] = [
        {"name": name, "digest": {"sha256": hashlib.sha256(content).hexdigest()}, "annotations": {"size": len(content)}}
        for name, content in sorted(entries.items())
    ]
    manifest = msgspec.json.encode(statement, order="sorted") + b"\n"
    sources = [
        archive.Source(Member(name, len(content), zlib.crc32(content)), "", content)
        for name, content in [("MANIFEST.json", manifest), *sorted(entries.items())]
    ]
    return b"".join(archive_bytes(sources))
