"""From a document in its public form to a `Document`: sections, prototype, parameter rows, error rows, addresses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aclnn_cts.authoring.blocks import (
    Block,
    DocumentLine,
    Heading,
    Listing,
    Products,
    Table,
    TableCell,
    products_named,
    read_blocks,
)
from aclnn_cts.authoring.model import CParameter, Document, ErrorRow, ParameterColumn, Row, Section, Statement
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outside import MARKDOWN_BYTES, read_outside
from aclnn_cts.core.printable import quote

CALL_POINTERS = ("workspaceSize", "executor")
"""The parameters at the end of every first phase."""
_RUN_PARAMETERS = frozenset({"workspace", "workspaceSize", "executor", "stream"})
"""The parameters of every second phase."""

_EXPECTED = "an operator's document in Markdown"
_OPERATOR = re.compile(r"aclnn[A-Za-z0-9]{1,100}\Z")
_PROTOTYPE = re.compile(r"aclnnStatus\s+(aclnn[A-Za-z0-9]{1,120})\s*\(([^()]{0,8000})\)")
_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_ ]*?[ *]+)([A-Za-z_][A-Za-z0-9_]*)\Z")
_HEADER = re.compile(r'#include\s+["<](aclnnop/[A-Za-z0-9_]{1,100}\.h)[">]')
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LISTED_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*[(（][^()（）]*[)）]\s*[:：]\s*(.*)\Z", re.DOTALL)
_LISTED_CODE = re.compile(r"(?:返回\s*)?(\d{6})\s*[(（]\s*(ACLNN_[A-Z_]+)\s*[)）]\s*[:：]?\s*")
_NUMBERED = re.compile(r"(?:\A|(?<=[\s。；;]))\d{1,2}[.、]\s*")
_STATUS = re.compile(r"ACLNN_[A-Z_]+")
_NOTHING = frozenset({"", "-", "—", "–", "/", "－"})
_UNSUPPORTED = ("不支持", "×", "not supported")
_SUPPORTED = ("支持", "√", "supported", "yes")

_SECTIONS = {
    "产品支持情况": Section.PRODUCTS,
    "支持的产品型号": Section.PRODUCTS,
    "功能说明": Section.FUNCTION,
    "功能描述": Section.FUNCTION,
    "函数原型": Section.PROTOTYPE,
    "接口原型": Section.PROTOTYPE,
    "约束说明": Section.LIMITS,
    "约束与限制": Section.LIMITS,
    "调用示例": Section.EXAMPLE,
}
_LABELS = {"参数说明": Section.PARAMS, "返回值": Section.RETURNS}
_COLUMNS = {
    "输入/输出": ParameterColumn.ROLE,
    "描述": ParameterColumn.DESCRIPTION,
    "使用说明": ParameterColumn.USAGE,
    "数据类型": ParameterColumn.DTYPE,
    "数据格式": ParameterColumn.FORMAT,
    "维度": ParameterColumn.RANK,
    "非连续": ParameterColumn.STRIDED,
}


def read_document(path: Path) -> Document:
    """Read a document's file; UsageError where it cannot be read or is no operator's document."""
    raw = read_outside(path, limit=MARKDOWN_BYTES, expected=_EXPECTED)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    return parse_document(text, name=str(path), sha256=hashlib.sha256(raw).hexdigest())


def parse_document(text: str, *, name: str, sha256: str | None = None) -> Document:
    """Take a document's text apart; UsageError where it has no title that names an operator."""
    blocks, remarks = read_blocks(text.replace("\r\n", "\n").replace("\r", "\n"), name=name)
    title = next((block.text for block in blocks if isinstance(block, Heading)), "")
    if _OPERATOR.match(title) is None:
        raise UsageError(
            f"{name}: its first heading is {quote(title)}; expected the C name of an operator, such as "
            f"`# aclnnTanhBackward`"
        )
    reader = _Reader(operator=title, remarks=list(remarks))
    for block in blocks:
        reader.take(block)
    return Document(
        name=name,
        sha256=sha256 or hashlib.sha256(text.encode()).hexdigest(),
        operator=title,
        header=reader.header,
        products=reader.products,
        parameters=reader.parameters,
        rows={row: Row(row, {key: tuple(cell) for key, cell in cells.items()}) for row, cells in reader.rows.items()},
        errors=tuple(reader.errors),
        statements=tuple(reader.statements),
        remarks=tuple(reader.remarks),
    )


