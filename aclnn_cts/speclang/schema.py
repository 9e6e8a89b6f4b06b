"""The form of a spec file: pydantic models, which report every mistake at once with its path.

Only the form is settled here. Expressions, names and the relations between entries are the business of
`speclang.build`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
"""A literal, or (a string) an expression."""
Assigned = Scalar | list[StrictInt | StrictStr]
"""What a break assigns: a value, an expression, or the sizes of a run."""
Names = list[StrictStr]
ByProduct = dict[StrictStr, Names]
Bounds = Annotated[list[Scalar | None], Field(min_length=2, max_length=2)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


FileModel = TypeVar("FileModel", bound=_Strict)
"""The form of a whole file."""


class Bilingual(_Strict):
    """A text of ours in both languages."""

    en: StrictStr
    zh: StrictStr


class DocumentModel(_Strict):
    """The document that a file encodes, and which edition of it."""

    title: StrictStr
    language: Literal["zh", "en"]
    sha256: Annotated[StrictStr, Field(pattern="^[0-9a-f]{64}$")] | None = None
    edition: StrictStr | None = None


class ShortDocumentModel(DocumentModel):
    """The same, where the title may be the operator's name."""

    title: StrictStr | None = None  # type: ignore[assignment]  # wider


class ParameterModel(_Strict):
    """One parameter of the C prototype, and how a valid argument for it is made."""

    name: Annotated[StrictStr, Field(pattern="^[A-Za-z_][A-Za-z_0-9]*$")]
    type: StrictStr
    role: Literal["input", "output", "inout", "attribute"]
    shape: StrictStr | None = None
    items: StrictStr | None = None
    length: Scalar | None = None
    dtypes: StrictStr | Names | ByProduct | None = None
    dtype: StrictStr | None = None
    formats: Names | ByProduct | None = None
    format: StrictStr | None = None
    layouts: Any = None
    strided: StrictBool = False
    optional: StrictBool | StrictStr = False
    present: Scalar | None = None
    data: dict[Literal["exact", "realistic", "hostile"], list[dict[StrictStr, Scalar]]] = {}


class DrawModel(_Strict):
    """One free or derived name of generation."""

    name: StrictStr | None = None
    run: StrictStr | None = None
    in_: Bounds | None = Field(default=None, alias="in")
    is_: Scalar | None = Field(default=None, alias="is")
    one_of: list[Scalar] | None = None
    length: Bounds | None = None
    sizes: Bounds | None = None
    numel: StrictStr | None = None
    total: StrictStr | None = None
    broadcasts_with: StrictStr | None = None


class ModesModel(_Strict):
    """An attribute that chooses the compute precision."""

    attribute: StrictStr
    by: StrictStr
    names: dict[StrictStr, StrictStr]
    operand: dict[StrictStr, dict[StrictStr, list[StrictStr | None]]]


class ShortModesModel(ModesModel):
    """The same, where one dtype may stand for all modes."""

    operand: dict[StrictStr, dict[StrictStr, list[StrictStr | None] | StrictStr | None]]  # type: ignore[assignment]  # wider


class _Constraint(_Strict):
    id: Annotated[StrictStr, Field(pattern=r"^[A-Za-z_][A-Za-z_0-9.\-]*$")]
    of: StrictStr | StrictInt | Names | None = None
    as_: StrictStr | None = Field(default=None, alias="as")
    in_: StrictStr | list[Any] | ByProduct | None = Field(default=None, alias="in")
    is_: Scalar | None = Field(default=None, alias="is")
    that: StrictStr | None = None
    axis: StrictInt | None = None
    axes: list[StrictInt] | None = None
    draw: StrictStr | None = None
    status: StrictStr | Names | None = None
    products: Names | None = None
    when: StrictStr | None = None
    requires: Names = []
    also: Names = []
    group: StrictStr | None = None
    breaks: list[dict[StrictStr, Assigned]] = []
    limits: list[dict[StrictStr, Assigned]] = []
    unsafe: StrictStr | None = None


