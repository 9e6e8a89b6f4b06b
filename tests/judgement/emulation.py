"""Sums of products as a device may compute them: rows of float32 arithmetic in many orders, with and without faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import Arithmetic, ExpectedOutput, Float64, OracleInput
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.operands import OperandFacts, known_operands

Rows = NDArray[Any]
Single = np.float32


def forward(terms: Rows) -> Rows:
    total: Rows = terms[:, 0].copy()
    for column in range(1, terms.shape[1]):
        total += terms[:, column]
    return total


def backward(terms: Rows) -> Rows:
    return forward(terms[:, ::-1])


def pairwise(terms: Rows) -> Rows:
    while terms.shape[1] > 1:
        odd = terms[:, terms.shape[1] - terms.shape[1] % 2 :]
        even = terms[:, : terms.shape[1] - terms.shape[1] % 2]
        terms = np.concatenate([even[:, ::2] + even[:, 1::2], odd], axis=1)
    return terms[:, 0]


def blocked(terms: Rows) -> Rows:
    blocks = [forward(terms[:, start : start + 16]) for start in range(0, terms.shape[1], 16)]
    return forward(np.stack(blocks, axis=1))


def shuffled(terms: Rows) -> Rows:
    return forward(terms[:, np.random.default_rng(9).permutation(terms.shape[1])])


ORDERS: Mapping[str, Callable[[Rows], Rows]] = {
    "forward": forward,
    "backward": backward,
    "pairwise": pairwise,
    "blocked": blocked,
    "shuffled": shuffled,
}


def fused(left: Float64, right: Float64) -> Rows:
    """Fused multiply-add: the product is exact in float64, and so is its sum with a float32 save for rare ties."""
    total = (left[:, 0] * right[:, 0]).astype(Single)
    for column in range(1, left.shape[1]):
        total = (total.astype(np.float64) + left[:, column] * right[:, column]).astype(Single)
    return total


def truncated(values: Float64) -> Rows:
    """Float64 to float32 towards zero."""
    nearest = values.astype(Single)
    away = np.abs(nearest.astype(np.float64)) > np.abs(values)
    return np.where(away, np.nextafter(nearest, Single(0.0)), nearest)


def truncating(left: Float64, right: Float64) -> Rows:
    """Every product and every sum truncated, as matrix units do."""
    total = truncated(left[:, 0] * right[:, 0])
    for column in range(1, left.shape[1]):
        total = truncated(total.astype(np.float64) + truncated(left[:, column] * right[:, column]))
    return total


def flushed(values: Rows) -> Rows:
    return np.where(np.abs(values) < 2.0**-126, np.zeros_like(values), values)


def _dot(f: F, left: Array, right: Array) -> Outputs:
    return {"out": f.einsum("ij,ij->i", left, right)}


dot_oracle = FormulaOracle(Operator.of(_dot))
"""The inner products of the rows of `left` and `right`."""


def question(
    left: Float64, right: Float64, *, lattice: float | None = None, arithmetic: Arithmetic | None = None
) -> OracleInput:
    """What the oracle is asked of rows; of a lattice both are multiples."""
    return OracleInput(
        tensors={"left": left, "right": right},
        arguments={"out": Tensor((len(left),), "FLOAT")},
        lattices={} if lattice is None else {"left": lattice, "right": lattice},
        arithmetics={} if arithmetic is None else {"out": arithmetic},
    )


def dot(
    left: Float64, right: Float64, *, lattice: float | None = None, arithmetic: Arithmetic | None = None
) -> ExpectedOutput:
    """What an oracle says of the inner products of rows."""
    return dot_oracle(question(left, right, lattice=lattice, arithmetic=arithmetic))["out"]


def known(left: Float64, right: Float64, model: ComputeModel, *, lattice: float | None = None) -> OperandFacts:
    """What the judge knows of these operands and of their inner products."""
    asked = question(left, right, lattice=lattice, arithmetic=model.arithmetic)
    return known_operands(dot_oracle, asked, {"out": model})[1]["out"]
