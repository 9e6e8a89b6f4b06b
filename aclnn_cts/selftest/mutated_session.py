"""The reference with mutants in it: correct statuses and results, changed where a mutant fires."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Adapter, Call, Capabilities, Session, TensorBuffer
from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.core.case import Case, owner
from aclnn_cts.core.dtypes import component, components, promoted_inputs
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.core.outcome import STATUSES, SUCCESS, CallEnd, Outcome
from aclnn_cts.core.rounding import BINARY_FORMATS, rounded, spacing, stored, to_dtype, widen
from aclnn_cts.core.target import Target
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judges, as_operands
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.emulator import FASTEST, Emulated, Emulator, TooManyTermsError, Variant
from aclnn_cts.formula.evaluation import DOUBLE
from aclnn_cts.formula.mutants import EVERY, Mutant, Site
from aclnn_cts.oracles import registry
from aclnn_cts.selftest.fault_catalogue import read_catalogue
from aclnn_cts.selftest.generated_mutants import CorrectVariant, draw_mutants
from aclnn_cts.selftest.kinds import (
    CRASH,
    INPUT_KINDS,
    LATE,
    OTHER_STATUS,
    OUTPUT_KINDS,
    REFUSED,
    ROUNDED,
    SPOILED,
    STALE,
    STORE_KINDS,
    ULPS,
    UNCHECKED,
    VIEW_KINDS,
    MutationInput,
    changed_tensor,
    describe_mutant,
    fires,
    meets_trigger,
    names_constraint,
    place_of,
    spoil_elements,
    status_named,
)
from aclnn_cts.selftest.subject import Subject
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.expression_parser import compile_text
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec

_SUCCESS = STATUSES[SUCCESS]
_INVALID = STATUSES["ACLNN_ERR_PARAM_INVALID"]
_SEGMENTATION_FAULT = 11

Values = dict[str, NDArray[Any]]


class MutatedSession:
    """A session of the reference in which mutants, or one decoy, are switched on."""

    def __init__(self, target: Target, specs: Mapping[str, Spec]) -> None:
        self._specs, self._target = specs, target
        self._plain = _reference(target, specs)
        self._judges = Judges(has_statuses=True)
        self._mutants: tuple[Mutant, ...] = ()
        self._decoy: CorrectVariant | None = None
        self._unchecked: dict[frozenset[Mutant], Session] = {}
        """The reference without the checks that mutants skip."""
        self._before: dict[Mutant, NDArray[Any]] = {}
        """By mutant its output in the call before, flat: what a stale element holds."""

    @property
    def capabilities(self) -> Capabilities:
        """Those of the reference."""
        return self._plain.capabilities

    @property
    def environment(self) -> Mapping[str, str]:
        """That of the reference, and what is switched on."""
        words = [describe_mutant(mutant) for mutant in self._mutants] if self._decoy is None else [self._decoy.text()]
        return {**self._plain.environment, "mutant": "; ".join(words) or "none"}

    def switch(self, *subjects: Mutant | CorrectVariant) -> None:
        """Have these mutants or this decoy from now on, and no memory of earlier calls; none: the reference alone."""
        self._mutants = tuple(item for item in subjects if isinstance(item, Mutant))
        self._decoy = next((item for item in subjects if isinstance(item, CorrectVariant)), None)
        self._before = {}

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls."""
        return [self._call(call) for call in calls]

    def close(self) -> None:
        """Nothing is held."""

    def _call(self, call: Call) -> Outcome:
        case, decoy = call.case, self._decoy
        if decoy is not None and decoy.variant is not None:
            return self._reordered(call, decoy, decoy.variant)
        mutants = [mutant for mutant in self._mutants if mutant.operator == case.operator]
        if not mutants:
            return self._reference_outcome(call)
        broken = {item.id for item in evaluate(self._specs[case.operator], case).broken}
        firing = [mutant for mutant in mutants if fires(mutant, case, broken)]
        of_values = [mutant for mutant in firing if mutant.site is not Site.STATUS]
        of_status = [mutant for mutant in firing if mutant.site is Site.STATUS]
        outcome = (
            self._computed_wrongly(call, of_values, of_status)
            if of_values
            else self._outcome_of_checks(call, of_status)
        )
        for mutant in mutants:
            changed = _written(call, outcome).get(changed_tensor(mutant, case))
            if mutant.kind == STALE and changed is not None and changed.view.size:
                self._before[mutant] = components(changed.view).reshape(-1).copy()
        return outcome

    def _computed_wrongly(self, call: Call, of_values: Sequence[Mutant], of_status: Sequence[Mutant]) -> Outcome:
        given = _inputs_of(call, of_values)
        fills = {name: buffer.view.copy() for name, buffer in _rewritten(call, of_values)}
        outcome = self._outcome_of_checks(call, of_status)
        if outputs := _written(call, outcome):
            self._change(call.case, of_values, outputs, given)
            for name, buffer in _rewritten(call, of_values):
                values = buffer.view.copy()
                buffer.view[...] = fills[name]
                _seen(call, buffer, VIEW_KINDS[0])[...] = values
        return outcome

    def _reference_outcome(self, call: Call) -> Outcome:
        return self._plain.run([call])[0]

    def _outcome_of_checks(self, call: Call, mutants: Sequence[Mutant]) -> Outcome:
        """What the reference answers with other checks and statuses."""
        kinds = {mutant.kind: mutant for mutant in mutants}
        if CRASH in kinds:
            return Outcome(ended=CallEnd.SIGNAL, signal=_SEGMENTATION_FAULT)
        if REFUSED in kinds:
            return Outcome(phase_one=_INVALID)
        skipping = frozenset(mutant for mutant in mutants if mutant.kind == UNCHECKED)
        outcome = self._skipped(call, skipping) if skipping else self._reference_outcome(call)
        later = _SUCCESS if call.case.call.phases == 2 else None
        if skipping and outcome.ended in (CallEnd.RAISED, CallEnd.NOT_RUN):
            # The reference computes nothing of such a call; an implementation without the check answers something.
            return Outcome(phase_one=_SUCCESS, phase_two=later)
        if OTHER_STATUS in kinds:
            right, wrong = map(status_named, kinds[OTHER_STATUS].value.split())
            if outcome.phase_one == right:
                outcome = Outcome(phase_one=wrong)
        if LATE in kinds and outcome.phase_one == _INVALID:
            return Outcome(phase_one=_SUCCESS, phase_two=later and _INVALID, workspace_size=0)
        return outcome

    def _skipped(self, call: Call, mutants: frozenset[Mutant]) -> Outcome:
        if mutants not in self._unchecked:
            spec = _without(self._specs[call.case.operator], mutants)
            self._unchecked[mutants] = _reference(self._target, {spec.operator: spec})
        return self._unchecked[mutants].run([call])[0]

    def _change(
        self, case: Case, mutants: Sequence[Mutant], outputs: Mapping[str, TensorBuffer], given: _Given
    ) -> None:
        """Make the changes in the outputs of a call that succeeded."""
        with np.errstate(all="ignore"):
            right = {name: widen(components(buffer.view)) for name, buffer in outputs.items()}
            wrong = dict(right)
            if any(mutant.site in _COMPUTED or mutant.kind in STORE_KINDS for mutant in mutants):
                computed = self._computed(case, mutants, given)
                if computed is None:
                    return
                right, wrong = computed
            question = self._question(case, given.right)
            for mutant in mutants:
                if mutant.site is Site.OUTPUT:
                    for name in [changed_tensor(mutant, case)] if mutant.of else list(wrong):
                        wrong[name] = self._output(mutant, question, wrong[name])
            for name, buffer in outputs.items():
                if name in wrong:
                    chosen = [item for item in mutants if item.site is Site.STORE and _is_about(item, name, case)]
                    _store(buffer, case, name, right[name], wrong[name], chosen)

    def _output(self, mutant: Mutant, question: OracleInput, values: NDArray[Any]) -> NDArray[Any]:
        axis = {"rows swapped": -2, "columns swapped": -1}.get(mutant.kind)
        place = place_of(mutant, values.size if axis is None else values.shape[axis] - 1)
        if mutant.kind == STALE:
            changed, before = np.array(values), self._before.get(mutant)
            if before is not None:
                changed.reshape(-1)[place] = widen(before)[place % before.size]
            return changed
        return OUTPUT_KINDS[mutant.kind](values, MutationInput(_amount(mutant, question), question, place))

    def _question(self, case: Case, tensors: Values) -> OracleInput:
        spec = self._specs[case.operator]
        return OracleInput(
            tensors=promoted_inputs(tensors, spec.promoting, spec.computed_in(case)),
            arguments=case.arguments,
            target=case.target,
            updated=spec.updated_tensors(case),
        )

    def _computed(self, case: Case, mutants: Sequence[Mutant], given: _Given) -> tuple[Values, Values] | None:
        """The outputs by the formula, without and with what the mutants change in it; None where that cannot be."""
        operator = registry.load_formula(self._specs[case.operator].stem)
        chosen = [mutant for mutant in mutants if mutant.site in _COMPUTED]
        form = max((mutant.form for mutant in chosen), default=0)
        question = self._question(case, given.right)
        try:
            right, names = _evaluated(operator, form, question)
            wrong = dict(right)
            for outputs in dict.fromkeys(mutant.outputs for mutant in chosen):
                together = [mutant for mutant in chosen if mutant.outputs == outputs]
                asked = self._misread(case, together, given)
                operation = next((item for item in together if item.site is Site.OPERATION), None)
                if operation is not None and operation.place != EVERY:
                    operation = _on_the_formula(operation, names)
                    if operation is None:
                        continue
                found, _ = _evaluated(operator, form, asked, operation)
                wrong.update((name, found[name]) for name in outputs or found)
        except TooManyTermsError:
            return None
        return right, wrong

    def _misread(self, case: Case, mutants: Sequence[Mutant], given: _Given) -> OracleInput:
        """The call as it is taken by an implementation that reads inputs and arguments wrongly."""
        question = self._question(case, given.right)
        arguments = dict(question.arguments)
        for mutant in mutants:
            if mutant.site is Site.ARGUMENT:
                arguments[mutant.of] = _argument(mutant, question)
        question = msgspec.structs.replace(question, arguments=arguments)
        tensors = dict(question.tensors)
        for mutant in mutants:
            for name in tensors if mutant.site is Site.INPUT else ():
                if mutant.of and owner(name) != mutant.of:
                    continue
                if mutant.kind in VIEW_KINDS:
                    tensors[name] = given.seen[mutant.kind].get(name, tensors[name])
                elif mutant.kind not in ROUNDED or tensors[name].dtype == np.float64:
                    asked = MutationInput(_amount(mutant, question), question, mutant.place)
                    tensors[name] = INPUT_KINDS[mutant.kind](tensors[name], asked)
        return msgspec.structs.replace(question, tensors=tensors)

    def _reordered(self, call: Call, decoy: CorrectVariant, variant: Variant) -> Outcome:
        """A correct call in another order of summation, where the decoy's trigger fires and the inputs are finite."""
        inputs = _held(call)
        outcome = self._reference_outcome(call)
        case = call.case
        outputs = _written(call, outcome)
        if not outputs or case.operator != decoy.operator:
            return outcome
        tensors = as_operands(case, inputs)
        spec = self._specs[case.operator]
        if (
            evaluate(spec, case).broken
            or not meets_trigger(decoy.trigger, case)
            or not all(np.isfinite(array).all() for array in tensors.values() if array.dtype == np.float64)
        ):
            return outcome
        for name, values in self._emulated(spec, case, inputs, variant).items():
            np.copyto(components(outputs[name].view), values)
        return outcome

    def _emulated(
        self, spec: Spec, case: Case, inputs: Mapping[str, NDArray[Any]], variant: Variant
    ) -> Mapping[str, NDArray[Any]]:
        """The outputs of an emulation; none where a sum is too long for one."""
        operator = registry.load_formula(spec.stem)
        judge = self._judges.of(spec)
        performed = PerformedCall(case=case, outcome=Outcome(), arrays=inputs)
        models = judge.models(performed)
        subject = Subject.of(operator, judge.oracle, judge.question(performed), models)
        try:
            outputs = subject.emulated(variant).outputs
        except TooManyTermsError:
            return {}
        with np.errstate(all="ignore"):
            return {name: stored(np.asarray(values), models[name].output.name) for name, values in outputs.items()}


