"""Markdown with HTML tables as a flat list of headings, lines, formulas, programs and tables.

markdown-it makes HTML of the Markdown, selectolax a tree of that, and this module reads the tree. Passages between
`<!-- npu="910b,A3" idN -->` and `<!-- end idN -->` carry their products.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import quote

try:
    from markdown_it import MarkdownIt
    from selectolax.lexbor import LexborHTMLParser, LexborNode
except ModuleNotFoundError as error:
    raise HarnessError(
        f"reading documents needs {error.name}, which is not installed; pip install 'aclnn-cts[documents]'"
    ) from None

Products = tuple[str, ...] | None
"""What a passage is restricted to, in the order of the marks; None: nothing."""

MARKS = {
    "950": "ascend-950",
    "A3": "atlas-a3",
    "910b": "atlas-a2",
    "310b": "atlas-200i-500-a2",
    "310p": "atlas-inference",
    "910": "atlas-training",
}
"""The words of product marks."""
_NAMES = (
    (re.compile(r"Ascend 950"), "ascend-950"),
    (re.compile(r"Atlas A3"), "atlas-a3"),
    (re.compile(r"Atlas A2|800I A2"), "atlas-a2"),
    (re.compile(r"200I/500 A2"), "atlas-200i-500-a2"),
    (re.compile(r"Atlas 推理系列|Atlas inference", re.IGNORECASE), "atlas-inference"),
    (re.compile(r"Atlas 训练系列|Atlas training", re.IGNORECASE), "atlas-training"),
)

MOST_TAGS = 20_000
"""Tags of a document: parsers of HTML take quadratic time over some arrangements of open ones."""
MOST_PLACES = 50_000
"""Places in the grids of all tables."""
DEEPEST = 100
"""Levels of a document's tree."""

_OPENS = re.compile(r'npu\s*=\s*"([^"]*)"\s*(\S*)')
_ENDS = re.compile(r"end\s+(\S+)")
_BOLD = re.compile(r"\*\*(\S|\S[^*\n]{0,200}\S)\*\*")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_SKIPPED = frozenset({"script", "style", "colgroup", "col", "template"})
_BREAKS = frozenset({"p", "div", "li", "ul", "ol", "tr", "details", "summary", "blockquote", "br"})
_SPAN_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading and its level."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A paragraph, a list item's own text, or a line of a cell."""

    text: str
    products: Products


@dataclass(frozen=True, slots=True)
class Listing:
    """A fenced block: a formula or a program."""

    text: str
    products: Products


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell; one that spans rows or columns is in each of its places, and only the first is its origin."""

    lines: tuple[DocumentLine, ...]
    is_origin: bool = True

    @property
    def text(self) -> str:
        """Its lines."""
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a grid; the first row is its head."""

    rows: tuple[tuple[TableCell, ...], ...]

    @property
    def head(self) -> tuple[str, ...]:
        """The words of its first row."""
        return tuple("".join(cell.text.split()) for cell in self.rows[0]) if self.rows else ()


Block = Heading | DocumentLine | Listing | Table


def products_named(text: str) -> tuple[str, ...]:
    """The products whose names a text holds."""
    return tuple(product for pattern, product in _NAMES if pattern.search(text))


def read_blocks(text: str, *, name: str) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """The blocks of a document, and remarks on marks that do not match; UsageError where it is too large a tree."""
    html = MarkdownIt("commonmark", {"html": True}).enable("table").disable([*_VERBATIM, *_LINKS]).render(_normal(text))
    if html.count("<") > MOST_TAGS:
        raise UsageError(f"{name}: more than {MOST_TAGS} HTML tags; expected one operator's document")
    body = LexborHTMLParser(html).body
    reader = _Reader(name)
    blocks = tuple(reader.blocks(body)) if body is not None else ()
    reader.remarks.extend(f"product mark {quote(mark)} never ends" for mark, _ in reader.marks)
    return blocks, tuple(reader.remarks)


_VERBATIM = ["emphasis", "escape", "entity", "autolink", "backticks", "lheading", "code", "hr", "reference"]
"""Rules of Markdown that would change names and formulas, or take indented text for programs."""
_LINKS = ["link", "image"]
"""Rules that take quadratic time over open brackets; `_LINK` does their work."""
_LINK = re.compile(r"!?\[([^\[\]\n]{0,200})\]\([^()\s]{0,500}\)")


def _normal(text: str) -> str:
    """The text with each table on one line and each displayed formula in a fence, so that no blank line ends them."""
    lines: list[str] = []
    fence = ""
    formula: list[str] | None = None
    table: list[str] | None = None
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if table is None and formula is None and found is not None:
            mark, rest = found.groups()
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence) and not rest.strip():
                fence = ""
        elif not fence and formula is None and line.strip() == "$$":
            formula = [line]
            continue
        if formula is not None:
            formula.append(line)
            if line.strip() == "$$":
                lines.extend(_fenced(formula))
                formula = None
            continue
        if not fence and (table is not None or "<table" in line):
            table = [*(table or ()), line]
            if "</table>" in line:
                lines.extend(("", " ".join(part.strip() if number else part for number, part in enumerate(table)), ""))
                table = None
            continue
        lines.append(line if fence else _LINK.sub(r"\1", line))
    return "\n".join((*lines, *(formula or ()), *(table or ())))


def _fenced(formula: Sequence[str]) -> Iterator[str]:
    indent = formula[0][: len(formula[0]) - len(formula[0].lstrip())]
    yield ""
    yield f"{indent}```math"
    yield from (indent + line.strip() for line in formula[1:-1])
    yield f"{indent}```"


