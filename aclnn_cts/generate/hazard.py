"""What must never be sent to a real device, and why: the one list that trials and adapters both read.

Part of it stands in the specs, as constraints with an `unsafe` reason (indices out of range, a null size array, a
gradient without axes): they are the document's. The rest holds for every operator and stands here.
"""

from __future__ import annotations

from aclnn_cts.core.case import Case, owner
from aclnn_cts.generate.buffers import check_view
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds_data import ElementsRule, data_range
from aclnn_cts.speclang.kinds_tensor import MAX_RANK
from aclnn_cts.speclang.model import Spec


def hazard_of(
    spec: Spec,
    case: Case,
    *,
    both_phases: bool,
    evaluation: Evaluation | None = None,
) -> str:
    """Why this call must not reach a real device; empty where it may.

    `evaluation` is that of the case where the caller has it. Views matter only where both phases run: the first reads
    no address.
    """
    for constraint in (evaluation or evaluate(spec, case)).broken:
        if constraint.unsafe is not None:
            return f"{constraint.id}: {constraint.unsafe}"
    if both_phases and (reason := _unknown_elements(spec, case)):
        return reason
    for name, tensor in case.tensors():
        if len(tensor.shape) > MAX_RANK:
            return (
                f"{name}: rank {len(tensor.shape)}; the operator library's shapes hold {MAX_RANK} dimensions, and it "
                f"reads behind them"
            )
        if both_phases and (wrong := check_view(tensor, may_expand=owner(name) not in spec.outputs)) is not None:
            return f"{name}: {wrong}"
    return ""


def _unknown_elements(spec: Spec, case: Case) -> str:
    """Of contents that must lie in a range, those of which nobody can say whether they do."""
    for constraint in spec.constraints:
        if constraint.unsafe is None or not isinstance(constraint.rule, ElementsRule):
            continue
        tensor = case.tensor(constraint.rule.of)
        if tensor is None or tensor.data is None or not constraint.applies_to(case.product):
            continue
        try:
            data_range(tensor)
        except TypeError as error:
            return f"{constraint.id}: {error}, and {constraint.unsafe}"
    return ""
