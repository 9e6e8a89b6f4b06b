"""The gradient is that of SwiGLU; what another program quantises conforms, by the formula's rule and by cuBLAS's."""
# ruff: noqa: N803 - the parameters of the prototype

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.formula.derivative import differences
from aclnn_cts.judgement.bound import OutputElements, sorted_elements
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.oracles import registry
from aclnn_cts.oracles import swiglu_backward_mx_quant_with_dual_axis as oracle
from aclnn_cts.speclang.load import load_specs

STEM = "swiglu_backward_mx_quant_with_dual_axis"
SPEC = load_specs().find(STEM)
Real = NDArray[np.float64]
ROWS, COLUMNS = 165, 64
ENDS = (1, 40, 41, 105, 165)
"""Groups of 1, 39, 1, 64 and 60 rows: at 0, 1, 2, 3 and 4 by counting pairs, at 0, 1, 2, 3 and 5 by row / 64."""


def formula_rule(largest: float) -> float:
    return math.ldexp(1.0, math.frexp(largest)[1] - 1 - 8)


def cublas_rule(largest: float) -> float:
    return 2.0 ** math.ceil(math.log2(largest / 448.0))


def call(ends: Sequence[int] | None = ENDS, *, activate_left: bool = True, dtype: str = "FLOAT16") -> OracleInput:
    random = np.random.default_rng(7)
    tensors = {
        "x": to_dtype(random.standard_normal((ROWS, COLUMNS)), dtype).astype(np.float64),
        "yGrad": to_dtype(random.standard_normal((ROWS, COLUMNS // 2)), dtype).astype(np.float64),
    }
    pairs = -(-ROWS // 64) if ends is None else ROWS // 64 + len(ends)
    arguments: dict[str, Tensor | bool | None] = {name: Tensor(value.shape, dtype) for name, value in tensors.items()}
    arguments |= {
        "groupIndexOptional": None if ends is None else Tensor((len(ends),), "INT64"),
        "activateLeft": activate_left,
        "y1Out": Tensor((ROWS, COLUMNS), "FLOAT8_E4M3FN"),
        "mxscale1Out": Tensor((ROWS, COLUMNS // 64, 2), "FLOAT8_E8M0"),
        "y2Out": Tensor((ROWS, COLUMNS), "FLOAT8_E4M3FN"),
        "mxscale2Out": Tensor((pairs, COLUMNS, 2), "FLOAT8_E8M0"),
    }
    given = {} if ends is None else {"groupIndexOptional": np.array(ends, np.int64)}
    return OracleInput(tensors={**tensors, **given}, arguments=arguments)


def gradient(question: OracleInput) -> Real:
    x, g = question.tensors["x"], question.tensors["yGrad"]
    left, right = x[:, : COLUMNS // 2], x[:, COLUMNS // 2 :]
    a, b = (left, right) if question.arguments["activateLeft"] else (right, left)
    s = 1.0 / (1.0 + np.exp(-a))
    parts = [g * b * (s + a * s * (1.0 - s)), g * a * s]
    return np.concatenate(parts if question.arguments["activateLeft"] else parts[::-1], 1)


def quantised(
    question: OracleInput, rule: Callable[[float], float], *, narrow: bool = False, by_row: bool = False
) -> dict[str, Real]:
    """Block after block, without anything of the harness but the last rounding."""
    v = gradient(question)
    if narrow:
        v = v.astype(np.float16).astype(np.float64)
    out = {name: np.full(question.shape(name), np.nan) for name in ("y1Out", "mxscale1Out", "y2Out", "mxscale2Out")}
    for row in range(ROWS):
        for block in range(COLUMNS // 32):
            at = slice(32 * block, 32 * block + 32)
            scale = rule(float(np.abs(v[row, at]).max()))
            out["mxscale1Out"][row, block // 2, block % 2] = scale
            out["y1Out"][row, at] = v[row, at] / scale
    ends = question.tensors["groupIndexOptional"].tolist() if "groupIndexOptional" in question.tensors else [ROWS]
    pair = 0
    for group, (low, high) in enumerate(zip([0, *ends], ends, strict=False)):
        pair = low // 64 + group if by_row else pair
        for block, start in enumerate(range(low, high, 32)):
            at = slice(start, min(start + 32, high))
            for column in range(COLUMNS):
                scale = rule(float(np.abs(v[at, column]).max()))
                out["mxscale2Out"][pair + block // 2, column, block % 2] = scale
                out["y2Out"][at, column] = v[at, column] / scale
        blocks = -(-(high - low) // 32)
        if blocks % 2:
            out["mxscale2Out"][pair + blocks // 2, :, 1] = 0.0
        pair += -(-blocks // 2)
    return {name: np.clip(value, -448.0, 448.0) if name.startswith("y") else value for name, value in out.items()}


def judged(question: OracleInput, results: dict[str, Real]) -> dict[str, OutputElements]:
    dtypes = {name: "FLOAT8_E4M3FN" if name.startswith("y") else "FLOAT8_E8M0" for name in results}
    x = question.arguments["x"]
    assert isinstance(x, Tensor)
    models = precision_of(SPEC).models(operator=SPEC.operator, dtypes=dtypes, source=x.dtype)
    asked = msgspec.structs.replace(question, arithmetics={name: model.arithmetic for name, model in models.items()})
    expected = registry.load(STEM)(asked)
    return {
        name: sorted_elements(to_dtype(value, dtypes[name]), expected[name], models[name])
        for name, value in results.items()
    }


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("rule", [formula_rule, cublas_rule])
@pytest.mark.parametrize("activate_left", [False, True])
def test_both_rules_both_roundings_and_both_places_conform(
    *, activate_left: bool, rule: Callable[[float], float], narrow: bool, by_row: bool
) -> None:
    question = call(activate_left=activate_left)
    found = judged(question, quantised(question, rule, narrow=narrow, by_row=by_row))
    assert not any(elements.faulty.any() for elements in found.values())
    assert not found["y1Out"].open.any()
    assert found["mxscale2Out"].open[:4].mean() < 0.01  # blocks of one row may have a number below 2^-14 alone
    assert found["mxscale2Out"].open[4:].all()


def test_without_groups_hardly_anything_is_open() -> None:
    question = call(None)
    found = judged(question, quantised(question, formula_rule))
    assert not any(elements.faulty.any() for elements in found.values())
    assert not any(found[name].open.any() for name in ("y1Out", "mxscale1Out", "mxscale2Out"))
    assert found["y2Out"].open.mean() < 0.001


def test_the_other_rules_of_scales_are_found() -> None:
    question = call(None)
    for wrong in (lambda most: 2.0 * formula_rule(most), lambda most: 2.0 ** round(math.log2(most / 448.0))):
        found = judged(question, quantised(question, wrong))
        assert all(elements.faulty.mean() > 0.1 for elements in found.values())
    assert judged(question, quantised(call(None, activate_left=False), formula_rule))["y1Out"].faulty.mean() > 0.5


def test_blocks_over_the_end_of_a_group_and_other_codes_of_padding_are_found() -> None:
    question = call()
    across = quantised(call(None), formula_rule)["y2Out"]
    assert judged(question, quantised(question, formula_rule) | {"y2Out": across})["y2Out"].faulty.any()
    results = quantised(question, formula_rule)
    results["mxscale2Out"][0, :, 1] = 1.0
    assert judged(question, results)["mxscale2Out"].faulty.sum() == COLUMNS


def test_the_gradient_is_the_derivative_of_swiglu() -> None:
    def backward(f: F, x: Array, yGrad: Array, activateLeft: bool) -> Outputs:
        return {"xGrad": oracle._gradient(f, x, yGrad, activateLeft=activateLeft)}

    def forward(f: F, x: Array, activateLeft: bool) -> Outputs:
        half = x.shape[1] // 2
        a, b = (x[:, :half], x[:, half:]) if activateLeft else (x[:, half:], x[:, :half])
        return {"y": a * f.sigmoid(a) * b}

    operator = Operator.of(
        backward, derivative=Derivative(forward=forward, gradients={"yGrad": "y"}, wrt={"xGrad": "x"})
    )
    random = np.random.default_rng(3)
    for activate_left in (False, True):
        tensors = {"x": random.standard_normal((2, 4)), "yGrad": random.standard_normal((2, 2))}
        arguments = {name: Tensor(value.shape, "FLOAT") for name, value in tensors.items()}
        question = OracleInput(
            tensors=tensors,
            arguments={**arguments, "xGrad": Tensor((2, 4), "FLOAT"), "activateLeft": activate_left},
        )
        compared = list(differences(operator, question, elements=8))
        assert len(compared) == 8
        assert all(element.agree for element in compared)
