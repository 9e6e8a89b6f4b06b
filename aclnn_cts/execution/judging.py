"""From the outcome of a call to a verdict: oracle, compute model and promised statuses of its operator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.results import dtype_fact, shape_fact
from aclnn_cts.core.case import Argument, Case, Tensor
from aclnn_cts.core.dtypes import INEXACT, component, components, promoted_inputs
from aclnn_cts.core.errors import OracleError
from aclnn_cts.core.expected import (
    BlockOracle,
    Condense,
    ExpectedOutput,
    Oracle,
    OracleInput,
)
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.outcome import SUCCESS, CallEnd
from aclnn_cts.core.rounding import BINARY_FORMATS, as_operand, is_large
from aclnn_cts.core.verdict import FINER_FACT, Judged, OutOfScope, Result, SkipReason, Verdict
from aclnn_cts.execution.executor import TOO_LARGE, PerformedCall
from aclnn_cts.execution.measuring import Measuring
from aclnn_cts.execution.values import (
    Answer,
    Opened,
    in_whole_output,
    look_at,
    look_at_operands,
    with_magnitudes,
    with_open_elements,
)
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.generate.predicate import compile_predicate
from aclnn_cts.generate.recipes import lattice
from aclnn_cts.judgement.compare import as_stored
from aclnn_cts.judgement.model import ComputeModel, PrecisionModels, precision_of
from aclnn_cts.judgement.operands import (
    OperandFacts,
    known_operands,
)
from aclnn_cts.judgement.verdict import (
    OUTPUT_FACT,
    compared_outputs,
    conclude,
    ended_badly,
    judge_form,
    judge_status,
    late_write,
    memory_fault,
)
from aclnn_cts.oracles import registry
from aclnn_cts.oracles.registry import Benchmark, SecondOracle
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.model import Spec

if TYPE_CHECKING:
    from aclnn_cts.execution.benchmark import AdapterBenchmark

_predicate = cache(compile_predicate)

IsSampledOut: TypeAlias = Callable[[PerformedCall, Verdict], bool]
"""Of a call and the fault of its values: whether it is one of many known ones, and not in the sample to measure."""

_OF_MEMORY = Fault.of(Family.MEMORY)

_CONDENSED = 1 << 17
"""Elements of an output from which on the oracle is asked about the rows that are not 0 alone."""

_MORE_ROWS = 64
"""Rows of a condensed call that must be 0 and are not: so many are looked at."""

_WHOLE = 1 << 22
"""Elements of all outputs of a call up to which it is looked at as a whole where it must be, in half a gigabyte."""

_SMALL = 1 << 12
"""Elements of all outputs of a call up to which it is looked at together with others."""
_SMALL_INPUTS = 1 << 16
"""The same of all inputs: a mask of attention has 4 million elements, and those of many calls take a gigabyte."""


def _keeps_all(_performed: PerformedCall, _verdict: Verdict) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgementBasis:
    """What is known of one output before it is looked at."""

    expected: ExpectedOutput
    model: ComputeModel
    operands: OperandFacts


@dataclass(frozen=True)
class Judge:
    """Judges calls of one operator. Made once; it keeps nothing of a call but what `with_batch` is asked to."""

    spec: Spec
    oracle: Oracle
    precision: PrecisionModels
    """The compute models of the operator (`judgement.model.precision_of`)."""
    has_statuses: bool
    first: Oracle | None = None
    """What the first form alone says: enough of most calls. None: `oracle` says no more."""
    condense: Condense | None = None
    """What makes a smaller call of one with many rows of 0."""
    blocks: BlockOracle | None = None
    """What `oracle` says of a large call block by block; None: it is looked at as a whole."""
    second: SecondOracle | None = None
    """The formula in 50 digits, which failures are put to."""
    forms: tuple[FormulaOracle, ...] = ()
    """Further forms of the formula, which explain failures."""
    benchmark: Benchmark | None = None
    """The operator's second implementation in FLOAT, which some tolerances compare with."""
    implementation: AdapterBenchmark | None = None
    """Another one in its place."""
    measuring: Measuring = Measuring()
    """Which tolerances gate; failures alone are put to the others, or with `always` every call."""
    answers: Mapping[int, Answer] = field(default_factory=dict)
    """What is known already of the values of calls, by the identity of their `PerformedCall`."""
    is_sampled_out: IsSampledOut = _keeps_all
    """Failures without tolerances and magnitudes, where no tolerance gates."""

    @cached_property
    def thorough(self) -> Judge:
        """The same judge, which puts every call to all tolerances and counts its elements by magnitude."""
        return replace(self, measuring=replace(self.measuring, always=True))

    def question(self, performed: PerformedCall) -> OracleInput:
        """What the oracle is asked about a call."""
        case = performed.case
        tensors = promoted_inputs(as_operands(case, performed.arrays), self.spec.promoting, self.spec.computed_in(case))
        return self._question(case, tensors)

    def _question(self, case: Case, tensors: Mapping[str, NDArray[Any]]) -> OracleInput:
        lattices: dict[str, float] = {}
        for name in tensors:
            if (tensor := case.tensor(name)) is not None and (step := lattice(tensor)) is not None:
                lattices[name] = step
        return OracleInput(
            tensors=tensors,
            arguments=case.arguments,
            target=case.target,
            lattices=lattices,
            updated=self.spec.updated_tensors(case),
        )

    def outputs_of_mode(self, performed: PerformedCall) -> tuple[str, ...]:
        """The outputs that come straight from operands in the mode's format (from all inputs where there are no modes).

        One that the mode does not concern is left out, and so is one that passes through another format on its way.
        """
        case = performed.case
        outputs = {name: tensor for name, tensor in case.tensors() if name in performed.got}
        models = self._models(performed, outputs, self.spec.mode(performed.case).operand)
        moded = self.precision.models(
            operator=self.spec.operator, dtypes=dict.fromkeys(outputs, "FLOAT"), target=case.target, operand="BF16"
        )
        return tuple(
            name
            for name, model in models.items()
            if model.through is None and (self.spec.modes is None or moded[name].operand is not None)
        )

    def saturates(self, performed: PerformedCall) -> bool:
        """Whether the target's arithmetic turns an overflow into the largest finite number."""
        outputs = {name: tensor for name, tensor in performed.case.tensors() if name in performed.got}
        return any(model.saturates for model in self._models(performed, outputs, None).values())

    def values(self, performed: PerformedCall, *, allowed: tuple[str, ...] = (SUCCESS,)) -> Verdict:
        """The verdict on a call that the document supports."""
        mode = self.spec.mode(performed.case)
        answer = self.answers.get(id(performed)) if SUCCESS in allowed else None
        verdict = None
        if answer is None:
            outputs = self._outputs(performed.case)
            verdict = self.form(performed, allowed=allowed)
            if verdict is not None and (
                verdict.result != Result.FAILED
                or not _succeeded(performed)
                or _wrong_form(performed, outputs, mode.name) is not None
            ):
                return (
                    verdict  # there are no values; beside other faults of form there are, and tolerances speak of them
                )
            if verdict is None and (found := self._in_blocks(performed, outputs)) is not None:
                return found
            answer = self._first_answer(self._opened(performed, outputs))
        if verdict is None or verdict.kind in _OF_MEMORY:
            if not answer.comparisons:
                look_at([answer])
            values = conclude(answer.comparisons, answer.models, mode.name)
            # What is wrong beside a stray write tells one mistake from two (`findings.group`).
            verdict = values if verdict is None else msgspec.structs.replace(verdict, deviations=values.deviations)
        if verdict.result == Result.PASSED and answer.finer:
            verdict = msgspec.structs.replace(verdict, facts={**verdict.facts, FINER_FACT: True})
        verdict = with_open_elements(verdict, answer)
        if self.forms and verdict.result == Result.FAILED:
            verdict = self._explained(verdict, answer)
        verdict = self._measured(verdict, answer)
        if verdict.result == Result.FAILED:
            verdict = self._reviewed(verdict, answer)
        return in_whole_output(verdict, answer.opened.rows) if answer.opened.rows else verdict

    def _explained(self, verdict: Verdict, answer: Answer) -> Verdict:
        """A failure with what further forms of the formula say of it."""
        from aclnn_cts.execution.second_opinion import name_matching_form  # noqa: PLC0415 - failures alone need it

        held = {item.output: item for item in answer.outputs}
        return name_matching_form(verdict, answer.opened.question, self.forms, held)

    def _reviewed(self, verdict: Verdict, answer: Answer) -> Verdict:
        """A failure with what the second oracle says of it."""
        from aclnn_cts.execution.second_opinion import review  # noqa: PLC0415 - failures alone need it

        return review(verdict, answer.opened.question, answer.expected, self.second)

    def _in_blocks(self, performed: PerformedCall, outputs: Mapping[str, Tensor]) -> Verdict | None:
        """The verdict on a large call in little memory; None where it must be looked at as a whole.

        Its values alone are judged: tolerances, and what a mode makes of operands, ask for the whole. So does what
        explains failures and open elements, unless the call is too large for that.
        """
        case, got = performed.case, performed.got
        if self.blocks is None or self.measuring.always or self.measuring.gate:
            return None
        if not all(is_large(array.size) for array in got.values()) or set(got) != set(outputs):
            return None
        from aclnn_cts.judgement.blockwise import compare_blocks  # noqa: PLC0415 - few calls are so large

        mode = self.spec.mode(case)
        models = self._models(performed, outputs, mode.operand)
        if any(model.operand is not None for model in models.values()):
            return None
        if any(array.dtype.kind in "biu" and name in self.spec.promoting for name, array in performed.arrays.items()):
            return None
        stored = {name: components(array) for name, array in performed.arrays.items() if case.tensor(name) is not None}
        ask = partial(self.blocks, _with_arithmetic(self._question(case, stored), models))
        ordinary = sum(array.size for array in got.values()) <= _WHOLE
        found = compare_blocks(got, models, ask, ordinary=ordinary)
        if found is None or (ordinary and any(item.deviation.open for item in found[0].values())):
            return None
        return conclude(*found, mode.name)

    def _measured(self, verdict: Verdict, answer: Answer) -> Verdict:
        """The verdict with what tolerances and magnitudes say beside it, as much of that as is asked for."""
        measuring, opened = self.measuring, answer.opened
        failed = verdict.result == Result.FAILED
        if not (measuring.always or measuring.gate) and (not failed or self.is_sampled_out(opened.performed, verdict)):
            return verdict
        from aclnn_cts.execution.tolerances import Others, formula_outputs, with_tolerances  # noqa: PLC0415 - few need it

        if failed or measuring.always:
            verdict = with_magnitudes(verdict, answer, always=measuring.always)
        benchmark: Others | None = None
        if self.implementation is not None:
            benchmark = partial(self.implementation.outputs, opened.performed.case, opened.rows)
        elif self.benchmark is not None:
            benchmark = partial(formula_outputs, self.benchmark, opened.question)
        return with_tolerances(
            verdict,
            measuring,
            expected=answer.expected,
            got=opened.got,
            outputs=self._outputs(opened.performed.case, opened.question.arguments),
            models=answer.models,
            benchmark=benchmark,
        )

    def with_batch(self, calls: Iterable[PerformedCall], *, is_sampled_out: IsSampledOut = _keeps_all) -> Judge:
        """The same judge, which has looked at the values of small calls together: that costs less than one by one.

        Those that did not come back in form, and those that the oracle has no answer to, are left to `values`.
        `is_sampled_out`: what the judge asks of their failures.
        """
        opened: list[Opened] = []
        for performed in calls:
            if not _is_small(performed) or self.form(performed) is not None:
                continue
            with contextlib.suppress(Exception):  # whose mistake it is, `values` will say
                opened.append(self._opened(performed, self._outputs(performed.case)))
        if self.spec.modes is not None:
            look_at_operands(opened)
        answers: dict[int, Answer] = {}
        for item in opened:
            with contextlib.suppress(Exception):  # as above
                answers[id(item.performed)] = self._first_answer(item)
        look_at(answers.values())
        return replace(self, answers=answers, is_sampled_out=is_sampled_out)

    def with_answers(self, calls: Iterable[PerformedCall]) -> Judge:
        """The same judge, which has asked the oracle about calls of any size that came back in form.

        So `limits` and `values` of one call ask it once.
        """
        return replace(
            self,
            answers={
                id(item): self.answers.get(id(item))
                or self._answer(self._opened(item, self._outputs(item.case)), self.oracle)
                for item in calls
            },
        )

    def models(self, performed: PerformedCall) -> Mapping[str, ComputeModel]:
        """The compute models of a call's outputs."""
        return self._models(performed, self._outputs(performed.case), self.spec.mode(performed.case).operand)

    def repeatable_outputs(self, performed: PerformedCall) -> frozenset[str]:
        """The outputs of which the same call must give the same bits."""
        deterministic = performed.case.target.deterministic is True
        return frozenset(
            name
            for name, model in self.models(performed).items()
            if model.is_repeatable(deterministic=deterministic)
            and not (model.unless and _predicate(model.unless)(performed.case))
        )

    def _opened(self, performed: PerformedCall, outputs: Mapping[str, Tensor]) -> Opened:
        models = self._models(performed, outputs, self.spec.mode(performed.case).operand)
        question = _with_arithmetic(self.question(performed), models)
        got: dict[str, NDArray[Any]] = dict(performed.got)
        rows: Mapping[str, NDArray[np.int64]] = {}
        if self.condense is not None and any(array.size >= _CONDENSED for array in got.values()):
            more = {
                name: np.flatnonzero((array != 0).reshape(len(array), -1).any(axis=1)) for name, array in got.items()
            }
            named = self.condense(question, {})
            if named is not None:
                beyond = {name: np.setdiff1d(more[name], named.rows[name])[:_MORE_ROWS] for name in named.rows}
                condensed = self.condense(question, beyond) or named
                question, rows = condensed.question, condensed.rows
                got.update({name: got[name][kept] for name, kept in rows.items()})
        return Opened(performed=performed, outputs=outputs, question=question, models=models, got=got, rows=rows)

    def _first_answer(self, opened: Opened) -> Answer:
        """By the first form, where others judge too: they are asked where it, or a slice of it, finds a fault."""
        if self.first is None or (self.blocks is not None and any(is_large(item.size) for item in opened.got.values())):
            return self._answer(opened, self.oracle)
        return replace(self._answer(opened, self.first), wider=partial(self._answer, opened, self.oracle))

    def _answer(self, opened: Opened, oracle: Oracle) -> Answer:
        performed, outputs, question, models = opened.performed, opened.outputs, opened.question, opened.models
        expected, operands = known_operands(oracle, question, models, values=opened.values)
        models = {name: model.with_functions(expected[name].functions) for name, model in models.items()}
        asked = compared_outputs(expected=expected, got=opened.got, outputs=outputs, models=models, operands=operands)
        exact = all(facts.exact for facts in operands.values())
        unrounded = [] if exact else as_stored(asked, self._models(performed, outputs, None))
        return Answer(
            opened=opened, expected=expected, models=models, operands=operands, outputs=asked, unrounded=unrounded
        )

    def _models(
        self, performed: PerformedCall, outputs: Mapping[str, Tensor], operand: str | None
    ) -> Mapping[str, ComputeModel]:
        dtype = component(self.spec.computed_in(performed.case) or "")
        computed = dtype if dtype in BINARY_FORMATS else None
        return self.precision.models(
            operator=self.spec.operator,
            dtypes={name: component(tensor.dtype) for name, tensor in outputs.items()},
            target=performed.case.target,
            operand=operand,
            source=computed or _first_dtype(performed),
            computed=computed,
        )

    def form(self, performed: PerformedCall, *, allowed: tuple[str, ...] = (SUCCESS,)) -> Verdict | None:
        """The verdict on a call that the document supports, where it is one without a look at the values."""
        if (verdict := _not_put(performed)) is not None:
            return verdict
        case, outcome, got = performed.case, performed.outcome, performed.got
        mode = self.spec.mode(case).name
        outputs = self._outputs(case)
        if _succeeded(performed):
            if outputs and not got and not self.has_statuses:
                return Verdict(
                    result=Result.OUT_OF_SCOPE,
                    kind=OutOfScope.STATUSES,
                    message="the first phase alone returned, and no status says how",
                    mode=mode,
                )
            if outputs and not got:
                return Verdict(
                    result=Result.PASSED, mode=mode, judged=Judged.STATUS, facts={"status": SUCCESS, "phases": 1}
                )
            if (verdict := _wrong_form(performed, outputs, mode)) is not None:
                return verdict
        return judge_form(outcome=outcome, got=got, outputs=outputs, allowed=allowed, mode=mode)

    def limits(self, performed: PerformedCall) -> dict[str, JudgementBasis]:
        """What conforms of each output of a call that came back in form."""
        if (answer := self.answers.get(id(performed))) is not None:
            answer.widen()
            return {
                item.output: JudgementBasis(
                    expected=item.expected, model=item.model, operands=answer.operands[item.output]
                )
                for item in answer.outputs
            }
        opened = self._opened(performed, self._outputs(performed.case))
        expected, facts = known_operands(self.oracle, opened.question, opened.models)
        return {
            name: JudgementBasis(
                expected=expected[name],
                model=opened.models[name].with_functions(expected[name].functions),
                operands=facts[name],
            )
            for name in opened.outputs
        }

    def _outputs(self, case: Case, arguments: Mapping[str, Argument] | None = None) -> dict[str, Tensor]:
        """The outputs that a case asks for; as `arguments` has them where a smaller call takes its place."""
        given = case if arguments is None else msgspec.structs.replace(case, arguments=arguments)
        return {name: value for name in self.spec.computed_outputs(case) if (value := given.tensor(name)) is not None}

    def memory(self, performed: PerformedCall) -> Verdict:
        """The verdict on what a valid call wrote, whatever its values."""
        outcome = performed.outcome
        if (verdict := _not_put(performed) or ended_badly(outcome)) is not None:
            return verdict
        if outcome.ended == CallEnd.RAISED or outcome.status:
            return self.values(performed)
        if (verdict := late_write(outcome)) is not None:
            return verdict
        asked = self.spec.computed_outputs(performed.case)
        unwritten = {name: outcome.buffers[name].unwritten for name in asked if name in outcome.buffers}
        for name, count in unwritten.items():
            if count:
                message = f"{name}: {count} elements were never written, they still hold the fill pattern"
                return Verdict(result=Result.FAILED, kind=Fault.UNWRITTEN, message=message, facts={OUTPUT_FACT: name})
        return memory_fault(outcome) or Verdict(result=Result.PASSED, judged=Judged.MEMORY)

    def attempted(self, performed: PerformedCall, *, allowed: tuple[str, ...] = (SUCCESS,)) -> Verdict:
        """The verdict on a call that breaks a limit or what is left open: of its values, where the oracle has any."""
        try:
            return self.values(performed, allowed=allowed)
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError, OracleError) as error:
            message = f"the mathematics gives no value for such arguments ({type(error).__name__})"
            return Verdict(result=Result.SKIPPED, kind=SkipReason.NOT_JUDGED, message=message)

    def status(self, performed: PerformedCall, *, constraint: str, evaluation: Evaluation | None = None) -> Verdict:
        """The verdict on a call that breaks a documented constraint."""
        if (verdict := _not_put(performed)) is not None:
            if self.has_statuses:
                return verdict
            return Verdict(result=Result.OUT_OF_SCOPE, kind=OutOfScope.STATUSES, message=verdict.message)
        evaluation = evaluation or evaluate(self.spec, performed.case)
        values: Callable[[], Verdict] | None = None
        if evaluation.has_values and performed.got:
            values = partial(self.attempted, performed)
        return judge_status(
            outcome=performed.outcome,
            allowed=evaluation.statuses,
            strength=evaluation.strength,
            constraint=constraint,
            values=values,
            has_statuses=self.has_statuses,
        )


