"""Correct implementations: is the bound silent on each, and how near do they come to it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from aclnn_cts.formula.emulator import TooManyTermsError, Variant, variants
from aclnn_cts.selftest.failing_element import FailingElement, with_fewer_elements
from aclnn_cts.selftest.subject import Evaluated, Subject

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
    smallest: FailingElement | None = None
    """An element at fault in the smallest call that raises an alarm."""
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
                found.smallest = with_fewer_elements(found.smallest, _at_fault(subject, faulty[0], evaluated, variant))
        if subject.finite:
            for _, evaluated in made[number % max(len(made), 1) :][:1]:
                _measure(found, subject, evaluated)
    return found


def _at_fault(subject: Subject, output: str, evaluated: Evaluated, variant: Variant) -> FailingElement:
    """The worst element of an output that the judge finds at fault."""
    worst = subject.worst(output, evaluated.outputs[output])
    says = f"{worst.got} with {variant}, expected {worst.expected} within {worst.bound:.3g}"
    return FailingElement(question=subject.question, output=output, index=worst.index, says=says)


def _measure(found: Silence, subject: Subject, evaluated: Evaluated) -> None:
    """Count how near the elements of one emulation come to their bounds."""
    with np.errstate(all="ignore"):
        for name, limits in subject.bounds.items():
            before, expected, model = evaluated.before[name], subject.expected[name], subject.models[name]
            bound = np.asarray(limits.error)
            error = np.abs(before - expected.value)
            # What is copied has a bound for underflow alone, and so has what lies below the normal numbers.
            size = np.abs(expected.value)
            rounds = (bound >= model.roundoff * size) & (size >= model.output.smallest_normal)
            chosen = np.broadcast_to(rounds, error.shape) & np.isfinite(error) & (error > 0.0)
            if expected.open is not None:
                chosen = chosen & ~expected.open
            ratio = (error / bound)[chosen]
            found.judged += ratio.size
            exponents, counts = np.unique(np.floor(8.0 * np.log2(ratio)).astype(np.int64), return_counts=True)
            found.ratios.update(dict(zip(exponents.tolist(), counts.tolist(), strict=True)))
