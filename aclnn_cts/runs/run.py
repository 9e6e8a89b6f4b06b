"""A run: a plan made, tried part by part, and told to its watchers, with a check of the stated product."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Skip, is_valid_call
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.findings import findings_in
from aclnn_cts.findings.waivers.file import Waiver, waiver_texts
from aclnn_cts.findings.waivers.matching import Waivers, pinned_trials, waivers_of_run
from aclnn_cts.runs.beginning import is_asked, new_manifest, why_not_asked
from aclnn_cts.runs.finding_limit import FindingLimit
from aclnn_cts.runs.possible import possible_state
from aclnn_cts.runs.programs import program_maker
from aclnn_cts.sandbox.interrupts import interrupted, interrupts_held_back
from aclnn_cts.speclang.kinds_dtype import Listed
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.events import (
    BatchJudged,
    Consumer,
    Event,
    Expected,
    Notice,
    OperatorFinished,
    PhaseStarted,
    Planned,
    RunFinished,
    RunStarted,
    Skipped,
)
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.store.run_directory import RESULTS
from aclnn_cts.store.run_verdict import MIN_JUDGED, Plan, Terms, listed_rules
from aclnn_cts.store.run_writer import RunWriter, create_run
from aclnn_cts.store.store_reader import Query, ResultReader
from aclnn_cts.store.summary import Summary
from aclnn_cts.trials.checks.registry import as_trial
from aclnn_cts.trials.checks.sentinel import rejection_text, sentinel_trial, sentinels_refused
from aclnn_cts.trials.plan import Part, Profile, plan_parts
from aclnn_cts.trials.trial_runner import Bench, Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run is asked for."""

    command: str
    arguments: tuple[str, ...]
    specs: Specs
    operators: tuple[Spec, ...]
    settings: BenchSettings
    out: Path
    seed: int = 0
    profile: Profile | None = None
    """None: the trials given, and no plan."""
    trials: tuple[Trial | Case, ...] = ()
    workers: int = 1
    min_judged: int = MIN_JUDGED
    """Percent of the planned valid calls of each operator that must be judged on values."""
    named: tuple[str, ...] = ()
    """Operators that the command line names; empty: all."""
    waivers: tuple[Waiver, ...] = ()
    sentinels: bool = True
    """Whether first phases alone are judged only of operators that accept a known-good call."""
    pins: bool = True
    """Whether the cases that waivers pin are run first."""
    max_findings: int | None = None
    """The number of findings without a waiver after which nothing more is tried; None: everything is."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of case and waiver files by path."""


def _told_to(*consumers: Consumer) -> Consumer:
    """Passes events on, in this order."""

    def tell(event: Event, /) -> None:
        for consumer in consumers:
            consumer(event)

    return tell


def run(options: RunOptions, consumers: Sequence[Consumer] = ()) -> Summary:
    """Do a run and keep it in `options.out`. An interrupt finishes what is stored, and says where it is."""
    began = time.monotonic()
    with options.settings.open_host(options.specs) as host:
        settings = options.settings.on(host, options.operators)
        options = replace(options, settings=settings)
        environment = dict(host.environment)
        manifest = _manifest(options, environment, host.capabilities)
        spec_files = {f"{spec.stem}.yaml": spec.text.encode() for spec in options.operators}
        waivers = waivers_of_run(
            options.waivers,
            settings=settings,
            environment=environment,
            bindings=host.capabilities.bindings,
            specs=options.specs,
            operators=options.operators,
        )
        bench = Bench(specs=options.specs, host=host, settings=settings, explained=waivers.explains, sparing=True)
        _load_oracles(bench, options)
        waiver_files = waiver_texts(options.waivers)
        terms = _terms(options)
        with create_run(
            options.out,
            manifest=manifest,
            specs=spec_files,
            waivers=waiver_files,
            terms=terms,
            grouping=findings_in,
            programs=program_maker(options.specs, settings.spec_folders),
        ) as writer:
            _demand(options, bench, writer.summary)
            tables = ProductTables(product=settings.target.product, specs=options.operators)
            limit = FindingLimit(options.max_findings)
            # First to the store, so that nobody shows what is not kept.
            tell = _told_to(writer, tables, limit, *consumers)
            try:
                tell(RunStarted(manifest=manifest))
                _skip_unsupported(options, tell)
                dropped = _dropped(bench, options, waivers, tell)
                if options.pins:
                    _run_trials(bench, pinned_trials(waivers, options.operators), waivers, tell, limit)
                _run_trials(bench, _given_trials(bench, tell, options, dropped), waivers, tell, limit)
                if options.profile is not None:
                    asked = [
                        item for item in options.operators if is_asked(item, options.settings) and item not in dropped
                    ]
                    _run_plan(bench, asked, options.profile, options, waivers, tell, limit)
                    if settings.phases == 2:
                        writer.append_part(Summary(), state=possible_state(asked, settings.target))
                    if not limit.reached:
                        _check_both_sides(asked, options, writer)
                    if settings.phases == 2:
                        _find_conditions(writer, bench)
                # A runtime tells the product; without one it is the user's word.
                suspicion = "" if host.capabilities.executes else tables.suspicion
                is_whole = options.profile is not None and not limit.reached
                notices = [*_of_waivers(waivers, writer.summary, is_whole=is_whole), suspicion, limit.notice]
                writer.summary.notices.extend(filter(None, notices))
                for message in filter(None, notices):
                    tell(Notice(message=message))
            except KeyboardInterrupt as error:
                ended = RunFinished(summary=writer.summary, seconds=time.monotonic() - began, interrupted=True)
                with interrupts_held_back():
                    writer(ended)
                with contextlib.suppress(OSError):
                    # The terminal may be gone with whoever sent the signal.
                    _told_to(*consumers)(ended)
                raise interrupted(error, f"what had finished is kept in {options.out}") from None
            with interrupts_held_back():
                tell(RunFinished(summary=writer.summary, seconds=time.monotonic() - began))
            return writer.summary


