"""The form of a spec file, and of the sentences and promises that specs share, as structs.

Only the form is settled here. Expressions, names and the relations between entries are the business of
`speclang.build`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta

from aclnn_cts.speclang.shared_schema import Bilingual, FileEntry, Names, PrecisionModel, Scalar

Assigned: TypeAlias = Scalar | list[int | str]
"""What a break assigns: a value, an expression, or the sizes of a run."""
ByProduct: TypeAlias = dict[str, Names]
Bounds: TypeAlias = Annotated[list[Scalar | None], Meta(min_length=2, max_length=2)]


class UntestableModel(Bilingual, frozen=True, kw_only=True):
    """Why no test can show a statement; `reason` is the word for it, where it is one of the stock reasons."""

    reason: str | None = None


class DocumentModel(FileEntry, frozen=True, kw_only=True):
    """A document, and which edition of it."""

    title: str
    language: Literal["zh", "en"]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None = None
    edition: str | None = None


class SpecDocumentModel(DocumentModel, frozen=True, kw_only=True):
    """The document that a spec encodes; without a title, that is the operator's name."""

    title: str | None = None  # type: ignore[assignment]  # wider


class ParameterModel(FileEntry, frozen=True, kw_only=True):
    """One parameter of the C prototype, how a valid argument for it is made, and its properties.

    `speclang.properties` checks the values of properties.
    """

    name: Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z_0-9]*$")]
    type: str
    role: Literal["input", "output", "inout", "attribute"] | None = None
    shape: str | None = None
    items: str | None = None
    dtype: str | None = None
    format: str | None = None
    optional: bool | str = False
    present: Scalar | None = None
    data: dict[Literal["exact", "realistic", "hostile", "with"], list[str | dict[str, Scalar]] | dict[str, Scalar]] = {}
    like: str | None = None
    null: Any = UNSET
    dtypes: Any = UNSET
    same_dtype_as: Any = UNSET
    promotes_with: Any = UNSET
    casts_from: Any = UNSET
    formats: Any = UNSET
    same_format_as: Any = UNSET
    rank: Any = UNSET
    layouts: Any = UNSET
    broadcasts_with: Any = UNSET
    same_shape_as: Any = UNSET
    length: Any = UNSET
    range: Any = UNSET
    dims: Any = UNSET
    words: Any = UNSET
    strided: Any = UNSET
    empty: Any = UNSET


class DrawModel(FileEntry, frozen=True, kw_only=True):
    """One free or derived name of generation."""

    name: str | None = None
    run: str | None = None
    in_: Bounds | None = None
    is_: Scalar | None = None
    one_of: list[Scalar] | None = None
    dtype_of: str | None = None
    length: Bounds | None = None
    sizes: Bounds | None = None
    numel: str | None = None
    total: str | None = None
    broadcasts_with: str | None = None
    large: bool | int = False


class ModesModel(FileEntry, frozen=True, kw_only=True):
    """An attribute that chooses the compute precision; one operand may stand for all modes."""

    attribute: str
    by: str
    names: dict[str, str]
    operand: dict[str, dict[str, list[str | None] | str | None]]


