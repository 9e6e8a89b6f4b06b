"""C++ and Python programs that reproduce a case without this harness.

May import `findings`, `trials.checks` and what is below them. Start reading at `write`, then `keep`.
"""

from __future__ import annotations

OF_LIBRARIES = ("cpp", "python")
"""Programs that call the C interface of a library."""

OF_FUNCTIONS = ("numpy", "torch")
"""Programs that call a function in Python, of arrays or of tensors."""
