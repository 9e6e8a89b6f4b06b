"""Stand-alone C++ and Python programs that show a case without this harness.

May import `checks` and what is below it. Start reading at `write`, then `steps`.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SUFFIXES"]

SUFFIXES: Mapping[str, str] = {"cpp": ".cpp", "python": ".py"}
"""Of the programs' files, by language."""