class ConstraintModel(_Constraint):
    """One documented rule; which fields a kind reads is checked by `speclang.kinds`."""

    kind: StrictStr
    strength: Literal["listed", "limit", "open", "accuracy"]


class ShortConstraintModel(_Constraint):
    """One documented rule whose kind, parameter, strength and requirements may follow from the rest."""

    follows: StrictStr | None = None
    products: Names | StrictStr | None = None  # type: ignore[assignment]  # wider
    requires: Names | StrictStr = []  # type: ignore[assignment]  # wider
    also: Names | StrictStr = []  # type: ignore[assignment]  # wider
    kind: StrictStr | None = None
    strength: Literal["listed", "limit", "open", "accuracy"] | None = None


class ConstraintsModel(_Strict):
    """All rules of a file, those that properties imply among them."""

    constraints: list[ConstraintModel]


class ClauseModel(_Strict):
    """One statement of the document, with exactly one way in which it is encoded."""

    at: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$")]
    en: StrictStr
    zh: StrictStr
    certainty: Literal["stated", "ambiguous", "contradicted", "missing"] = "stated"
    constraints: Names | None = None
    check: StrictStr | None = None
    when: StrictStr | None = None
    output: StrictStr | None = None
    faults: Names | None = None
    interface: StrictStr | None = None
    example: StrictStr | None = None
    untestable: Bilingual | None = None
    contradicts: Names = []
    products: Names | None = None


class ExampleModel(_Strict):
    """A worked example of the document, as the arguments of a case file."""

    name: StrictStr
    at: StrictStr
    product: StrictStr | None = None
    arguments: dict[StrictStr, Any]


class AtkArgumentModel(_Strict):
    """What takes the place of an argument that ATK case files declare, or lack."""

    shape: StrictStr | None = None
    dtype: StrictStr | None = None
    data: dict[StrictStr, Scalar] | None = None
    items: StrictStr | None = None
    value: Scalar | None = None


class AtkModel(_Strict):
    """How ATK case files of the operator differ from its prototype, and what their executors put in place of it."""

    names: dict[StrictStr, StrictStr] = {}
    others: Names = []
    format: StrictStr | None = None
    arguments: dict[StrictStr, AtkArgumentModel] = {}


Basis: TypeAlias = Literal["assumed", "published", "document"]
"""On what a statement of a compute model rests, from the weakest to the strongest."""
ResultFormat: TypeAlias = Literal["FLOAT", "FLOAT16", "BF16", "DOUBLE"]
FunctionName: TypeAlias = Literal["div", "erf", "erfc", "exp", "log", "sigmoid", "softplus", "sqrt", "tanh"]
_OperandFormat: TypeAlias = Literal["FLOAT", "FLOAT16", "BF16", "DOUBLE", "HFLOAT32"]


class _Statement(_Strict):
    basis: Basis
    source: StrictStr


class PrecisionOperandModel(_Statement):
    """What operands may be rounded to before they are used."""

    from_: Literal["storage", "mode"] = Field(alias="from")


class PrecisionAccumulationModel(_Statement):
    """What intermediates are kept in."""

    format: ResultFormat
    rounding: Literal["nearest", "truncation"]


class PrecisionResultModel(_Statement):
    """What the result may pass through on its way to the output."""

    from_: Literal["accumulation", "operand", "input"] = Field(alias="from")


class PrecisionOutputModel(_Statement):
    """The last rounding."""

    rounding: Literal["nearest", "truncation"]


class PrecisionSubnormalsModel(_Statement):
    """What becomes of numbers below the normal range."""

    compute: Literal["kept", "may_flush"]
    result: Literal["kept", "may_flush"]


class PrecisionRepeatableModel(_Statement):
    """Whether the same call gives the same bits."""

    when: Literal["always", "deterministic", "never"]
    source_zh: StrictStr = ""


