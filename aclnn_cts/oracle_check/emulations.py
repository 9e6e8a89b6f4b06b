"""Correct implementations: is the bound silent on every one, and how near do they come to it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from aclnn_cts.formula.emulator import TooManyTerms, Variant, variants
from aclnn_cts.oracle_check.subject import Evaluated, Subject

__all__ = ["DEEP", "Silence", "check_emulations"]

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
    """Elements whose error has a bound above 0."""
    examples: list[str] = field(default_factory=list)
    """Of the alarms."""
    ratios: Counter[int] = field(default_factory=Counter)
    """Elements by the exponent of their error over the bound, in eighths of a binade; -10000: no error."""
    sums: int = 0
    """The most sums that an evaluation makes."""

    @property
    def median(self) -> float:
        """The median of error over bound."""
        half, total = self.judged / 2, 0
        for exponent in sorted(self.ratios):
            total += self.ratios[exponent]
            if total >= half:
                return 0.0 if exponent == _NONE else float(2.0 ** (exponent / 8))
        return 0.0

    @property
    def tight(self) -> bool:
        """Whether the bound is as tight as a formula of its depth allows."""
        return self.judged == 0 or self.median >= (1e-3 if self.sums <= DEEP else 1e-4)


_NONE = -10_000
_EXAMPLES = 5


def check_emulations(subjects: Iterable[Subject], *, most: int) -> Silence:
    """Emulate calls in all orders until there are so many emulations."""
    found = Silence()
    for number, subject in enumerate(subjects):
        if found.calls >= most:
            break
        arithmetic = next(iter(subject.models.values())).arithmetic
        for variant in variants(arithmetic, number):
            try:
                evaluated = subject.emulated(variant)
            except TooManyTerms:
                found.skipped += 1
                continue
            _take(found, subject, variant, evaluated)
    return found


def _take(found: Silence, subject: Subject, variant: Variant, evaluated: Evaluated) -> None:
    found.calls += 1
    found.sums = max(found.sums, sum(operation.name.startswith(("sum", "scatter")) for operation in evaluated.operations))
    faulty = subject.faulty(evaluated.outputs)
    if faulty:
        found.alarms += 1
        if len(found.examples) < _EXAMPLES:
            found.examples.append(f"{', '.join(faulty)}: {variant}: {dict(subject.question.arguments)}")
    if not subject.finite:
        return
    with np.errstate(all="ignore"):
        for name, before in evaluated.before.items():
            expected = subject.expected[name]
            bound = subject.bounds[name].error
            error = np.abs(before - expected.value)
            chosen = np.broadcast_to(np.asarray(bound) > 0.0, error.shape) & np.isfinite(error)
            if expected.open is not None:
                chosen = chosen & ~expected.open
            ratio = (error / bound)[chosen]
            found.judged += ratio.size
            exponents = np.where(ratio > 0.0, np.floor(8.0 * np.log2(ratio)), _NONE).astype(np.int64)
            found.ratios.update(dict(zip(*(part.tolist() for part in np.unique(exponents, return_counts=True)), strict=True)))
