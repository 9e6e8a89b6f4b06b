"""From a formula to what an oracle says of a call: values, error bounds, overflow, and what inf and nan require."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import Arithmetic, Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS, as_operand, blocks
from aclnn_cts.formula.bounds import GROWTH, Bounds, Tracked
from aclnn_cts.formula.definition import Form, Operator, default_arithmetic, is_complex, output_shapes
from aclnn_cts.formula.emulator import FASTEST, Emulated, Emulator, TooManyTermsError, Variant
from aclnn_cts.formula.reach import Inputs

_DOUBLE_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, slots=True)
class FormulaOracle:
    """An oracle (`core.expected.Oracle`) that a formula is all of."""

    operator: Operator
    form: int = 0
    """Which of the forms judges."""
    follows_errors: ClassVar[bool] = True
    """It states errors in the arithmetic that the question names (`judgement.operands.known_operands`)."""

    @property
    def name(self) -> str:
        """The name of the form that judges."""
        return self.operator.forms[self.form].name

    def __call__(self, call: OracleInput) -> Expected:
        """What conforms of every output. ValueError where a result has another shape than its output."""
        shapes = output_shapes(call)
        with np.errstate(all="ignore"):
            inputs = Inputs.of(call, self.operator.raw)
            if not inputs.finite:
                return self._special(call, shapes)
            return self._ordinary(call, inputs, shapes, careful=False)

    def in_blocks(self, call: OracleInput) -> Iterator[tuple[slice, Expected] | None]:
        """The same of an elementwise operator, some elements after others (`core.expected.BlockOracle`).

        None for a call with complex tensors or several shapes, and where an element is inf, nan or open. The bound is
        that of the block: what underflows in others is no part of it.
        """
        shapes = {*output_shapes(call).values(), *(tensor.shape for tensor in call.tensors.values())}
        if len(shapes) > 1 or any(is_complex(call, name) for name in call.arguments):
            yield None
            return
        for place in blocks(math.prod(*shapes)):
            block = _block(call, place)
            with np.errstate(all="ignore"):
                inputs = Inputs.of(block, self.operator.raw)
                found = self._ordinary(block, inputs, output_shapes(block), careful=False) if inputs.finite else None
            if found is None or any(output.open is not None for output in found.values()):
                yield None
                return
            yield place, found

    def values(self, call: OracleInput) -> Mapping[str, Float64]:
        """The outputs alone, without what may be added to them."""
        return plain_values(self.operator, call, tuple(output_shapes(call)))

    def _ordinary(
        self, call: OracleInput, inputs: Inputs, shapes: Mapping[str, tuple[int, ...]], *, careful: bool
    ) -> Expected:
        """The outputs on finite inputs, once for each arithmetic among them."""
        found: dict[str, ExpectedOutput] = {}
        for name in shapes:
            if name not in found:
                arithmetic = _arithmetic(call, name)
                alike = {
                    other: shape
                    for other, shape in shapes.items()
                    if _serves(arithmetic, _arithmetic(call, other), stores=False)
                }
                f, results = self._evaluated(call, inputs, arithmetic, alike, careful=careful)
                for other in alike:
                    if not f.stores or _serves(arithmetic, _arithmetic(call, other), stores=True):
                        found[other] = _stated(results[other], arithmetic, f)
        return {name: found[name] for name in shapes}

    def _evaluated(
        self,
        call: OracleInput,
        inputs: Inputs,
        arithmetic: Arithmetic,
        shapes: Mapping[str, tuple[int, ...]],
        *,
        careful: bool,
    ) -> tuple[Bounds, Mapping[str, Tracked]]:
        operator = self.operator
        f = Bounds(arithmetic, inputs=inputs, careful=careful, any_order=operator.any_order)
        form = operator.forms[self.form]
        results = operator.evaluate(form, f, call).all_of(Tracked)
        for name, shape in shapes.items():
            result = results[name]
            if not isinstance(result, Tracked):
                raise results.mistake(
                    f"{name} is no floating number; write f.where(condition, 1.0, 0.0) for a condition"
                )
            if result.shape != shape:
                raise results.mistake(f"{name} has the shape {list(result.shape)}, expected {list(shape)}")
            if not careful and not f.settled(result):
                return self._evaluated(call, inputs, arithmetic, shapes, careful=True)
        return f, results

    def _special(self, call: OracleInput, shapes: Mapping[str, tuple[int, ...]]) -> Expected:
        """The outputs where an input holds inf or nan: required where all listed forms agree, at least two of them."""
        raw = self.operator.raw
        finite = msgspec.structs.replace(
            call,
            tensors={
                name: np.where(np.isfinite(tensor), tensor, 0.0)
                if tensor.dtype == np.float64 and name not in raw
                else tensor
                for name, tensor in call.tensors.items()
            },
        )
        ordinary = self._ordinary(finite, Inputs.of(finite, raw), shapes, careful=True)
        settled = settle(self.operator, call, tuple(shapes))
        declined = undecided(self.operator, finite, tuple(shapes))
        return {name: _with_special(output, settled[name], declined.get(name)) for name, output in ordinary.items()}


def _block(call: OracleInput, place: slice) -> OracleInput:
    """A call with some of the elements of all tensors, flat and widened."""
    tensors = {name: as_operand(tensor.reshape(-1)[place]) for name, tensor in call.tensors.items()}
    size = place.stop - place.start
    arguments = {
        name: msgspec.structs.replace(value, shape=(size,)) if isinstance(value, Tensor) else value
        for name, value in call.arguments.items()
    }
    return msgspec.structs.replace(call, tensors=tensors, arguments=arguments)


def _serves(made: Arithmetic, wanted: Arithmetic, *, stores: bool) -> bool:
    """Whether what was found in one arithmetic holds in another: the output's format matters where it is stored."""
    if made is wanted:
        return True
    alike = made if stores else msgspec.structs.replace(made, output=wanted.output)
    return alike == wanted