def _of_waivers(waivers: Waivers, summary: Summary, *, is_whole: bool) -> Sequence[str]:
    """What a run says of its waivers. Of some trials alone, others may need those that none of these did."""
    report = waivers.report()
    if not is_whole:
        report = replace(report, unused=())
    summary.violate(report.violations())
    return report.notices()


_LOOKED_AT = 20_000
"""Records of an operator and result among which conditions are looked for."""


def _find_conditions(writer: RunWriter, bench: Bench) -> None:
    """Make the findings, and the calls that confirm under which condition each fails."""
    if writer.summary.total.unwaived:
        from aclnn_cts.triage.condition import with_conditions  # noqa: PLC0415 - a run without failures needs none

        with ResultReader(writer.path / RESULTS) as results:

            def records(operator: str, result: str) -> Iterator[Record]:
                return results.records(Query(operator=operator, result=result), limit=_LOOKED_AT)

            writer.conclude(with_conditions(findings_in(results), records, bench))


def _terms(options: RunOptions) -> Terms:
    """What the run's counts are measured by."""
    whole = Plan.STATUSES if options.settings.phases == 1 else Plan.PROFILE
    plan = Plan.CASES if options.profile is None else whole
    return Terms(plan=plan, min_judged=options.min_judged, named=options.named)


def _demand(options: RunOptions, bench: Bench, summary: Summary) -> None:
    """Name every listed dtype and status rule that a run of a profile must judge."""
    product = options.settings.target.product
    for spec in options.operators if options.profile is not None else ():
        if not is_asked(spec, options.settings):
            continue
        rows = bench.sampler(spec).given_rows if options.settings.phases == 2 else ()
        dtypes = bench.scope.listed_dtypes(rows)
        rules = listed_rules(spec, product) if bench.scope.statuses else ()
        heavy = options.profile is not None and options.profile.heavy
        cells = bench.planned_cells(spec, heavy=heavy) if options.settings.phases == 2 else ()
        summary.demand(spec.operator, dtypes=dtypes, rules=rules, cells=cells)


def _load_oracles(bench: Bench, options: RunOptions) -> None:
    """Whatever is wrong with an oracle is said before the run has a directory."""
    if options.settings.phases == 1:
        return
    named = {item.case.operator if isinstance(item, Trial) else item.operator for item in options.trials}
    for spec in options.operators:
        if spec.operator in named or (options.profile is not None and is_asked(spec, options.settings)):
            bench.judge(spec)


def _manifest(options: RunOptions, environment: Mapping[str, Any], capabilities: Capabilities) -> Manifest:
    return new_manifest(
        command=options.command,
        arguments=options.arguments,
        operators=options.operators,
        settings=options.settings,
        stated={"workers": options.workers, "min_judged": options.min_judged, "named": list(options.named)},
        seed=options.seed,
        inputs=options.inputs,
        environment=environment,
        capabilities=capabilities,
        profile=options.profile.name if options.profile is not None else "",
    )


def _skip_unsupported(options: RunOptions, tell: Consumer) -> None:
    if options.profile is None:
        return
    for spec in options.operators:
        if is_asked(spec, options.settings):
            continue
        reason, result = why_not_asked(spec, options.settings)
        tell(Planned(operator=spec.operator, kind="valid", number=1))
        tell(Skipped(operator=spec.operator, kind="valid", reason=reason, result=result))


