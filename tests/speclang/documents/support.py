"""What the tests of documented calls share: products, statuses, tensors, and the calls that two of them begin with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.binding import bind_case
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs

SPECS = load_specs()
A2, TRAINING, INFERENCE = "atlas-a2", "atlas-training", "atlas-inference"
OK = ("ACLNN_SUCCESS",)
NULL = ("ACLNN_ERR_PARAM_NULLPTR",)
INVALID = ("ACLNN_ERR_PARAM_INVALID",)
TILING = ("ACLNN_ERR_INNER_TILING_ERROR",)
EITHER = ("ACLNN_ERR_PARAM_INVALID", "ACLNN_ERR_INNER_TILING_ERROR")
ERROR = ("ACLNN_ERR_*",)
ANYTHING = ("ACLNN_ERR_*", "ACLNN_SUCCESS")


def t(*shape: int, dtype: str = "FLOAT", form: str = "ND", **fields: Any) -> Tensor:
    return Tensor(shape, dtype, form, **fields)


def of_dtype(arguments: Mapping[str, Any], dtype: str, *names: str) -> dict[str, Any]:
    """The tensors named (all where none is) in another dtype."""
    return {
        name: Tensor(value.shape, dtype, value.format)
        for name, value in arguments.items()
        if isinstance(value, Tensor) and (not names or name in names)
    }


def check(operator: str, arguments: Mapping[str, Any], product: str, broken: str, statuses: tuple[str, ...]) -> None:
    case = Case(operator, arguments, Target(product=product))
    spec = bind_case(SPECS, case, where="here")
    found = evaluate(spec, case)
    assert {item.id for item in found.broken} == set(broken.split())
    assert found.statuses == statuses


SOFTMAX: dict[str, Any] = {"gradOutput": t(2, 3), "output": t(2, 3), "dim": 1, "out": t(2, 3)}


def conv(
    L: int = 2,  # noqa: N803 - as the document writes it
    pad: int = 1,
    T: int = 4,  # noqa: N803 - as the document writes it
    *,
    batch: int = 3,
    mode: int = 0,
    dtype: str = "FLOAT",
) -> dict[str, Any]:
    time = T + 2 * pad - L + 1
    arguments = {
        "self": t(time, batch, 7, form="NCL"),
        "input": t(T, batch, 5, form="NCL"),
        "weight": t(L, 5, 7, form="NCL"),
        "bias": t(7),
        "pad": pad,
        "cubeMathType": mode,
        "gradInput": t(T, batch, 5, form="NCL"),
        "gradWeight": t(L, 5, 7, form="NCL"),
        "gradBias": t(7),
    }
    return {**arguments, **of_dtype(arguments, dtype)}
