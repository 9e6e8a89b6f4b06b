"""From a formula to what an oracle says of a call: values, error bounds, what overflows; its values in plain FLOAT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Arithmetic, Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.formula.bounds import GROWTH, Bounds, Tracked
from aclnn_cts.formula.definition import Operator, default_arithmetic, output_shapes
from aclnn_cts.formula.emulator import Emulated, Emulator, TooManyTermsError
from aclnn_cts.formula.inputs import Inputs
from aclnn_cts.formula.special import Settled, plain_values, settle

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
        results = operator.evaluate(form, f, call)
        for name, shape in shapes.items():
            result = results.get(name)
            if not isinstance(result, Tracked):
                raise TypeError(f"{form.name}: no result {name!r}; it has {', '.join(results)}")
            if result.shape != shape:
                raise ValueError(f"{name}: the formula gives the shape {list(result.shape)}, expected {list(shape)}")
            if not careful and not f.settled(result, result.rounding()):
                return self._evaluated(call, inputs, arithmetic, shapes, careful=True)
        return f, results  # type: ignore[return-value]  # looked at one by one

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
        return {name: _with_special(output, settled[name]) for name, output in ordinary.items()}


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
        return ExpectedOutput(value=value, partial=partial, error=0.0, exact=True, arithmetic=arithmetic)
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
    )


def _with_special(output: ExpectedOutput, settled: Settled) -> ExpectedOutput:
    """An output on the finite part of its inputs, with what the others leave of it."""
    value, undecided, touched = settled
    unknown = undecided if output.open is None else undecided | (output.open & ~touched)
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
