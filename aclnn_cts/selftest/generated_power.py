"""Which generated mutants a plan finds, and which of the others witness calls show to be detectable.

A plan is expanded once. Of a mutant those trials alone are run whose calls meet its trigger, in the plan's order up to
the first failure: all others come out as they do on the reference, which a decoy shows. Of a survivor each call of the
plan in which it fires is judged by itself, then witness calls (`witness`) are: where nothing leaves the bound in any,
the mutant is equivalent. How often a trigger fires is seen in the first `FREQUENCY_CALLS` witness calls; the others are
made for survivors alone, until one shows the change.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.outside import DOCUMENT_BYTES, read_json
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.formula.emulator import ORDERS
from aclnn_cts.formula.mutants import Mutant
from aclnn_cts.generate.choices import Choices, stream_block
from aclnn_cts.generate.configuration import Drawing
from aclnn_cts.generate.negative import break_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.selftest.generated_mutants import CorrectVariant, draw_decoys, draw_mutants
from aclnn_cts.selftest.kill_matrix import document_of
from aclnn_cts.selftest.kinds import STALE, UNCHECKED, describe_mutant, fires
from aclnn_cts.selftest.mutated_session import MutatedSession
from aclnn_cts.selftest.power import slices
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Constraint, Spec
from aclnn_cts.store.output_file import begins_with
from aclnn_cts.store.provenance import MadeBy
from aclnn_cts.trials.batches import calls_of
from aclnn_cts.trials.plan import Profile, plan_parts
from aclnn_cts.trials.trial_runner import JudgedBatch, TrialRunner
from aclnn_cts.workers.pool import Surroundings, spread

FORMAT = "aclnn-cts/generated-mutants/1"
MUTANTS_FILE = begins_with(rb'\{\n  "format": "aclnn-cts/generated-mutants/')
"""Files of `GeneratedMatrix.to_json`."""

RARE = 100
"""A mutant is rare where it fires in fewer than one of so many witness calls."""
FREQUENCY_CALLS = 20_000
"""Witness calls on which every trigger is evaluated."""
MOST_DECOYS = 1 + len(ORDERS)
_NOTHING: frozenset[str] = frozenset()
_FIRST_SLICE, _SLICE = 8, 64
"""Trials that are run together: few at first, since most mutants are found by the first that they fire in."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured of every operator."""

    profile: Profile
    seed: str
    """Of mutants and triggers: the commit's hash, or another text."""
    plan_seed: int = 0
    count: int = 36
    """Mutants of an operator."""
    decoys: int = MOST_DECOYS
    """Decoys of an operator."""
    witness_calls: int = 100_000
    """Calls on which the trigger of a mutant is evaluated that nothing shows."""
    witness_values: int = 500
    """Of the calls in which a survivor fires: how many are judged at most."""


class OperatorTask(msgspec.Struct, frozen=True, kw_only=True):
    """One operator, and which of its mutants and decoys."""

    operator: str
    wanted: Wanted
    ids: tuple[str, ...] | None = None
    """None: all mutants and decoys."""


class MutantResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one mutant."""

    id: str
    operator: str
    change: str
    text: str
    found: bool
    check: str = ""
    """Of the first failure, and so are kind and cases."""
    kind: str = ""
    cases: int = 0
    """The place of the first failing trial in the plan; 0 where there is none."""
    reached: int
    """Calls of the plan that meet the trigger."""
    witness_calls: int
    """Witness calls on which the trigger was evaluated."""
    fired: int
    """Of these, how many meet the trigger."""
    judged: int = 0
    """Calls in which it fires that were judged by themselves, those of the plan first: survivors alone are."""
    changed: bool = False
    """Whether the judge found a fault in one of them."""

    unjudged: bool = False
    """Whether a call of the plan shows the fault where it is judged by itself, although its trial did not."""

    @property
    def equivalent(self) -> bool:
        """Whether neither the plan nor a witness call shows a change beyond the bound."""
        return not self.found and not self.changed

    @property
    def unmet(self) -> bool:
        """Whether no call at all, of the plan or a witness, met its trigger: nothing is known of it."""
        return not self.reached and not self.fired

    @property
    def survives(self) -> bool:
        """Whether it can be told from correct behaviour, and the plan did not."""
        return not self.found and self.changed

    @property
    def rare(self) -> bool:
        """Whether it fires in fewer than one of 100 witness calls."""
        return self.fired * RARE < self.witness_calls


class DecoyResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one decoy on the whole plan."""

    id: str
    operator: str
    text: str
    cases: int
    accused: int
    errors: int = 0
    fingerprints: tuple[str, ...] = ()
    """Of its failures: mistakes of the harness."""


class GeneratedMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, as it is published."""

    format: str = FORMAT
    profile: str
    seed: str
    plan_seed: int
    witness_values: int
    made_by: MadeBy | None = None
    mutants: tuple[MutantResult, ...]
    decoys: tuple[DecoyResult, ...]

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """Mutants that a witness call shows and the plan does not."""
        return tuple(row for row in self.mutants if row.survives)

    @property
    def accused(self) -> tuple[DecoyResult, ...]:
        """Decoys that failed a trial."""
        return tuple(row for row in self.decoys if row.accused)

    def found_and_judged(self, *, rare: bool, operator: str = "") -> tuple[int, int]:
        """Of the mutants that are (not) rare and not equivalent: how many were found, and how many there are."""
        rows = [
            row for row in self.mutants if row.rare is rare and not row.equivalent and operator in ("", row.operator)
        ]
        return sum(row.found for row in rows), len(rows)

    def to_json(self) -> bytes:
        """The document, one mutant or decoy a line."""
        return document_of(self, rows=("mutants", "decoys"))


def read_generated(path: Path) -> GeneratedMatrix:
    """Read a published measurement; UsageError for a file that is none."""
    expected = "a measurement, as `aclnn-cts mutants -o` writes one"
    return read_json(path, GeneratedMatrix, form=FORMAT, expected=expected, limit=DOCUMENT_BYTES)


def population(
    spec: Spec, wanted: Wanted, *, ids: Sequence[str] | None = None
) -> tuple[list[Mutant], list[CorrectVariant]]:
    """The mutants and decoys of an operator, those of `ids` where they are given."""
    target = Target(product=spec.usual_product)
    mutants = draw_mutants(spec, target, seed=wanted.seed, count=wanted.count)
    decoys = islice(draw_decoys(spec, target, seed=wanted.seed), wanted.decoys)
    return (
        [item for item in mutants if ids is None or item.id in ids],
        [item for item in decoys if ids is None or item.id in ids],
    )


@dataclass(frozen=True, slots=True)
class _Planned:
    """One trial, and each of its calls with the constraints that it breaks."""

    trial: Trial
    calls: tuple[tuple[Case, frozenset[str]], ...]


def measure_operator(task: OperatorTask, specs: Specs) -> Iterator[MutantResult | DecoyResult]:
    """What came of an operator's mutants and decoys, one after the other."""
    spec, wanted = specs[task.operator], task.wanted
    target = Target(product=spec.usual_product)
    mutants, decoys = population(spec, wanted, ids=task.ids)
    session = MutatedSession(target, specs)
    settings = RunnerSettings(adapter="reference", target=target)
    with InProcessHost(session) as host:
        runner = TrialRunner(
            specs=specs, host=host, settings=settings, is_waived=lambda _record: True, sample_waived=True
        )
        plan = _plan(spec, wanted, runner)
        for decoy in decoys:
            session.switch(decoy)
            yield _decoy(decoy, runner.run(item.trial for item in plan))
        measured = [_Measured(mutant) for mutant in mutants]
        for item in measured:
            session.switch(item.mutant)
            item.run(plan, runner)
        for item, calls, is_planned in _to_look_at(measured, Witnesses(spec, target), spec, wanted):
            session.switch(item.mutant)
            item.look(calls[: wanted.witness_values], runner, is_planned=is_planned)
        for item in measured:
            yield item.result()


