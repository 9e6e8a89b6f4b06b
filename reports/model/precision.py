"""How near the outputs came to their bounds: histograms, magnitudes, tolerances and the precision really used."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aclnn_cts.core.outside import number_or_word
from aclnn_cts.core.verdict import (
    ERROR_RATIO_EDGES,
    FINER_FACT,
    PRECISION_FACT,
    PROBED_FORMATS,
    TOLERANCES,
    Deviation,
    MagnitudeCounts,
    Record,
    Result,
    formats_of,
)
from aclnn_cts.reports.model.acceptance_rows import ToleranceRow

_BINS = len(ERROR_RATIO_EDGES) + 1


@dataclass(slots=True)
class PrecisionRow:
    """One output in one dtype and mode."""

    operator: str
    output: str
    dtype: str
    mode: str
    trials: int = 0
    elements: int = 0
    beyond: int = 0
    histogram: tuple[int, ...] = (0,) * _BINS
    """Elements by log2 of the error ratio; `Acceptance.error_ratio_edges` are the upper ends of all bins but one."""
    largest: float = 0.0
    """Share of the bound."""
    largest_unwaived: float = 0.0
    """The same, without failures that a waiver accepts."""
    bases: Counter[str] = field(default_factory=Counter)
    """Trials by the basis of the compute model: document, published, assumed."""
    finer: int = 0
    """Trials whose outputs are right for operands that were never rounded as the mode asks."""
    formats: set[str] | None = None
    """Formats that every probe leaves possible; None where nothing was probed."""
    told_apart: bool = True
    """False where a probe of an earlier version of the harness, which names formats for all outputs at once, found
    another output at fault."""
    magnitudes: dict[int | None, tuple[int, ...]] = field(default_factory=dict)
    """Elements by magnitude of the expected value and by share of the bound."""
    spread_trials: list[int] = field(default_factory=lambda: [0, 0])
    """How many trials were counted so: of the sample that passed, and failures."""
    measured: int = 0
    """Trials that all tolerances were put to."""
    within_bound: int = 0
    """Of these, those within the derived bound."""
    tolerances: dict[str, ToleranceRow] = field(default_factory=dict)

    @property
    def worst(self) -> float | str:
        """The largest share of the bound."""
        return number_or_word(self.largest)

    @property
    def used(self) -> tuple[str, ...] | None:
        """Formats that every probe leaves possible; None where probes do not tell of this output."""
        if self.formats is None or not self.told_apart:
            return None
        return tuple(name for name in PROBED_FORMATS if name in self.formats)

    @property
    def spread(self) -> tuple[MagnitudeCounts, ...]:
        """All elements of the trials that were counted so, from zeros to the largest magnitudes."""
        places = sorted(self.magnitudes, key=lambda place: -math.inf if place is None else place)
        return tuple(MagnitudeCounts(exponent=place, counts=self.magnitudes[place]) for place in places)

    def add(self, deviation: Deviation, record: Record) -> None:
        """Count one trial."""
        verdict = record.verdict
        self.trials += 1
        self.elements += deviation.elements
        self.beyond += deviation.beyond
        if len(deviation.histogram) == _BINS:
            self.histogram = _added(self.histogram, deviation.histogram)
        error_ratio = math.inf if math.isnan(deviation.error_ratio) else deviation.error_ratio
        self.largest = max(self.largest, error_ratio)
        if not record.waiver:
            self.largest_unwaived = max(self.largest_unwaived, error_ratio)
        if verdict.basis:
            self.bases[verdict.basis] += 1
        self.finer += bool(verdict.facts.get(FINER_FACT))
        self._probe(deviation, record)
        if deviation.magnitudes:
            self.spread_trials[verdict.result == Result.FAILED] += 1
        for entry in deviation.magnitudes:
            if len(entry.counts) == _BINS:
                before = self.magnitudes.get(entry.exponent, (0,) * _BINS)
                self.magnitudes[entry.exponent] = _added(before, entry.counts)
        if all(name in verdict.tolerances for name in TOLERANCES):
            self.measured += 1
            self.within_bound += not deviation.beyond
            for name, outputs in verdict.tolerances.items():
                if (result := outputs.get(deviation.output)) is not None:
                    self.tolerances.setdefault(name, ToleranceRow(name)).add(result)

    def _probe(self, deviation: Deviation, record: Record) -> None:
        """A probe names the formats of each output.

        One of an earlier version names those of all outputs at once: a fault of another says nothing of this one.
        """
        verdict = record.verdict
        names = formats_of(record, deviation.output)
        if names is None:
            return
        joint = not isinstance(verdict.facts[PRECISION_FACT], Mapping)
        at_fault = bool(deviation.beyond) or record.fingerprint.output == deviation.output
        if joint and not at_fault and len(verdict.deviations) > 1 and (not names or verdict.result == Result.FAILED):
            self.told_apart = False
        formats = set(PROBED_FORMATS) if self.formats is None else self.formats
        self.formats = formats & set(names)


def _added(mine: Sequence[int], theirs: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(sum, zip(mine, theirs, strict=True)))


@dataclass(slots=True)
class PrecisionTally:
    """The outputs of one operator."""

    operator: str
    _rows: dict[tuple[str, str, str], PrecisionRow] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Count the deviations of one record."""
        verdict, trial = record.verdict, record.trial
        for deviation in verdict.deviations:
            tensor = trial.case.tensor(deviation.output)
            dtype = record.fingerprint.dtype if tensor is None else tensor.dtype
            key = (deviation.output, dtype, verdict.mode)
            if key not in self._rows:
                self._rows[key] = PrecisionRow(self.operator, *key)
            self._rows[key].add(deviation, record)

    def rows(self) -> Iterator[PrecisionRow]:
        """By output, dtype and mode."""
        return (self._rows[key] for key in sorted(self._rows))