MUTANT_ADAPTER = "aclnn_cts.selftest.mutated_session:MutantAdapter"
"""The word for `--adapter`, before the options."""


@dataclass(frozen=True, slots=True)
class MutantAdapter:
    """`--adapter aclnn_cts.selftest.mutated_session:MutantAdapter,mutant=ID`: one mutant, for any command.

    A seeded fault by its id, or with `seed=TEXT` a generated mutant.
    """

    mutant: str
    seed: str = ""

    def open(self, target: Target, specs: Mapping[str, Spec]) -> MutatedSession:
        """Open the reference with the mutant. UsageError for an id that no operator has."""
        session = MutatedSession(target, specs)
        session.switch(*(self._generated(target, specs) if self.seed else self._seeded()))
        return session

    def _seeded(self) -> Sequence[Mutant | CorrectVariant]:
        subjects = read_catalogue(load_specs()).find(self.mutant, where="mutant=").subjects
        if not subjects:
            raise UsageError(
                f"mutant={self.mutant}: it is in the software device; `aclnn-cts faults --fault {self.mutant}` says "
                "how any command meets it"
            )
        return subjects

    def _generated(self, target: Target, specs: Mapping[str, Spec]) -> Sequence[Mutant]:
        stem, _, number = self.mutant.rpartition(".")
        spec = next((spec for spec in specs.values() if spec.stem == stem), None)
        if spec is None or not number.isdecimal() or len(number) > _MOST_DIGITS:
            raise UsageError(f"mutant={self.mutant}: expected an id as `aclnn-cts mutants --list` shows them")
        return list(draw_mutants(spec, target, seed=self.seed, count=int(number) + 1))[-1:]


