"""Which oracles were checked without a fault: `checked/STEM.json` beside the specs, which `oracle check` writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from aclnn_cts.core.outside import read_json
from aclnn_cts.selftest.oracle_code import oracle_digest

FORMAT = "aclnn-cts/checked-oracle/1"

CALLS = 10_000
"""Emulated calls of an operator, and fewest of an oracle that counts as checked."""


class Checked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An oracle without a fault."""

    format: str = FORMAT
    sha256: str
    """Of the code that it consists of: another one is not checked."""
    calls: int
    seed: int

    def text(self) -> str:
        """The file."""
        return msgspec.json.encode(self).decode() + "\n"


def checked_path(folder: Path, stem: str) -> Path:
    """Where the record of an oracle lies: in `checked/` beside its spec."""
    return folder / "checked" / f"{stem}.json"


def read_checked(path: Path) -> Checked | None:
    """The record of an oracle; None where there is no file. UsageError for another file."""
    if not path.exists():
        return None
    return read_json(path, Checked, expected="a file that `oracle check --record` wrote", form=FORMAT)


def is_checked(stem: str, *, spec_folder: Path, folders: Sequence[Path] = ()) -> bool:
    """Whether the oracle, as it is now, was checked in enough calls without a fault."""
    found = read_checked(checked_path(spec_folder, stem))
    return found is not None and found.calls >= CALLS and found.sha256 == oracle_digest(stem, folders)