def _arithmetic(call: OracleInput, output: str) -> Arithmetic:
    stated = call.arithmetics.get(output)
    return default_arithmetic() if stated is None else stated


def _stated(result: Tracked, arithmetic: Arithmetic, f: Bounds) -> ExpectedOutput:
    """One output with its error bound."""
    value = np.asarray(result.v, np.float64)
    shape = value.shape
    partial = None
    if f.careful:
        partial = np.broadcast_to(np.asarray(f.ranges.highest(result.reach), np.float64) * GROWTH, shape)
    if result.certain:
        return ExpectedOutput(
            value=value,
            partial=partial,
            error=0.0,
            exact=True,
            arithmetic=arithmetic,
            summands=result.length,
            step=result.lattice,
            largest=result.hi,
        )
    stated = result.error()
    error: Float64 = np.asarray(0.0 if stated is None else stated, np.float64)
    if error.shape != shape:
        error = np.broadcast_to(error, shape)
    unknown = None
    exact: NDArray[np.bool_] | bool = False
    if result.e is not None:
        bad = ~(np.isfinite(error) & np.isfinite(value))
        if bad.any():
            unknown, error = bad, np.where(bad, 0.0, error)
        if result.still and not result.n:
            exact = error == 0.0
    elif f.careful and not np.isfinite(value).all():
        unknown = ~np.isfinite(value)
    if f.dtype is not np.float64:
        error = np.where(np.broadcast_to(exact, shape), error, error + _DOUBLE_ROUNDOFF * np.abs(value))
    return ExpectedOutput(
        value=value,
        partial=partial,
        open=unknown,
        error=error,
        exact=exact,
        arithmetic=arithmetic,
        functions=tuple(f.used),
        summands=result.length,
        step=result.lattice,
        largest=result.hi,
    )


def _with_special(output: ExpectedOutput, settled: Settled, declined: NDArray[np.bool_] | None) -> ExpectedOutput:
    """An output on the finite part of its inputs, with what the others leave of it."""
    value, unsettled, touched = settled
    unknown = unsettled if declined is None else unsettled | declined
    if output.open is not None:
        unknown = unknown | (output.open & ~touched)
    partial = output.partial
    if partial is not None:
        # A nan stays nan whatever else overflows.
        partial = np.where(touched & np.isnan(value), 0.0, partial)
    return msgspec.structs.replace(
        output, value=np.where(touched, value, output.value), open=unknown, partial=partial, exact=False
    )


def benchmark(operator: Operator, call: OracleInput) -> dict[str, NDArray[np.float32]]:
    """Every operation rounded to FLOAT, sums from the first term to the last, nothing fused.

    Nothing where a sum would have too many terms for that.
    """
    found: dict[str, NDArray[np.float32]] = {}
    with np.errstate(all="ignore"):
        try:
            results = operator.evaluate(operator.judging, Emulator(default_arithmetic()), call)
        except TooManyTermsError:
            return found
    for name in output_shapes(call):
        result = results[name]
        if isinstance(result, Emulated):
            found[name] = result.v.astype(np.float32, copy=False)
    return found


