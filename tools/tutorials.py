"""`make tutorials`: run the commands of docs/tutorials/ in an empty folder, and write what they print into the pages.

A fence with a title is a file: `python title="softmax.py"` writes softmax.py, and a later one of the same title
replaces it. In a `console` fence each line after `$` is a command of bash; what it prints follows. A page in Chinese
has the same fences in the same order, and takes them from the English one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
ENGLISH, CHINESE = DOCS / "tutorials", DOCS / "zh" / "tutorials"
LIMIT = 300.0
"""Seconds for one command: a tutorial takes ten minutes as a whole, reading included."""

_FENCE = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.DOTALL | re.MULTILINE
)
_TIME = re.compile(r"(?<=<!-- time -->)[^\n]*")
_CHANGES = (
    # Times, what they decide, and the machine's addresses.
    (re.compile(r"\b\d+(?:\.\d+)?(?= (?:ms|s|seconds|min|cases/s|cases a second|calls/s)\b)"), "N"),
    (re.compile(r"\bin \d+(?:\.\d+)?(?:m?s|m \d+s)\b"), "in Ns"),
    (re.compile(r"\b\d{1,2}:\d{2}:\d{2}\b"), "H:M:S"),
    (re.compile(r"\b\d{4}-\d{2}-\d{2}(?:T[\d:.+Z-]+)?"), "DATE"),
    (re.compile(rf"{re.escape(tempfile.gettempdir())}/[\w./-]+"), "PATH"),
    # A failure ends a judgement with its batch, which is as long as the time of the calls before allowed. A judgement
    # without one ends with the budget, which is shorter than the plan on a busy machine.
    (
        re.compile(r"\d+ of \d+( trials passed within N s: )\d+( of \d+ planned, )\d+( repeated)(, \d+ left\s+open)?"),
        r"N of N\1N\2N\3",
    ),
    # Shrinking tries again what was flaky.
    (re.compile(r"\b\d+(?= executions\b)"), "N"),
    # A key is made anew, and compressed times have other lengths.
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b\d+(?= bytes\b)"), "N"),
)


@dataclass(frozen=True, slots=True)
class Tutorial:
    """A page after its commands have run."""

    text: str
    seconds: float


def english_pages() -> list[Path]:
    """The pages whose commands run."""
    return sorted(ENGLISH.glob("*.md"))


def run_tutorial(page: Path, folder: Path) -> Tutorial:
    """The page with what its commands print, run in this empty folder one after the other."""
    code, began = 0, time.monotonic()
    # The commands that a reader has on the path are those of this Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ours = ("ACLNN_", "ASCEND_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}

    def printed(command: str) -> str:
        nonlocal code
        # `echo $?` finds the exit code of the command before.
        done = subprocess.run(
            ["/bin/bash", "-c", f"(exit {code}); {command}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        code = done.returncode
        return done.stdout

    def filled(fence: re.Match[str]) -> str:
        if fence["title"] is not None:
            path = folder / fence["title"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fence["body"], encoding="utf-8")
        if fence["language"] != "console":
            return fence[0]
        lines = [f"$ {command}\n{printed(command)}" for command in _commands(fence["body"])]
        return "```console\n" + "\n".join(line.rstrip() for line in "".join(lines).splitlines()) + "\n```"

    text = _FENCE.sub(filled, page.read_text(encoding="utf-8"))
    seconds = time.monotonic() - began
    return Tutorial(_TIME.sub(f" {seconds:.0f} s", text), seconds)


def _commands(block: str) -> Iterator[str]:
    """The commands of a console fence; a line that ends with a backslash goes on in the next."""
    yield from re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.MULTILINE)


def without_times(text: str) -> str:
    """The page as far as another run must repeat it."""
    for pattern, sign in _CHANGES:
        text = pattern.sub(sign, text)
    # A wrapped line breaks elsewhere where a time has another length.
    return " ".join(_TIME.sub("", text).split())


def translated(chinese: str, english: str) -> str:
    """The Chinese page with the fences and the time of the English one."""
    fences = iter([fence[0] for fence in _FENCE.finditer(english)])
    [seconds] = _TIME.findall(english)
    return _TIME.sub(seconds, _FENCE.sub(lambda _: next(fences), chinese))


def main(arguments: Sequence[str]) -> int:
    """Run the tutorials that are named, or all."""
    parser = argparse.ArgumentParser(prog="tools.tutorials", description=__doc__)
    parser.add_argument("name", nargs="*", help="first-bug, say; default: all")
    names, pages = parser.parse_args(arguments).name, english_pages()
    known = [page.stem for page in pages]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"{unknown[0]!r} is no tutorial; expected any of {', '.join(known)}")
    for page in pages:
        if names and page.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = run_tutorial(page, Path(folder))
        page.write_text(done.text, encoding="utf-8")
        other = CHINESE / page.name
        if other.exists():
            other.write_text(translated(other.read_text(encoding="utf-8"), done.text), encoding="utf-8")
        print(f"{page.stem}: {done.seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
