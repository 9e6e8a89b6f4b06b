"""One call that an oracle is checked on: what it says of the outputs, and what emulations of the formula give."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case
from aclnn_cts.core.expected import Arithmetic, Expected, Float64, Oracle, OracleInput
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.rounding import BinaryFormat, rounded, toward_zero
from aclnn_cts.core.verdict import Deviation
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.formula.array import Array
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.emulator import Emulated, Emulator, Variant
from aclnn_cts.formula.mutants import Mutant, Operation
from aclnn_cts.formula.repeated import RepeatedEmulator
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.judgement.bound import Bound, bound
from aclnn_cts.judgement.compare import compare_all
from aclnn_cts.judgement.comparison import ComparedOutput
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.operands import OperandFacts, known_operands
from aclnn_cts.speclang.model import Spec

_TIE = 1.0 + 2.0**-40
"""Takes a tie to the larger magnitude and moves nothing else."""


def with_data(spec: Spec, case: Case) -> PerformedCall:
    """A call with its data, that nobody makes."""
    return PerformedCall(case=case, outcome=Outcome(), arrays=case_arrays(case, list(spec.given_inputs(case))))


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What an emulation gives: outputs before and after their last rounding, and what was computed."""

    before: Mapping[str, Float64]
    outputs: Mapping[str, Float64]
    operations: tuple[Operation, ...]
    runs: tuple[RepeatedEmulator, ...] = ()
    """One for each arithmetic, where they can be repeated with mutants."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A call, and what conforms of it. The oracle is asked once, where that is needed: most mutants are found early."""

    operator: Operator
    oracle: Oracle
    question: OracleInput
    models: Mapping[str, ComputeModel]

    @classmethod
    def of(
        cls, operator: Operator, oracle: Oracle, question: OracleInput, models: Mapping[str, ComputeModel]
    ) -> Subject:
        """A call as the judge would ask about it."""
        arithmetics = {name: model.arithmetic for name, model in models.items()}
        asked = msgspec.structs.replace(question, arithmetics=arithmetics)
        return cls(operator=operator, oracle=oracle, question=asked, models=models)

    @functools.cached_property
    def _known(self) -> tuple[Expected, dict[str, OperandFacts]]:
        return known_operands(self.oracle, self.question, self.models)

    @property
    def expected(self) -> Expected:
        """What the oracle says of the outputs."""
        return self._known[0]

    @property
    def operands(self) -> Mapping[str, OperandFacts]:
        """What it says of the operands, by output."""
        return self._known[1]

    def in_format(self, form: BinaryFormat) -> Subject:
        """The same call with intermediates in a narrower format."""
        models = {
            name: dataclasses.replace(model, accumulation=form, operand=None, operand_roundoff=0.0, through=None)
            for name, model in self.models.items()
        }
        return Subject.of(self.operator, self.oracle, self.question, models)

    def with_outputs_in(self, form: BinaryFormat) -> Subject:
        """The same call with outputs, and what passes through their format, in another one."""
        models = {
            name: dataclasses.replace(model, output=form, output_truncates=False, through=None)
            for name, model in self.models.items()
        }
        return Subject.of(self.operator, self.oracle, self.question, models)

    @property
    def bounds(self) -> dict[str, Bound]:
        """What conforms of each output."""
        return {
            name: bound(self.expected[name], model, operands=self.operands.get(name))
            for name, model in self.models.items()
        }

    @property
    def finite(self) -> bool:
        """Whether no input holds inf or nan."""
        tensors = self.question.tensors.values()
        return all(bool(np.isfinite(array).all()) for array in tensors if array.dtype == np.float64)

    def emulated(self, variant: Variant, *, repeats: bool = False) -> Evaluated:
        """The outputs of a variant. TooManyTermsError where a sum is too long to emulate.

        `repeats`: so that it can be `repeated`, which costs memory.
        """
        before: dict[str, Float64] = {}
        operations: tuple[Operation, ...] = ()
        form = self.operator.forms[variant.form]
        random = np.random.Generator(np.random.Philox(variant.key + 1))
        runs: list[RepeatedEmulator] = []
        with np.errstate(all="ignore"):
            for names in self._alike():
                model = self.models[names[0]]
                own = dataclasses.replace(
                    variant,
                    truncates=variant.truncates and model.truncates,
                    flushes=variant.flushes and model.flushes_compute,
                )
                made = RepeatedEmulator if repeats else Emulator
                f = made(model.arithmetic, own, operand=_operand(model, int(random.integers(3))))
                results = self.operator.evaluate(form, f, self.question).all_of(Emulated)
                if isinstance(f, RepeatedEmulator):
                    f.finish({name: results[name] for name in names})
                    runs.append(f)
                operations = operations or tuple(f.operations)
                before.update((name, emulated(name, results[name]).v.astype(np.float64)) for name in names)
            stored = self._stored(before, variant)
        return Evaluated({name: before[name] for name in self.models}, stored, operations, tuple(runs))

    def repeated(self, variant: Variant, plain: Evaluated, mutant: Mutant) -> dict[str, Float64]:
        """The outputs that a mutant of a repeatable evaluation changes; their last rounding may undo that."""
        with np.errstate(all="ignore"):
            before = {
                name: emulated(name, result).v.astype(np.float64)
                for run in plain.runs
                for name, result in run.repeated(mutant).items()
            }
            return self._stored(before, variant) if before else {}

    def _alike(self) -> list[list[str]]:
        """The outputs, those together that one evaluation gives."""
        left, found = list(self.models), []
        while left:
            model = self.models[left[0]]
            found.append([name for name in left if _alike(model.arithmetic, model, self.models[name])])
            left = [name for name in left if name not in found[-1]]
        return found

    def _stored(self, before: Mapping[str, Float64], variant: Variant) -> dict[str, Float64]:
        """Results as their dtypes hold them."""
        through = bool(np.random.Generator(np.random.Philox(key=[variant.key, 1])).random() < 0.5)
        return {
            name: _stored(values, self.models[name], flushes=variant.flushes, through=through)
            for name, values in before.items()
        }

    def faulty(self, results: Sequence[Mapping[str, NDArray[Any]]]) -> list[tuple[str, ...]]:
        """Of every one of several results, the outputs that the judge finds at fault."""
        items = [self._compared(name, got) for outputs in results for name, got in outputs.items()]
        found = iter(compare_all(items))
        return [tuple(name for name in outputs if next(found).kind) for outputs in results]

    def worst(self, output: str, got: NDArray[Any]) -> Deviation:
        """The worst element of an output."""
        [found] = compare_all([self._compared(output, got)])
        return found.deviation

    def _compared(self, output: str, got: NDArray[Any]) -> ComparedOutput:
        return ComparedOutput(
            output=output,
            got=got,
            expected=self.expected[output],
            model=self.models[output],
            operands=self.operands.get(output),
        )


def emulated(name: str, result: Array) -> Emulated:
    """A result of an emulation. TypeError for any other."""
    if not isinstance(result, Emulated):
        raise TypeError(f"{name} is no result of an emulation")
    return result


def _alike(arithmetic: Arithmetic, model: ComputeModel, other: ComputeModel) -> bool:
    return other.operand == model.operand and (other is model or other.arithmetic == arithmetic)


def _operand(model: ComputeModel, turn: int) -> Any:  # noqa: ANN401 - a function of arrays, or None
    """What a mode makes of operands: rounded with ties to even, rounded with ties away, or nothing."""
    form = model.operand
    if form is None or turn == 0:
        return None
    if turn == 1:
        return lambda values: rounded(values, form)
    return lambda values: rounded(values * _TIE, form)


def _stored(values: Float64, model: ComputeModel, *, flushes: bool, through: bool) -> Float64:
    """A result as its dtype holds it."""
    if through and model.through is not None:
        values = rounded(values, model.through)
    values = toward_zero(values, model.output) if model.output_truncates else rounded(values, model.output)
    if flushes and model.flushes_result:
        values = np.where(np.abs(values) < model.output.smallest_normal, 0.0, values)
    return values
