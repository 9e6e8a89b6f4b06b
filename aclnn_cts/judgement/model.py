"""Compute models: what a correct implementation may do between operands and result, and how its errors grow.

Documents say almost nothing of it, so that every statement in `specs/precision.yaml` carries its basis, and the
weakest basis that a bound rests on is part of each verdict.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import owner
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.expected import Arithmetic, FunctionAccuracy
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, binary_format, covers
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import checked_file, package_folder, products
from aclnn_cts.speclang.shared_schema import (
    PRECISION_SECTIONS,
    Basis,
    FunctionName,
    PrecisionFileModel,
    PrecisionFunctionModel,
    PrecisionModel,
    ResultFormat,
)
from aclnn_cts.speclang.yaml_file import YamlFile, read_yaml

BASES: tuple[str, ...] = get_args(Basis)
"""From the weakest to the strongest."""


def weakest_basis(bases: Iterable[str]) -> str:
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
    unless: str
    """A predicate that holds of calls to which `repeatable` does not apply; empty: none is named."""
    basis: str
    """The weakest of those that operand, accumulation, result and output rest on."""
    sources: tuple[tuple[str, str, str], ...] = ()
    """Section, basis and source of each part."""
    repeatable_zh: str = ""
    """The source of `repeatable` in Chinese, where it is given: reports show it."""
    functions: tuple[tuple[str, FunctionAccuracy], ...] = ()
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

    def is_repeatable(self, *, deterministic: bool) -> bool:
        """Whether the same call must give the same bits; `deterministic`: whether that setting is on."""
        return self.repeatable == "always" or (self.repeatable == "deterministic" and deterministic)

    def with_functions(self, functions: tuple[str, ...]) -> ComputeModel:
        """The model of a bound that rests on functions too: its basis and sources hold theirs."""
        return _with_functions(self, functions) if functions else self

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


def _shown(error: FunctionAccuracy) -> str:
    parts = (
        f"{error.ulps:g} ulp" if error.ulps else "",
        f"{error.relative:g} of it" if error.relative else "",
        f"{error.absolute:g}" if error.absolute else "",
    )
    return " + ".join(filter(None, parts)) or "0 ulp"


@functools.lru_cache(maxsize=1024)
def _with_functions(model: ComputeModel, functions: tuple[str, ...]) -> ComputeModel:
    sources = tuple(source for source in model.function_sources if source[0] in functions)
    return dataclasses.replace(
        model,
        basis=weakest_basis([model.basis, *(basis for _, basis, _ in sources)]),
        sources=(*model.sources, *sources),
        used=functions,
    )


_SELECTORS = ("outputs", "products", "dtypes", "operands")


def _matches(entry: PrecisionModel, question: Mapping[str, str | None]) -> bool:
    if entry.operator not in (None, question["operator"]):
        return False
    selected = {selector: getattr(entry, selector) for selector in _SELECTORS}
    return all(accepted is None or question[selector] in accepted for selector, accepted in selected.items())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrecisionModels:
    """The models of one `precision.yaml`, and of the spec files that add to it. Compared and hashed by identity."""

    entries: tuple[PrecisionModel, ...]
    formats: Mapping[str, BinaryFormat]
    """Operand formats by name, with the significand that a bound may count on."""
    overflow: Mapping[str, str]
    """Overflow mode by product."""

    def model(
        self,
        *,
        operator: str,
        output: str,
        dtype: str,
        target: Target | None = None,
        operand: str | None = None,
        source: str | None = None,
        computed: str | None = None,
    ) -> ComputeModel:
        """The model of one output.

        `dtype` is the output's aclDataType, `operand` the format that the precision mode promises (None: the operator
        has no modes), `source` the dtype of the first floating input, which a result may pass through, `computed`
        the one that inputs promote to (None: the output's), in which all but the last rounding happens. Raises KeyError
        for a dtype or operand that is no binary format.
        """
        models = self.models(
            operator=operator, dtypes={output: dtype}, target=target, operand=operand, source=source, computed=computed
        )
        return models[output]

    def models(
        self,
        *,
        operator: str,
        dtypes: Mapping[str, str],
        target: Target | None = None,
        operand: str | None = None,
        source: str | None = None,
        computed: str | None = None,
    ) -> Mapping[str, ComputeModel]:
        """The models of several outputs, given as their dtypes by name."""
        target = target or Target()
        outputs = tuple(dtypes.items())
        call = _Call(target.product, target.overflow_mode, operand, source, computed)
        return _models(self, operator, outputs, call)


class _Call(NamedTuple):
    """What the models of a call depend on beside its operator and outputs."""

    product: str
    overflow_mode: str | None
    operand: str | None
    source: str | None
    computed: str | None


@functools.lru_cache(maxsize=4096)
def _models(
    precision: PrecisionModels,
    operator: str,
    outputs: tuple[tuple[str, str], ...],
    call: _Call,
) -> Mapping[str, ComputeModel]:
    """Kept together, as every call of a kind asks for the same ones."""
    return MappingProxyType({output: _model(precision, operator, output, dtype, call) for output, dtype in outputs})


@functools.lru_cache(maxsize=4096)
def _model(
    precision: PrecisionModels,
    operator: str,
    output: str,
    dtype: str,
    call: _Call,
) -> ComputeModel:
    question = {
        "operator": operator,
        "outputs": owner(output),
        "products": call.product,
        "dtypes": call.computed or dtype,
        "operands": call.operand,
    }
    operand = call.operand
    sections, functions = _said(precision, question)
    last = sections if call.computed in (None, dtype) else _said(precision, {**question, "dtypes": dtype})[0]
    storage = BINARY_FORMATS[dtype]
    form = None
    if operand is not None and sections["operand"].from_ == "mode" and not covers(precision.formats[operand], storage):
        form = precision.formats[operand]
    through = {"operand": form, "input": BINARY_FORMATS.get(call.source or "")}.get(sections["result"].from_)
    accumulation = BINARY_FORMATS[sections["accumulation"].format]
    # What is narrower than intermediates and wider than the output rounds them twice.
    if through is not None and covers(through, storage) and (through == storage or covers(through, accumulation)):
        # Libraries convert DOUBLE to half precision by way of FLOAT, and no document says that a device does not.
        single = BINARY_FORMATS["FLOAT"]
        through = single if not covers(single, through) and covers(single, storage) and single != storage else None
    used = ("accumulation", "output", *(("operand",) if operand else ()), *(("result",) if through else ()))
    return ComputeModel(
        operand=form,
        operand_roundoff=0.0 if form is None or form.significand >= storage.significand else form.unit_roundoff,
        accumulation=accumulation,
        truncates=sections["accumulation"].rounding == "truncation",
        through=through,
        output=storage,
        output_truncates=last["output"].rounding == "truncation",
        flushes_compute=sections["subnormals"].compute == "may_flush",
        flushes_result=last["subnormals"].result == "may_flush",
        # Whether a format without infinities takes its largest number or nan instead of one, no document says.
        saturates=(call.overflow_mode or precision.overflow.get(call.product, "infnan")) == "saturation"
        or not storage.infinite,
        repeatable=sections["repeatable"].when,
        unless=sections["repeatable"].unless or "",
        basis=weakest_basis(sections[name].basis for name in used),
        sources=tuple((name, part.basis, part.source) for name, part in sections.items()),
        repeatable_zh=sections["repeatable"].source_zh,
        functions=tuple(
            (name, FunctionAccuracy(ulps=error.ulps, absolute=error.absolute, relative=error.relative))
            for name, error in sorted(functions.items())
        ),
        function_sources=tuple((name, error.basis, error.source) for name, error in sorted(functions.items())),
    )


def _said(
    precision: PrecisionModels, question: Mapping[str, str | None]
) -> tuple[dict[str, Any], dict[FunctionName, PrecisionFunctionModel]]:
    """What the entries that match say, the later ones over the earlier ones."""
    sections: dict[str, Any] = {}
    functions: dict[FunctionName, PrecisionFunctionModel] = {}
    for entry in precision.entries:
        if _matches(entry, question):
            functions |= entry.functions
            sections.update((name, part) for name in PRECISION_SECTIONS if (part := getattr(entry, name)) is not None)
    return sections, functions


@functools.cache
def load_precision(path: Path | None = None) -> PrecisionModels:
    """Read a file of compute models; None is the `specs/precision.yaml` that ships with the package.

    Raises UsageError with every mistake and its line.
    """
    path = path or package_folder() / "precision.yaml"
    yaml = read_yaml(path, name=f"specs/{path.name}" if path.parent == package_folder() else str(path))
    file = checked_file(yaml, PrecisionFileModel)
    formats = dict(BINARY_FORMATS)
    for name, given in file.significands.items():
        place = yaml.location_of(("significands", name))
        if name not in formats:
            raise UsageError(
                f"{place}: significands: unknown format {name!r}; expected one of {', '.join(formats)}"
                f"{did_you_mean(name, formats)}"
            )
        form = formats[name]
        if not 1 < given.bits <= form.significand:
            raise UsageError(f"{place}: significands.{name}.bits: {given.bits}; expected 2 to {form.significand}")
        formats[name] = binary_format(
            name, significand=given.bits, min_exponent=form.min_exponent, max_exponent=form.max_exponent
        )
    overflow = {name: product.overflow.default for name, product in products().items()}
    _check_complete(file.models, yaml)
    return PrecisionModels(entries=tuple(file.models), formats=formats, overflow=overflow)


def precision_of(spec: Spec) -> PrecisionModels:
    """The compute models that ship, with those that the operator's own file adds."""
    precision = load_precision()
    if not spec.precision:
        return precision
    own = tuple(msgspec.convert({**entry, "operator": spec.operator}, PrecisionModel) for entry in spec.precision)
    return replace(precision, entries=precision.entries + own)


def _check_complete(entries: Sequence[PrecisionModel], file: YamlFile) -> None:
    """Every section needs a default for an operator that no entry names."""
    for dtype in get_args(ResultFormat):
        question = {"operator": "", "outputs": "", "products": "", "dtypes": dtype, "operands": None}
        matching = [entry for entry in entries if _matches(entry, question)]
        for name in PRECISION_SECTIONS:
            if not any(getattr(entry, name) for entry in matching):
                raise UsageError(
                    f"{file.location_of(('models',))}: models: no default `{name}` for {dtype}; expected an entry that "
                    "has it and no selector"
                )


ORACLE_ROUNDOFF = 2.0**-53
"""Unit roundoff of the oracle's own arithmetic."""


def gamma(count: float | NDArray[Any], roundoff: float) -> Any:  # noqa: ANN401 - a float or an array, as `count` is
    """gamma_n = n u / (1 - n u) for n u up to one half, above it 2 n u; numbers of roundings need not be whole.

    There gamma_n runs away, while n u holds for sums and inner products without a limit on n (Jeannerod and Rump,
    *Improved error bounds for inner products in floating-point arithmetic*, SIAM J. Matrix Anal. Appl. 34, 2013).
    """
    product = count * roundoff
    if isinstance(product, float):
        return product / (1.0 - min(product, 0.5))
    return product / (1.0 - np.minimum(product, 0.5))
