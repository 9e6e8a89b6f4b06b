"""Correct implementations: the bound is silent on each, how near do they come to it, and do they keep the laws?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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
from aclnn_cts.formula.emulator import ORDERS, TooManyTermsError, Variant, variants
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.oracle_check.subject import Evaluated, Subject, with_data
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec

DEEP = 3
"""Sums on the way to an output up to which bounds are tight to three digits; beyond, to four."""


@dataclass(slots=True)
class Silence:
    """What came of emulations."""

    calls: int = 0
    alarms: int = 0
    skipped: int = 0
    """Emulations that would sum too many terms."""
    judged: int = 0
    """Elements that an emulation rounded."""
    examples: list[str] = field(default_factory=list)
    """Of the alarms."""
    ratios: Counter[int] = field(default_factory=Counter)
    """Elements by the exponent of their error over the bound, in eighths of a binade."""
    sums: int = 0
    """The most sums that an evaluation makes."""

    @property
    def median(self) -> float:
        """The median of error over bound."""
        half, total = self.judged / 2, 0
        for exponent in sorted(self.ratios):
            total += self.ratios[exponent]
            if total >= half:
                return float(2.0 ** (exponent / 8))
        return 0.0

    @property
    def tight(self) -> bool:
        """Whether the bound is as tight as a formula of its depth allows."""
        return self.judged == 0 or self.median >= (1e-3 if self.sums <= DEEP else 1e-4)


_EXAMPLES = 5
_SUMS = ("sum", "scatter")


def check_emulations(subjects: Iterable[Subject], *, most: int) -> Silence:
    """Emulate calls in all orders until there are so many emulations."""
    found = Silence()
    for number, subject in enumerate(subjects):
        if found.calls >= most:
            break
        arithmetic = next(iter(subject.models.values())).arithmetic
        made: list[tuple[Variant, Evaluated]] = []
        for variant in variants(arithmetic, number):
            try:
                made.append((variant, subject.emulated(variant)))
            except TooManyTermsError:
                found.skipped += 1
        verdicts = subject.faulty([evaluated.outputs for _, evaluated in made])
        for (variant, evaluated), faulty in zip(made, verdicts, strict=True):
            found.calls += 1
            found.sums = max(found.sums, sum(item.name.startswith(_SUMS) for item in evaluated.operations))
            if faulty:
                found.alarms += 1
                if len(found.examples) < _EXAMPLES:
                    found.examples.append(f"{', '.join(faulty)}: {variant}: {dict(subject.question.arguments)}")
        if subject.finite:
            for _, evaluated in made[number % max(len(made), 1) :][:1]:
                _measure(found, subject, evaluated)
    return found


def _measure(found: Silence, subject: Subject, evaluated: Evaluated) -> None:
    """Count how near the elements of one emulation come to their bounds."""
    with np.errstate(all="ignore"):
        for name, limits in subject.bounds.items():
            before, expected, model = evaluated.before[name], subject.expected[name], subject.models[name]
            bound = np.asarray(limits.error)
            error = np.abs(before - expected.value)
            # What is copied has a bound for underflow alone.
            rounds = (bound >= model.roundoff * np.abs(expected.value)) & (expected.value != 0.0)
            chosen = np.broadcast_to(rounds, error.shape) & np.isfinite(error) & (error > 0.0)
            if expected.open is not None:
                chosen = chosen & ~expected.open
            ratio = (error / bound)[chosen]
            found.judged += ratio.size
            exponents, counts = np.unique(np.floor(8.0 * np.log2(ratio)).astype(np.int64), return_counts=True)
            found.ratios.update(dict(zip(exponents.tolist(), counts.tolist(), strict=True)))


_TRIALS = 10
_LAW_EXAMPLES = 3


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
                counts.examples = [*counts.examples, f"{identifier}: {verdict.message}"][:_LAW_EXAMPLES]
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
