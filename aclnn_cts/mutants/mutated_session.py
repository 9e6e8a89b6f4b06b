"""The reference with a generated mutant in it: correct results, changed where the mutant's trigger fires."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Adapter, Call, Capabilities, Session, TensorBuffer
from aclnn_cts.adapters.registry import choose, load
from aclnn_cts.core.case import Case, owner
from aclnn_cts.core.dtypes import INEXACT, component, components, composed, promoted_inputs
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.core.outcome import STATUSES, SUCCESS, Ended, Outcome
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to, spacing, stored, to_dtype, widen
from aclnn_cts.core.target import Target
from aclnn_cts.execution.executor import Performed
from aclnn_cts.execution.judging import Judges, widened
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.emulator import FASTEST, Emulated, Emulator, TooManyTermsError, Variant
from aclnn_cts.formula.expectation import DOUBLE
from aclnn_cts.formula.mutants import Mutant
from aclnn_cts.generate.buffers import CallBuffers
from aclnn_cts.mutants.generated import Change, GeneratedDecoy, GeneratedMutant, draw_mutants, holds
from aclnn_cts.oracle_check.subject import Subject
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec

_SUCCESS = STATUSES[SUCCESS]
_INVALID = STATUSES["ACLNN_ERR_PARAM_INVALID"]

_SUMS = ("sum", "scatter", "sum of products")
_OF_A_SUM: Mapping[Change, str] = {Change.DROP: "last term dropped", Change.TWICE: "last term twice"}


class MutatedSession:
    """A session of the reference in which one mutant or decoy at a time is switched on."""

    def __init__(self, target: Target, specs: Mapping[str, Spec]) -> None:
        self._specs, self._target = specs, target
        self._plain = _reference(target, specs)
        self._judges = Judges(has_statuses=True)
        self._mutant: GeneratedMutant | None = None
        self._decoy: GeneratedDecoy | None = None
        self._skipping: Session = self._plain
        self._before: NDArray[Any] | None = None
        """The mutant's output in the call before, flat: what a stale element holds."""

    @property
    def capabilities(self) -> Capabilities:
        """Those of the reference."""
        return self._plain.capabilities

    @property
    def environment(self) -> Mapping[str, str]:
        """That of the reference, and what is switched on."""
        switched = self._mutant or self._decoy
        return {**self._plain.environment, "mutant": "none" if switched is None else switched.text()}

    def switch(self, subject: GeneratedMutant | GeneratedDecoy | None) -> None:
        """Have this mutant or decoy from now on, and no memory of earlier calls; None: the reference alone."""
        self._mutant = subject if isinstance(subject, GeneratedMutant) else None
        self._decoy = subject if isinstance(subject, GeneratedDecoy) else None
        self._before = None
        if self._mutant is not None and self._mutant.change is Change.SKIP:
            spec = _without(self._specs[self._mutant.operator], self._mutant.constraint)
            self._skipping = _reference(self._target, {spec.operator: spec})

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls."""
        return [self._call(call) for call in calls]

    def close(self) -> None:
        """Nothing is held."""

    def _call(self, call: Call) -> Outcome:
        mutant, decoy = self._mutant, self._decoy
        if decoy is not None and decoy.variant is not None:
            return self._reordered(call, decoy, decoy.variant)
        if mutant is None or call.case.operator != mutant.operator:
            return self._made(call)
        broken = {item.id for item in evaluate(self._specs[mutant.operator], call.case).broken}
        if not mutant.fires(call.case, broken):
            outcome = self._made(call)
        elif mutant.change is Change.REJECT:
            return Outcome(phase_one=_INVALID)
        elif mutant.change is Change.SKIP:
            return self._unchecked(call)
        elif mutant.change is Change.ROUND:
            return self._made(_with_rounded(call, mutant))
        else:
            given = _given(call)
            outcome = self._made(call)
            if outputs := _written(call, outcome):
                self._change(call.case, mutant, outputs, given)
        if mutant.change is Change.STALE:
            buffer = _written(call, outcome).get(mutant.tensor(call.case))
            if buffer is not None and buffer.view.size:
                self._before = components(buffer.view).reshape(-1).copy()
        return outcome

    def _made(self, call: Call) -> Outcome:
        return self._plain.run([call])[0]

    def _unchecked(self, call: Call) -> Outcome:
        outcome = self._skipping.run([call])[0]
        if outcome.ended == Ended.RAISED:
            # The reference computes nothing of such a call; an implementation without the check answers something.
            return Outcome(phase_one=_SUCCESS, phase_two=_SUCCESS if call.case.call.phases == 2 else None)
        return outcome

    def _change(
        self,
        case: Case,
        mutant: GeneratedMutant,
        outputs: Mapping[str, TensorBuffer],
        given: Mapping[str, NDArray[Any]],
    ) -> None:
        """Make the change in the outputs of a call that succeeded; `given`: what its inputs held."""
        if mutant.change in _OF_A_SUM:
            self._change_sum(case, mutant, outputs, given)
            return
        name = mutant.tensor(case)
        view, dtype = outputs[name].view, _dtype(case, name)
        if mutant.change in (Change.ROWS, Change.COLUMNS):
            axis = view.ndim - (1 if mutant.change is Change.COLUMNS else 2)
            if axis >= 0 and view.shape[axis] > 1:
                first = mutant.at(view.shape[axis] - 1)
                pair = np.moveaxis(view, axis, 0)[first : first + 2]
                pair[...] = pair[::-1].copy()
            return
        view, dtype = components(view), component(dtype)
        place = mutant.at(view.size)
        index = np.unravel_index(place, view.shape)
        if mutant.change is Change.STALE:
            if self._before is not None:
                # The first call after this one sees the element as it was computed, not as it was left.
                view[index] = self._before[place % self._before.size]
            return
        value = float(widen(np.asarray(view[index])))
        changed = {Change.ZERO: 0.0, Change.DOUBLE: 2.0 * value, Change.NEGATE: -value}.get(mutant.change)
        if changed is None:
            step = 2.0 * float(spacing(np.array(value), BINARY_FORMATS[dtype]))
            changed = value + float(np.copysign(step, value))
        view[index] = to_dtype(np.array(changed), dtype)

    def _change_sum(
        self,
        case: Case,
        mutant: GeneratedMutant,
        outputs: Mapping[str, TensorBuffer],
        given: Mapping[str, NDArray[Any]],
    ) -> None:
        """Drop the last contribution of one of the formula's sums, or add it twice."""
        spec = self._specs[mutant.operator]
        operator = registry.load_formula(spec.stem)
        if operator is None:
            return
        tensors = promoted_inputs(widened(case, given), spec.promoting, spec.computed_in(case))
        question = OracleInput(
            tensors=tensors, arguments=case.arguments, target=case.target, updated=spec.updated(case)
        )
        with np.errstate(all="ignore"):
            right, names = _evaluated(operator, question, None)
            sums = [place for place, name in enumerate(names) if name in _SUMS]
            if not sums:
                return
            place = sums[mutant.at(len(sums))]
            wrong, _ = _evaluated(operator, question, Mutant(place, _OF_A_SUM[mutant.change]))
            for name, buffer in outputs.items():
                if name in wrong:
                    view, dtype = components(buffer.view), component(_dtype(case, name))
                    shape = view.shape
                    other = np.broadcast_to(wrong[name] != right[name], shape)
                    other = other & ~(np.isnan(wrong[name]) & np.isnan(right[name]))
                    np.copyto(view, to_dtype(np.broadcast_to(wrong[name], shape), dtype), where=other)

    def _reordered(self, call: Call, decoy: GeneratedDecoy, variant: Variant) -> Outcome:
        """A correct call in another order of summation, where the decoy's trigger fires and the inputs are finite."""
        inputs = _given(call)
        outcome = self._made(call)
        case = call.case
        outputs = _written(call, outcome)
        if not outputs or case.operator != decoy.operator:
            return outcome
        tensors = widened(case, inputs)
        spec = self._specs[case.operator]
        if (
            evaluate(spec, case).broken
            or not holds(decoy.conditions, case)
            or not all(np.isfinite(array).all() for array in tensors.values() if array.dtype == np.float64)
        ):
            return outcome
        for name, values in self._emulated(spec, case, inputs, variant).items():
            np.copyto(components(outputs[name].view), values)
        return outcome

    def _emulated(
        self, spec: Spec, case: Case, inputs: Mapping[str, NDArray[Any]], variant: Variant
    ) -> Mapping[str, NDArray[Any]]:
        """The outputs of an emulation; none where a sum is too long for one, or there is no formula."""
        operator = registry.load_formula(spec.stem)
        if operator is None:
            return {}
        judge = self._judges.of(spec)
        performed = Performed(case=case, outcome=Outcome(), arrays=inputs)
        models = judge.models(performed)
        subject = Subject.of(operator, judge.oracle, judge.question(performed), models)
        try:
            outputs = subject.emulated(variant).outputs
        except TooManyTermsError:
            return {}
        with np.errstate(all="ignore"):
            return {name: stored(np.asarray(values), models[name].output.name) for name, values in outputs.items()}


