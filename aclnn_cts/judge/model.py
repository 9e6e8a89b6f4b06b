"""Compute models: what a correct implementation may do between the operands and the result.

Documents say almost nothing of it, so that every statement in `specs/precision.yaml` carries its basis, and the
weakest basis that a bound rests on is part of each verdict.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from aclnn_cts.core.arithmetic import Arithmetic, FunctionError
from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, binary_format, covers
from aclnn_cts.core.target import Target
from aclnn_cts.spec.load import package_folder
from aclnn_cts.spec.model import Spec
from aclnn_cts.spec.yaml_file import read_yaml

__all__ = ["BASES", "Basis", "ComputeModel", "Precision", "load_precision", "precision_of", "weakest"]

Basis: TypeAlias = Literal["assumed", "published", "document"]
BASES: tuple[str, ...] = get_args(Basis)
"""From the weakest to the strongest."""

_DType: TypeAlias = Literal["FLOAT", "FLOAT16", "BF16", "DOUBLE"]
_FunctionName: TypeAlias = Literal["div", "erf", "erfc", "exp", "log", "sigmoid", "softplus", "sqrt", "tanh"]
_Format: TypeAlias = Literal["FLOAT", "FLOAT16", "BF16", "DOUBLE", "HFLOAT32"]


def weakest(bases: Iterable[str]) -> str:
    """The basis that a conclusion from several statements has."""
    return min(bases, key=BASES.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeModel:
    """The arithmetic that one output may be computed in."""

    operand: BinaryFormat | None
    """What operands may be rounded to before they are used; None: as they are stored."""
    operand_roundoff: float
    """Relative error of that rounding in the normal range; 0 where the format has all digits of the storage dtype."""
    accumulation: BinaryFormat
    truncates: bool
    """Whether intermediates may be truncated, which doubles the unit roundoff."""
    through: BinaryFormat | None
    """A narrower format that the result may pass through before it is rounded to the output; None: none."""
    output: BinaryFormat
    output_truncates: bool
    flushes_compute: bool
    """Whether operands and intermediates below the smallest normal number may become 0."""
    flushes_result: bool
    saturates: bool
    """Whether inf becomes the largest finite number and nan 0 in this arithmetic."""
    repeatable: str
    """`always`, `deterministic` (with that setting on) or `never`: whether the same call gives the same bits."""
    basis: str
    """The weakest of those that operand, accumulation, result and output rest on."""
    sources: tuple[tuple[str, str, str], ...] = ()
    """Section, basis and source of each part."""
    repeatable_zh: str = ""
    """The source of `repeatable` in Chinese, where it is given: reports show it."""
    functions: tuple[tuple[str, FunctionError], ...] = ()
    """How far elementary functions may be from the exact ones, in alphabetical order."""
    function_sources: tuple[tuple[str, str, str], ...] = ()
    """Function, basis and source of each, in the same order."""
    used: tuple[str, ...] = ()
    """The functions that a bound rests on."""

    @property
    def arithmetic(self) -> Arithmetic:
        """What an error analysis needs of it."""
        return Arithmetic(
            accumulation=self.accumulation,
            truncates=self.truncates,
            flushes=self.flushes_compute,
            output=self.output,
            functions=self.functions,
        )

    @property
    def roundoff(self) -> float:
        """Unit roundoff of the accumulation."""
        return self.accumulation.unit_roundoff * (2.0 if self.truncates else 1.0)

    def using(self, functions: tuple[str, ...]) -> ComputeModel:
        """The model of a bound that rests on functions too: its basis and sources hold theirs."""
        return _using(self, functions) if functions else self

    def describe(self) -> str:
        """The model in half a sentence, for messages."""
        operand = "operands as stored" if self.operand is None else f"operands in {self.operand.name}"
        truncating = " (truncating)" if self.truncates else ""
        through = f" by way of {self.through.name}" if self.through else ""
        stated = dict(self.functions)
        functions = "".join(f", {name} within {_shown(stated[name])}" for name in self.used)
        return (
            f"{operand}, accumulation in {self.accumulation.name}{truncating}{functions}, "
            f"output in {self.output.name}{through}"
        )


def _shown(error: FunctionError) -> str:
    parts = (
        f"{error.ulps:g} ulp" if error.ulps else "",
        f"{error.relative:g} of it" if error.relative else "",
        f"{error.absolute:g}" if error.absolute else "",
    )
    return " + ".join(filter(None, parts)) or "0 ulp"


@functools.lru_cache(maxsize=1024)
def _using(model: ComputeModel, functions: tuple[str, ...]) -> ComputeModel:
    sources = tuple(source for source in model.function_sources if source[0] in functions)
    return dataclasses.replace(
        model,
        basis=weakest([model.basis, *(basis for _, basis, _ in sources)]),
        sources=(*model.sources, *sources),
        used=functions,
    )


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    basis: Basis
    source: str


class _Operand(_Section, frozen=True, forbid_unknown_fields=True, rename={"origin": "from"}):
    origin: Literal["storage", "mode"]


class _Accumulation(_Section, frozen=True, forbid_unknown_fields=True):
    format: _DType
    rounding: Literal["nearest", "truncation"]


class _Result(_Section, frozen=True, forbid_unknown_fields=True, rename={"origin": "from"}):
    origin: Literal["accumulation", "operand", "input"]


class _Output(_Section, frozen=True, forbid_unknown_fields=True):
    rounding: Literal["nearest", "truncation"]


class _Subnormals(_Section, frozen=True, forbid_unknown_fields=True):
    compute: Literal["kept", "may_flush"]
    result: Literal["kept", "may_flush"]


class _Repeatable(_Section, frozen=True, forbid_unknown_fields=True):
    when: Literal["always", "deterministic", "never"]
    source_zh: str = ""


_SECTIONS = ("operand", "accumulation", "result", "output", "subnormals", "repeatable")
_SELECTORS = ("outputs", "products", "dtypes", "operands")


class _Function(_Section, frozen=True, forbid_unknown_fields=True):
    ulps: float = 0.0
    absolute: float = 0.0
    relative: float = 0.0


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    operator: str | None = None
    outputs: tuple[str, ...] | None = None
    products: tuple[str, ...] | None = None
    dtypes: tuple[_DType, ...] | None = None
    operands: tuple[_Format, ...] | None = None
    operand: _Operand | None = None
    accumulation: _Accumulation | None = None
    result: _Result | None = None
    output: _Output | None = None
    subnormals: _Subnormals | None = None
    repeatable: _Repeatable | None = None
    functions: dict[_FunctionName, _Function] = {}

    def matches(self, question: Mapping[str, str | None]) -> bool:
        if self.operator is not None and self.operator != question["operator"]:
            return False
        for selector in _SELECTORS:
            accepted = getattr(self, selector)
            if accepted is not None and question[selector] not in accepted:
                return False
        return True


class _Significand(_Section, frozen=True, forbid_unknown_fields=True):
    bits: int


class _Own(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: tuple[_Entry, ...]


class _ProductOverflow(msgspec.Struct, frozen=True):
    default: Literal["saturation", "infnan"]


class _Product(msgspec.Struct, frozen=True):
    overflow: _ProductOverflow


class _Products(msgspec.Struct, frozen=True):
    """What is read here of `products.yaml`."""

    products: dict[str, _Product]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: Literal["aclnn-cts/precision/1"]
    models: tuple[_Entry, ...]
    significands: dict[str, _Significand] = {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Precision:
    """The models of one `precision.yaml`, and of the spec files that add to it. Compared and hashed by identity."""

    entries: tuple[_Entry, ...]
    formats: Mapping[str, BinaryFormat]
    """Operand formats by name, with the significand that a bound may count on."""
    overflow: Mapping[str, str]
    """Overflow mode by product."""

    def extended(self, operator: str, section: object, *, where: str) -> Precision:
        """With the `precision` section of an operator's own spec file: `models` as in `precision.yaml`, no `operator`.

        Raises UsageError with `where` (the file) and the path inside the section.
        """
        own: _Own = _convert(section, _Own, where=f"{where}: precision")
        for index, entry in enumerate(own.models):
            if entry.operator is not None:
                raise UsageError(
                    f"{where}: precision: $.models[{index}].operator: {entry.operator!r}; a spec file speaks of its "
                    "own operator alone, leave it out"
                )
        models = tuple(msgspec.structs.replace(entry, operator=operator) for entry in own.models)
        return Precision(entries=self.entries + models, formats=self.formats, overflow=self.overflow)

    def model(
        self,
        *,
        operator: str,
        output: str,
        dtype: str,
        target: Target | None = None,
        operand: str | None = None,
        source: str | None = None,
    ) -> ComputeModel:
        """The model of one output.

        `dtype` is the output's aclDataType, `operand` the format that the precision mode promises (None: the operator
        has no modes), `source` the dtype of the first floating input, which a result may pass through. Raises
        KeyError for a dtype or operand that is no binary format.
        """
        target = target or Target()
        return _model(self, operator, output, dtype, target.product, target.overflow_mode, operand, source)

    def models(
        self,
        *,
        operator: str,
        dtypes: Mapping[str, str],
        target: Target | None = None,
        operand: str | None = None,
        source: str | None = None,
    ) -> Mapping[str, ComputeModel]:
        """The models of several outputs, given as their dtypes by name."""
        target = target or Target()
        outputs = tuple(dtypes.items())
        return _models(self, operator, outputs, target.product, target.overflow_mode, operand, source)


@functools.lru_cache(maxsize=4096)
def _models(
    precision: Precision,
    operator: str,
    outputs: tuple[tuple[str, str], ...],
    product: str,
    overflow_mode: str | None,
    operand: str | None,
    source: str | None,
) -> Mapping[str, ComputeModel]:
    """Kept together, as every call of a kind asks for the same ones."""
    return MappingProxyType(
        {
            output: _model(precision, operator, output, dtype, product, overflow_mode, operand, source)
            for output, dtype in outputs
        }
    )


@functools.lru_cache(maxsize=4096)
def _model(
    precision: Precision,
    operator: str,
    output: str,
    dtype: str,
    product: str,
    overflow_mode: str | None,
    operand: str | None,
    source: str | None,
) -> ComputeModel:
    question = {"operator": operator, "outputs": output, "products": product, "dtypes": dtype, "operands": operand}
    sections: dict[str, Any] = {}
    functions: dict[_FunctionName, _Function] = {}
    for entry in precision.entries:
        if entry.matches(question):
            functions |= entry.functions
            sections.update((name, part) for name in _SECTIONS if (part := getattr(entry, name)) is not None)
    storage = BINARY_FORMATS[dtype]
    form = None
    if operand is not None and sections["operand"].origin == "mode" and not covers(precision.formats[operand], storage):
        form = precision.formats[operand]
    through = {"operand": form, "input": BINARY_FORMATS.get(source or "")}.get(sections["result"].origin)
    if through is not None and covers(through, storage):
        through = None
    used = ("accumulation", "output", *(("operand",) if operand else ()), *(("result",) if through else ()))
    return ComputeModel(
        operand=form,
        operand_roundoff=0.0 if form is None or form.significand >= storage.significand else form.unit_roundoff,
        accumulation=BINARY_FORMATS[sections["accumulation"].format],
        truncates=sections["accumulation"].rounding == "truncation",
        through=through,
        output=storage,
        output_truncates=sections["output"].rounding == "truncation",
        flushes_compute=sections["subnormals"].compute == "may_flush",
        flushes_result=sections["subnormals"].result == "may_flush",
        saturates=(overflow_mode or precision.overflow.get(product, "infnan")) == "saturation",
        repeatable=sections["repeatable"].when,
        basis=weakest(sections[name].basis for name in used),
        sources=tuple((name, part.basis, part.source) for name, part in sections.items()),
        repeatable_zh=sections["repeatable"].source_zh,
        functions=tuple(
            (name, FunctionError(ulps=error.ulps, absolute=error.absolute, relative=error.relative))
            for name, error in sorted(functions.items())
        ),
        function_sources=tuple((name, error.basis, error.source) for name, error in sorted(functions.items())),
    )


def _convert(document: object, kind: Any, *, where: str) -> Any:  # noqa: ANN401 - msgspec's own signature
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}; the comments in specs/precision.yaml say what may stand here") from None


@functools.cache
def load_precision(path: Path | None = None) -> Precision:
    """Read a file of compute models; None is the `specs/precision.yaml` that ships with the package.

    Raises UsageError that names the file and the path inside it.
    """
    path = path or package_folder() / "precision.yaml"
    file: _File = _convert(read_yaml(path).content, _File, where=str(path))
    products_path = package_folder() / "products.yaml"
    products: _Products = _convert(read_yaml(products_path).content, _Products, where=str(products_path))
    formats = dict(BINARY_FORMATS)
    for name, given in file.significands.items():
        if name not in formats:
            raise UsageError(
                f"{path}: $.significands: unknown format {name!r}; expected one of {', '.join(formats)}"
                f"{nearest(name, formats)}"
            )
        form = formats[name]
        if not 1 < given.bits <= form.significand:
            raise UsageError(f"{path}: $.significands.{name}.bits: {given.bits}; expected 2 to {form.significand}")
        formats[name] = binary_format(
            name, significand=given.bits, min_exponent=form.min_exponent, max_exponent=form.max_exponent
        )
    overflow = {name: product.overflow.default for name, product in products.products.items()}
    _check_complete(file.models, path)
    return Precision(entries=file.models, formats=formats, overflow=overflow)


def precision_of(spec: Spec) -> Precision:
    """The compute models that ship, with those that the operator's own file adds."""
    if spec.precision is None:
        return load_precision()
    return load_precision().extended(spec.operator, spec.precision, where=spec.path)


def _check_complete(entries: tuple[_Entry, ...], path: Path) -> None:
    """Every section needs a default for an operator that no entry names."""
    for dtype in get_args(_DType):
        question = {"operator": "", "outputs": "", "products": "", "dtypes": dtype, "operands": None}
        given = {name for entry in entries if entry.matches(question) for name in _SECTIONS if getattr(entry, name)}
        for name in _SECTIONS:
            if name not in given:
                raise UsageError(
                    f"{path}: $.models: no default `{name}` for {dtype}; expected an entry that has it and no selector"
                )
