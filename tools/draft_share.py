"""How much of each spec a person wrote: `python -m tools.draft_share FOLDER [STEM...]`, with the folder of documents.

Words and numbers of a spec count as drafted where `spec draft` writes them in the same order. What is left, in
characters, is what a person typed. Comments, blanks and punctuation do not count.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from aclnn_cts.authoring.draft import draft_spec
from aclnn_cts.authoring.read import read_document
from aclnn_cts.speclang.load import load_specs, package_folder
from tools.markdown import table

_WORD = re.compile(r"[A-Za-z0-9_.]+|[\u4e00-\u9fff]+")
_COMMENT = re.compile(r"^\s*#.*$|\s#\s.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DraftShare:
    """What a draft has of one spec."""

    stem: str
    characters: int
    """Of the spec's words and numbers."""
    written: int
    """Those of them that the draft lacks."""
    facts: float
    """The share that a person wrote above the clauses and claims."""

    @property
    def share(self) -> float:
        """The share that a person wrote."""
        return self.written / max(self.characters, 1)


def draft_share(stem: str, spec: str, draft: str) -> DraftShare:
    """Compare the text of a spec with its draft."""
    characters, written = _written(spec, draft)
    above, lacking = _written(_facts(spec), _facts(draft))
    return DraftShare(stem, characters, written, lacking / max(above, 1))


def _facts(text: str) -> str:
    return re.split(r"\n(?:sentences|clauses|claims|open):", text, maxsplit=1)[0]


def _written(spec: str, draft: str) -> tuple[int, int]:
    wanted, offered = _words(spec), _words(draft)
    blocks = SequenceMatcher(a=wanted, b=offered, autojunk=False).get_matching_blocks()
    drafted = sum(len(word) for block in blocks for word in wanted[block.a : block.a + block.size])
    total = sum(map(len, wanted))
    return total, total - drafted


def _words(text: str) -> list[str]:
    return _WORD.findall(_COMMENT.sub("", text))


def draft_shares(folder: Path, stems: Sequence[str] = ()) -> Iterator[DraftShare]:
    """The shares of all shipped specs whose document lies in a folder, or of some of them."""
    for spec in load_specs().select(stems):
        document = folder / f"{spec.operator}.md"
        if document.exists():
            text = (package_folder() / f"{spec.stem}.yaml").read_text(encoding="utf-8")
            yield draft_share(spec.stem, text, draft_spec(read_document(document)).text)


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    if not arguments:
        sys.stderr.write("usage: python -m tools.draft_share FOLDER [STEM...]\n")
        return 2
    found = sorted(draft_shares(Path(arguments[0]), arguments[1:]), key=lambda item: item.share)
    rows = [(item.stem, f"{item.characters:,}", f"{item.share:.0%}", f"{item.facts:.0%}") for item in found]
    total = sum(item.written for item in found) / max(sum(item.characters for item in found), 1)
    rows.append(("all", f"{sum(item.characters for item in found):,}", f"{total:.0%}", ""))
    sys.stdout.writelines(f"{line}\n" for line in table(("spec", "characters", "written", "above clauses"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
