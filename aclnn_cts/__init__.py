"""Conformance tests for the aclnn backward operators: documents in, verdicts out."""

from __future__ import annotations

import importlib
from pathlib import Path

__version__ = "0.3.0.dev0"

_LINK = Path(__file__).parent / "adapters"

if _LINK.is_file():
    raise ImportError(
        f"{_LINK} is a file that names a folder: this clone was made without symbolic links. Run `git config "
        "core.symlinks true` and `git checkout HEAD -- aclnn_cts` (on Windows, turn on Developer Mode first)."
    )


# What `candidates` makes public is imported when it is used: importing the package is free.
def __getattr__(name: str) -> object:
    return importlib.import_module(f"{__name__}.candidates.public").public(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})  # type: ignore[misc]  # names
