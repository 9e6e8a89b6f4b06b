"""What must never be sent to a real device, and why: the one list that trials and adapters both read.

Part of it stands in the specs, as constraints with an `unsafe` reason (indices out of range, a null size array, a
gradient without axes): they are the document's. The rest holds for every operator and stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from aclnn_cts.core.case import Case
from aclnn_cts.generate.buffers import check_view
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds_data import data_range
from aclnn_cts.speclang.kinds_tensor import MAX_RANK
from aclnn_cts.speclang.model import Spec

UNSAFE_CALL_MODES: Mapping[tuple[str, str | int | bool], str] = MappingProxyType(
    {
        ("executor", "twice"): "phase two frees an executor that is not repeatable: a second one uses freed memory",
        (
            "workspace",
            "smaller",
        ): "phase two does not compare sizes: a kernel writes beyond a workspace that is too small",
    }
)
"""Call_modes of calling that only a software device can be asked for."""

_NO_CALL_MODE: Mapping[str, str | int | bool] = MappingProxyType({})


def hazard(
    spec: Spec,
    case: Case,
    *,
    both_phases: bool,
    evaluation: Evaluation | None = None,
    call_mode: Mapping[str, str | int | bool] = _NO_CALL_MODE,
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
    for key, value in call_mode.items():
        if (why := UNSAFE_CALL_MODES.get((key, value))) is not None:
            return f"{key} {value}: {why}"
    for name, tensor in case.tensors():
        if len(tensor.shape) > MAX_RANK:
            return (
                f"{name}: rank {len(tensor.shape)}; the operator library's shapes hold {MAX_RANK} dimensions, and it "
                f"reads behind them"
            )
        if both_phases and (wrong := check_view(tensor)) is not None:
            return f"{name}: {wrong}"
    return ""


def _unknown_elements(spec: Spec, case: Case) -> str:
    """Of contents that must lie in a range, those of which nobody can say whether they do."""
    for name, constraint in spec.unsafe_elements:
        tensor = case.tensor(name)
        if tensor is None or tensor.data is None or not constraint.applies_to(case.product):
            continue
        try:
            data_range(tensor)
        except TypeError as error:
            return f"{constraint.id}: {error}, and {constraint.unsafe}"
    return ""