_MOST_DIGITS = 5


def _reference(target: Target, specs: Mapping[str, Spec]) -> Session:
    adapter: Adapter = load(parse_adapter_word("reference"))
    return adapter.open(target, specs)


def _without(spec: Spec, mutants: Iterable[Mutant]) -> Spec:
    """The spec of an implementation that does not look at some constraints."""

    def is_left(identifier: str) -> bool:
        return not any(names_constraint(mutant, identifier) for mutant in mutants)

    mutants = tuple(mutants)
    tests = {product: tuple(row for row in spec.tests[product] if is_left(row[3].id)) for product in spec.products}
    pointers = tuple(item for item in spec.pointers if is_left(item[1].id))
    return dataclasses.replace(spec, tests=tests, pointers=pointers)


_COMPUTED = (Site.INPUT, Site.ARGUMENT, Site.OPERATION)
"""Sites that the formula is evaluated for."""


def _amount(mutant: Mutant, question: OracleInput) -> float:
    """The value of a mutant for a call; 0 where it has none."""
    return float(compile_text(mutant.value)(question.arguments, question.target)) if mutant.value else 0.0


def _amounts(mutant: Mutant, question: OracleInput) -> NDArray[Any]:
    """The same of an operation: for places, one for each `i` along the last dimension of the first input."""
    if mutant.kind != "places":
        return np.asarray(_amount(mutant, question))
    value, length = compile_text(mutant.value), next(iter(question.tensors.values())).shape[-1]
    arguments = dict(question.arguments)
    return np.array([int(value({**arguments, "i": place}, question.target)) for place in range(length)], np.int64)


