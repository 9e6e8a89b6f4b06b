"""The form of `products.yaml` and of compute models, and what the forms of all files have in common, as structs.

`speclang.form` holds what is written to them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct

Scalar: TypeAlias = bool | int | float | str
"""A literal, or (a string) an expression."""


Names: TypeAlias = list[str]


_KEYS = {f"{word}_": word for word in ("as", "format", "from", "in", "is", "open")}
"""Fields whose key is a word of Python's own."""


class FileEntry(Struct, frozen=True, forbid_unknown_fields=True, rename=_KEYS):
    """What a mapping of a file may hold."""


FileModel = TypeVar("FileModel", bound=FileEntry)
"""The form of a whole file."""


class Bilingual(FileEntry, frozen=True, kw_only=True):
    """A text of ours in both languages."""

    en: str
    zh: str


Basis: TypeAlias = Literal["assumed", "published", "document"]
"""On what a statement of a compute model rests, from the weakest to the strongest."""


StoredFormat: TypeAlias = Literal[
    "FLOAT8_E5M2", "FLOAT8_E4M3FN", "FLOAT8_E8M0", "HIFLOAT8",
    "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64",
]  # fmt: skip
"""Dtypes of outputs that nothing is computed in."""


ResultFormat: TypeAlias = Literal["FLOAT", "FLOAT16", "BF16", "DOUBLE"]


FunctionName: TypeAlias = Literal["div", "erf", "erfc", "exp", "log", "sigmoid", "softplus", "sqrt", "tanh"]


_OperandFormat: TypeAlias = Literal["FLOAT", "FLOAT16", "BF16", "DOUBLE", "HFLOAT32"]


class _Statement(FileEntry, frozen=True, kw_only=True):
    basis: Basis
    source: str


class PrecisionOperandModel(_Statement, frozen=True, kw_only=True):
    """What operands may be rounded to before they are used."""

    from_: Literal["storage", "mode"]


class PrecisionAccumulationModel(_Statement, frozen=True, kw_only=True):
    """What intermediates are kept in."""

    format: ResultFormat
    rounding: Literal["nearest", "truncation"]


class PrecisionResultModel(_Statement, frozen=True, kw_only=True):
    """What the result may pass through on its way to the output."""

    from_: Literal["accumulation", "operand", "input"]


class PrecisionOutputModel(_Statement, frozen=True, kw_only=True):
    """The last rounding."""

    rounding: Literal["nearest", "truncation"]


class PrecisionSubnormalsModel(_Statement, frozen=True, kw_only=True):
    """What becomes of numbers below the normal range."""

    compute: Literal["kept", "may_flush"]
    result: Literal["kept", "may_flush"]


class PrecisionRepeatableModel(_Statement, frozen=True, kw_only=True):
    """Whether the same call gives the same bits."""

    when: Literal["always", "deterministic", "never"]
    unless: str | None = None
    source_zh: str = ""


class PrecisionFunctionModel(_Statement, frozen=True, kw_only=True):
    """How far an elementary function may be from the exact one; the sum of the three counts."""

    ulps: float = 0.0
    absolute: float = 0.0
    relative: float = 0.0


class PrecisionModel(FileEntry, frozen=True, kw_only=True):
    """One entry of compute models: what it is for (everything, where a selector is left out) and what it says."""

    operator: str | None = None
    outputs: Names | None = None
    products: Names | None = None
    dtypes: list[ResultFormat | StoredFormat] | None = None
    operands: list[_OperandFormat] | None = None
    operand: PrecisionOperandModel | None = None
    accumulation: PrecisionAccumulationModel | None = None
    result: PrecisionResultModel | None = None
    output: PrecisionOutputModel | None = None
    subnormals: PrecisionSubnormalsModel | None = None
    repeatable: PrecisionRepeatableModel | None = None
    functions: dict[FunctionName, PrecisionFunctionModel] = {}


PRECISION_SECTIONS = ("operand", "accumulation", "result", "output", "subnormals", "repeatable")
"""What an entry of compute models may say; its other fields say what it is for."""


class PrecisionSignificandModel(_Statement, frozen=True, kw_only=True):
    """Significand bits of an operand format that a bound may count on."""

    bits: int


class PrecisionFileModel(FileEntry, frozen=True, kw_only=True):
    """`precision.yaml`: the compute models of all operators."""

    format: Literal["aclnn-cts/precision/1"]
    significands: dict[str, PrecisionSignificandModel] = {}
    models: list[PrecisionModel]


class SocModel(FileEntry, frozen=True, kw_only=True):
    """The full SoC names of a product, and how others are told to be of it."""

    names: Names
    exact: Names
    prefixes: Names


class CoresModel(FileEntry, frozen=True, kw_only=True):
    """Cores of one SoC; null where they are not counted apart."""

    ai: int
    vector: int | None


class OverflowModel(FileEntry, frozen=True, kw_only=True):
    """What becomes of an overflow, and what it can be set to."""

    default: Literal["saturation", "infnan"]
    modes: list[Literal["saturation", "infnan"]]


class ProductModel(FileEntry, frozen=True, kw_only=True):
    """One product: its chips and what the rules of documents depend on."""

    title: Bilingual
    short_soc: str
    npu_arch: int
    soc: SocModel
    cores: dict[str, CoresModel]
    overflow: OverflowModel
    bf16: bool
    note: Bilingual | None = None


class ProductsModel(FileEntry, frozen=True, kw_only=True):
    """`products.yaml`: the closed list of products."""

    products: dict[str, ProductModel]
