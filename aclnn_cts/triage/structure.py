"""The structure of a trial's case - ranks, sizes, attributes - as decisions that Hypothesis can make simpler."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aclnn_cts.checks.laws import PREFIX, law_of, usable
from aclnn_cts.checks.registry import derived_trial
from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial, of_first_phase
from aclnn_cts.generate.drawing import Drawing
from aclnn_cts.generate.negative import break_by
from aclnn_cts.generate.recover import recover, recovered_case
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.strategies import WAYS
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.model import Draw

Decide = Callable[[int, int, int], int]
"""Takes the least, the most and what it is in the trial as it was; gives an integer in between."""


@dataclass(frozen=True, slots=True)
class Structure:
    """A trial taken apart: `trial(decide)` puts another of its kind together, None where that is none."""

    sampler: Sampler
    origin: Trial
    drawing: Drawing
    base: Case
    """The valid case that the drawing makes: the trial's own, or the twin of one that breaks a constraint."""
    way: int | None = None
    """By which of the constraint's ways the trial's case was broken."""

    def trial(self, decide: Decide) -> Trial | None:
        """The trial of other decisions."""
        try:
            names, picks = self._names(decide)
            drawing = msgspec.structs.replace(self.drawing, names=names, picks=picks)
            case = recovered_case(self.sampler, drawing, self.base)
        except (*UNDEFINED, LookupError, UsageError):
            return None
        if case is None:
            return None
        return self._of(case, drawing)

    def _of(self, case: Case, drawing: Drawing) -> Trial | None:
        spec, origin = self.sampler.spec, self.origin
        if self.way is not None:
            constraint = spec.constraint(str(origin.case.origin.constraint))
            derived = break_by(self.sampler, constraint, drawing, self.way, twin=case)
            return None if derived is None else self._after(derived_trial(origin.check, derived))
        if evaluate(spec, case).broken:
            return None
        trial = self._after(Trial(origin.check, case, origin.parameters))
        if origin.check.startswith(PREFIX) and not usable(law_of(spec, origin.check), spec, trial):
            return None
        return trial

    def _after(self, trial: Trial) -> Trial:
        """The trial made as the original is: after the same calls, and with as many phases."""
        if self.origin.after:
            trial = msgspec.structs.replace(trial, after=self.origin.after)
        return of_first_phase(trial) if self.origin.case.call.phases == 1 else trial

    def _names(self, decide: Decide) -> tuple[dict[str, Any], dict[str, int]]:
        names: dict[str, Any] = {}
        picks: dict[str, int] = {}
        spec, target, old = self.sampler.spec, self.sampler.target, self.drawing
        for draw in spec.draws:
            was = old.names[draw.name]
            if draw.kind == "derived":
                names[draw.name] = draw.given(names, target)
            elif draw.kind == "choice":
                picks[draw.name] = decide(0, old.picks[draw.name], old.picks[draw.name])
                names[draw.name] = draw.choices[picks[draw.name]](names, target)
            elif draw.kind == "integer":
                low, high = draw.bounds(names, target)
                plain = min(max(0, low), high)
                names[draw.name] = decide(min(plain, max(was, low)), max(plain, min(was, high)), was)
            elif draw.kind == "run":
                names[draw.name] = self._run(draw, names, was, decide)
            elif draw.kind == "broadcast":
                names[draw.name] = self._broadcast(draw, names, was, decide)
            elif draw.kind == "partition":
                names[draw.name] = self._parts(draw, names, was, decide)
            else:
                low, _ = draw.bounds(names, target)
                names[draw.name] = _factors(draw.given(names, target), was, low, decide)
        for name, value in old.names.items():
            names.setdefault(name, value)
        return names, picks

    def _run(self, draw: Draw, names: Mapping[str, Any], was: tuple[int, ...], decide: Decide) -> tuple[int, ...]:
        low, _ = draw.bounds(names, self.sampler.target)
        least, _ = draw.size_bounds(names, self.sampler.target)
        most = max([least, *was])
        # One decision an axis, whether it stands, so that Hypothesis can take an axis away with its size.
        sizes = [decide(least, most, size) for size in was if decide(0, 1, 1)]
        sizes += [least] * (low - len(sizes))
        return tuple(sizes)

    def _parts(self, draw: Draw, names: Mapping[str, Any], was: tuple[int, ...], decide: Decide) -> tuple[int, ...]:
        """Parts of a total: as they were where they add up to it, else all but the first as small as they may be."""
        target = self.sampler.target
        low, high = draw.bounds(names, target)
        total, least = draw.given(names, target), draw.size_bounds(names, target)[0]
        old = min(max(len(was), low), high)
        length = decide(low, old, old)
        if length == len(was) and sum(was) == total and min(was, default=least) >= least:
            return was
        return (total - least * (length - 1), *[least] * (length - 1))[:length]

    def _broadcast(self, draw: Draw, names: Mapping[str, Any], was: tuple[int, ...], decide: Decide) -> tuple[int, ...]:
        """Sizes that broadcast with another run: an axis is taken away, set to 1, or left where it still fits."""
        low, _ = draw.bounds(names, self.sampler.target)
        other = draw.given(names, self.sampler.target)
        kept = [decide(1, max(1, size), size) for size in was if decide(0, 1, 1)]
        sizes = [1] * (low - len(kept)) + kept
        places = range(len(other) - len(sizes), len(other))
        return tuple(
            size if place < 0 or other[place] in (1, size) else 1 for place, size in zip(places, sizes, strict=True)
        )


def _factors(number: int, was: tuple[int, ...], low: int, decide: Decide) -> tuple[int, ...]:
    """Axes whose product is a number: as they were where that fits, else all in the first axis."""
    length = decide(low, max(len(was), low), len(was))
    if math.prod(was) == number and length == len(was):
        return was
    if number == 1 and not length:
        return ()
    return (number, *[1] * (length - 1))


def structure_of(sampler: Sampler, trial: Trial) -> Structure | None:
    """A trial's structure; None where its case cannot be made by the spec's own draws (it was written by hand, say)."""
    spec = sampler.spec
    broken = bool(evaluate(spec, trial.case).broken)
    if not broken:
        drawing = recover(sampler, trial.case)
        return None if drawing is None else Structure(sampler, trial, drawing, trial.case)
    twin = trial.parameters.get("twin")
    if twin is None or trial.case.origin.constraint is None:
        return None
    base = case_from_json(twin, where="trial: $.parameters.twin")
    drawing = recover(sampler, base)
    if drawing is None:
        return None
    constraint = spec.constraint(trial.case.origin.constraint)
    wanted = _place(trial.case.origin.change or "")
    for number in range(WAYS):
        derived = break_by(sampler, constraint, drawing, number, twin=base)
        if derived is not None and (derived.case.arguments == trial.case.arguments or _place(derived.change) == wanted):
            return Structure(sampler, trial, drawing, base, number)
    return None


def _place(change: str) -> str:
    """What a change changes, without the values."""
    return re.sub(r"-?\d+", "#", change)
