"""The form of a spec file: pydantic models, which report every mistake at once with its path.

Only the form is settled here. Expressions, names and the relations between entries are the business of `spec.build`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

__all__ = [
    "AtkArgumentModel",
    "AtkModel",
    "ClauseModel",
    "ConstraintModel",
    "DocumentModel",
    "DrawModel",
    "ExampleModel",
    "InterfaceModel",
    "ModesModel",
    "OperatorModel",
    "ParameterModel",
    "Scalar",
]

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
"""A literal, or (a string) an expression."""
Assigned = Scalar | list[StrictInt | StrictStr]
"""What a break assigns: a value, an expression, or the sizes of a run."""
Names = list[StrictStr]
ByProduct = dict[StrictStr, Names]
Bounds = Annotated[list[Scalar | None], Field(min_length=2, max_length=2)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


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


class ParameterModel(_Strict):
    """One parameter of the C prototype, and how a valid argument for it is made."""

    name: Annotated[StrictStr, Field(pattern="^[A-Za-z_][A-Za-z_0-9]*$")]
    type: StrictStr
    role: Literal["input", "output", "attribute"]
    shape: StrictStr | None = None
    items: StrictStr | None = None
    dtypes: StrictStr | Names | ByProduct | None = None
    dtype: StrictStr | None = None
    formats: Names | ByProduct | None = None
    format: StrictStr | None = None
    strided: StrictBool = False
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


class ModesModel(_Strict):
    """An attribute that chooses the compute precision."""

    attribute: StrictStr
    by: StrictStr
    names: dict[StrictStr, StrictStr]
    operand: dict[StrictStr, dict[StrictStr, list[StrictStr | None]]]


class ConstraintModel(_Strict):
    """One documented rule; which fields a kind reads is checked by `spec.kinds`."""

    id: Annotated[StrictStr, Field(pattern=r"^[A-Za-z_][A-Za-z_0-9.\-]*$")]
    kind: StrictStr
    of: StrictStr | StrictInt | Names | None = None
    as_: StrictStr | None = Field(default=None, alias="as")
    in_: StrictStr | list[Any] | ByProduct | None = Field(default=None, alias="in")
    is_: Scalar | None = Field(default=None, alias="is")
    that: StrictStr | None = None
    axis: StrictInt | None = None
    axes: list[StrictInt] | None = None
    draw: StrictStr | None = None
    strength: Literal["listed", "limit", "open"]
    status: StrictStr | Names | None = None
    products: Names | None = None
    operators: dict[StrictStr, dict[StrictStr, Any]] | None = None
    when: StrictStr | None = None
    requires: Names = []
    group: StrictStr | None = None
    breaks: list[dict[StrictStr, Assigned]] = []
    limits: list[dict[StrictStr, Assigned]] = []
    unsafe: StrictStr | None = None


class ClauseModel(_Strict):
    """One statement of the document, with exactly one way in which it is encoded."""

    at: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$")]
    en: StrictStr
    zh: StrictStr
    certainty: Literal["stated", "ambiguous", "contradicted", "missing"] = "stated"
    constraints: Names | None = None
    promise: StrictStr | None = None
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


class OperatorModel(_Strict):
    """A whole operator file."""

    operator: Annotated[StrictStr, Field(pattern="^aclnn[A-Za-z0-9]+$")]
    header: StrictStr | None = None
    document: DocumentModel
    products: Names
    tables: dict[StrictStr, ByProduct] = {}
    parameters: Annotated[list[ParameterModel], Field(min_length=1)]
    rows: dict[StrictStr, Any] | None = None
    draws: list[DrawModel] = []
    modes: ModesModel | None = None
    constraints: list[ConstraintModel]
    examples: list[ExampleModel] = []
    precision: list[Any] | None = None
    atk: AtkModel | None = None
    clauses: list[ClauseModel]


class InterfaceModel(_Strict):
    """`interface.yaml`: what the documents say of the two phases, for every operator."""

    interface: StrictStr
    documents: list[DocumentModel] = []
    constraints: list[ConstraintModel] = []
    clauses: list[ClauseModel]
