"""A run: a plan made, tried part by part, and told to its watchers, with a check of the stated product."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.adapters.registry import own_file
from aclnn_cts.checks.laws import law_ids
from aclnn_cts.checks.plan import Part, Profile, plan_parts
from aclnn_cts.checks.registry import as_trial
from aclnn_cts.checks.sentinel import rejection_text, sentinel_trial, sentinels_refused
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import OutOfScope, Record, Result, Skip
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.fingerprint import grouped_in
from aclnn_cts.findings.waivers.file import Waiver, waiver_texts
from aclnn_cts.findings.waivers.matching import Waivers, pinned_trials, waivers_of_run
from aclnn_cts.runs.pool import judge_parts
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
    PhaseStarted,
    Planned,
    RunFinished,
    RunStarted,
    Skipped,
)
from aclnn_cts.store.manifest import Manifest, adapter_facts, environment_facts, own_adapter_facts, timestamp
from aclnn_cts.store.run_verdict import MIN_JUDGED, Plan, Terms, listed_rules
from aclnn_cts.store.run_writer import RunWriter, create_run
from aclnn_cts.store.summary import Summary
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
            grouping=grouped_in,
        ) as writer:
            _demand(options, bench, writer.summary)
            tables = ProductTables(product=settings.target.product, specs=options.operators)
            # First to the store, so that nobody shows what is not kept.
            tell = _told_to(writer, tables, *consumers)
            try:
                tell(RunStarted(manifest=manifest))
                _skip_unsupported(options, tell)
                dropped = _dropped(bench, options, waivers, tell)
                if options.pins:
                    _run_trials(bench, pinned_trials(waivers, options.operators), waivers, tell)
                _run_trials(bench, _given_trials(bench, tell, options, dropped), waivers, tell)
                if options.profile is not None:
                    asked = [item for item in options.operators if _is_asked(item, options) and item not in dropped]
                    _run_plan(bench, asked, options, waivers, tell)
                    _check_both_sides(asked, options, writer)
                report = waivers.report()
                if options.profile is None:  # chosen trials: those that need the waiver may be others
                    report = replace(report, unused=())
                writer.summary.violate(report.violations())
                # A runtime tells the product; without one it is the user's word.
                suspicion = "" if host.capabilities.executes else tables.suspicion
                notices = [*report.notices(), *filter(None, (suspicion,))]
                writer.summary.notices.extend(notices)
                for message in notices:
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


def _terms(options: RunOptions) -> Terms:
    """What the run's counts are measured by."""
    whole = Plan.STATUSES if options.settings.phases == 1 else Plan.PROFILE
    plan = Plan.CASES if options.profile is None else whole
    return Terms(plan=plan, min_judged=options.min_judged, named=options.named)


def _demand(options: RunOptions, bench: Bench, summary: Summary) -> None:
    """Name every listed dtype and status rule that a run of a profile must judge."""
    product = options.settings.target.product
    for spec in options.operators if options.profile is not None else ():
        if not _is_asked(spec, options):
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
        if spec.operator in named or (options.profile is not None and _is_asked(spec, options)):
            bench.judge(spec)


def _manifest(options: RunOptions, environment: Mapping[str, Any], capabilities: Capabilities) -> Manifest:
    settings = options.settings
    return Manifest(
        command=options.command,
        arguments=options.arguments,
        operators=tuple(spec.operator for spec in options.operators),
        adapter=settings.adapter,
        profile=options.profile.name if options.profile is not None else "",
        seed=options.seed,
        target=settings.target,
        started=timestamp(),
        inputs=dict(options.inputs),
        scope=settings.scope,
        scope_sha256=settings.scope.sha256 if settings.scope is not None else "",
        settings={
            **settings.recorded(),
            "workers": options.workers,
            "min_judged": options.min_judged,
            "named": list(options.named),
        },
        environment=(
            environment_facts()
            | own_adapter_facts(own_file(settings.adapter))
            | adapter_facts(environment, capabilities=capabilities)
        ),
    )


def _skip_unsupported(options: RunOptions, tell: Consumer) -> None:
    if options.profile is None:
        return
    for spec in options.operators:
        if _is_asked(spec, options):
            continue
        reason, result = Skip.UNSUPPORTED, Result.SKIPPED
        if options.settings.target.product in spec.products:
            reason, result = f"{OutOfScope.OPERATOR} {spec.operator}", Result.OUT_OF_SCOPE
        tell(Planned(operator=spec.operator, kind="valid", number=1))
        tell(Skipped(operator=spec.operator, kind="valid", reason=reason, result=result))


def _dropped(bench: Bench, options: RunOptions, waivers: Waivers, tell: Consumer) -> Sequence[Spec]:
    """The operators that reject their sentinel where statuses alone are judged. Each rejection is recorded."""
    capabilities = bench.host.capabilities
    if bench.settings.phases != 1 or not options.sentinels or not (capabilities.statuses and capabilities.phases):
        return ()
    operators = [spec for spec in options.operators if _is_asked(spec, options)]
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