class ConstraintModel(FileEntry, frozen=True, kw_only=True):
    """One documented rule; which fields a kind reads is checked by `speclang.build_constraints`."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z_0-9.\-]*$")]
    kind: str
    strength: Literal["listed", "limit", "open", "accuracy"]
    of: str | int | Names | None = None
    as_: str | None = None
    in_: str | list[Any] | ByProduct | None = None
    is_: Scalar | None = None
    that: str | None = None
    axis: int | None = None
    axes: list[int] | None = None
    draw: str | None = None
    status: str | Names | None = None
    products: Names | None = None
    when: str | None = None
    requires: Names = []
    also: Names = []
    group: str | None = None
    breaks: list[dict[str, Assigned]] = []
    limits: list[dict[str, Assigned]] = []
    unsafe: str | None = None
    valued: bool = False


class ClauseModel(FileEntry, frozen=True, kw_only=True):
    """One statement of the document, with exactly one way in which it is encoded."""

    at: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$")]
    en: str
    zh: str
    certainty: Literal["stated", "ambiguous", "contradicted", "missing"] = "stated"
    constraints: Names | None = None
    check: str | None = None
    when: str | None = None
    output: str | None = None
    faults: Names | None = None
    interface: str | None = None
    example: str | None = None
    untestable: UntestableModel | None = None
    contradicts: Names = []
    products: Names | None = None


class ExampleModel(FileEntry, frozen=True, kw_only=True):
    """A worked example of the document: tensors as one text, other arguments as values, or any as in a case file."""

    name: str = "document"
    at: str = "example.1"
    product: str | None = None
    arguments: dict[str, Any]


class AtkArgumentModel(FileEntry, frozen=True, kw_only=True):
    """What takes the place of an argument that ATK case files declare, or lack."""

    shape: str | None = None
    dtype: str | None = None
    data: dict[str, Scalar] | None = None
    items: str | None = None
    value: Scalar | None = None


class AtkModel(FileEntry, frozen=True, kw_only=True):
    """How ATK case files of the operator differ from its prototype, and what their executors put in place of it."""

    names: dict[str, str] = {}
    others: Names = []
    format: str | None = None
    arguments: dict[str, AtkArgumentModel] = {}


class OpenModel(FileEntry, frozen=True, kw_only=True):
    """A place of a draft that a person has to settle, and the statements of the document to read for it."""

    at: Annotated[str, Meta(pattern=r"^[a-z]+(\.[A-Za-z0-9_]+)*$")]
    read: Names = []


class CommonModel(FileEntry, frozen=True, kw_only=True):
    """What parameters have in common, in a spec and in a family of specs."""

    family: str | None = None
    elementwise: bool | None = None
    let: dict[Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z_0-9]*$")], Scalar] = {}
    defaults: dict[str, Any] = {}
    first: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    draws: list[DrawModel] = []
    large_calls: list[dict[str, int | list[int]]] = []
    constraints: list[dict[str, Any]] = []
    """Each becomes a `ConstraintModel` once what follows from the rest of it is known."""
    clauses: dict[str, list[Any]] = {}
    """By section: words, and mappings that become a `ClauseModel` once their words are known."""


class OperatorModel(CommonModel, frozen=True, kw_only=True):
    """A whole spec file."""

    operator: Annotated[str, Meta(pattern="^aclnn[A-Za-z0-9]+$")]
    header: str | None = None
    document: SpecDocumentModel
    products: Annotated[Names, Meta(min_length=1)]
    tables: dict[str, ByProduct] = {}
    rows: dict[str, list[str | list[str | Names]]] | None = None
    modes: ModesModel | None = None
    open_: list[OpenModel] = []
    claims: dict[str, Any] = {}
    precision: Annotated[list[PrecisionModel], Meta(min_length=1)] | None = None
    atk: AtkModel | None = None
    sentences: dict[str, dict[str, Any] | list[str]] = {}
    parameters: Annotated[list[ParameterModel], Meta(min_length=1)]
    examples: list[ExampleModel] = []


class FamilyModel(CommonModel, frozen=True, kw_only=True):
    """`families/NAME.yaml`: what specs of one family have in common; `speclang.families` puts it in."""

    parameters: dict[str, dict[str, Any]] = {}


class SentenceModel(FileEntry, frozen=True, kw_only=True):
    """A stock sentence: the fields of a clause without an address. Texts and conditions have placeholders."""

    implied: bool = False
    en: str
    zh: str
    certainty: Literal["stated", "ambiguous", "contradicted", "missing"] = "stated"
    check: str | None = None
    when: str | None = None
    faults: Names | None = None
    interface: str | None = None
    example: str | None = None
    untestable: str | None = None


class WordingModel(FileEntry, frozen=True, kw_only=True):
    """`wording.yaml`: the stock sentences that specs name by a word."""

    checks: dict[str, Names]
    reasons: dict[str, Bilingual]
    sections: dict[str, dict[str, SentenceModel]]
    series: dict[str, Names]
    takes: dict[Literal["product", "dtype", "dtype_on", "row", "rows", "format", "format_on", "word"], Bilingual]
    rules: dict[str, Bilingual]
    open_rules: dict[str, Bilingual]
    errors: dict[str, Bilingual]


class InterfaceModel(FileEntry, frozen=True, kw_only=True):
    """`interface.yaml`: what the documents say of the two phases, for every operator."""

    interface: str
    documents: list[DocumentModel] = []
    constraints: list[ConstraintModel] = []
    clauses: list[ClauseModel]