@dataclass(slots=True)
class _Reader:
    """Takes blocks in order; the headings and labels before a block say what it is."""

    operator: str
    remarks: list[str]
    section: Section | None = None
    label: Section | None = None
    header: str | None = None
    products: dict[str, bool] = field(default_factory=dict)
    parameters: tuple[CParameter, ...] = ()
    rows: dict[str, dict[ParameterColumn, list[Statement]]] = field(default_factory=dict)
    errors: list[ErrorRow] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)
    parameter: str | None = None
    """The parameter that list items below its own item are about."""

    def take(self, block: Block) -> None:
        """Read one block."""
        if isinstance(block, Heading):
            self._heading(block)
        elif self.section is None:
            return
        elif isinstance(block, Table):
            self._table(block)
        elif isinstance(block, Listing):
            self._listing(block)
        else:
            self._line(block)

    def _heading(self, block: Heading) -> None:
        word = block.text.replace(" ", "")
        self.label = self.parameter = None
        if word == f"{self.operator}GetWorkspaceSize":
            self.section = Section.PARAMS
        elif word == self.operator:
            self.section = Section.PHASE2 if block.level > 1 else None
        elif word in _SECTIONS:
            self.section = _SECTIONS[word]
        elif self.section is not None:
            self._add(self._numbered(self._place()), block.text, None)

    def _place(self) -> str:
        """Where a remark belongs that is in no cell."""
        if self.section is None:
            raise TypeError("a block before the first section is not read")
        if self.section in (Section.PARAMS, Section.PHASE2) and self.label is Section.RETURNS:
            return "phase2/returns" if self.section is Section.PHASE2 else Section.RETURNS.value
        return f"{self.section.value}/note" if self.section is Section.PARAMS else self.section.value

    def _numbered(self, place: str) -> str:
        self.numbers[place] = self.numbers.get(place, 0) + 1
        return f"{place}/{self.numbers[place]}"

    def _add(self, address: str, text: str, products: Products) -> Statement | None:
        if text.strip() in _NOTHING:
            return None
        statement = Statement(address, text.strip(), products)
        self.statements.append(statement)
        return statement

    def _line(self, line: DocumentLine) -> None:
        label = _LABELS.get(re.sub(r"[\s:：*]", "", line.text))
        if label is not None:
            self.label, self.parameter = label, None
            return
        if self.section is Section.PRODUCTS:
            self._product(line.text, line.text, line.products)
            return
        if self.section is Section.PROTOTYPE and _PROTOTYPE.search(line.text) is not None:
            self._prototypes(Listing(line.text, line.products))
            return
        if self.section is Section.PARAMS and self.label is not Section.RETURNS and self._listed_parameter(line):
            return
        if self.section is Section.PHASE2 and self.label is not Section.RETURNS and self._listed_pointer(line):
            return
        if self.label is Section.RETURNS and _LISTED_CODE.search(line.text) is not None:
            self._listed_errors(line)
            return
        self._add(self._numbered(self._place()), line.text, line.products)

    def _product(self, named: str, verdict: str, products: Products) -> None:
        found = products if products is not None else products_named(named)
        supported = not any(word in verdict for word in _UNSUPPORTED) and any(word in verdict for word in _SUPPORTED)
        if not found:
            self._add(self._numbered(Section.PRODUCTS.value), f"{named} {verdict}" if verdict != named else named, None)
            return
        for product in found:
            address = f"{Section.PRODUCTS.value}/{product}"
            self.numbers[address] = self.numbers.get(address, 0) + 1
            if self.numbers[address] > 1:
                address = f"{address}/{self.numbers[address]}"
            self.products[product] = self.products.get(product, False) or supported
            self._add(address, named if named == verdict else f"{named} {verdict}", (product,))

    def _listing(self, listing: Listing) -> None:
        if self.section is Section.PROTOTYPE:
            self._prototypes(listing)
            return
        if self.section is Section.EXAMPLE:
            found = _HEADER.search(listing.text)
            self.header = self.header or (found[1] if found is not None else None)
            self._add(self._numbered("example/code"), listing.text, listing.products)
            return
        lines = [line.strip() for line in listing.text.split("\n") if line.strip()]
        if self.label is Section.RETURNS and any(_LISTED_CODE.search(line) for line in lines):
            for line in lines:
                self._listed_errors(DocumentLine(line, listing.products))
            return
        self._add(self._numbered(self._place()), listing.text, listing.products)

    def _prototypes(self, listing: Listing) -> None:
        for found in _PROTOTYPE.finditer(listing.text):
            name, inside = found.groups()
            first = name == f"{self.operator}GetWorkspaceSize"
            if not first and name != self.operator:
                self.remarks.append(f"prototype of another function, {quote(name)}")
                continue
            parameters = tuple(self._parameters(inside))
            phase = "prototype/phase1" if first else "prototype/phase2"
            if first and not self.parameters:
                self.parameters = tuple(item for item in parameters if item.name not in CALL_POINTERS)
            elif f"{phase}/{parameters[0].name if parameters else ''}" in {item.address for item in self.statements}:
                self.remarks.append(f"a second prototype of {name}")
                continue
            for item in parameters:
                self._add(f"{phase}/{item.name}", f"{item.type} {item.name}", listing.products)

    def _parameters(self, inside: str) -> Iterator[CParameter]:
        for number, word in enumerate(re.sub(r"//[^\n]*", "", inside).split(","), start=1):
            found = _declared(word)
            if found is None:
                self.remarks.append(f"parameter {number} of the prototype, {quote(word.strip())}, cannot be read")
                continue
            if len(found) > 1:
                self.remarks.append(f"a comma is missing in the prototype, behind parameter {number}")
            for declaration in found:
                words = declaration[1].replace("*", " * ").split()
                stars = words.count("*")
                bare = " ".join(word for word in words if word != "*")
                yield CParameter(declaration[2], f"{bare} {'*' * stars}".strip())

    def _table(self, table: Table) -> None:
        head = table.head
        if not table.rows:
            return
        if self.section is Section.PRODUCTS:
            for row in table.rows[1:]:
                if len(row) > 1:
                    self._product(row[0].text, row[1].text, row[0].lines[0].products if row[0].lines else None)
        elif self.section is Section.PARAMS and "参数名" in head and "数据类型" in head:
            self._parameter_table(table)
        elif "错误码" in head and len(head) >= 3:
            self._error_table(table)
        elif self.section is Section.PHASE2 and "参数名" in head:
            self._phase2_table(table)
        else:
            self._other_table(table)

    def _cells(self, row: Sequence[TableCell], head: Sequence[str]) -> Iterator[tuple[ParameterColumn, TableCell]]:
        for word, cell in zip(head, row, strict=False):
            column = next((column for start, column in _COLUMNS.items() if word.startswith(start)), None)
            if column is not None:
                yield column, cell

    def _parameter_table(self, table: Table) -> None:
        for row in table.rows[1:]:
            found = _NAME.match(row[0].text.strip())
            if found is None:
                self.remarks.append(f"a row of the parameter table names {quote(row[0].text)}; expected a parameter")
                continue
            for column, cell in self._cells(row, table.head):
                self._cell(found[0], column, cell.lines if cell.is_origin else ())
        names = {item.name for item in self.parameters}
        for name in self.rows:
            if names and name not in names and name not in CALL_POINTERS:
                self.remarks.append(f"the parameter table describes {quote(name)}, which the prototype lacks")
        for name in (item.name for item in self.parameters):
            if name not in self.rows:
                self.remarks.append(f"the parameter table lacks {quote(name)} of the prototype")

    def _cell(self, name: str, column: ParameterColumn, lines: Sequence[DocumentLine]) -> None:
        cell = self.rows.setdefault(name, {}).setdefault(column, [])
        for line in lines:
            address = f"params/{name}/{column.value}"
            number = len(cell) + 1
            statement = self._add(address if number == 1 else f"{address}/{number}", line.text, line.products)
            if statement is not None:
                cell.append(statement)

    def _listed_parameter(self, line: DocumentLine) -> bool:
        """Whether an item of a list, as the oldest form has it instead of a table, describes a parameter."""
        found = _LISTED_PARAMETER.match(line.text)
        if found is not None and found[1] in {*(item.name for item in self.parameters), *CALL_POINTERS}:
            self.parameter = found[1]
            self._cell(found[1], ParameterColumn.DESCRIPTION, (DocumentLine(found[2], line.products),))
            return True
        if self.parameter is not None:
            self._cell(self.parameter, ParameterColumn.DESCRIPTION, (line,))
            return True
        return False

    def _listed_pointer(self, line: DocumentLine) -> bool:
        """Whether an item of a list describes a parameter of the second phase."""
        found = _LISTED_PARAMETER.match(line.text)
        if found is None or found[1] not in _RUN_PARAMETERS:
            return False
        address = f"{Section.PHASE2.value}/{found[1]}/{ParameterColumn.DESCRIPTION.value}"
        return self._add(address, found[2], line.products) is not None

    def _error_table(self, table: Table) -> None:
        for row in table.rows[1:]:
            if len(row) < 3:
                continue
            code = row[1].text.strip()
            found = _STATUS.search("".join(row[0].text.split()))
            status = found[0] if found is not None else "OTHER"
            if row[1].is_origin:
                address = f"errors/{status}/code"
                self._add(address if address not in self.numbers else self._numbered(address), code, None)
                self.numbers.setdefault(address, 1)
            for line in row[2].lines if row[2].is_origin else ():
                self._error(status, code, line)

    def _error(self, status: str, code: str, line: DocumentLine) -> None:
        statement = self._add(self._numbered(f"errors/{status}"), line.text, line.products)
        if statement is not None:
            number = int(code) if code.isascii() and code.isdigit() and len(code) < 10 else None
            self.errors.append(ErrorRow(status, number, statement))

    def _listed_errors(self, line: DocumentLine) -> None:
        """`返回161002(ACLNN_ERR_PARAM_INVALID)：1. ... 2. ...`, as the oldest form has it.

        Later lines add to the last code.
        """
        found = _LISTED_CODE.search(line.text)
        if found is None and not self.errors:
            self._add(self._numbered(self._place()), line.text, line.products)
            return
        status = found[2] if found is not None else self.errors[-1].status
        code = found[1] if found is not None else str(self.errors[-1].code or "")
        for text in _NUMBERED.split(line.text[found.end() :] if found is not None else line.text):
            if text.strip():
                self._error(status, code, DocumentLine(text.strip(), line.products))

    def _phase2_table(self, table: Table) -> None:
        for row in table.rows[1:]:
            found = _NAME.match(row[0].text.strip())
            for column, cell in self._cells(row, table.head) if found is not None else ():
                for number, line in enumerate(cell.lines if cell.is_origin else (), start=1):
                    address = f"phase2/{found[0]}/{column.value}" if found is not None else ""
                    self._add(address if number == 1 else f"{address}/{number}", line.text, line.products)

    def _other_table(self, table: Table) -> None:
        """Any other table: cells by number, and what a head restricts to products holds for its column."""
        place = self._place()
        self.tables[place] = self.tables.get(place, 0) + 1
        columns = [products_named(cell.text) or None for cell in table.rows[0]]
        for down, row in enumerate(table.rows, start=1):
            for right, cell in enumerate(row, start=1):
                for number, line in enumerate(cell.lines if cell.is_origin else (), start=1):
                    address = f"{place}/table{self.tables[place]}/r{down}/c{right}"
                    products = line.products if down == 1 else line.products or _spanned(row, right - 1, columns)
                    self._add(address if number == 1 else f"{address}/{number}", line.text, products)


def _spanned(row: Sequence[TableCell], first: int, columns: Sequence[Products]) -> Products:
    """The products of the columns that a cell is in; None where one of them is for all."""
    last = first + 1
    while last < len(row) and not row[last].is_origin and row[last].lines is row[first].lines:
        last += 1
    found = columns[first:last]
    if not found or any(products is None for products in found):
        return None
    return tuple(dict.fromkeys(product for products in found for product in products or ()))


def _declared(text: str) -> list[re.Match[str]] | None:
    """The parameter that a text declares, or one in each line where a comma was forgotten; None where there is none."""
    for parts in ([text], [line for line in text.split("\n") if line.strip()]):
        found = [_PARAMETER.match(" ".join(part.split())) for part in parts]
        matched = [item for item in found if item is not None]
        if matched and len(matched) == len(found):
            return matched
    return None