def as_operands(case: Case, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The inputs as oracles take them: floating dtypes (complex ones as components) in float64, integers in int64."""
    return {name: as_operand(components(array)) for name, array in arrays.items() if case.tensor(name) is not None}


def _with_arithmetic(question: OracleInput, models: Mapping[str, ComputeModel]) -> OracleInput:
    """A question with the arithmetic of each output."""
    return msgspec.structs.replace(question, arithmetics={name: model.arithmetic for name, model in models.items()})


def _is_small(performed: PerformedCall) -> bool:
    """Whether a call is looked at together with others."""
    counts = (sum(array.size for array in arrays.values()) for arrays in (performed.got, performed.arrays))
    return all(count <= most for count, most in zip(counts, (_SMALL, _SMALL_INPUTS), strict=True))


def _succeeded(performed: PerformedCall) -> bool:
    return performed.outcome.ended == CallEnd.RETURNED and not performed.outcome.status


def _not_put(performed: PerformedCall) -> Verdict | None:
    outcome = performed.outcome
    if outcome.ended != CallEnd.INEXPRESSIBLE:
        return None
    kind = SkipReason.TOO_LARGE if outcome.message.startswith(TOO_LARGE) else SkipReason.INEXPRESSIBLE
    return Verdict(result=Result.SKIPPED, kind=kind, message=outcome.message.removeprefix(TOO_LARGE))


def _first_dtype(performed: PerformedCall) -> str | None:
    """The dtype of the first floating input (of its components), which a result in another one may pass through."""
    tensors = map(performed.case.tensor, performed.arrays)
    return next((component(item.dtype) for item in tensors if item is not None and item.dtype in INEXACT), None)


def _wrong_form(performed: PerformedCall, outputs: Mapping[str, Tensor], mode: str) -> Verdict | None:
    """The verdict on an output that came back in another shape or dtype, which adapters that return arrays report."""
    if not performed.outcome.facts:
        return None
    for name, tensor in outputs.items():
        for key, kind, expected in (
            (shape_fact(name), Fault.SHAPE, str(list(tensor.shape))),
            (dtype_fact(name), Fault.DTYPE, tensor.dtype),
        ):
            if key in performed.outcome.facts:
                what = "shape" if kind == Fault.SHAPE else "dtype"
                message = f"{name} came back with the {what} {performed.outcome.facts[key]}, expected {expected}"
                return Verdict(result=Result.FAILED, kind=kind, message=message, mode=mode, facts={OUTPUT_FACT: name})
    return None


@dataclass(slots=True, kw_only=True)
class Judges:
    """Judges by operator, with the operator's oracles and the compute models of `precision.yaml`."""

    has_statuses: bool
    """Whether the implementation returns statuses."""
    spec_folders: Sequence[Path] = ()
    """Where oracles of the user's own lie."""
    measuring: Measuring = Measuring()
    implementation: AdapterBenchmark | None = None
    """What tolerances compare with in the place of each operator's own second implementation."""
    _made: dict[str, Judge] = field(default_factory=dict, init=False, repr=False)

    def of(self, spec: Spec) -> Judge:
        """The judge of an operator. HarnessError where no oracle is known."""
        if spec.operator not in self._made:
            oracle = registry.load(spec.stem, folders=self.spec_folders)
            self._made[spec.operator] = Judge(
                spec=spec,
                oracle=oracle,
                first=oracle.first if oracle.operator.any_form else None,
                condense=registry.load_condense(spec.stem, folders=self.spec_folders),
                blocks=registry.load_blocks(spec.stem, elementwise=spec.elementwise, folders=self.spec_folders),
                forms=registry.load_forms(spec.stem, folders=self.spec_folders),
                second=registry.load_second(spec.stem, folders=self.spec_folders),
                benchmark=registry.load_benchmark(spec.stem, folders=self.spec_folders),
                implementation=self.implementation,
                measuring=self.measuring,
                precision=precision_of(spec),
                has_statuses=self.has_statuses,
            )
        return self._made[spec.operator]
