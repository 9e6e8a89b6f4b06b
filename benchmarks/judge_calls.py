"""Calls whose outputs are made here, and what the bound and the other tolerances say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from aclnn_cts.core.case import Case
from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.rounding import round_to, spacing, toward_zero
from aclnn_cts.core.verdict import ToleranceVerdict
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge, JudgementBasis
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.judgement.bound import Bound, bound
from aclnn_cts.judgement.compare import compare_all
from aclnn_cts.judgement.comparison import ComparedOutput
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.tolerances.protocol import Tolerance, make_pair
from aclnn_cts.judgement.tolerances.registry import TOLERANCES
from benchmarks.assert_close import AssertClose
from benchmarks.emulated_operators import FORMULAS, emulate
from benchmarks.emulations import (
    ORDERS,
    Operand,
    Way,
    each_its_own,
    hfloat32,
    rounding_away,
    rounding_even,
    unrounded,
)
from benchmarks.faults_of_precision import FAULTS, PERTURBATION, Arithmetic

Outputs = Mapping[str, Float64]

BOUND = "bound"
OTHERS: Mapping[str, Tolerance] = {
    "mixed": TOLERANCES["mixed"],
    "mere-mare": TOLERANCES["mere-mare"],
    "assert-close": AssertClose(),
}
JUDGES = (BOUND, *OTHERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One case, and what is known of it before anything is computed."""

    case: Case
    question: OracleInput
    limits: Mapping[str, JudgementBasis]
    arithmetic: Arithmetic
    bounds: Mapping[str, Bound]

    @classmethod
    def make(cls, judge: Judge, case: Case) -> Call:
        """Its data, what the oracle says of them, and the compute models."""
        performed = PerformedCall(case=case, outcome=Outcome(), arrays=case_arrays(case, judge.spec.inputs))
        limits = judge.limits(performed)
        models = [entry.model for entry in limits.values()]
        operand = next((model.operand for model in models if model.operand is not None), None)
        return cls(
            case=case,
            question=judge.question(performed),
            limits=limits,
            arithmetic=Arithmetic(dtype=models[0].output.name, operand=operand),
            bounds={
                name: bound(entry.expected, entry.model, operands=entry.operands) for name, entry in limits.items()
            },
        )

    @property
    def elements(self) -> int:
        """Of all outputs."""
        return sum(tensor.numel for name, tensor in self.case.tensors() if name in self.limits)

    def emulated(self, way: Way, *, through: bool = False, truncates: bool = False) -> Outputs:
        """The outputs of a way of computing, rounded to their dtypes, as float64."""
        return {
            name: _stored(value, self.limits[name].model, flushes=way.flushes, through=through, truncates=truncates)
            for name, value in emulate(self.case.operator, self.question, way).items()
        }


def _stored(value: Float64, model: ComputeModel, *, flushes: bool, through: bool, truncates: bool) -> Float64:
    """A result as its dtype holds it."""
    if through and model.through is not None:
        value = round_to(value, model.through)
    value = toward_zero(value, model.output) if truncates else round_to(value, model.output)
    if flushes and model.flushes_result:
        return np.where(np.abs(value) < model.output.smallest_normal, 0.0, value)
    return value


def out_of_bound(call: Call, outputs: Outputs) -> bool:
    """Whether the bound finds a fault in any output."""
    for name, got in outputs.items():
        ends, limits = call.bounds[name].ends, call.limits[name]
        # What `compare_all` would say of finite numbers between their ends; it is asked where that does not decide.
        if (
            np.isfinite(limits.expected.value).all()
            and np.isfinite(got).all()
            and ((ends.lower <= got) & (got <= ends.upper)).all()
        ):
            continue
        item = ComparedOutput(
            output=name, got=got, expected=limits.expected, model=limits.model, operands=limits.operands
        )
        if compare_all([item])[0].kind:
            return True
    return False