@dataclass(slots=True)
class _Measured:
    """A mutant, and what is known of it by now."""

    mutant: Mutant
    first: tuple[int, Record] | None = None
    """The place in the plan of the first trial that fails, and its record."""
    reached: list[Case] = field(default_factory=list)
    """Calls of the plan in which it fires."""
    witness_calls: int = 0
    fired: int = 0
    kept: list[Case] = field(default_factory=list)
    """Of one that the plan missed, the first witness calls in which it fires."""
    judged: int = 0
    changed: bool = False
    unjudged: bool = False

    @property
    def skips(self) -> bool:
        """Whether a check is skipped, which broken calls alone show."""
        return self.mutant.kind == UNCHECKED

    def run(self, plan: Sequence[_Planned], runner: TrialRunner) -> None:
        """Run the trials of the plan in whose calls it fires, up to the first that fails."""
        met = [
            (place, case)
            for place, item in enumerate(plan)
            for case, broken in item.calls
            if fires(self.mutant, case, broken)
        ]
        self.reached = [case for _, case in met]
        places = sorted({place for place, _ in met})
        if self.mutant.kind == STALE:
            # What is stale is of the call before, which is made as well.
            places = sorted({near for place in places for near in (place - 1, place) if near >= 0})
        self.first = _first_failure(places, plan, runner)

    def meet(self, case: Case, broken: frozenset[str], most: int) -> None:
        """Evaluate the trigger on a witness call. One in which it fires is kept of a mutant that the plan missed."""
        self.witness_calls += 1
        if fires(self.mutant, case, broken):
            self.fired += 1
            if self.first is None and len(self.kept) < most:
                self.kept.append(case)

    def look(self, calls: Sequence[Case], runner: TrialRunner, *, is_planned: bool) -> None:
        """Judge calls one by one, up to the first slice with a failure, unless one failed before."""
        if self.changed:
            return
        trials = [Trial("status" if self.skips else "values", case) for case in calls]
        for chosen in slices(trials, first=_FIRST_SLICE, most=_SLICE):
            records = _records(runner.run(chosen))
            self.judged += len(records)
            if any(record.verdict.result == Result.FAILED for record in records):
                self.changed, self.unjudged = True, is_planned
                return

    def result(self) -> MutantResult:
        """As it is published."""
        place, first = (0, None) if self.first is None else self.first
        return MutantResult(
            id=self.mutant.id,
            operator=self.mutant.operator,
            change=self.mutant.kind,
            text=describe_mutant(self.mutant),
            found=first is not None,
            check=first.trial.check if first is not None else "",
            kind=first.verdict.kind if first is not None else "",
            cases=place,
            reached=len(self.reached),
            witness_calls=self.witness_calls,
            fired=self.fired,
            judged=self.judged,
            changed=self.changed,
            unjudged=self.unjudged,
        )


def _first_failure(places: Sequence[int], plan: Sequence[_Planned], runner: TrialRunner) -> tuple[int, Record] | None:
    """Of these places in the plan, the first whose trial fails, counted from 1, and its record."""
    for chosen in slices(places, first=_FIRST_SLICE, most=_SLICE):
        records = _records(runner.run(plan[place].trial for place in chosen))
        for place, record in zip(chosen, records, strict=True):
            if record.verdict.result == Result.FAILED:
                return place + 1, record
    return None


def _to_look_at(
    measured: Sequence[_Measured], witnesses: Witnesses, spec: Spec, wanted: Wanted
) -> Iterator[tuple[_Measured, list[Case], bool]]:
    """Mutants that the plan missed, with calls in which each fires, and whether they are the plan's.

    First those of the plan, then the first witness calls; the further ones only where none of these shows a change, and
    it fired in fewer than are judged. Of a skipped check there are no further ones.
    """
    most = wanted.witness_values
    ordinary = [item for item in measured if not item.skips]
    for case in witnesses.calls(min(wanted.witness_calls, FREQUENCY_CALLS)) if ordinary else ():
        for item in ordinary:
            item.meet(case, _NOTHING, most)
    for item in (item for item in measured if item.skips):
        for case, broken in witnesses.broken(spec.constraint(item.mutant.of), most):
            item.meet(case, broken, most)
    missed = [item for item in measured if item.first is None]
    for item in missed:
        yield item, item.reached, True
        yield item, item.kept, False
    open_ones = [
        (item, len(item.kept)) for item in missed if not (item.skips or item.changed or len(item.kept) >= most)
    ]
    further = wanted.witness_calls - FREQUENCY_CALLS
    for case in witnesses.calls(further, first=FREQUENCY_CALLS) if open_ones else ():
        for item, _ in open_ones:
            item.meet(case, _NOTHING, most)
    for item, known in open_ones:
        yield item, item.kept[known:], False


def _work(task: OperatorTask, given: Surroundings) -> list[MutantResult | DecoyResult]:
    return list(measure_operator(task, given.specs))


def measurements(
    tasks: Sequence[OperatorTask], *, workers: int
) -> Generator[list[MutantResult | DecoyResult], None, None]:
    """Measure on so many processes, an operator at a time; close the iterator where not all results are wanted."""
    return spread(_work, tasks, workers=workers, lost=lambda task: f"{task.operator}: run with --mutant to see of what")


