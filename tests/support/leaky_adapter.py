"""The reference with operands rounded to another format than promised: `--adapter leaky_adapter:Leaky,form=FLOAT16`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession, Values
from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.core.rounding import BinaryFormat, round_to
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.precision_probe import CANDIDATES


class Leaky(ReferenceAdapter):
    """`form` is the name of a candidate of the leak probes, with _ for spaces; of one `output`, where it is named."""

    def __init__(self, form: str, output: str = "") -> None:
        self._form = CANDIDATES[form.replace("_", " ")]
        self._output = output

    def open(self, target: Target, specs: Mapping[str, Spec]) -> LeakySession:
        return LeakySession(target, specs, self._form, self._output)


class LeakySession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], form: BinaryFormat, output: str) -> None:
        super().__init__(target, specs)
        self._form = form
        self._output = output

    def _values(self, spec: Spec) -> Values:
        inner = super()._values(spec)

        def values(call: OracleInput) -> Mapping[str, Float64]:
            moded = {
                name: round_to(array, self._form) if array.dtype == np.float64 and name != "indices" else array
                for name, array in call.tensors.items()
            }
            found = dict(inner(msgspec.structs.replace(call, tensors=moded)))
            if "gradBias" in found:
                # The bias is no product of the matrix unit: a mode leaves it as it is.
                found["gradBias"] = inner(call)["gradBias"]
            if self._output:
                return {**inner(call), self._output: found[self._output]}
            return found

        return values
