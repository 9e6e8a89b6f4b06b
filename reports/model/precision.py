"""How near the outputs came to their bounds: histograms, magnitudes, tolerances and the precision really used."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from aclnn_cts.checks.laws import PREFIX
from aclnn_cts.checks.precision_probe import CANDIDATES, PRECISION_FACT, formats_of
from aclnn_cts.core.strict_json import spelled
from aclnn_cts.core.verdict import Deviation, MagnitudeCounts, Record, Result
from aclnn_cts.judgement.figures import SHARE_EDGES
from aclnn_cts.judgement.finer import FINER_FACT
from aclnn_cts.judgement.tolerances.registry import TOLERANCES
from aclnn_cts.reports.model.acceptance_rows import MagnitudeBin, PrecisionRow, ToleranceRow

_BINADES = 4
"""Binades of a bin of magnitudes."""

_BINS = len(SHARE_EDGES) + 1


@dataclass(slots=True)
class _Output:
    trials: int = 0
    elements: int = 0
    beyond: int = 0
    open: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * _BINS)
    worst: float = 0.0
    bases: Counter[str] = field(default_factory=Counter)
    finer: int = 0
    magnitudes: dict[int, tuple[int, float, float, float]] = field(default_factory=dict)
    """By bin: trials, and share, error and bound of the element nearest to its bound."""
    spread: dict[int | None, list[int]] = field(default_factory=dict)
    spread_passed: int = 0
    spread_failed: int = 0
    measured: int = 0
    within: int = 0
    tolerances: dict[str, ToleranceRow] = field(default_factory=dict)
    formats: set[str] | None = None
    """Formats that every probe leaves possible."""
    told_apart: bool = True

    def add(self, deviation: Deviation, record: Record) -> None:
        verdict = record.verdict
        self.trials += 1
        self.elements += deviation.elements
        self.beyond += deviation.beyond
        self.open += deviation.open
        if len(deviation.histogram) == _BINS:
            self.histogram = [mine + theirs for mine, theirs in zip(self.histogram, deviation.histogram, strict=True)]
        share = math.inf if math.isnan(deviation.share) else deviation.share
        self.worst = max(self.worst, share)
        if verdict.basis:
            self.bases[verdict.basis] += 1
        self.finer += bool(verdict.facts.get(FINER_FACT))
        self._probe(deviation, record)
        self._place(deviation, share)
        if deviation.magnitudes:
            self._spread(deviation, failed=verdict.result == Result.FAILED)
        if len(verdict.tolerances) == len(TOLERANCES):
            self.measured += 1
            self.within += not deviation.beyond
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
        formats = set(CANDIDATES) if self.formats is None else self.formats
        self.formats = formats & set(names)

    def _place(self, deviation: Deviation, share: float) -> None:
        got, expected = deviation.got, deviation.expected
        if isinstance(got, str) or isinstance(expected, str) or not expected or not deviation.elements:
            return
        place = (math.frexp(expected)[1] - 1) // _BINADES
        number, before, error, bound = self.magnitudes.get(place, (0, -1.0, 0.0, 0.0))
        if share > before:
            before, error, bound = share, abs(got - expected), deviation.bound
        self.magnitudes[place] = (number + 1, before, error, bound)

    def _spread(self, deviation: Deviation, *, failed: bool) -> None:
        self.spread_failed += failed
        self.spread_passed += not failed
        for entry in deviation.magnitudes:
            if len(entry.counts) == _BINS:
                before = self.spread.get(entry.exponent, [0] * _BINS)
                self.spread[entry.exponent] = [mine + theirs for mine, theirs in zip(before, entry.counts, strict=True)]

    def row(self, operator: str, key: tuple[str, str, str]) -> PrecisionRow:
        output, dtype, mode = key
        probed = self.formats is not None and self.told_apart
        return PrecisionRow(
            operator=operator,
            output=output,
            dtype=dtype,
            mode=mode,
            trials=self.trials,
            elements=self.elements,
            beyond=self.beyond,
            open=self.open,
            histogram=tuple(self.histogram),
            worst=spelled(self.worst),
            bases=dict(sorted(self.bases.items())),
            finer=self.finer,
            used=tuple(name for name in CANDIDATES if name in (self.formats or ())) if probed else None,
            told_apart=self.told_apart,
            magnitudes=tuple(
                MagnitudeBin(exponent=place * _BINADES, trials=number, error=error, bound=bound)
                for place, (number, _, error, bound) in sorted(self.magnitudes.items())
            ),
            spread=tuple(
                MagnitudeCounts(exponent=exponent, counts=tuple(counts))
                for exponent, counts in sorted(
                    self.spread.items(), key=lambda item: -math.inf if item[0] is None else item[0]
                )
            ),
            spread_trials=(self.spread_passed, self.spread_failed),
            measured=self.measured,
            within_bound=self.within,
            tolerances=tuple(self.tolerances.values()),
        )


@dataclass(slots=True)
class PrecisionTally:
    """The outputs of one operator."""

    operator: str
    _outputs: dict[tuple[str, str, str], _Output] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Count the deviations of one record; what a law compares is no output's error."""
        verdict, trial = record.verdict, record.trial
        if not verdict.deviations or trial.check.startswith(PREFIX):
            return
        for deviation in verdict.deviations:
            tensor = trial.case.tensor(deviation.output)
            dtype = record.fingerprint.dtype if tensor is None else tensor.dtype
            key = (deviation.output, dtype, verdict.mode)
            found = self._outputs.get(key)
            if found is None:
                found = self._outputs[key] = _Output()
            found.add(deviation, record)

    def rows(self) -> Iterator[PrecisionRow]:
        """By output, dtype and mode."""
        for key in sorted(self._outputs):
            yield self._outputs[key].row(self.operator, key)
