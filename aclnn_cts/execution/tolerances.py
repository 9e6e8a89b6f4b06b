"""The ecosystem's tolerances on a call: what they are put to, and what they compare with.

The second implementation of the rules that need one is the operator's `benchmark`, where no other one is given: plain
FLOAT arithmetic, sums in order, from operands rounded as the mode asks, rounded to the output's dtype at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.dtypes import components, numpy_dtype
from aclnn_cts.core.expected import Expected, Float64, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, round_to
from aclnn_cts.core.verdict import Result, Verdict
from aclnn_cts.execution.measuring import Measuring
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.tolerances.protocol import Pair, make_pair
from aclnn_cts.judgement.tolerances.registry import TOLERANCES, measure, with_gate
from aclnn_cts.oracles.registry import Benchmark

Others: TypeAlias = Callable[[Mapping[str, ComputeModel]], Mapping[str, tuple[Float64, str]]]
"""Gives those of these outputs that a second implementation has, with what it is."""


def with_tolerances(
    verdict: Verdict,
    measuring: Measuring,
    *,
    expected: Expected,
    got: Mapping[str, NDArray[Any]],
    outputs: Mapping[str, Tensor],
    models: Mapping[str, ComputeModel],
    benchmark: Others | None,
) -> Verdict:
    """The verdict with what the tolerances say of the call: those that gate on what passed, all of them on what failed.

    What passed fails where a gating tolerance does. Of what failed the outputs at fault are measured, and all of them
    with `Measuring.always`. An output of another shape or dtype than asked for is left out, and what was skipped is
    measured by none.
    """
    passed, gate = verdict.result == Result.PASSED, measuring.gate
    if verdict.result in (Result.SKIPPED, Result.OUT_OF_SCOPE) or (passed and not gate and not measuring.always):
        return verdict
    fit = {
        name: tensor
        for name, tensor in outputs.items()
        if name in got and got[name].shape == tensor.shape and got[name].dtype == numpy_dtype(tensor.dtype)
    }
    at_fault = {deviation.output for deviation in verdict.deviations if deviation.beyond}
    if at_fault and not measuring.always:
        fit = {name: tensor for name, tensor in fit.items() if name in at_fault}

    others: dict[str, tuple[Float64, str]] = {}

    def measured(names: Iterable[str]) -> Verdict:
        chosen = tuple(names)
        if benchmark is not None and not others and any(TOLERANCES[name].needs_benchmark for name in chosen):
            others.update(benchmark({name: models[name] for name in fit}))
        pairs = [_pair(name, components(got[name]), expected, models[name], others.get(name)) for name in fit]
        return with_gate(msgspec.structs.replace(verdict, tolerances=measure(chosen, pairs)), gate)

    if passed and not measuring.always:
        judged = measured(gate)
        if judged.result == Result.PASSED:
            return judged
    return measured(TOLERANCES)


def recomputable_tolerances(gate: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Of a run's gating tolerances those that outputs alone decide: no adapter was given that they compare with."""
    return tuple(name for name in gate if not (settings.get("benchmark") and TOLERANCES[name].needs_benchmark))


def _pair(
    name: str,
    got: NDArray[Any],
    expected: Expected,
    model: ComputeModel,
    benchmark: tuple[Float64, str] | None,
) -> Pair:
    other, described = benchmark or (None, "")
    return make_pair(
        output=name,
        dtype=model.output.name,
        got=got,
        golden=expected[name].value,
        unsettled=expected[name].open,
        benchmark=other,
        benchmark_name=described,
        operand=model.operand.name if model.operand is not None else "",
    )


def formula_outputs(
    benchmark: Benchmark, question: OracleInput, models: Mapping[str, ComputeModel]
) -> Mapping[str, tuple[Float64, str]]:
    """Each output that the operator's formula in FLOAT has, as float64, and what it is.

    None for DOUBLE and for integers of more bits than FLOAT has.
    """
    computed: dict[str, Mapping[str, NDArray[np.float32]]] = {}
    others: dict[str, tuple[Float64, str]] = {}
    for name, model in models.items():
        if model.output.significand > BINARY_FORMATS["FLOAT"].significand:
            continue
        form = model.operand
        key = form.name if form is not None else ""
        if key not in computed:
            computed[key] = benchmark(question if form is None else _rounded(question, form))
        if name not in computed[key]:
            continue
        value = computed[key][name].astype(np.float64)
        through = ""
        if model.through is not None:
            value, through = round_to(value, model.through), f" by way of {model.through.name}"
        operands = "as stored" if form is None else f"rounded to {form.name}"
        described = f"NumPy in FLOAT, sums in order, operands {operands}, rounded to {model.output.name}{through}"
        others[name] = (round_to(value, model.output), described)
    return others


def _rounded(question: OracleInput, form: BinaryFormat) -> OracleInput:
    tensors = {
        name: round_to(array, form) if array.dtype == np.float64 else array for name, array in question.tensors.items()
    }
    return msgspec.structs.replace(question, tensors=tensors, lattices={})
