"""The judges of a program's operators, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aclnn_cts.execution.judging import Judge
from aclnn_cts.execution.measuring import Measuring
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.model import Spec


@dataclass(slots=True, kw_only=True)
class Judges:
    """Judges by operator, with the operator's oracles and the compute models of `precision.yaml`."""

    has_statuses: bool
    """Whether the implementation returns statuses."""
    spec_folders: Sequence[Path] = ()
    """Where oracles of the user's own lie."""
    measuring: Measuring = Measuring()
    _made: dict[str, Judge] = field(default_factory=dict, repr=False)

    def of(self, spec: Spec) -> Judge:
        """The judge of an operator. HarnessError where no oracle is known."""
        if spec.operator not in self._made:
            self._made[spec.operator] = Judge(
                spec=spec,
                oracle=registry.load(spec.stem, folders=self.spec_folders),
                each=registry.load_each(spec.stem, folders=self.spec_folders),
                condense=registry.load_condense(spec.stem, folders=self.spec_folders),
                blocks=registry.load_blocks(spec.stem, folders=self.spec_folders),
                forms=registry.load_forms(spec.stem, folders=self.spec_folders),
                second=registry.load_second(spec.stem, folders=self.spec_folders),
                benchmark=registry.load_benchmark(spec.stem, folders=self.spec_folders),
                measuring=self.measuring,
                precision=precision_of(spec),
                has_statuses=self.has_statuses,
            )
        return self._made[spec.operator]
