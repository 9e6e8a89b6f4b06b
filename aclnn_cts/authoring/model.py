"""A document in its public form, taken apart: what it says of the call, and every statement with an address."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

_SAME = str.maketrans("，：；（）！？", ",:;()!?")
_DIGITS = 8


class Section(str, Enum):
    """The first word of an address: where in a document a statement is."""

    PRODUCTS = "products"
    FUNCTION = "function"
    PROTOTYPE = "prototype"
    PARAMS = "params"
    ERRORS = "errors"
    RETURNS = "returns"
    PHASE2 = "phase2"
    LIMITS = "limits"
    EXAMPLE = "example"


class ParameterColumn(str, Enum):
    """A column of the parameter table."""

    ROLE = "role"
    DESCRIPTION = "description"
    USAGE = "usage"
    DTYPE = "dtype"
    FORMAT = "format"
    RANK = "rank"
    STRIDED = "strided"


@dataclass(frozen=True, slots=True)
class Statement:
    """One table cell, list item, error row or remark."""

    address: str
    """`params/self/dtype`, `errors/ACLNN_ERR_PARAM_INVALID/2`, `limits/3`."""
    text: str
    products: tuple[str, ...] | None = None
    """The products that a mark or the text itself restricts it to; None: all."""

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits over products and text; blanks and the width of punctuation do not count."""
        products = "*" if self.products is None else ",".join(sorted(self.products))
        text = "".join(self.text.split()).translate(_SAME)
        return hashlib.sha256(f"{products}\n{text}".encode()).hexdigest()[:_DIGITS]

    @property
    def reference(self) -> str:
        """Address and digest, as a claims file writes them."""
        return f"{self.address}#{self.digest}"

    @property
    def section(self) -> Section:
        """The section that its address opens with."""
        return Section(self.address.partition("/")[0])

    def applies_to(self, product: str) -> bool:
        """Whether it is stated for a product."""
        return self.products is None or product in self.products


@dataclass(frozen=True, slots=True)
class CParameter:
    """One parameter of a C prototype."""

    name: str
    type: str
    """As specs write it: `const aclTensor *`, `int64_t`."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the parameter table says of one parameter; a column without a statement is left out."""

    name: str
    cells: Mapping[ParameterColumn, tuple[Statement, ...]]

    def text(self, column: ParameterColumn) -> str:
        """The lines of a cell, empty where it says nothing."""
        return "\n".join(statement.text for statement in self.cells.get(column, ()))


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One condition of the error table, and the status that it is promised."""

    status: str
    code: int | None
    statement: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document: the call that it describes, and its statements in order."""

    name: str
    """How messages call its file."""
    sha256: str
    operator: str
    header: str | None
    products: Mapping[str, bool]
    """By product: whether the document calls it supported. What it does not name is missing."""
    parameters: tuple[CParameter, ...]
    """Of the first phase, without the two pointers at its end; empty where no prototype could be read."""
    rows: Mapping[str, Row]
    errors: tuple[ErrorRow, ...]
    statements: tuple[Statement, ...]
    remarks: tuple[str, ...]
    """What could not be read as its form promises, such as a product mark that never ends."""
