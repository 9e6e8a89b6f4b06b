"""Laws on correct implementations: every emulation of a law's calls keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np

from aclnn_cts.checks.laws import LAW_KIND, PREFIX, RegisteredLaw, law_calls, laws_of
from aclnn_cts.checks.plan import Part
from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import composed
from aclnn_cts.core.rounding import stored
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Result
from aclnn_cts.execution.executor import Performed
from aclnn_cts.execution.judging import Judge
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.emulator import ORDERS, TooManyTermsError, Variant
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.oracle_check.subject import Subject, with_data
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec

_TRIALS = 10
_EXAMPLES = 3


@dataclass(slots=True)
class LawCounts:
    """What came of the laws of an operator."""

    laws: tuple[str, ...] = ()
    trials: int = 0
    broken: int = 0
    examples: list[str] = field(default_factory=list)


def check_laws(spec: Spec, judge: Judge, operator: Operator, *, seed: int) -> LawCounts:
    """Judge emulated calls by every law that the oracle states."""
    counts = LawCounts(laws=tuple(laws_of(spec)))
    sampler = Sampler(spec, Target(product=spec.usual_product))
    for identifier in counts.laws:
        check = RegisteredLaw(id=PREFIX + identifier, sentence="")
        part = Part(spec.operator, check.id, LAW_KIND, count=_TRIALS)
        for number, trial in enumerate(check.trials(part, sampler, seed=seed)):
            variant = Variant(order=ORDERS[number % len(ORDERS)], fused=bool(number % 2), key=number)
            try:
                performed = [_emulated(spec, judge, operator, case, variant) for case in law_calls(trial, spec)]
            except TooManyTermsError:
                continue
            verdict = check.judge(trial, performed, judge, evaluate(spec, trial.case))
            counts.trials += 1
            if verdict.result == Result.FAILED:
                counts.broken += 1
                counts.examples = [*counts.examples, f"{identifier}: {verdict.message}"][:_EXAMPLES]
    return counts


def _emulated(spec: Spec, judge: Judge, operator: Operator, case: Case, variant: Variant) -> Performed:
    """A call as a correct implementation makes it."""
    performed = with_data(spec, case)
    models = judge.models(performed)
    subject = Subject.of(operator, judge.oracle, judge.question(performed), models)
    outputs = subject.emulated(variant).outputs
    dtypes = {name: tensor.dtype for name, tensor in case.tensors()}
    got = {
        name: composed(stored(np.asarray(values), models[name].output.name), dtypes[name])
        for name, values in outputs.items()
    }
    return msgspec.structs.replace(performed, got=got)
