"""The modules of the package, linked folders included."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MODULES", "PACKAGE", "ROOT"]

ROOT = Path(__file__).parents[1]
PACKAGE = "aclnn_cts"


def _modules() -> Iterator[Path]:
    for folder, _, names in os.walk(ROOT / PACKAGE, followlinks=True):
        yield from (Path(folder, name).relative_to(ROOT / PACKAGE) for name in names if name.endswith(".py"))


MODULES = sorted(_modules())
"""Their paths below the package's folder."""
