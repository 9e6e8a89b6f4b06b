"""The cheats: what they are, whether the naive judge accepts them, and what ours says."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from aclnn_cts import Judgement, judge
from tests.gaming.naive import variant_of

FOLDER = Path(__file__).parent / "cheats"
OPERATOR = "softmax_backward"
_PASS_SECONDS = 60


class Cheat(NamedTuple):
    """A function that tries to pass without being right."""

    kind: str
    """What the first line of its file says."""
    file: Path
    name: str
    sentence: str

    @property
    def id(self) -> str:
        """Such as `stale.after_ten_calls`."""
        return f"{self.file.stem}.{self.name}"


def cheats() -> Iterator[Cheat]:
    """All of them, by file and in their order."""
    for file in sorted(FOLDER.glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        kind = ast.get_docstring(tree) or ""
        for item in tree.body:
            if isinstance(item, ast.FunctionDef) and (sentence := ast.get_docstring(item)) and item.name[0] != "_":
                yield Cheat(kind, file, item.name, " ".join(sentence.split()))


def passes_naive_judge(cheat: Cheat) -> bool:
    """Whether five trials of a published kind end without the word that says a failure.

    The judge is started by a process of its own, which a cheat may kill, in a session of its own.
    """
    naive = Path(__file__).parent / "naive.py"
    command: Sequence[str] = (str(naive), str(cheat.file), cheat.name, variant_of(cheat.file.stem, cheat.name))
    wrapper = (
        "import subprocess, sys; "
        f"print(subprocess.run([sys.executable, *{list(command)!r}], "
        "stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout)"
    )
    with tempfile.TemporaryDirectory(prefix="naive-judge-") as folder:
        ran = subprocess.run(
            [sys.executable, "-c", wrapper],
            capture_output=True,
            cwd=folder,
            timeout=_PASS_SECONDS,
            start_new_session=True,
            check=False,
            text=True,
        )
    return "failed" not in ran.stdout and "Traceback" not in ran.stdout


def judged(cheat: Cheat, *, seed: int | None = None, budget: str = "30s") -> Judgement:
    """What our judge says of a cheat."""
    return judge(f"{cheat.file}:{cheat.name}", OPERATOR, seed=seed, budget=budget)


def caught_by(judgement: Judgement) -> str:
    """What has caught a cheat: the fault and how it ended; `harmless` for one whose outputs are all right."""
    if judgement.ok:
        return "harmless"
    if not judgement.findings:
        return judgement.verdict
    found = judgement.findings[0]
    return f"{found.fault}, after other calls" if found.condition else found.fault