def _is_asked(spec: Spec, options: RunOptions) -> bool:
    """Whether the document names the product for an operator, and the adapter offers that."""
    product, scope = options.settings.target.product, options.settings.scope
    return product in spec.products and (scope is None or scope.offers(spec.operator, product))


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


def _run_trials(bench: Bench, trials: Sequence[Trial], waivers: Waivers, tell: Consumer) -> None:
    """Trials that are given, each under its own kind."""
    for trial in trials:
        tell(Planned(operator=trial.case.operator, kind=trial.case.origin.kind, number=1))
    for judged in bench.run(trials):
        _tell_judged(judged, waivers, tell)


def _case_of(item: Trial | Case) -> Case:
    return item.case if isinstance(item, Trial) else item


def _tell_judged(judged: Judged, waivers: Waivers, tell: Consumer) -> None:
    records = tuple(waivers.apply(record) for record in judged.records)
    tell(BatchJudged(records=records, coverage=judged.coverage, blobs=judged.blobs))


def _run_plan(bench: Bench, operators: Sequence[Spec], options: RunOptions, waivers: Waivers, tell: Consumer) -> None:
    assert options.profile is not None  # noqa: S101 - without one there is no plan
    settings = options.settings
    parts = plan_parts(
        operators, product=settings.target.product, chosen=options.profile, laws=law_ids, phases=settings.phases
    )
    tell(Expected(number=sum(part.count for part in parts)))
    for part, number, judged in _judged_parts(bench, parts, options, tell):
        if number:
            tell(Planned(operator=part.operator, kind=part.kind, number=number))
        _tell_judged(judged, waivers, tell)


def _judged_parts(
    bench: Bench, parts: Sequence[Part], options: RunOptions, tell: Callable[[Event], None]
) -> Iterator[tuple[Part, int, Judged]]:
    if options.workers > 1:
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
    """A constraint that no trial held, or none broke, and a law that none tried, is a failure of the harness."""
    product = options.settings.target.product
    constraints = {spec.operator: [item.id for item in spec.constraints_for(product)] for spec in operators}
    writer.summary.miss(writer.summary.one_sided(constraints))
    if options.settings.phases == 1:
        return
    laws = {spec.operator: law_ids(spec) for spec in operators}
    writer.summary.miss(writer.summary.untried(laws))


_OF_TABLES = frozenset({Fault.REJECTED, Fault.STATUS})


@dataclass(frozen=True, slots=True)
class _Table:
    """The names of one list of dtypes or formats that not all products of an operator have."""

    operator: str
    names: frozenset[str]


@dataclass(slots=True, kw_only=True)
class ProductTables:
    """Listens to a run, and counts the tables whose differing names were tried, and those of which a trial failed."""

    product: str
    specs: Iterable[Spec]
    _rows: Mapping[str, Mapping[str, _Table]] = field(init=False)
    """By operator and parameter."""
    _tried: set[_Table] = field(default_factory=set)
    _failed: set[_Table] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Collect the tables of the product's operators."""
        self._rows = {spec.operator: dict(_tables(spec)) for spec in self.specs if self.product in spec.products}

    def __call__(self, event: Event, /) -> None:
        """Take the records of a batch."""
        for record in event.records if isinstance(event, BatchJudged) else ():
            self._add(record)

    def _add(self, record: Record) -> None:
        if record.verdict.result not in (Result.PASSED, Result.FAILED):
            return
        touched = set(self._touched(record.trial.case))
        self._tried |= touched
        if record.verdict.kind in _OF_TABLES:
            self._failed |= touched

    def _touched(self, case: Case) -> Iterator[_Table]:
        rows = self._rows.get(case.operator, {})
        for name, value in case.arguments.items():
            table = rows.get(name)
            if table is not None and isinstance(value, Tensor) and {value.dtype, value.format} & table.names:
                yield table

    @property
    def suspicion(self) -> str:
        """What to check, where most tables fail; empty otherwise."""
        if 2 * len(self._failed) <= len(self._tried):
            return ""
        operators = ", ".join(sorted({table.operator for table in self._failed}))
        return (
            f"{len(self._failed)} of {len(self._tried)} lists of dtypes and formats that differ between products fail "
            f"({operators}): the library may be built for another SoC than --product {self.product} says; check for "
            "which SoC it was built, and state that product"
        )


def _tables(spec: Spec) -> Iterator[tuple[str, _Table]]:
    for item in spec.constraints:
        rule = item.rule
        if not isinstance(rule, Listed):
            continue
        lists = [frozenset(rule.table.get(product, ())) for product in spec.products]
        if names := frozenset.union(*lists) - frozenset.intersection(*lists):
            yield rule.of, _Table(spec.operator, names)