def accusers(call: Call, outputs: Outputs) -> frozenset[str]:
    """Those judges that find a fault in any output."""
    found = {BOUND} if out_of_bound(call, outputs) else set()
    for name, got in outputs.items():
        limits = call.limits[name]
        model = limits.model
        pair = make_pair(
            output=name,
            dtype=model.output.name,
            got=got,
            golden=limits.expected.value,
            unsettled=limits.expected.open,
            operand=model.operand.name if model.operand is not None else "",
        )
        for other, tolerance in OTHERS.items():
            if other not in found and tolerance.measure(pair).verdict == ToleranceVerdict.FAIL:
                found.add(other)
    return frozenset(found)


def correct_ways(call: Call, number: int) -> Iterator[tuple[Way, bool]]:
    """A way in each order of summation, and whether results pass through the model's narrower format.

    `number` counts cases: fused operations, formulas, truncation, flushing and operand formats, as far as the models
    admit them, take their turns by it.
    """
    form = call.arithmetic.operand
    models = [entry.model for entry in call.limits.values()]
    operands: list[Operand] = [unrounded]
    if form is not None:
        operands = [rounding_even(form), rounding_away(form), unrounded]
        if form.name == "HFLOAT32":
            operands += [rounding_even(hfloat32(11)), rounding_away(hfloat32(11))]
        operands.append(each_its_own(tuple(operands), number))
    for place, order in enumerate(ORDERS):
        turn = number * len(ORDERS) + place
        random = np.random.Generator(np.random.Philox(turn))
        way = Way(
            order=order,
            fused=(number + place) % 2 == 0,
            formula=turn % FORMULAS,
            operand=operands[int(random.integers(len(operands)))],
            truncates=all(model.truncates for model in models) and random.random() < 0.5,
            flushes=all(model.flushes_compute for model in models) and random.random() < 0.25,
            flush_below=models[0].accumulation.smallest_normal if form is None else form.smallest_normal,
            key=turn,
        )
        yield way, bool(random.random() < 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulty:
    """One fault in one call, beside its correct twin."""

    fault: str
    outputs: Outputs
    twin: Outputs


def faulty_calls(call: Call, number: int) -> Iterator[Faulty]:
    """Every fault that applies and changes at least one element; all of a call share their correct twin's order."""
    arithmetic = call.arithmetic
    way = replace(
        arithmetic.way,
        order=ORDERS[number % len(ORDERS)],
        fused=number // len(ORDERS) % 2 == 0,
        formula=number % FORMULAS,
        key=number,
    )
    twin = call.emulated(way)
    for fault in FAULTS.values():
        if not fault.applies(arithmetic):
            continue
        if fault.name == PERTURBATION:
            outputs = perturbed(call, twin, number)
        else:
            outputs = call.emulated(fault.harm(way, arithmetic), truncates=fault.truncates_output)
        if not same(outputs, twin):
            yield Faulty(fault=fault.name, outputs=outputs, twin=twin)


def same(left: Outputs, right: Outputs) -> bool:
    """Whether all outputs are equal; the sign of zero does not count."""
    return all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def perturbed(call: Call, outputs: Outputs, number: int) -> Outputs:
    """The outputs with one element 2 ULP farther from the exact value, where no conforming one is as far."""
    random = np.random.Generator(np.random.Philox(number))
    for name in random.permutation(list(outputs)).tolist():
        got, limits = outputs[name], call.limits[name]
        if not got.size:
            continue
        with np.errstate(all="ignore"):
            expected, model = limits.expected, limits.model
            conforming = call.bounds[name]
            value = np.broadcast_to(expected.value, got.shape)
            away = np.where(got >= value, 1.0, -1.0)
            moved = got + 2.0 * away * spacing(got, model.output)
            tight = (np.abs(moved - value) > conforming.ends.width) & (np.abs(moved) <= model.output.largest)
            tight &= ~np.broadcast_to(np.asarray(conforming.overflow), got.shape)
            if expected.open is not None:
                tight &= ~expected.open
        places = np.flatnonzero(tight & np.isfinite(got))
        if places.size:
            changed = got.copy()
            place = random.choice(places)
            changed.flat[place] = moved.flat[place]
            return {**outputs, name: changed}
    return outputs