@dataclass(frozen=True, slots=True)
class MutantAdapter:
    """`--adapter aclnn_cts.mutants.mutated_session:MutantAdapter,mutant=ID,seed=TEXT`: one mutant, for any command."""

    mutant: str
    seed: str

    def open(self, target: Target, specs: Mapping[str, Spec]) -> MutatedSession:
        """Open the reference with the mutant. UsageError for an id that no operator has."""
        stem, _, number = self.mutant.rpartition(".")
        spec = next((spec for spec in specs.values() if spec.stem == stem), None)
        if spec is None or not number.isdecimal() or len(number) > _MOST_DIGITS:
            raise UsageError(f"mutant={self.mutant}: expected an id as `aclnn-cts mutants --list` shows them")
        sums = registry.load_formula(spec.stem) is not None
        *_, mutant = draw_mutants(spec, target, seed=self.seed, count=int(number) + 1, sums=sums)
        session = MutatedSession(target, specs)
        session.switch(mutant)
        return session


_MOST_DIGITS = 5


def _reference(target: Target, specs: Mapping[str, Spec]) -> Session:
    adapter: Adapter = load(choose("reference"))
    return adapter.open(target, specs)


def _without(spec: Spec, constraint: str) -> Spec:
    """The spec of an implementation that does not look at one constraint."""
    compiled = {
        product: tuple(row for row in rows if row[3].id != constraint) for product, rows in spec.compiled.items()
    }
    pointers = tuple(item for item in spec.pointers if item[1].id != constraint)
    return dataclasses.replace(spec, compiled=compiled, pointers=pointers)


