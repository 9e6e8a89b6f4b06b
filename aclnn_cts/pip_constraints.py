"""`python -m aclnn_cts.pip_constraints` prints the path of the constraints file of this release.

For `pip install --constraint "$(python -m aclnn_cts.pip_constraints)" "aclnn-cts[torch]"`. Imports the standard library
alone, so that it runs before the dependencies are installed.
"""

from __future__ import annotations

from pathlib import Path

CONSTRAINTS = Path(__file__).resolve().with_name("constraints.txt")
"""The versions that this release was tested with, one requirement a line."""

if __name__ == "__main__":
    print(CONSTRAINTS)  # noqa: T201 - the path is what a shell asks for
