"""The gradient of aclnnBatchNormElemtBackward: what several counts stand for has readings; all else is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.judgement.model import load_precision
from aclnn_cts.oracles import registry
from tests.support.compared import compare

Array = NDArray[np.float64]
OPERATOR = "aclnnBatchNormElemtBackward"
MODEL = load_precision().model(operator=OPERATOR, output="gradInput", dtype="FLOAT16")


def drawn(counter: list[float]) -> dict[str, Array]:
    random = np.random.default_rng(1)
    shapes = {"gradOut": (3, 2, 4), "input": (3, 2, 4), "mean": (2,), "sumDy": (2,), "sumDyXmu": (2,)}
    tensors = {name: random.integers(1, 5, shape).astype(np.float64) for name, shape in shapes.items()}
    tensors["sumDy"] *= 8192.0  # beside such sums a count shows in every element
    return tensors | {"invstd": np.ones(2), "weight": np.ones(2), "counter": np.array(counter)}


def gradient(tensors: dict[str, Array], n: Any) -> Array:
    """By numbers of data, one for all channels or one for each."""
    wide = {name: array.reshape(-1, 1) if array.ndim == 1 else array for name, array in tensors.items()}
    n = np.asarray(n, np.float64).reshape(-1, 1)
    with np.errstate(all="ignore"):
        along = (wide["input"] - wide["mean"]) * wide["sumDyXmu"]
        found: Array = wide["gradOut"] - wide["sumDy"] / n - along / n
    return found


def fault(tensors: dict[str, Array], got: Array) -> str:
    arguments = {name: Tensor(array.shape, "FLOAT16") for name, array in tensors.items()}
    arguments["gradInput"] = arguments["gradOut"]
    call = OracleInput(tensors=tensors, arguments=arguments, arithmetics={"gradInput": MODEL.arithmetic})
    expected = registry.load("batch_norm_elemt_backward")(call)["gradInput"]
    return compare("gradInput", to_dtype(got, "FLOAT16"), expected, MODEL).kind


def summed_in_half(counter: Array) -> float:
    with np.errstate(over="ignore"):
        return float(np.add.reduce(counter.astype(np.float16), dtype=np.float16))


@pytest.mark.parametrize("counter", [[4096.0, 4096.0], [512.0, 8192.0], [60000.0, 60000.0]])
def test_every_reading_of_several_counts_conforms(counter: list[float]) -> None:
    tensors = drawn(counter)
    counts = tensors["counter"]
    for n in (counts.sum(), counts.mean(), counts.max(), counts[0], counts.min(), counts):
        assert not fault(tensors, gradient(tensors, n)), n


def test_counts_summed_in_half_are_found_where_half_overflows() -> None:
    tensors = drawn([60000.0, 60000.0])
    assert np.isinf(summed_in_half(tensors["counter"]))
    assert fault(tensors, gradient(tensors, summed_in_half(tensors["counter"])))


@pytest.mark.parametrize("n", [1024.0, 65536.0])
def test_numbers_outside_of_every_reading_are_found(n: float) -> None:
    tensors = drawn([4096.0, 4096.0])
    assert fault(tensors, gradient(tensors, n))