class PrecisionFunctionModel(_Statement):
    """How far an elementary function may be from the exact one; the sum of the three counts."""

    ulps: float = 0.0
    absolute: float = 0.0
    relative: float = 0.0


class PrecisionModel(_Strict):
    """One entry of compute models: what it is for (everything, where a selector is left out) and what it says."""

    operator: StrictStr | None = None
    outputs: Names | None = None
    products: Names | None = None
    dtypes: list[ResultFormat | Literal["FLOAT8_E5M2", "FLOAT8_E4M3FN", "FLOAT8_E8M0", "HIFLOAT8"]] | None = None
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


class PrecisionSignificandModel(_Statement):
    """Significand bits of an operand format that a bound may count on."""

    bits: StrictInt


class PrecisionFileModel(_Strict):
    """`precision.yaml`: the compute models of all operators."""

    format: Literal["aclnn-cts/precision/1"]
    significands: dict[StrictStr, PrecisionSignificandModel] = {}
    models: list[PrecisionModel]


class OpenModel(_Strict):
    """A place of a draft that a person has to settle, and the statements of the document to read for it."""

    at: Annotated[StrictStr, Field(pattern=r"^[a-z]+(\.[A-Za-z0-9_]+)*$")]
    read: Names = []


class _OperatorFile(_Strict):
    """What both forms of an operator file say alike."""

    operator: Annotated[StrictStr, Field(pattern="^aclnn[A-Za-z0-9]+$")]
    header: StrictStr | None = None
    document: DocumentModel
    products: Annotated[Names, Field(min_length=1)]
    tables: dict[StrictStr, ByProduct] = {}
    rows: dict[StrictStr, list[StrictStr | Names]] | None = None
    draws: list[DrawModel] = []
    modes: ModesModel | None = None
    open_: list[OpenModel] = Field(default=[], alias="open")
    claims: dict[StrictStr, Any] = {}
    precision: Annotated[list[PrecisionModel], Field(min_length=1)] | None = None
    atk: AtkModel | None = None


class OperatorModel(_OperatorFile):
    """A whole operator file in the full form: every constraint and every clause written out."""

    parameters: Annotated[list[ParameterModel], Field(min_length=1)]
    constraints: list[ConstraintModel]
    examples: list[ExampleModel] = []
    clauses: list[ClauseModel]


class ShortParameterModel(_Strict):
    """One parameter and its properties; `speclang.properties` checks their values."""

    name: Annotated[StrictStr, Field(pattern="^[A-Za-z_][A-Za-z_0-9]*$")]
    type: StrictStr
    role: Literal["input", "output", "inout", "attribute"] | None = None
    shape: StrictStr | None = None
    items: StrictStr | None = None
    dtype: StrictStr | None = None
    format: StrictStr | None = None
    optional: StrictBool | StrictStr = False
    present: Scalar | None = None
    data: dict[
        Literal["exact", "realistic", "hostile", "with"],
        list[StrictStr | dict[StrictStr, Scalar]] | dict[StrictStr, Scalar],
    ] = {}
    like: StrictStr | None = None
    null: Any = None
    dtypes: Any = None
    same_dtype_as: Any = None
    promotes_with: Any = None
    casts_from: Any = None
    formats: Any = None
    same_format_as: Any = None
    rank: Any = None
    layouts: Any = None
    broadcasts_with: Any = None
    same_shape_as: Any = None
    length: Any = None
    range: Any = None
    dims: Any = None
    words: Any = None
    strided: Any = None
    empty: Any = None


class ShortExampleModel(_Strict):
    """A worked example whose name, address and arguments may be short."""

    name: StrictStr = "document"
    at: StrictStr = "example.1"
    product: StrictStr | None = None
    arguments: dict[StrictStr, Any]


