"""A picture of a command as a terminal shows it: `python -m tools.capture FILE.svg -- run --adapter torch`.

The command runs on a pseudo-terminal of 100 columns with all colours; what it writes to standard output becomes an SVG.
Its own exit code does not matter: a run that finds something is worth a picture too.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS = 100
_CHUNK = 1 << 16
_LOCAL_FONTS = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""rich's own frame without the fonts that it would fetch from elsewhere."""


def terminal_output(command: Sequence[str]) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    written = bytearray()
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment):
        os.close(theirs)
        while chunk := _read(ours):
            written += chunk
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # the terminal's other side is closed
        return b""


def picture(command: str, output: str) -> str:
    """The SVG of a command and its output."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(output), overflow="fold")
    return console.export_svg(title="aclnn-cts", theme=MONOKAI, code_format=_LOCAL_FONTS)


def main(arguments: Sequence[str]) -> int:
    """Write the picture of one of our commands."""
    if len(arguments) < 3 or arguments[1] != "--":
        print("usage: python -m tools.capture FILE.svg -- COMMAND...", file=sys.stderr)
        return 2
    target, words = Path(arguments[0]), list(arguments[2:])
    output = terminal_output([sys.executable, "-m", "aclnn_cts", *words])
    target.write_text(picture(" ".join(("aclnn-cts", *words)), output), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
