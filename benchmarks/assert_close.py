"""`torch.testing.assert_close` as a tolerance, to compare the derived bound with what users of torch know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.verdict import ToleranceResult
from aclnn_cts.judgement.tolerances.protocol import (
    Pair,
    Tolerance,
    conclude,
    equal_everywhere,
    figure,
    row_of,
    verdict_without_figures,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertCloseRow:
    """The default tolerances of one dtype."""

    rtol: float
    atol: float


ASSERT_CLOSE_ROWS: Mapping[str, AssertCloseRow] = MappingProxyType(
    {
        "FLOAT16": AssertCloseRow(rtol=1e-3, atol=1e-5),
        "BF16": AssertCloseRow(rtol=1.6e-2, atol=1e-5),
        "FLOAT": AssertCloseRow(rtol=1.3e-6, atol=1e-5),
        "DOUBLE": AssertCloseRow(rtol=1e-7, atol=1e-7),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertClose(Tolerance):
    """`assert-close`: what `torch.testing.assert_close` says with its default tolerances.

    The golden is rounded to the output's dtype, as the function compares tensors of one dtype. Every element must have
    |a - g| <= atol + rtol |g|. An inf is close to the same inf alone; nan is close to nothing, nan included, because
    `equal_nan` is off by default. Integers must be equal.

    The comparison is made in float64; torch makes it in the tensors' own dtype, so that an error within a rounding of
    the limit may fall on the other side.

    Source: PyTorch's documentation of `torch.testing.assert_close`, table of default tolerances.
    """

    name: str = "assert-close"
    source: str = "PyTorch documentation, torch.testing.assert_close, default tolerances"

    def measure(self, pair: Pair) -> ToleranceResult:
        """The error that is nearest to its tolerance, or farthest beyond."""
        if pair.dtype not in FLOATING:
            return equal_everywhere(self, pair)
        row = row_of(ASSERT_CLOSE_ROWS, pair)
        if row is None or not pair.got.size:
            return verdict_without_figures(self, pair, row)
        golden = pair.rounded
        with np.errstate(all="ignore"):
            error = np.abs(pair.got - golden)
            error[pair.got == golden] = 0.0
            error[np.isnan(error)] = np.inf
            allowed = row.atol + row.rtol * np.where(np.isfinite(golden), np.abs(golden), 0.0)
        worst = int(np.argmax(error / allowed))
        return conclude(self, [figure("worst absolute error", error.item(worst), allowed.item(worst))])
