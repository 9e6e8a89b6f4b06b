"""README, docs, help and reports are short and plain: sentences of at most 25 words, and none of the idioms below."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from aclnn_cts.plugin import pytest_addoption
from aclnn_cts.speclang.yaml_file import read_yaml

ROOT = Path(__file__).parents[2]
MARKDOWN = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
WORDS = sorted((ROOT / "reports/words").glob("*.yaml"))
HELP = sorted((ROOT / "tests/cli/__snapshots__/test_cli_help").iterdir())

MOST_WORDS = 25
"""A number or a sign of a formula is no word."""
IDIOMS = re.compile(
    r"\bof (?:\w+'s|its|their|your|our|whose) own\b|\bby (?:itself|themselves)\b|\bstands?\b(?! for)"
    r"|\bspeaks? for\b|\b(?:is|are|was|were) put to\b|\bcame to\b|\bwhere \w+ else\b|\btold\b|\bmend(?:s|ed)?\b"
    r"|\brenew(?:s|ed)?\b",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[.:;?!])[\"')*_]*\s+")


def _words(token: Token) -> str:
    """The text of an inline token; code counts as one word."""
    parts = (
        "CODE" if child.type == "code_inline" else "" if child.type == "html_inline" else child.content or " "
        for child in token.children or ()
    )
    return "".join(parts)


def sentences(markdown: str) -> Iterator[str]:
    """Sentences of paragraphs, headings, list items and table cells; code blocks and comments have none."""
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "inline":
            yield from _END.split(_words(token))


def mistakes(texts: Iterator[str]) -> list[str]:
    return [text for text in texts if _length(text) > MOST_WORDS or IDIOMS.search(text)]


def _length(text: str) -> int:
    return sum(any(letter.isalpha() for letter in word) for word in text.split())


@pytest.mark.parametrize(
    "text",
    [
        "Each part stands by itself.",
        "One clause | is put to the test.",
        "A failure is told once.",
        " ".join(["word"] * (MOST_WORDS + 1)) + ".",
    ],
)
def test_a_mistake_is_seen(text: str) -> None:
    assert mistakes(sentences(text))


@pytest.mark.parametrize(
    "text",
    [
        " ".join(["word"] * MOST_WORDS) + ".",
        "h = x - m " * (MOST_WORDS // 3),
        "NaN stands for not a number.",
        "- `is told`",
        "    told",
    ],
)
def test_plain_text_passes(text: str) -> None:
    assert not mistakes(sentences(text))


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_plain(page: Path) -> None:
    assert mistakes(sentences(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("page", HELP, ids=lambda page: page.stem)
def test_help_is_plain(page: Path) -> None:
    blocks = re.split(r"\n\s*\n|\n {2}(?=-)", page.read_text(encoding="utf-8"))
    assert mistakes(sentence for block in blocks for sentence in _END.split(" ".join(block.split()))) == []


@pytest.mark.parametrize("file", WORDS, ids=lambda file: file.stem)
def test_words_of_reports_are_plain(file: Path) -> None:
    # PyYAML alone would keep the last of two entries with one key.
    texts = _texts(read_yaml(file).content)
    assert mistakes(sentence for text in texts for sentence in _END.split(text)) == []


def _texts(found: object) -> Iterator[str]:
    """Every text, in both languages; one in Chinese has no blanks, and none of the idioms."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, dict | list):
        for item in found.values() if isinstance(found, dict) else found:
            yield from _texts(item)


def test_help_of_the_gate_is_plain() -> None:
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    options = parser.getgroup("aclnn-cts").options
    assert len(options) > 15
    assert mistakes(sentence for option in options for sentence in _END.split(option.attrs()["help"])) == []