def _plan(spec: Spec, wanted: Wanted, runner: TrialRunner) -> list[_Planned]:
    """The trials of the plan in its order."""
    parts = plan_parts([spec], product=runner.settings.target.product, chosen=wanted.profile)
    capabilities = runner.host.capabilities
    planned = []
    for part in parts:
        for trial in runner.expand(part, seed=wanted.plan_seed):
            asked = calls_of(trial, runner.specs, capabilities=capabilities)
            calls = {id(item.case): item.case for item in asked}
            broken = (frozenset(item.id for item in evaluate(spec, case).broken) for case in calls.values())
            planned.append(_Planned(trial, tuple(zip(calls.values(), broken, strict=True))))
    return planned


def _records(judged: Iterable[JudgedBatch]) -> list[Record]:
    return [record for batch in judged for record in batch.records]


def _decoy(decoy: CorrectVariant, judged: Iterable[JudgedBatch]) -> DecoyResult:
    records = _records(judged)
    failed = [record for record in records if record.verdict.result == Result.FAILED]
    return DecoyResult(
        id=decoy.id,
        operator=decoy.operator,
        text=decoy.text(),
        cases=len(records),
        accused=len(failed),
        errors=sum(record.verdict.result == Result.ERROR for record in records),
        fingerprints=tuple(dict.fromkeys(record.key.text() for record in failed)),
    )


_ELEMENTS = (2, 16)
"""Least and greatest exponent of two of the most elements of a tensor."""
_MODULI = (2, 300)
_SEED = 0x57495453


@dataclass(frozen=True, slots=True)
class _WitnessSizes:
    """Sizes of one witness call (`generate.sizes.Sizes`)."""

    budget: int
    most_dimensions: int

    @property
    def least_rank(self) -> int:
        """None: any rank is a witness."""
        return 0

    def size(self, choices: Choices, low: int, high: int, *, later: int, is_last: bool, unit: int = 0) -> int:
        """A dimension in [low, high]; those after it mostly keep room of their own."""
        if later and choices.chance(3, 4):
            high = max(low, int(high ** (1 / (1 + min(later, self.most_dimensions)))))
        if high <= low:
            return low
        value = _logarithmic(choices, low, high)
        if choices.chance(1, 2):
            modulus = choices.integer(*_MODULI) if choices.chance(1, 2) else 8 * choices.integer(1, 32)
            value = value // modulus * modulus + choices.pick((0, 0, 0, 1, -1))
        return min(max(value, low), high)


def _logarithmic(choices: Choices, low: int, high: int) -> int:
    start = max(low, 1)
    exponent = choices.integer(0, max(high // start, 1).bit_length() - 1)
    return min(start * (1 << exponent) + choices.integer(0, start * (1 << exponent)), high)


class Witnesses:
    """The witness calls of one operator; each number is one call, wherever it is made."""

    def __init__(self, spec: Spec, target: Target) -> None:
        self._spec = spec
        self._sampler = Sampler(spec, target)

    def calls(self, count: int, *, first: int = 0) -> Iterator[Case]:
        """Valid calls: number `first` and the `count` - 1 after it."""
        for choices in stream_block(_SEED, f"witness/{self._spec.operator}", first, count):
            yield self._sampler.case(self._drawing(choices))

    def broken(self, constraint: Constraint, count: int) -> Iterator[tuple[Case, frozenset[str]]]:
        """Calls that break one constraint, with all that they break; fewer where it cannot be proved."""
        stream = f"witness/{self._spec.operator}/{constraint.id}"
        for number, choices in enumerate(stream_block(_SEED, stream, 0, count)):
            derived = break_drawing(self._sampler, constraint, self._drawing(choices), number)
            if derived is not None:
                yield derived.case, frozenset(derived.broken)

    def _drawing(self, choices: Choices) -> Drawing:
        drawing = self._sampler.draw(choices)
        budget = _logarithmic(choices, 1 << _ELEMENTS[0], 1 << _ELEMENTS[1])
        sizes = _WitnessSizes(budget, choices.integer(0, 2))
        names, picks = self._sampler.names.draw(choices, sizes, dtypes=drawing.dtypes)
        modes = self._spec.modes
        if modes is not None:
            names[modes.attribute] = drawing.names[modes.attribute]
        return msgspec.structs.replace(drawing, names=names, picks=picks)
