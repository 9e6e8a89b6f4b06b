"""Stand-alone programs that show a case: for those who have the operator library and not this harness."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SUFFIXES"]

SUFFIXES: Mapping[str, str] = {"cpp": ".cpp", "python": ".py"}
"""Of the programs' files, by language."""