def _with_rounded(call: Call, mutant: GeneratedMutant) -> Call:
    """The call with operands rounded to the mutant's format; those of other dtypes are as they were."""
    buffers = call.buffers
    if not isinstance(buffers, CallBuffers):
        return call
    inputs = dict(buffers.inputs)
    for name, buffer in buffers.inputs.items():
        dtype = _dtype(call.case, name)
        if dtype in INEXACT and mutant.operand in ("", owner(name)):
            values = round_to(widen(components(buffer.view)), BINARY_FORMATS[mutant.format])
            view = composed(to_dtype(values, component(dtype)), dtype)
            inputs[name] = msgspec.structs.replace(buffer, view=view)
    return dataclasses.replace(call, buffers=msgspec.structs.replace(buffers, inputs=inputs))


def _evaluated(
    operator: Operator, question: OracleInput, mutant: Mutant | None
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """The results of the formula in float64, and the names of its operations."""
    f = Emulator(DOUBLE, Variant(order=FASTEST), mutant=mutant)
    results = operator.evaluate(operator.judging, f, question)
    values = {name: np.asarray(result.v) for name, result in results.items() if isinstance(result, Emulated)}
    return values, [operation.name for operation in f.operations]


def _written(call: Call, outcome: Outcome) -> Mapping[str, TensorBuffer]:
    """The outputs of a call that has succeeded; none of another, and none without a second phase."""
    succeeded = outcome.ended == Ended.RETURNED and outcome.status == _SUCCESS and call.case.call.phases == 2
    return call.buffers.outputs if call.buffers is not None and succeeded else {}


def _given(call: Call) -> dict[str, NDArray[Any]]:
    """What the inputs hold; a copy of those that the call writes to."""
    if call.buffers is None:
        return {}
    outputs = call.buffers.outputs
    return {
        name: buffer.view.copy() if name in outputs else buffer.view for name, buffer in call.buffers.inputs.items()
    }


def _dtype(case: Case, name: str) -> str:
    descriptor = case.tensor(name)
    return "" if descriptor is None else descriptor.dtype