DOUBLE = Arithmetic(accumulation=BINARY_FORMATS["DOUBLE"], flushes=False)
_FAST = Variant(order=FASTEST)
_FLUSHED = Variant(order=FASTEST, flushes=True)
_DECLINED = Variant(order=FASTEST, undecided=np.nan)
_TILTED = Variant(order=FASTEST, tilt=1.0), Variant(order=FASTEST, tilt=-1.0)


class Settled(NamedTuple):
    """One output on inputs that hold inf or nan, in its shape."""

    value: Float64
    """By the first form in float64."""
    open: NDArray[np.bool_]
    """Where nothing is required."""
    touched: NDArray[np.bool_]
    """Where the result depends on an element that is inf or nan."""


def settle(operator: Operator, call: OracleInput, outputs: Sequence[str]) -> dict[str, Settled]:
    """What every form gives of a call, and on what they agree. The caller sees to NumPy's warnings."""
    forms = operator.forms

    def values(form: Form, question: OracleInput, f: Emulator) -> dict[str, Float64]:
        results = operator.evaluate(form, f, question)
        return {name: np.asarray(results[name].v, np.float64) for name in outputs}  # type: ignore[attr-defined]

    def with_numbers(change: Callable[[str, Float64], Float64]) -> OracleInput:
        tensors = {
            name: change(name, array) if array.dtype == np.float64 and name not in operator.raw else array
            for name, array in call.tensors.items()
        }
        return msgspec.structs.replace(call, tensors=tensors)

    def marking(_name: str, array: Float64) -> Float64:
        return np.where(np.isfinite(array), array, np.nan)

    def least(name: str, array: Float64) -> Float64:
        """The number of the least magnitude that a mode may make of each."""
        size = np.abs(array) - call.radii.get(name, 0.0)
        return np.where(np.isfinite(array), np.copysign(np.maximum(size, 0.0), array), array)

    marks = [Emulator(DOUBLE, _FAST, marks=True) for _ in (forms if operator.adds_zeros else forms[:1])]
    question = with_numbers(marking)
    reached = [
        {name: np.isnan(value) for name, value in values(form, question, f).items()}
        for form, f in zip(forms, marks, strict=False)
    ]
    reached += reached[:1] * (len(forms) - len(reached))
    stated = [call.arithmetics[name] for name in outputs if name in call.arithmetics] or [default_arithmetic()]
    ways = [(call, DOUBLE, _FAST), (with_numbers(least) if call.radii else call, stated[0], _FLUSHED)]
    if len(forms) > 1 and any(operation.name == "function" for operation in marks[0].operations):
        ways += [(call, stated[0], tilted) for tilted in _TILTED]
    found: dict[str, Settled] = {}
    for form, touched in zip(forms, reached, strict=True):
        for question, arithmetic, variant in ways:
            for name, value in values(form, question, Emulator(arithmetic, variant)).items():
                first = found.get(name)
                if first is None:
                    # A finite result that depends on inf or nan is a decision or a function's limit: not required.
                    decided = len(forms) > 1 and not is_complex(call, name)
                    unsettled = np.array(touched[name] & (np.isfinite(value) if decided else True))
                    found[name] = Settled(value, unsettled, touched[name])
                else:
                    # One form may multiply a zero where another adds nothing.
                    first.open[...] |= (first.touched | touched[name]) & ~alike(first.value, value)
    return found


def undecided(operator: Operator, finite: OracleInput, outputs: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """The elements that depend on what the document leaves undecided; `finite`: no input holds inf or nan.

    Their error is infinite, as that of an overflow is, which means nothing beside an input of inf or nan.
    """
    f = Emulator(DOUBLE, _DECLINED, marks=True)
    results = operator.evaluate(operator.judging, f, finite)
    return {name: np.isnan(results[name].v) for name in outputs} if f.declined else {}  # type: ignore[attr-defined]


def alike(left: Float64, right: Float64) -> NDArray[np.bool_]:
    """Whether results are both finite, both nan, or the same infinity."""
    special = np.where(np.isfinite(left), 0.0, left), np.where(np.isfinite(right), 0.0, right)
    alike: NDArray[np.bool_] = (special[0] == special[1]) | (np.isnan(left) & np.isnan(right))
    return alike


def plain_values(operator: Operator, call: OracleInput, outputs: Sequence[str]) -> dict[str, Float64]:
    """The outputs of the form that judges in float64, and nothing more; inf and nan as that form makes them."""
    with np.errstate(all="ignore"):
        results = operator.evaluate(operator.judging, Emulator(DOUBLE, _FAST), call)
    return {name: results[name].v for name in outputs}  # type: ignore[attr-defined]