def _dropped(bench: Bench, options: RunOptions, waivers: Waivers, tell: Consumer) -> Sequence[Spec]:
    """The operators that reject their sentinel where statuses alone are judged. Each rejection is recorded."""
    capabilities = bench.host.capabilities
    if bench.settings.phases != 1 or not options.sentinels or not (capabilities.statuses and capabilities.phases):
        return ()
    operators = [spec for spec in options.operators if is_asked(spec, options.settings)]
    trials = {spec.operator: sentinel_trial(bench.sampler(spec)) for spec in operators}
    refused = sentinels_refused(bench.host, [trial.case for trial in trials.values()], options.specs, phases=1)
    # What was accepted lies in the operator cache, where later calls would not be checked.
    bench.host.refresh()
    dropped = []
    for spec in operators:
        if spec.operator not in refused:
            continue
        trial = trials[spec.operator]
        kind = trial.case.origin.kind
        tell(Planned(operator=spec.operator, kind=kind, number=1))
        failed = False
        for judged in bench.run([trial]):
            _tell_judged(judged, waivers, tell)
            failed = failed or any(record.verdict.kind == Fault.REJECTED for record in judged.records)
        if failed:
            dropped.append(spec)
            if options.profile is not None:
                tell(Planned(operator=spec.operator, kind="valid", number=1))
                tell(Skipped(operator=spec.operator, kind="valid", reason=Skip.SENTINEL))
            tell(Notice(message=rejection_text(spec.operator, trial, refused[spec.operator])))
    return dropped


def _given_trials(bench: Bench, tell: Consumer, options: RunOptions, dropped: Sequence[Spec]) -> Sequence[Trial]:
    """Trials of files; those of operators that are not chosen, or were dropped, are skipped."""
    chosen = {spec.operator for spec in options.operators}
    rejecting = {spec.operator for spec in dropped}
    trials = []
    for item in options.trials:
        case = _case_of(item)
        if case.operator in chosen - rejecting:
            trials.append(as_trial(bench.specs[case.operator], item))
        else:
            tell(Planned(operator=case.operator, kind=case.origin.kind, number=1))
            reason = Skip.SENTINEL if case.operator in rejecting else Skip.NOT_CHOSEN
            tell(Skipped(operator=case.operator, kind=case.origin.kind, reason=reason))
    return trials


def _run_trials(bench: Bench, trials: Sequence[Trial], waivers: Waivers, tell: Consumer, limit: FindingLimit) -> None:
    """Trials that are given, each under its own kind."""
    for trial in trials:
        tell(Planned(operator=trial.case.operator, kind=trial.case.origin.kind, number=1))
    left = {trial.id: trial.case for trial in trials}
    for judged in () if limit.reached else bench.run(trials):
        _tell_judged(judged, waivers, tell)
        for record in judged.records:
            left.pop(record.trial_id, None)
        if limit.reached:
            break
    for case in left.values() if limit.reached else ():
        tell(Skipped(operator=case.operator, kind=case.origin.kind, reason=Skip.STOPPED))


def _case_of(item: Trial | Case) -> Case:
    return item.case if isinstance(item, Trial) else item


def _tell_judged(judged: Judged, waivers: Waivers, tell: Consumer) -> None:
    records = tuple(waivers.apply(record) for record in judged.records)
    tell(BatchJudged(records=records, coverage=judged.coverage, blobs=judged.blobs))


def _run_plan(
    bench: Bench,
    operators: Sequence[Spec],
    chosen: Profile,
    options: RunOptions,
    waivers: Waivers,
    tell: Consumer,
    limit: FindingLimit,
) -> None:
    settings = options.settings
    parts = plan_parts(operators, product=settings.target.product, chosen=chosen, phases=settings.phases)
    tell(Expected(number=sum(part.count for part in parts)))
    left = {part: part.count for part in parts}
    waiting = {operator: set(mine) for operator, mine in groupby(parts, key=lambda part: part.operator)}
    begun = set()
    with contextlib.closing(_judged_parts(bench, parts, options, tell)) as results:
        for part, number, judged in () if limit.reached else results:
            if part not in begun:
                begun.add(part)
                left[part] = number
                if number:
                    tell(Planned(operator=part.operator, kind=part.kind, number=number))
            _tell_judged(judged, waivers, tell)
            left[part] -= len(judged.records)
            if left[part] <= 0 and part.operator in waiting:
                waiting[part.operator].discard(part)
            if limit.reached:
                break
            if part.operator in waiting and not waiting[part.operator] and len(operators) > 1:
                del waiting[part.operator]
                tell(OperatorFinished(operator=part.operator))
    # What is not tried any more is counted, so that the share of what was judged tells it.
    for part, number in left.items() if limit.reached else ():
        if part not in begun:
            tell(Planned(operator=part.operator, kind=part.kind, number=number))
        if number:
            tell(Skipped(operator=part.operator, kind=part.kind, reason=Skip.STOPPED, number=number))


