"""C++ and Python programs that reproduce a case without this harness.

May import `checks` and what is below it. Start reading at `write`, then `steps`.
"""

from __future__ import annotations

from collections.abc import Mapping

SUFFIXES: Mapping[str, str] = {"cpp": ".cpp", "python": ".py", "numpy": "_numpy.py", "torch": "_torch.py"}
"""Of the programs' files, by language."""

OF_LIBRARIES = ("cpp", "python")
"""Programs that call the C interface of a library."""

OF_FUNCTIONS = ("numpy", "torch")
"""Programs that call a function in Python, of arrays or of tensors."""