class CommonModel(_Strict):
    """What parameters have in common, in a spec in the short form and in a family of specs."""

    family: StrictStr | None = None
    let: dict[StrictStr, Scalar] = {}
    defaults: dict[StrictStr, Any] = {}
    first: dict[StrictStr, Any] = {}
    inputs: dict[StrictStr, Any] = {}
    outputs: dict[StrictStr, Any] = {}


class ShortOperatorModel(CommonModel, _OperatorFile):
    """A whole operator file in the short form: `speclang.expand` makes the full one of it."""

    document: ShortDocumentModel
    rows: dict[StrictStr, list[StrictStr | list[StrictStr | Names]]] | None = None  # type: ignore[assignment]  # wider
    modes: ShortModesModel | None = None
    let: dict[Annotated[StrictStr, Field(pattern="^[A-Za-z_][A-Za-z_0-9]*$")], Scalar] = {}
    sentences: dict[StrictStr, dict[StrictStr, Any] | list[StrictStr]] = {}
    parameters: Annotated[list[ShortParameterModel], Field(min_length=1)]
    constraints: list[ShortConstraintModel] = []
    examples: list[ShortExampleModel] = []
    clauses: dict[StrictStr, list[Any]] = {}


class FamilyModel(CommonModel):
    """`families/NAME.yaml`: what specs of one family have in common; `speclang.families` puts it in."""

    parameters: dict[StrictStr, dict[StrictStr, Any]] = {}
    draws: list[DrawModel] = []
    constraints: list[ShortConstraintModel] = []
    clauses: dict[StrictStr, list[Any]] = {}


class SentenceModel(_Strict):
    """A stock sentence: the fields of a clause without an address. Texts and conditions have placeholders."""

    implied: StrictBool = False
    en: StrictStr
    zh: StrictStr
    certainty: Literal["stated", "ambiguous", "contradicted", "missing"] = "stated"
    check: StrictStr | None = None
    when: StrictStr | None = None
    faults: Names | None = None
    interface: StrictStr | None = None
    example: StrictStr | None = None
    untestable: StrictStr | None = None


class WordingModel(_Strict):
    """`wording.yaml`: the stock sentences that the short form of a spec names by a word."""

    checks: dict[StrictStr, Names]
    reasons: dict[StrictStr, Bilingual]
    sections: dict[StrictStr, dict[StrictStr, SentenceModel]]
    series: dict[StrictStr, Names]
    takes: dict[Literal["product", "dtype", "dtype_on", "row", "rows", "format", "format_on", "word"], Bilingual]
    rules: dict[StrictStr, Bilingual]
    open_rules: dict[StrictStr, Bilingual]
    errors: dict[StrictStr, Bilingual]


class InterfaceModel(_Strict):
    """`interface.yaml`: what the documents say of the two phases, for every operator."""

    interface: StrictStr
    documents: list[DocumentModel] = []
    constraints: list[ConstraintModel] = []
    clauses: list[ClauseModel]


class SocModel(_Strict):
    """The full SoC names of a product, and how others are told to be of it."""

    names: Names
    exact: Names
    prefixes: Names


class CoresModel(_Strict):
    """Cores of one SoC; null where they are not counted apart."""

    ai: StrictInt
    vector: StrictInt | None


class OverflowModel(_Strict):
    """What becomes of an overflow, and what it can be set to."""

    default: Literal["saturation", "infnan"]
    modes: list[Literal["saturation", "infnan"]]


class ProductModel(_Strict):
    """One product: its chips and what the rules of documents depend on."""

    title: Bilingual
    short_soc: StrictStr
    npu_arch: StrictInt
    soc: SocModel
    cores: dict[StrictStr, CoresModel]
    overflow: OverflowModel
    bf16: StrictBool
    note: Bilingual | None = None


class ProductsModel(_Strict):
    """`products.yaml`: the closed list of products."""

    products: dict[StrictStr, ProductModel]
