"""From a formula to what an oracle says of a call: values, error bounds, what may overflow and what is open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.arithmetic import Arithmetic
from aclnn_cts.core.expected import Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.formula.bounds import GROWTH, Bounds, Tracked
from aclnn_cts.formula.definition import Operator, default_arithmetic, output_shapes
from aclnn_cts.formula.special import settle

__all__ = ["FormulaOracle"]

_DOUBLE_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, slots=True)
class FormulaOracle:
    """An oracle (`core.expected.Oracle`) that a formula is all of."""

    operator: Operator
    form: int = 0
    """Which of the forms judges."""
    follows_errors: ClassVar[bool] = True
    """It states errors in the arithmetic that the question names (`judge.operands.known_operands`)."""

    def __call__(self, call: OracleInput) -> Expected:
        """What conforms of every output. ValueError where a result has another shape than its output."""
        shapes = output_shapes(call)
        with np.errstate(all="ignore"):
            if not _finite(call, self.operator.raw):
                return self._special(call, shapes)
            return self._ordinary(call, shapes, careful=False)

    def _ordinary(self, call: OracleInput, shapes: Mapping[str, tuple[int, ...]], *, careful: bool) -> Expected:
        """The outputs on finite inputs, once for each arithmetic among them."""
        left = dict(shapes)
        found: dict[str, ExpectedOutput] = {}
        while left:
            arithmetic = _arithmetic(call, next(iter(left)))
            alike = {name: left.pop(name) for name in tuple(left) if _arithmetic(call, name) == arithmetic}
            found |= self._outputs(call, arithmetic, alike, careful=careful)
        return found

    def _outputs(
        self, call: OracleInput, arithmetic: Arithmetic, shapes: Mapping[str, tuple[int, ...]], *, careful: bool
    ) -> dict[str, ExpectedOutput]:
        operator = self.operator
        f = Bounds(
            arithmetic,
            lattices=call.lattices,
            radii=call.radii,
            careful=careful,
            any_order=operator.any_order,
        )
        results = operator.evaluate(operator.forms[self.form], f, call)
        made: dict[str, Any] = {}
        for name, shape in shapes.items():
            if name not in results:
                raise ValueError(f"{operator.forms[self.form].name}: no result {name!r}; it has {', '.join(results)}")
            result = made[name] = results[name]
            if result.shape != shape:
                raise ValueError(f"{name}: the formula gives the shape {list(result.shape)}, expected {list(shape)}")
            if not careful and not f.negligible(result):
                return self._outputs(call, arithmetic, shapes, careful=True)
        return {name: _stated(result, arithmetic, tuple(f.used)) for name, result in made.items()}

    def _special(self, call: OracleInput, shapes: Mapping[str, tuple[int, ...]]) -> Expected:
        """The outputs where an input holds inf or nan: required where all listed forms agree, at least two of them."""
        finite = msgspec.structs.replace(
            call,
            tensors={
                name: np.where(np.isfinite(tensor), tensor, 0.0)
                if tensor.dtype == np.float64 and name not in self.operator.raw
                else tensor
                for name, tensor in call.tensors.items()
            },
        )
        ordinary = self._ordinary(finite, shapes, careful=True)
        settled = settle(self.operator, call, tuple(shapes))
        return {
            name: _with_special(output, settled[name].value, settled[name].open, settled[name].touched)
            for name, output in ordinary.items()
        }


def _arithmetic(call: OracleInput, output: str) -> Arithmetic:
    stated = call.arithmetics.get(output)
    return default_arithmetic() if stated is None else stated


def _finite(call: OracleInput, raw: frozenset[str]) -> bool:
    """Whether no floating input holds inf or nan."""
    for name, tensor in call.tensors.items():
        if tensor.dtype == np.float64 and tensor.size and name not in raw:
            # A sum of finite numbers may overflow; then they are looked at one by one.
            total = np.add.reduce(tensor, axis=None)
            if total - total != 0.0 and not np.isfinite(tensor).all():
                return False
    return True


def _stated(result: Tracked, arithmetic: Arithmetic, functions: tuple[str, ...]) -> ExpectedOutput:
    """One output with its error bound."""
    f = result.f
    value = np.asarray(result.v, np.float64)
    shape = value.shape
    partial = None
    if f.careful:
        partial = np.broadcast_to(np.asarray(f.ranges.highest(result.reach), np.float64) * GROWTH, shape)
    if result.certain:
        return ExpectedOutput(value=value, partial=partial, error=0.0, exact=True, arithmetic=arithmetic)
    stated = result.error()
    error: Float64 = np.broadcast_to(np.asarray(0.0 if stated is None else stated, np.float64), shape)
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
        functions=functions,
    )


def _with_special(
    output: ExpectedOutput, value: Float64, undecided: NDArray[np.bool_], touched: NDArray[np.bool_]
) -> ExpectedOutput:
    """An output on the finite part of its inputs, with what the others leave of it."""
    unknown = undecided if output.open is None else undecided | (output.open & ~touched)
    partial = output.partial
    if partial is not None:
        # A nan stays nan whatever else overflows.
        partial = np.where(touched & np.isnan(value), 0.0, partial)
    return msgspec.structs.replace(
        output, value=np.where(touched, value, output.value), open=unknown, partial=partial, exact=False
    )
