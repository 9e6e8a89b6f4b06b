"""Determinism: what a source promises of an operator's bits, and what the trials that asked for them again came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aclnn_cts.core.dtypes import INEXACT, component
from aclnn_cts.core.target import Target
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.reports.model.acceptance_rows import CheckRow, DeterminismPart, RepeatRow
from aclnn_cts.reports.model.collect import OperatorTally
from aclnn_cts.store.counts import Counts

__all__ = ["REPEATS", "determinism_part"]

REPEATS = ("law/repeat", "life-cycle/cold-warm", "life-cycle/two-streams", "life-cycle/repeatable")
"""Checks that ask for one result again: the same call again, cold and warm, beside another, from one executor."""

_SECTION = "repeatable"


def determinism_part(tally: OperatorTally, checks: Sequence[CheckRow], targets: Iterable[Target]) -> DeterminismPart:
    """One operator; `checks` are its rows, `targets` those of the runs."""
    rows: Mapping[str, CheckRow] = {row.check: row for row in checks}
    spec = tally.spec
    precision = precision_of(spec)
    promised: dict[tuple[str, str, str, str], None] = {}
    held = 0
    for target in targets:
        models = [
            precision.model(operator=spec.operator, output=name, dtype=component(dtype), target=target)
            for name in spec.outputs
            for dtype in _dtypes(tally, name, target.product)
        ]
        for model in models:
            for section, basis, source in model.sources:
                if section == _SECTION:
                    promised.setdefault((model.repeatable, basis, source, model.repeatable_zh or source))
        held += any(
            model.repeatable == "always" or (model.repeatable == "deterministic" and target.deterministic is True)
            for model in models
        )
    return DeterminismPart(
        operator=spec.operator,
        promised=tuple(promised),
        held=held,
        rows=tuple(
            RepeatRow(
                operator=spec.operator,
                check=name,
                ends=rows[name].ends if name in rows else Counts(),
                findings=rows[name].findings if name in rows else (),
                compared=tally.compared[name],
                alike=tally.alike[name],
            )
            for name in REPEATS
        ),
    )


def _dtypes(tally: OperatorTally, name: str, product: str) -> list[str]:
    """The floating dtypes that a product's table gives an output."""
    parameter = tally.spec.parameter(name)
    while parameter.dtype_as is not None:
        parameter = tally.spec.parameter(parameter.dtype_as)
    return [dtype for dtype in parameter.dtypes.get(product, ()) if dtype in INEXACT]
