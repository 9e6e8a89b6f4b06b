"""Of which failures everything is measured: of all that are not known, and of a sample of those that are.

A waiver may speak for thousands of failures. What tolerances say of each, and where its elements lie by magnitude,
takes as long as judging it, and tells nothing after some dozens. Whether it fails, and by how much, is recorded of
every one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from aclnn_cts.core.verdict import Record

SAMPLE = 64
"""Of so many trials of a run, one is put to all tolerances although it passes."""

FIRST = 4
"""Known failures of each key that are measured, whatever their ids."""


@dataclass(slots=True)
class _Met:
    number: int
    smallest: int
    """Bytes of its case, as reports choose the failure that they show."""


@dataclass(slots=True)
class Evidence:
    """Chooses among the known failures that one process meets."""

    _met: dict[str, _Met] = field(default_factory=dict)
    """By key."""

    def wanted(self, record: Record) -> bool:
        """Whether a known failure is measured: the first of a key, those smaller than all before, a sample."""
        size = record.trial.case.nbytes
        met = self._met.setdefault(record.key.text(), _Met(0, size + 1))
        met.number += 1
        smaller = size < met.smallest
        if smaller:
            met.smallest = size
        return met.number <= FIRST or smaller or is_measured(record.trial_id)


def is_sampled(trial_id: str, *, every: int = SAMPLE) -> bool:
    """One trial in `every`, a power of two up to 256: the same ones for the same plan, the fewer among the more."""
    return int(trial_id[:2], 16) % every == 0


def is_measured(trial_id: str) -> bool:
    """One failure in 16, the same ones for the same plan; those of `is_sampled` are among them."""
    return int(trial_id[:2], 16) % 16 == 0
