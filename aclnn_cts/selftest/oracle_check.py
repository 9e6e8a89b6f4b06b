"""`oracle check`: everything that a formula lets one derive, held against the oracle of an operator."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.expected import Oracle, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS
from aclnn_cts.core.target import Target
from aclnn_cts.execution.judging import Judge
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.derivative import differences
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.formula.graph import TooManyNodesError
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.oracles import registry
from aclnn_cts.selftest.checked_oracles import CALLS
from aclnn_cts.selftest.emulations import Silence, check_emulations
from aclnn_cts.selftest.failing_element import FailingElement, with_fewer_elements
from aclnn_cts.selftest.formula_mutants import Kills, check_mutants
from aclnn_cts.selftest.subject import Subject, with_data
from aclnn_cts.speclang.model import Spec

LEAST_SHARE = 0.99
"""Of the mutants that can be found."""
_BUDGETS = (16, 64, 256)
"""Most elements of a tensor of an emulated call."""
_MUTANT_CALLS = 240
_MUTANT_ROUNDS = 16
"""How often so many calls are made, until enough mutants are found."""
_DERIVATIVE_CALLS = 24
_DERIVATIVE_BUDGET = 16
_DERIVATIVE_ELEMENTS = 1024
"""Most elements of a tensor: the document of an operator may allow no call within the budget."""
_NARROW = frozenset({"FLOAT16", "BF16"})
_BLOCK = 256
_SCALES = (-18, 18)
"""Powers of two that take ordinary numbers to the ends of FLOAT16."""


@dataclass(slots=True)
class DerivativeCounts:
    """What came of differences of `forward`."""

    elements: int = 0
    differ: int = 0
    reason: str = ""
    """Why the operator is no derivative."""
    smallest: FailingElement | None = None
    """An element that differs in the smallest call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleReport:
    """What is known of one oracle."""

    operator: str
    emulations: Silence
    mutants: Kills
    derivative: DerivativeCounts
    smallest: tuple[str, ...]
    """The smallest failing call, an element of it and the terms of the formula there, in lines."""
    seconds: float

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong, in words; nothing where the oracle is right."""
        emulations, derivative = self.emulations, self.derivative
        stated = (
            (emulations.alarms, f"{emulations.alarms} of {emulations.calls} correct calls are found at fault"),
            (not emulations.calls, "no call was emulated"),
            (not emulations.tight, f"the bound is not tight: the median error is {emulations.median:.1e} of it"),
            (self.mutants.share < LEAST_SHARE, f"{len(self.mutants.missed)} mutants are not found"),
            (
                len(self.mutants.hidden),
                f"{len(self.mutants.hidden)} mutants survive since all elements that they change are open",
            ),
            (derivative.differ, f"{derivative.differ} elements of the derivative differ from the formula"),
            (
                not derivative.elements and not derivative.reason,
                "neither a derivative was compared nor does the oracle say why there is none",
            ),
        )
        return tuple(text for is_wrong, text in stated if is_wrong)


def check_oracle(
    spec: Spec,
    *,
    folders: tuple[Path, ...] = (),
    calls: int = CALLS,
    seed: int = 0,
) -> OracleReport:
    """Check the oracle of an operator on calls that the generator makes."""
    began = time.perf_counter()
    operator = registry.load_formula(spec.stem, folders=folders)
    judge = Judge(spec=spec, oracle=FormulaOracle(operator), precision=precision_of(spec), has_statuses=False)
    source = _Source(spec, operator, judge, seed)
    emulations = check_emulations(source.subjects("emulations", narrow=True), most=calls)
    derivative = _check_derivative(source)
    failing = emulations.smallest or derivative.smallest
    return OracleReport(
        operator=spec.operator,
        # A worker sends the report, and its lines say all of the call.
        emulations=replace(emulations, smallest=None),
        mutants=_check_mutants(source),
        derivative=replace(derivative, smallest=None),
        smallest=failing.lines(operator) if failing is not None else (),
        seconds=time.perf_counter() - began,
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """Calls of one operator, from the generator."""

    spec: Spec
    operator: Operator
    judge: Judge
    seed: int

    @property
    def _oracle(self) -> Oracle:
        return self.judge.oracle

    def cases(self, purpose: str, *budgets: int) -> Iterator[Case]:
        """Valid calls, without end."""
        sampler = Sampler(self.spec, Target(product=self.spec.usual_product))
        first = 0
        while True:
            for choices in stream_block(self.seed, f"{self.spec.operator}/oracle check/{purpose}", first, _BLOCK):
                case = sampler.case(sampler.draw(choices, budget=choices.pick(budgets)))
                if case.call.phases == 2:
                    yield case
            first += _BLOCK

    def subject(self, case: Case, question: OracleInput | None = None) -> Subject:
        """The call as the judge would ask about it."""
        performed = with_data(self.spec, case)
        return Subject.of(
            self.operator, self._oracle, question or self.judge.question(performed), self.judge.models(performed)
        )

    def subjects(self, purpose: str, *, narrow: bool) -> Iterator[Subject]:
        """Calls without end; `narrow`: those in BF16 or FLOAT16 alone with intermediates in that format too."""
        for case in self.cases(purpose, *_BUDGETS):
            subject = self.subject(case)
            yield subject
            dtypes = {tensor.dtype for _, tensor in case.tensors() if tensor.dtype in FLOATING}
            if narrow and len(dtypes) == 1 and not dtypes & {"FLOAT", "DOUBLE"}:
                yield subject.in_format(BINARY_FORMATS[dtypes.pop()])

    def for_mutants(self, count: int) -> Iterator[Subject]:
        """Calls on finite inputs, of which one in three is scaled.

        Outputs of an operator that has them in 16 bits alone are in FLOAT: 16 bits hide most roundings.
        """
        rows = Sampler(self.spec, Target(product=self.spec.usual_product)).dtype_rows
        widened = all(row[name] in _NARROW for row in rows for name in self.spec.outputs)
        for number, case in enumerate(self.cases("mutants", *_BUDGETS)):
            if not count:
                return
            question = self.judge.question(with_data(self.spec, case))
            if number % 3 == 2:
                question = _scaled(question, case, self.operator, number)
            subject = self.subject(case, question)
            subject = subject.with_outputs_in(BINARY_FORMATS["FLOAT"]) if widened else subject
            if subject.finite:
                count -= 1
                yield subject


def _check_mutants(source: _Source) -> Kills:
    """Where attributes choose among many sequences of operations, each has its share of the calls: then take more."""
    subjects = source.for_mutants(_MUTANT_CALLS * _MUTANT_ROUNDS)
    batches = (itertools.islice(subjects, _MUTANT_CALLS) for _ in range(_MUTANT_ROUNDS))
    return check_mutants(next(batches), more=batches, least=LEAST_SHARE)


def _scaled(question: OracleInput, case: Case, operator: Operator, number: int) -> OracleInput:
    """One input times a power of two, where its dtype has room for that."""
    roomy = [
        name
        for name, tensor in case.tensors()
        if name in question.tensors and tensor.dtype in ("FLOAT", "BF16") and name not in operator.raw
    ]
    if not roomy:
        return question
    name = roomy[number // 3 % len(roomy)]
    exponent = _SCALES[number // (3 * len(roomy)) % 2]
    values = np.ldexp(question.tensors[name], exponent)
    if not (np.abs(values) < 2.0**100).all() or (np.abs(values[values != 0.0]) < 2.0**-100).any():
        return question
    lattices = {key: step for key, step in question.lattices.items() if key != name}
    return msgspec.structs.replace(question, tensors={**question.tensors, name: values}, lattices=lattices)


def _check_derivative(source: _Source) -> DerivativeCounts:
    derivative = source.operator.derivative
    counts = DerivativeCounts()
    if isinstance(derivative, str):
        counts.reason = derivative
        return counts
    done = 0
    for number, case in enumerate(source.cases("derivative", _DERIVATIVE_BUDGET)):
        if done >= _DERIVATIVE_CALLS or number >= 20 * _DERIVATIVE_CALLS:
            return counts
        question = source.judge.question(with_data(source.spec, case))
        if not all(np.isfinite(array).all() for array in question.tensors.values() if array.dtype == np.float64):
            continue
        if any(isinstance(value, Tensor) and value.numel > _DERIVATIVE_ELEMENTS for value in case.arguments.values()):
            continue
        done += 1
        try:
            for compared in differences(source.operator, question, key=number):
                counts.elements += 1
                if not compared.agree:
                    counts.differ += 1
                    says = f"the formula gives {compared.formula:.9g}, differences of forward {compared.difference:.9g}"
                    failing = FailingElement(
                        question=question,
                        output=compared.output,
                        index=compared.index,
                        says=says,
                        given=compared.saved,
                    )
                    counts.smallest = with_fewer_elements(counts.smallest, failing)
        except (TooManyNodesError, ZeroDivisionError):
            continue
    return counts