def _argument(mutant: Mutant, question: OracleInput) -> int | float:
    value = compile_text(mutant.value)(question.arguments, question.target)
    if mutant.kind in ROUNDED:
        return float(rounded(np.array(float(value)), ROUNDED[mutant.kind]))
    return int(value) if isinstance(question.arguments[mutant.of], int) else float(value)


def _on_the_formula(mutant: Mutant, names: Sequence[str]) -> Mutant | None:
    """The mutant at its place among all operations; None where the formula has no such operation."""
    places = [place for place, name in enumerate(names) if name in mutant.of.split("|")]
    return dataclasses.replace(mutant, place=places[mutant.place % len(places)]) if places else None


def _evaluated(
    operator: Operator, form: int, question: OracleInput, mutant: Mutant | None = None
) -> tuple[Values, list[str]]:
    """The results of a form in float64, and the names of its operations."""
    amount = 0.0 if mutant is None else _amounts(mutant, question)
    f = Emulator(DOUBLE, Variant(order=FASTEST), mutant=mutant, amount=amount)
    results = operator.evaluate(operator.forms[form], f, question)
    values = {name: np.asarray(result.v) for name, result in results.items() if isinstance(result, Emulated)}
    return values, [operation.name for operation in f.operations]


def _is_about(mutant: Mutant, name: str, case: Case) -> bool:
    return not mutant.of or changed_tensor(mutant, case) == name


