"""A second implementation that some tolerances compare with: what it gives for a call that is judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import components
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.rounding import widen
from aclnn_cts.execution.executor import CallPerformer, CallRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterBenchmark:
    """An implementation behind an adapter of its own, called with the same arguments."""

    performer: CallPerformer

    def outputs(
        self, case: Case, rows: Mapping[str, NDArray[np.int64]], wanted: Collection[str]
    ) -> Mapping[str, tuple[Float64, str]]:
        """Each wanted output in float64, and what it is of; none where the call does not succeed.

        `rows`: of an output that is judged in some rows alone, which these are.
        """
        [performed] = self.performer.perform([CallRequest(case)])
        outcome = performed.outcome
        if outcome.ended != CallEnd.RETURNED or outcome.status:
            return {}
        name = self.performer.host.capabilities.description
        return {
            output: (widen(components(array[rows[output]] if output in rows else array)), name)
            for output, array in performed.got.items()
            if output in wanted
        }