def _judged_parts(
    bench: Bench, parts: Sequence[Part], options: RunOptions, tell: Callable[[Event], None]
) -> Generator[tuple[Part, int, Judged], None, None]:
    if options.workers > 1:
        from aclnn_cts.runs.plan_worker import judge_parts  # noqa: PLC0415 - one process needs no scheduler

        yield from judge_parts(
            parts, settings=options.settings, seed=options.seed, workers=options.workers, waivers=options.waivers
        )
        return
    phase = ("", "")
    for part, number, judged in bench.run_parts(parts, seed=options.seed):
        if phase != (phase := (part.operator, part.kind)):
            tell(PhaseStarted(name=part.kind, operator=part.operator))
        yield part, number, judged


def _check_both_sides(operators: Sequence[Spec], options: RunOptions, writer: RunWriter) -> None:
    """A constraint that no trial held, or none broke, is a failure of the harness."""
    product = options.settings.target.product
    constraints = {spec.operator: [item.id for item in spec.constraints_for(product)] for spec in operators}
    writer.summary.miss(writer.summary.one_sided(constraints))


@dataclass(frozen=True, slots=True)
class _ListDifference:
    """The names of one list of dtypes or formats that two products do not share."""

    constraint: str
    rule: Listed
    other: str
    """The product that is not stated."""
    here: frozenset[str]
    """Names that the stated product lists alone."""
    there: frozenset[str]


@dataclass(slots=True, kw_only=True)
class ProductTables:
    """Listens to a run: does the implementation answer as the lists of another product say?

    Only calls count whose promise the lists decide: a valid call with a name that the other product does not list, and
    a call that breaks the list with a name that the other product has.
    """

    product: str
    specs: Iterable[Spec]
    _differences: Mapping[str, Sequence[_ListDifference]] = field(init=False)
    """By operator."""
    _as_here: set[str] = field(default_factory=set)
    """Products that at least one call contradicts."""
    _as_there: Counter[str] = field(default_factory=Counter)
    """By product, the calls that were answered as its lists say."""
    _accepts: bool = False
    """Whether a valid call passed: an implementation that rejects everything answers as no product."""

    def __post_init__(self) -> None:
        """Compare the lists of the product's operators."""
        self._differences = {
            spec.operator: tuple(_differences(spec, self.product))
            for spec in self.specs
            if self.product in spec.products
        }

    def __call__(self, event: Event, /) -> None:
        """Take the records of a batch."""
        for record in event.records if isinstance(event, BatchJudged) else ():
            if record.verdict.result in (Result.PASSED, Result.FAILED):
                self._add(record)

    def _add(self, record: Record) -> None:
        case, kind = record.trial.case, record.verdict.kind
        passed = record.verdict.result == Result.PASSED
        valid = is_valid_call(record.trial)
        self._accepts |= valid and passed
        for item in self._differences.get(case.operator, ()):
            value = case.arguments.get(item.rule.of)
            name = getattr(value, item.rule.what) if isinstance(value, Tensor) else None
            decides = (
                name in item.here if valid else record.fingerprint.clause == item.constraint and name in item.there
            )
            if not decides:
                continue
            if kind == (Fault.REJECTED if valid else Fault.STATUS):
                self._as_there[item.other] += 1
            elif passed or valid:
                self._as_here.add(item.other)

    @property
    def suspicion(self) -> str:
        """What to check, where every call that tells two products apart is answered as on the other one; else empty."""
        others = {name: number for name, number in self._as_there.items() if name not in self._as_here}
        if not others or not self._accepts:
            return ""
        calls = ", ".join(f"{number} as on {name}" for name, number in sorted(others.items()))
        return (
            f"all calls that tell --product {self.product} from another by a dtype or format are answered as on that "
            f"({calls}): the library may be built for another SoC; check for which, and state that product"
        )


def _differences(spec: Spec, product: str) -> Iterator[_ListDifference]:
    for item in spec.constraints:
        if not isinstance(item.rule, Listed) or product not in item.rule.table:
            continue
        here = frozenset(item.rule.table[product])
        for other, names in item.rule.table.items():
            if other != product and here != frozenset(names):
                yield _ListDifference(item.id, item.rule, other, here - {*names}, frozenset(names) - here)
