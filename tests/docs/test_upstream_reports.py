"""The reports for torch: each program does what its report says, in a separate process, since some end it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "upstream"
REPORTS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
SIGNALS = {
    # What a write out of bounds meets is not defined.
    "Segmentation fault": {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT},
    "Floating point exception": {-signal.SIGFPE},
}


def block(text: str, language: str) -> str:
    """The only code block in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.slow
@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_program_does_what_its_report_says(path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    text = path.read_text(encoding="utf-8")
    output = block(text, "text")
    ran = subprocess.run(
        [sys.executable, "-c", block(text, "python")], capture_output=True, text=True, timeout=60, check=False
    )
    if output.strip() in SIGNALS:
        assert ran.returncode in SIGNALS[output.strip()]
    else:
        assert (ran.stdout, ran.returncode) == (output, 0), ran.stderr


def test_the_index_names_every_report() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert REPORTS
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == {path.name for path in REPORTS}
