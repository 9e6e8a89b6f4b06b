"""From a formula to what an oracle says of a call: values, error bounds, overflow, and what inf and nan require."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Arithmetic, Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.formula.bounds import Bounds, Tracked
from aclnn_cts.formula.definition import Form, Operator, default_arithmetic, output_shapes
from aclnn_cts.formula.reach import GROWTH, Inputs

if TYPE_CHECKING:
    from aclnn_cts.formula.evaluation import Settled

_DOUBLE_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, slots=True)
class FormulaOracle:
    """An oracle (`core.expected.Oracle`) that a formula is all of."""

    operator: Operator
    form: int | None = None
    """Which of the forms judges; None: as the operator states, the first or any."""

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms that judge: what conforms to one of them conforms."""
        if self.form is None:
            return self.operator.forms if self.operator.any_form else self.operator.forms[:1]
        return self.operator.forms[self.form : self.form + 1]

    @property
    def first(self) -> FormulaOracle:
        """The oracle of the first form alone."""
        return FormulaOracle(self.operator, 0)

    @property
    def name(self) -> str:
        """The name of the form that values come from."""
        return self.forms[0].name

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
        from aclnn_cts.formula.evaluation import plain_values  # noqa: PLC0415 - the reference alone needs it

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
                stated, stores = self._by_forms(call, inputs, arithmetic, alike, careful=careful)
                for other in alike:
                    if not stores or _serves(arithmetic, _arithmetic(call, other), stores=True):
                        found[other] = stated[other]
        return {name: found[name] for name in shapes}

    def _by_forms(
        self,
        call: OracleInput,
        inputs: Inputs,
        arithmetic: Arithmetic,
        shapes: Mapping[str, tuple[int, ...]],
        *,
        careful: bool,
    ) -> tuple[Mapping[str, ExpectedOutput], bool]:
        """What conforms to any form that judges, all of them with care where one needs it; whether one stores."""
        operator, stores = self.operator, False
        found: dict[str, ExpectedOutput] = {}
        for form in self.forms:
            f = Bounds(arithmetic, inputs=inputs, careful=careful, any_order=operator.any_order)
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
                    del f, results, result  # their arrays take as much memory as those made with care
                    return self._by_forms(call, inputs, arithmetic, shapes, careful=True)
            for name in shapes:
                stated = _stated(results[name], arithmetic, f)
                found[name] = _either(found[name], stated) if name in found else stated
            stores = stores or f.stores
        return found, stores

    def _special(self, call: OracleInput, shapes: Mapping[str, tuple[int, ...]]) -> Expected:
        """The outputs where an input holds inf or nan: required where all listed forms agree, at least two of them."""
        from aclnn_cts.formula.evaluation import settle, undecided  # noqa: PLC0415 - few calls hold such inputs

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


def _either(first: ExpectedOutput, other: ExpectedOutput) -> ExpectedOutput:
    """What conforms to one of two forms, around the value of the first; both were evaluated with care, or neither."""
    apart = np.abs(other.value - first.value)
    opens = [output.open for output in (first, other) if output.open is not None]
    unknown = functools.reduce(np.logical_or, opens, ~np.isfinite(apart))
    exact: NDArray[np.bool_] | bool = False
    if first.exact is not False and other.exact is not False:
        alike = np.logical_and(first.exact, other.exact) & (apart == 0.0)
        exact = True if alike.all() else alike
    return msgspec.structs.replace(
        first,
        error=np.maximum(first.error, np.where(unknown, 0.0, other.error + apart)),
        exact=exact,
        partial=None if first.partial is None or other.partial is None else np.maximum(first.partial, other.partial),
        open=unknown if unknown.any() else None,
        functions=tuple(dict.fromkeys(first.functions + other.functions)),
        summands=np.maximum(first.summands, other.summands),
        step=None if first.step is None or other.step is None else min(first.step, other.step),
        largest=max(first.largest, other.largest),
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
