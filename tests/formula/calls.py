"""Calls of the operators of `formulas`, with ordinary and hostile data in FLOAT, BF16 and FLOAT16."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, Tensor
from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to
from aclnn_cts.formula.array import Array
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.emulator import Emulated, Emulator, Variant
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.formula.mutants import mutants_of
from aclnn_cts.judgement.model import ComputeModel, load_precision
from aclnn_cts.selftest.subject import Subject
from tests.formula import formulas

DTYPES = ("FLOAT", "BF16", "FLOAT16")


@dataclass(frozen=True)
class Maker:
    """Draws calls: inputs, attributes, and the shapes of outputs."""

    operator: Operator
    draw: Callable[[np.random.Generator, Draw], tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]]


class Draw:
    """Numbers of a kind that this call has: ordinary, cancelling, of all sizes, tiny, or with a large mean."""

    def __init__(self, random: np.random.Generator, dtype: str) -> None:
        self.random, self.dtype = random, dtype
        self.kind = random.choice(["normal", "normal", "wide", "tiny", "offset", "integers"])

    def real(self, *shape: int) -> Float64:
        values = self.random.standard_normal(shape)
        if self.kind == "wide":
            values = np.ldexp(values, self.random.integers(-10, 11, shape))
        elif self.kind == "tiny":
            values = np.ldexp(values, self.random.integers(-70, -50))
        elif self.kind == "offset":
            values = values + 1000.0
        elif self.kind == "integers":
            values = np.rint(4.0 * values)
        return self.stored(values)

    def stored(self, values: NDArray[Any]) -> Float64:
        return round_to(np.asarray(values, np.float64), BINARY_FORMATS[self.dtype])


def _elementwise(*names: str) -> Any:
    def draw(random: np.random.Generator, draw: Draw) -> Any:
        shape = tuple(random.integers(1, 9, 2))
        return {name: draw.real(*shape) for name in names}, {}, {"gradInput": shape, "out": shape}

    return draw


def _saved(function: Callable[[Any], Any]) -> Any:
    """A gradient, and a saved result of an elementwise function."""

    def draw(random: np.random.Generator, draw: Draw) -> Any:
        shape = tuple(random.integers(1, 9, 2))
        with np.errstate(over="ignore"):
            saved = draw.stored(function(random.standard_normal(shape) * 3.0))
        return {"gradOutput": draw.real(*shape), "output": saved, "y": saved}, {}, {"gradInput": shape}

    return draw


def _gelu(random: np.random.Generator, draw: Draw) -> Any:
    shape = tuple(random.integers(1, 9, 2))
    inputs = {"gradOutput": draw.real(*shape), "self": draw.stored(random.standard_normal(shape) * 3.0)}
    return inputs, {"approximate": str(random.choice(["none", "tanh"]))}, {"gradInput": shape}


def _log_softmax(random: np.random.Generator, draw: Draw) -> Any:
    shape = tuple(random.integers(1, 20, 2))
    x = random.standard_normal(shape) * 3.0
    y = x - np.log(np.exp(x).sum(1, keepdims=True))
    return {"gradOutput": draw.real(*shape), "output": draw.stored(y)}, {"dim": 1}, {"out": shape}


def _layer_norm(random: np.random.Generator, draw: Draw) -> Any:
    rows, width = (int(size) for size in random.integers(1, 12, 2))
    x = draw.real(rows, width)
    mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    inputs = {
        "gradOut": draw.real(rows, width),
        "input": x,
        "mean": np.asarray(mean, np.float32).astype(np.float64),
        "rstd": np.asarray(1.0 / np.sqrt(variance + 1e-5), np.float32).astype(np.float64),
    }
    if draw.dtype != "FLOAT":
        inputs |= {name: draw.stored(inputs[name]) for name in ("mean", "rstd")}
    optional: dict[str, Any] = {}
    if random.random() < 0.8:
        inputs["weightOptional"] = draw.stored(random.standard_normal(width))
    else:
        optional["weightOptional"] = None
    return inputs, optional, {"gradInput": (rows, width), "gradWeight": (width,), "gradBias": (width,)}


def _mse(random: np.random.Generator, draw: Draw) -> Any:
    shape, reduction = tuple(random.integers(1, 9, 2)), int(random.integers(3))
    gradient = draw.real(*(shape if reduction == 0 else ()))
    return (
        {"gradOutput": gradient, "self": draw.real(*shape), "target": draw.real(*shape)},
        {"reduction": reduction},
        {"out": shape},
    )


def _leaky_relu(random: np.random.Generator, draw: Draw) -> Any:
    inputs, _, outputs = _elementwise("gradOutput", "self")(random, draw)
    inputs["self"] = np.where(random.random(inputs["self"].shape) < 0.2, 0.0, inputs["self"])
    return inputs, {"negativeSlope": float(random.choice([0.01, 0.25, -0.3]))}, {"out": outputs["out"]}


def _avg_pool(random: np.random.Generator, draw: Draw) -> Any:
    kernel, stride = (int(size) for size in random.integers(1, 4, 2))
    padding = int(random.integers(0, kernel // 2 + 1))
    height, width = (int(size) for size in random.integers(kernel, kernel + 5, 2))
    shape = (int(random.integers(1, 3)), int(random.integers(1, 3)), height, width)
    out = (*shape[:2], *((size + 2 * padding - kernel) // stride + 1 for size in (height, width)))
    attributes = {
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "countIncludePad": bool(random.random() < 0.5),
        "divisorOverride": int(random.choice([0, 0, 3])),
    }
    return {"gradOutput": draw.real(*out), "self": draw.real(*shape)}, attributes, {"gradInput": shape}


def _max_pool(random: np.random.Generator, draw: Draw) -> Any:
    shape = (*(int(size) for size in random.integers(1, 3, 2)), *(int(size) for size in random.integers(1, 6, 2)))
    out = (*shape[:2], *(int(size) for size in random.integers(1, 6, 2)))
    inputs = {
        "gradOutput": draw.real(*out),
        "self": draw.real(*shape),
        "indices": random.integers(0, shape[2] * shape[3], out),
    }
    return inputs, {}, {"gradInput": shape}


def _attention(random: np.random.Generator, draw: Draw) -> Any:
    rows, columns, depth = (int(size) for size in random.integers(1, 9, 3))
    inputs = {
        "query": draw.stored(random.standard_normal((rows, depth))),
        "key": draw.stored(random.standard_normal((columns, depth))),
        "value": draw.stored(random.standard_normal((columns, depth))),
        "dy": draw.stored(random.standard_normal((rows, depth))),
    }
    shapes = {"dq": (rows, depth), "dk": (columns, depth), "dv": (columns, depth)}
    return inputs, {"scale": float(depth) ** -0.5}, shapes


MAKERS: Mapping[str, Maker] = {
    "tanh": Maker(formulas.TANH, _saved(np.tanh)),
    "sigmoid": Maker(formulas.SIGMOID, _saved(lambda x: 1.0 / (1.0 + np.exp(-x)))),
    "gelu": Maker(formulas.GELU, _gelu),
    "log_softmax": Maker(formulas.LOG_SOFTMAX, _log_softmax),
    "layer_norm": Maker(formulas.LAYER_NORM, _layer_norm),
    "mse_loss": Maker(formulas.MSE_LOSS, _mse),
    "leaky_relu": Maker(formulas.LEAKY_RELU, _leaky_relu),
    "avg_pool": Maker(formulas.AVG_POOL, _avg_pool),
    "max_pool": Maker(formulas.MAX_POOL, _max_pool),
    "attention": Maker(formulas.ATTENTION, _attention),
}


def parameters(operator: Operator) -> frozenset[str]:
    return frozenset(name for form in operator.forms for name in form.parameters)


def call(maker: Maker, key: int, *, dtype: str | None = None) -> tuple[OracleInput, str]:
    """A call, and the dtype of its tensors."""
    random = np.random.default_rng(key)
    chosen = dtype or DTYPES[key % len(DTYPES)]
    inputs, attributes, outputs = maker.draw(random, Draw(random, chosen))
    names = parameters(maker.operator)
    tensors = {name: np.asarray(array) for name, array in inputs.items() if name in names}
    arguments: dict[str, Argument] = {name: Tensor(array.shape, chosen) for name, array in tensors.items()}
    arguments |= attributes
    wanted = _wanted(maker.operator, key)
    arguments |= {
        name: Tensor(tuple(int(size) for size in shape), chosen) for name, shape in outputs.items() if name in wanted
    }
    return OracleInput(tensors=tensors, arguments=arguments), chosen


def _wanted(operator: Operator, key: int) -> frozenset[str]:
    assert not isinstance(operator.derivative, str)
    wanted = set(operator.derivative.wrt)
    return frozenset(wanted | ({"gradBias"} if "gradWeight" in wanted else set()))


def models(names: Any, dtype: str) -> dict[str, ComputeModel]:
    precision = load_precision()
    return {name: precision.model(operator="", output=name, dtype=dtype) for name in names}


def subject(maker: Maker, key: int, *, dtype: str | None = None, narrow: bool = False) -> Subject:
    question, chosen = call(maker, key, dtype=dtype)
    outputs = [
        name for name in question.arguments if name not in question.tensors and name in _wanted(maker.operator, key)
    ]
    oracle = FormulaOracle(maker.operator)
    made = Subject.of(maker.operator, oracle, question, models(outputs, chosen))
    return made.in_format(BINARY_FORMATS[chosen]) if narrow else made


def assert_repeats(held: Subject, variant: Variant) -> None:
    """Every mutant of a repeated emulation gives what an evaluation with that mutant does."""
    plain = held.emulated(variant, repeats=True)
    form, found = held.operator.judging, []
    for mutant in mutants_of(list(plain.operations)):
        for run in plain.runs:
            whole = Emulator(run.arithmetic, run.variant, mutant=mutant, operand=run.operand)
            with np.errstate(all="ignore"):
                expected = held.operator.evaluate(form, whole, held.question)
                results = run.repeated(mutant)
            assert tuple(whole.operations) == plain.operations
            for output, result in run.results.items():
                repeated = results.get(output, result)
                assert np.array_equal(values(expected[output]), values(repeated), equal_nan=True), (mutant, output)
            found += [mutant] if results else []
    assert found


def values(result: Array) -> NDArray[Any]:
    assert isinstance(result, Emulated)
    return result.v
