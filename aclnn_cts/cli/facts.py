"""What several commands say about a spec, as plain values."""

from __future__ import annotations

from aclnn_cts.core.statuses import ANY_ERROR, SUCCESS
from aclnn_cts.speclang.kinds import Constraint
from aclnn_cts.speclang.model import Parameter, Spec


def dtypes_of(spec: Spec, item: Parameter, product: str) -> tuple[str, ...]:
    """The dtypes of a tensor on a product: its own list, its column of the rows, or those of what it follows."""
    while item.dtype_as is not None and item.name not in spec.row_parameters:
        item = spec.parameter(item.dtype_as)
    if item.name in spec.row_parameters and spec.rows is not None:
        column = spec.row_parameters.index(item.name)
        return tuple(dict.fromkeys(row[column] for row in spec.rows.get(product, ())))
    return item.dtypes.get(product, ())


def rule_text(constraint: Constraint, product: str) -> str:
    """The rule in words, with the condition under which it is stated."""
    text = constraint.rule.describe(product).en
    return f"{text} (when {constraint.when_text})" if constraint.when_text is not None else text


def conforming(constraint: Constraint) -> tuple[str, ...]:
    """The statuses that conform where this constraint alone is broken."""
    return constraint.statuses or (ANY_ERROR, SUCCESS)