def _store(
    buffer: TensorBuffer,
    case: Case,
    name: str,
    right: NDArray[Any],
    wrong: NDArray[Any],
    mutants: Iterable[Mutant],
) -> None:
    """Write what differs from the right result once both are rounded to the output's dtype."""
    view, dtype = components(buffer.view), component(_dtype(case, name))
    right, wrong = np.broadcast_to(right, view.shape), np.broadcast_to(wrong, view.shape)
    form = BINARY_FORMATS[dtype]
    plain = widen(to_dtype(right, dtype))
    for mutant in mutants:
        if mutant.kind in STORE_KINDS:
            wrong = STORE_KINDS[mutant.kind](wrong, form)
        elif mutant.kind == SPOILED:
            wrong = spoil_elements(wrong, form)
        elif mutant.kind == ULPS and wrong.size:
            wrong, place = np.array(wrong), place_of(mutant, wrong.size)
            value = float(wrong.reshape(-1)[place])
            step = 2.0 * float(spacing(np.array(value), form))
            wrong.reshape(-1)[place] = value + float(np.copysign(step, value))
    made = to_dtype(wrong, dtype)
    values = widen(made)
    np.copyto(view, made, where=(values != plain) & ~(np.isnan(values) & np.isnan(plain)))


@dataclass(frozen=True, slots=True)
class _Given:
    """What the inputs held before the call, as oracles take it."""

    right: Values
    seen: Mapping[str, Values]
    """By kind: the inputs as they look to who ignores strides or offsets."""


def _inputs_of(call: Call, mutants: Iterable[Mutant]) -> _Given:
    kinds = {mutant.kind for mutant in mutants if mutant.site is Site.INPUT and mutant.kind in VIEW_KINDS}
    inputs = {} if call.buffers is None else call.buffers.inputs
    return _Given(
        as_operands(call.case, _held(call)),
        {
            kind: as_operands(call.case, {name: _seen(call, buffer, kind).copy() for name, buffer in inputs.items()})
            for kind in kinds
        },
    )


def _seen(call: Call, buffer: TensorBuffer, kind: str) -> NDArray[Any]:
    """A tensor's memory as it looks to who ignores its strides or its offset."""
    if call.buffers is None:
        raise TypeError("a call without buffers has no memory")
    memory, view = call.buffers.memory, buffer.view
    start = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    strides: tuple[int, ...] | None = view.strides
    if kind == VIEW_KINDS[0]:
        strides = None
    else:
        names = [name for name, other in call.buffers.inputs.items() if other is buffer]
        descriptor = call.case.tensor(names[0])
        start -= 0 if descriptor is None else descriptor.offset * view.itemsize
    seen: NDArray[Any] = np.ndarray(view.shape, view.dtype, memory, start, strides)
    return seen


def _rewritten(call: Call, mutants: Iterable[Mutant]) -> list[tuple[str, TensorBuffer]]:
    """The outputs that mutants write as if they were contiguous."""
    ignoring = any(mutant.site is Site.STORE and mutant.kind in VIEW_KINDS for mutant in mutants)
    return [] if call.buffers is None or not ignoring else list(call.buffers.outputs.items())


def _written(call: Call, outcome: Outcome) -> Mapping[str, TensorBuffer]:
    """The outputs of a call that has succeeded; none of another, and none without a second phase."""
    succeeded = outcome.ended == CallEnd.RETURNED and outcome.status == _SUCCESS and call.case.call.phases == 2
    return call.buffers.outputs if call.buffers is not None and succeeded else {}


def _held(call: Call) -> Values:
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
