"""What a person reads on a page, block by block, and which of it is English prose."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_WORD = r"[A-Za-z]?[a-z]+(?:['\u2019-][a-z]+)*"
_RUN = re.compile(rf"(?<![\w./=-]){_WORD}(?:[ ,;:()\u201c\u201d\"]+{_WORD}){{3,}}(?![\w./=-])")
"""Four words or more, one after another; what has digits, underscores or capitals within it is a name."""

_BLOCKS = """
const skipped = arguments[0];
for (const part of document.querySelectorAll("details")) part.open = true;
const blocks = new Map();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const kinds = "td,th,p,li,h1,h2,h3,h4,dd,dt,summary,option,label,caption,text,button,output,b.label";
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const part = node.parentElement;
  if (!node.data.trim() || part.closest("script,style")) continue;
  // Options are drawn by the system and have no box of their own.
  if (!part.closest("option") && !part.checkVisibility()) continue;
  const block = part.closest(kinds) || part;
  blocks.set(block, (blocks.get(block) || "") + (part.closest(skipped) ? " ◻ " : node.data));
}
return [...blocks].map(([part, text]) => [part.closest("section")?.id || "", part.localName, text]);
"""

SKIPPED = "code, pre, cite, details.recorded [lang=en]"
"""What is nobody's prose on the page: identifiers and programs, titles of works, texts of records shown as such."""


class Block(NamedTuple):
    """A cell, paragraph, item, heading, ..."""

    section: str
    tag: str
    text: str


def visible_blocks(driver: Any, skipped: str = SKIPPED) -> list[Block]:
    """All text that can be seen once every part is opened; what is skipped is a box in it."""
    found = driver.execute_script(_BLOCKS, skipped)
    return [Block(section, tag, " ".join(text.split())) for section, tag, text in found]


def english(text: str) -> list[str]:
    """The runs of English words in a text."""
    return _RUN.findall(text)


_HAN = "[\u4e00-\u9fff]"
_HALF_WIDTH = re.compile(
    rf".{{0,9}}(?:{_HAN} ?[,;:!?](?![\w]*=)|[,;:] ?{_HAN}|{_HAN}\(|\){_HAN}|\({_HAN}|{_HAN}\)"
    rf"|{_HAN}[^()\[\]]*[,;][A-Za-z]).{{0,9}}"
)


def half_width(text: str) -> list[str]:
    """Commas, colons, parentheses of Latin text that stand right beside Chinese, each with what is around it.

    What stands between Latin words or numbers is theirs: `(T, B, Ci)`.
    """
    return [found.group() for found in _HALF_WIDTH.finditer(text)]
