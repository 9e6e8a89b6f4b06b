"""The pair that every tolerance measures: an output that came back and the oracle's float64 value of it.

Three things are settled here for all tolerances, because no source speaks of them:

- Elements that the document leaves open are not looked at: there is no golden value for them.
- A golden value that the output's dtype cannot hold is the inf that it rounds to, as it would be in a golden kept in
  that dtype; a correct implementation could return nothing else.
- The row of a source's table is the output's dtype, or HFLOAT32 for FLOAT computed with such operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to, widen

T = TypeVar("T")

Mask = NDArray[np.bool_]

RELATIVE_EPSILON = 1e-7
"""What the relative error adds to the golden's magnitude (`docs/tolerances.md`)."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One output and what it is measured against, as flat float64 arrays (`make_pair` makes one).

    What several tolerances need is computed once, and only when one asks for it.
    """

    output: str
    dtype: str
    """The output's aclDataType."""
    got: Float64
    """What came back, widened exactly."""
    exact: Float64
    """The oracle's value."""
    benchmark: Float64 | None = None
    """What a second implementation in the same dtype gives, widened exactly."""
    benchmark_name: str = ""
    operand: str = ""
    """The format that the precision mode rounds operands to; empty where it rounds none."""
    _shared: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """What tolerances of one family measure alike, made by the first that asks for it."""
        if key not in self._shared:
            self._shared[key] = make()
        found: T = self._shared[key]
        return found

    @property
    def row(self) -> str:
        """The row of a source's table: the output's dtype, or HFLOAT32 for FLOAT computed with such operands."""
        return "HFLOAT32" if self.dtype == "FLOAT" and self.operand == "HFLOAT32" else self.dtype

    @cached_property
    def golden(self) -> Float64:
        """The oracle's value, with inf for what the output's dtype cannot hold."""
        form = BINARY_FORMATS.get(self.dtype)
        if form is None or form.significand == 53 or not (np.abs(self.exact) > form.largest).any():
            return self.exact
        return np.where(np.isinf(self.rounded), self.rounded, self.exact)

    @cached_property
    def rounded(self) -> Float64:
        """The oracle's value rounded to the output's dtype; raises KeyError for one that is no binary format."""
        return round_to(self.exact, BINARY_FORMATS[self.dtype])

    @cached_property
    def finite(self) -> bool:
        """Whether neither the output nor the golden holds inf or nan."""
        with np.errstate(all="ignore"):
            return math.isfinite(self.got.sum() + self.golden.sum()) or bool(
                np.isfinite(self.got).all() and np.isfinite(self.golden).all()
            )

    @cached_property
    def size(self) -> Float64:
        """Magnitude of the golden, 0 where it is inf or nan."""
        magnitude: Float64 = np.abs(self.golden)
        return magnitude if self.finite else np.where(np.isfinite(magnitude), magnitude, 0.0)

    @cached_property
    def error(self) -> Float64:
        """|a - g|: 0 where both are nan or the same infinity, inf where one alone is."""
        return _error(self.got, self.golden, finite=self.finite)

    @cached_property
    def relative(self) -> Float64:
        """|a - g| / (|g| + 1e-7), the relative error of sections 2 to 4 of the sources."""
        return self.error / (self.size + RELATIVE_EPSILON)

    @cached_property
    def benchmark_error(self) -> Float64:
        """|b - g| in the same way; raises TypeError without a second implementation."""
        if self.benchmark is None:
            raise TypeError("a pair without a benchmark has no error of it")
        return _error(self.benchmark, self.golden, finite=False)


def make_pair(
    *,
    output: str,
    dtype: str,
    got: NDArray[Any],
    golden: Float64,
    unsettled: Mask | None = None,
    benchmark: NDArray[Any] | None = None,
    benchmark_name: str = "",
    operand: str = "",
) -> Pair:
    """A pair from an output in its storage dtype and the oracle's float64 value, which broadcasts to it.

    - `unsettled`: elements that the document leaves open; they are left out.
    - `benchmark`: a second implementation's output, of the shape of `got`, in any dtype that float64 holds.
    - `operand`: the format that the precision mode rounds operands to.
    """
    keep = None if unsettled is None else ~np.broadcast_to(unsettled, got.shape).reshape(-1)

    def flat(array: NDArray[Any]) -> Float64:
        whole = array if array.shape == got.shape else np.broadcast_to(array, got.shape)
        wide = widen(whole).reshape(-1)
        return wide if keep is None else wide[keep]

    return Pair(
        output=output,
        dtype=dtype,
        got=flat(got),
        exact=flat(golden),
        benchmark=None if benchmark is None else flat(benchmark),
        benchmark_name=benchmark_name,
        operand=operand,
    )


def alike(left: Float64, right: Float64) -> Mask:
    """Whether two numbers are equal, or both nan."""
    same: Mask = (left == right) | (np.isnan(left) & np.isnan(right))
    return same


def by_size(size: Float64, threshold: float, usable: Mask | None) -> tuple[Mask, Mask]:
    """Which elements are normal values and which small ones: from a magnitude on, and below it."""
    normal = size >= threshold
    return (normal, ~normal) if usable is None else (normal & usable, ~normal & usable)


def _error(left: Float64, golden: Float64, *, finite: bool) -> Float64:
    with np.errstate(all="ignore"):
        error: Float64 = np.abs(left - golden)
        if not finite and (special := ~(np.isfinite(left) & np.isfinite(golden))).any():
            error[special] = np.where(alike(left[special], golden[special]), 0.0, np.inf)
    return error


def root_mean_square(values: Float64) -> float:
    """The root of the mean square; of values up to 1e154 without overflow."""
    with np.errstate(all="ignore"):
        return math.sqrt(mean(np.square(values)))


def mean(values: Float64) -> float:
    """The mean of at least one number, as NumPy's own function has it, which takes several times as long."""
    return float(np.add.reduce(values)) / values.size


def signed_mean(values: Float64) -> float:
    """The magnitude of the mean: how far errors lean to one side."""
    with np.errstate(all="ignore"):
        return abs(mean(values))


def row_of(table: Mapping[str, T], pair: Pair, *, default: str = "") -> T | None:
    """The pair's row of a table: HFLOAT32 stands for FLOAT where a table has no row of its own for it."""
    names = pair.row, pair.dtype, default if pair.dtype in FLOATING else ""
    return next((table[name] for name in names if name in table), None)