@dataclass(slots=True)
class _Reader:
    """Walks the tree in document order with the product marks that are open."""

    name: str
    marks: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    places: int = 0

    @property
    def products(self) -> Products:
        """What all open marks have in common."""
        found: Products = None
        for _, products in self.marks:
            found = products if found is None else tuple(item for item in found if item in products)
        return found

    def blocks(self, node: LexborNode, depth: int = 0) -> Iterator[Block]:
        """The blocks below a node."""
        words = _Words(self)
        for child in self._children(node, depth):
            tag = child.tag or ""
            if child.is_comment_node:
                # A mark that begins or ends within a line: what is on its two sides may be for different products.
                yield from words.taken()
                continue
            if tag in _SKIPPED:
                continue
            if re.fullmatch("h[1-6]", tag):
                yield from words.taken()
                yield Heading(int(tag[1]), _joined(self._inline(child, depth + 1)))
            elif tag == "table":
                yield from words.taken()
                yield self._table(child, depth + 1)
            elif tag == "pre":
                yield from words.taken()
                yield Listing(child.text().rstrip("\n"), self.products)
            elif tag == "br":
                yield from words.taken()
            elif tag in _BREAKS:
                yield from words.taken()
                yield from self.blocks(child, depth + 1)
            else:
                words.add(self._inline(child, depth + 1))
        yield from words.taken()

    def _children(self, node: LexborNode, depth: int) -> Iterator[LexborNode]:
        """The children of a node; the products of a mark are in force from the comment on."""
        if depth > DEEPEST:
            raise UsageError(f"{self.name}: its lists or tables are nested deeper than {DEEPEST} levels; flatten them")
        child = node.first_child
        while child is not None:
            if child.is_comment_node:
                self._mark(child.comment_content or "")
            yield child
            child = child.next

    def _mark(self, comment: str) -> None:
        comment = comment.strip()
        if (opened := _OPENS.match(comment)) is not None:
            words = [word.strip() for word in opened[1].split(",")]
            self.remarks.extend(f"product mark {quote(word)} is not known" for word in words if word not in MARKS)
            self.marks.append((opened[2], tuple(MARKS[word] for word in words if word in MARKS)))
        elif (ended := _ENDS.match(comment)) is not None:
            numbers = [number for number, (mark, _) in enumerate(self.marks) if mark == ended[1]]
            if numbers:
                del self.marks[numbers[-1]]
            else:
                self.remarks.append(f"product mark {quote(ended[1])} ends and never began")

    def _inline(self, node: LexborNode, depth: int) -> str:
        """The text of a node, `<sub>` as `_`, `<sup>` as `^`."""
        if node.is_text_node:
            return node.text() or ""
        if node.is_comment_node or node.tag in _SKIPPED:
            return ""
        text = "".join(self._inline(child, depth + 1) for child in self._children(node, depth))
        return f"_{text}" if node.tag == "sub" else f"^{text}" if node.tag == "sup" else text

    def _table(self, node: LexborNode, depth: int) -> Table:
        rows: list[list[TableCell]] = []
        spans: dict[tuple[int, int], TableCell] = {}
        for row in self._rows(node, depth):
            cells: list[TableCell] = []
            number = len(rows)
            for cell in self._children(row, depth):
                if cell.tag not in ("td", "th"):
                    continue
                while (number, len(cells)) in spans:
                    cells.append(spans.pop((number, len(cells))))
                made = TableCell(tuple(item for item in self._cell(cell, depth + 1) if isinstance(item, DocumentLine)))
                again = TableCell(made.lines, is_origin=False)
                wide, high = _span(cell, "colspan"), _span(cell, "rowspan")
                self.places += wide * high
                if self.places > MOST_PLACES:
                    raise UsageError(
                        f"{self.name}: its cells span more than {MOST_PLACES} places; expected one document"
                    )
                first = len(cells)
                cells.extend((made, *(again,) * (wide - 1)))
                spans |= {(number + down, first + right): again for down in range(1, high) for right in range(wide)}
            while (number, len(cells)) in spans:
                cells.append(spans.pop((number, len(cells))))
            rows.append(cells)
        return Table(tuple(tuple(row) for row in rows if row))

    def _rows(self, node: LexborNode, depth: int) -> Iterator[LexborNode]:
        for child in self._children(node, depth):
            if child.tag == "tr":
                yield child
            elif child.tag in ("thead", "tbody", "tfoot"):
                yield from self._rows(child, depth + 1)

    def _cell(self, node: LexborNode, depth: int) -> Iterator[Block]:
        for block in self.blocks(node, depth):
            if isinstance(block, Table):
                yield from (line for row in block.rows for cell in row if cell.is_origin for line in cell.lines)
            elif isinstance(block, (Heading, Listing)):
                yield DocumentLine(_joined(block.text), self.products)
            else:
                yield block


@dataclass(slots=True)
class _Words:
    """Gathers inline text until a block ends it."""

    reader: _Reader
    text: str = ""
    products: Products = None

    def add(self, text: str) -> None:
        if not self.text.strip():
            self.products = self.reader.products
        self.text += text

    def taken(self) -> Iterator[DocumentLine]:
        text, self.text = _joined(self.text), ""
        if text:
            yield DocumentLine(text, self.products)


def _joined(text: str) -> str:
    return " ".join(_BOLD.sub(r"\1", text).replace("`", "").split())


def _span(cell: LexborNode, attribute: str) -> int:
    text = (cell.attributes.get(attribute) or "1").strip()
    return min(max(int(text), 1), _SPAN_LIMIT) if text.isascii() and text.isdigit() and len(text) < 5 else 1
