"""A run: a plan made, tried part by part, and told to its watchers, with a check of the stated product."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.core.case import Case
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, SkipReason
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.findings import findings_in
from aclnn_cts.findings.waivers.file import Waiver, waiver_texts
from aclnn_cts.findings.waivers.matching import Waivers, pinned_trials, waivers_of_run
from aclnn_cts.generate.corner_list import recorded_corners
from aclnn_cts.runs.beginning import is_tested, new_manifest, why_not_tested
from aclnn_cts.runs.finding_limit import FindingLimit
from aclnn_cts.runs.possible import possible_state
from aclnn_cts.runs.programs import program_maker
from aclnn_cts.sandbox.interrupts import annotate_interrupt, interrupts_held_back
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.events import (
    BatchJudged,
    Consumer,
    Event,
    Notice,
    OperatorFinished,
    PhaseStarted,
    RunFinished,
    RunStarted,
    TrialsExpected,
    TrialsPlanned,
    TrialsSkipped,
)
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.store.run_directory import RESULTS
from aclnn_cts.store.run_verdict import MIN_JUDGED, RunPlan, Terms, listed_rules
from aclnn_cts.store.run_writer import RunWriter, create_run
from aclnn_cts.store.store_reader import Query, ResultReader
from aclnn_cts.store.summary import Summary
from aclnn_cts.trials.checks.registry import as_trial
from aclnn_cts.trials.checks.sentinel import refused_sentinels, rejection_text, sentinel_trial
from aclnn_cts.trials.plan import Part, Profile, plan_parts
from aclnn_cts.trials.trial_runner import JudgedBatch, TrialRunner

if TYPE_CHECKING:
    from aclnn_cts.runs.benchmark_use import BenchmarkUse
    from aclnn_cts.runs.product_tables import OtherProductComparison
    from aclnn_cts.sandbox.host import SessionHost


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run is asked for."""

    command: str
    arguments: tuple[str, ...]
    specs: Specs
    operators: tuple[Spec, ...]
    settings: RunnerSettings
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


def _pass_to_all(*consumers: Consumer) -> Consumer:
    """Passes events on, in this order."""

    def tell(event: Event, /) -> None:
        for consumer in consumers:
            consumer(event)

    return tell


def run(options: RunOptions, consumers: Sequence[Consumer] = ()) -> Summary:
    """Do a run and keep it in `options.out`. An interrupt finishes what is stored, and says where it is."""
    began = time.monotonic()
    settings, specs = options.settings, options.specs
    with settings.open_host(specs) as host, settings.open_benchmark(specs) or contextlib.nullcontext() as benchmark:
        settings = settings.on(host, options.operators)
        options = replace(options, settings=settings)
        uses = _benchmark_uses(benchmark, options.operators, settings)
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
        runner = TrialRunner(
            specs=options.specs,
            host=host,
            settings=settings,
            is_waived=waivers.covers,
            sample_waived=True,
            benchmark=benchmark,
        )
        _load_oracles(runner, options)
        terms = _terms(options)
        with create_run(
            options.out,
            manifest=manifest,
            specs=spec_files,
            waivers=waiver_texts(options.waivers),
            terms=terms,
            grouping=findings_in,
            programs=program_maker(options.specs, settings.spec_folders),
        ) as writer:
            _demand(options, runner, writer.summary)
            # A runtime tells the product; without one it is the user's word.
            tables = () if host.capabilities.executes else (_product_tables(options),)
            limit = FindingLimit(options.max_findings)
            given_up: frozenset[str] = frozenset()
            # First to the store, so that nobody shows what is not kept.
            tell = _pass_to_all(writer, *tables, limit, *uses, *consumers)
            try:
                tell(RunStarted(manifest=manifest))
                _skip_unsupported(options, tell)
                dropped = _dropped(runner, options, waivers, tell)
                if options.pins:
                    _run_trials(runner, pinned_trials(waivers, options.operators), waivers, tell, limit)
                _run_trials(runner, _given_trials(runner, tell, options, dropped), waivers, tell, limit)
                if options.profile is not None:
                    asked = [
                        item for item in options.operators if is_tested(item, options.settings) and item not in dropped
                    ]
                    given_up = _run_plan(runner, asked, options.profile, options, waivers, tell, limit)
                    if settings.phases == 2:
                        writer.append_part(
                            Summary(), state=_planned_state(runner, asked, options.profile, seed=options.seed)
                        )
                    if not limit.reached:
                        _check_both_sides([item for item in asked if item.operator not in given_up], options, writer)
                    if settings.phases == 2:
                        _find_conditions(writer, runner)
                writer.summary.miss(note for use in uses for note in use.notes(settings.benchmark))
                is_whole = options.profile is not None and not (limit.reached or given_up)
                beside = [*(item.suspicion for item in tables), limit.notice, *map(_GIVEN_UP.format, sorted(given_up))]
                _tell_notices([*_of_waivers(waivers, writer.summary, is_whole=is_whole), *beside], writer.summary, tell)
            except KeyboardInterrupt as error:
                ended = RunFinished(summary=writer.summary, seconds=time.monotonic() - began, interrupted=True)
                with interrupts_held_back():
                    writer(ended)
                with contextlib.suppress(OSError):
                    # The terminal may be gone with whoever sent the signal.
                    _pass_to_all(*consumers)(ended)
                raise annotate_interrupt(error, f"what had finished is kept in {options.out}") from None
            with interrupts_held_back():
                tell(RunFinished(summary=writer.summary, seconds=time.monotonic() - began))
            return writer.summary


_GIVEN_UP = "{}: every call ended the process; the rest of its plan was not tried, and counts as not judged"


def _of_waivers(waivers: Waivers, summary: Summary, *, is_whole: bool) -> Sequence[str]:
    """What a run says of its waivers. Of some trials alone, others may need those that none of these did."""
    report = waivers.report()
    if not is_whole:
        report = replace(report, unused=())
    summary.violate(report.violations())
    return report.notices()


def _benchmark_uses(
    benchmark: SessionHost | None, operators: Sequence[Spec], settings: RunnerSettings
) -> tuple[BenchmarkUse, ...]:
    """What listens to whether a second implementation answers, where there is one that may."""
    if benchmark is None:
        return ()
    from aclnn_cts.runs.benchmark_use import BenchmarkUse, check_benchmark  # noqa: PLC0415 - few runs have one

    check_benchmark(benchmark, operators, settings)
    return (BenchmarkUse(),)


def _tell_notices(notices: Iterable[str], summary: Summary, tell: Consumer) -> None:
    for message in filter(None, notices):
        summary.notices.append(message)
        tell(Notice(message=message))


_LOOKED_AT = 20_000
"""Records of an operator and result among which conditions are looked for."""


def _find_conditions(writer: RunWriter, runner: TrialRunner) -> None:
    """Make the findings, and the calls that confirm under which condition each fails."""
    if writer.summary.total.unwaived:
        from aclnn_cts.triage.condition import with_conditions  # noqa: PLC0415 - a run without failures needs none

        with ResultReader(writer.path / RESULTS) as results:

            def records(operator: str, result: str) -> Iterator[Record]:
                return results.records(Query(operator=operator, result=result), limit=_LOOKED_AT)

            writer.conclude(with_conditions(findings_in(results), records, runner))


def _planned_state(runner: TrialRunner, specs: Sequence[Spec], profile: Profile, *, seed: int) -> Mapping[str, object]:
    """What a run's store keeps of what its calls can be: cells of maps, and the factors that a standard combines."""
    state = possible_state(specs, runner.settings.target)
    if profile.standard:
        from aclnn_cts.execution.cascade import standard_state  # noqa: PLC0415 - few runs follow one

        samplers = map(runner.sampler, specs)
        return state | standard_state(samplers, profile.standard, seed=seed, max_bytes=runner.settings.max_bytes)
    return state


def _product_tables(options: RunOptions) -> OtherProductComparison:
    """What tells whether the implementation answers as another product."""
    from aclnn_cts.runs.product_tables import OtherProductComparison  # noqa: PLC0415 - where the product is a word alone

    return OtherProductComparison(product=options.settings.target.product, specs=options.operators)


def _terms(options: RunOptions) -> Terms:
    """What the run's counts are measured by."""
    whole = RunPlan.STATUSES if options.settings.phases == 1 else RunPlan.PROFILE
    plan = RunPlan.CASES if options.profile is None else whole
    is_limited = options.profile is not None and options.profile.most > 0
    return Terms(
        plan=plan,
        min_judged=options.min_judged,
        named=options.named,
        is_limited=is_limited,
        every_corner=options.profile is not None and options.profile.every_corner,
    )


def _demand(options: RunOptions, runner: TrialRunner, summary: Summary) -> None:
    """Name every listed dtype, status rule and corner that a run of a profile must judge."""
    product, profile = options.settings.target.product, options.profile
    if profile is None:
        return
    for spec in options.operators:
        if not is_tested(spec, options.settings):
            continue
        rows = runner.sampler(spec).given_rows if options.settings.phases == 2 else ()
        dtypes = runner.scope.listed_dtypes(rows)
        rules = listed_rules(spec, product) if runner.scope.statuses else ()
        # A standard asks for sizes of its own, and for no views.
        has_cells = not profile.standard and options.settings.phases == 2
        cells = runner.planned_cells(spec, heavy=profile.heavy) if has_cells else ()
        listed = recorded_corners(spec, product) if has_cells else None
        corners = listed.reachable_corners(heavy=profile.heavy) if listed is not None else ()
        summary.demand(spec.operator, dtypes=dtypes, rules=rules, cells=cells, corners=corners)


def _load_oracles(runner: TrialRunner, options: RunOptions) -> None:
    """Whatever is wrong with an oracle is said before the run has a directory."""
    if options.settings.phases == 1:
        return
    named = {item.case.operator if isinstance(item, Trial) else item.operator for item in options.trials}
    for spec in options.operators:
        if spec.operator in named or (options.profile is not None and is_tested(spec, options.settings)):
            runner.judge(spec)


def _manifest(options: RunOptions, environment: Mapping[str, Any], capabilities: Capabilities) -> Manifest:
    return new_manifest(
        command=options.command,
        arguments=options.arguments,
        operators=options.operators,
        settings=options.settings,
        stated={
            "workers": options.workers,
            "min_judged": options.min_judged,
            "named": list(options.named),
            **({"max_cases": options.profile.most} if options.profile is not None and options.profile.most else {}),
        },
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
        if is_tested(spec, options.settings):
            continue
        reason, result = why_not_tested(spec, options.settings)
        tell(TrialsPlanned(operator=spec.operator, kind="valid", number=1))
        tell(TrialsSkipped(operator=spec.operator, kind="valid", reason=reason, result=result))


def _dropped(runner: TrialRunner, options: RunOptions, waivers: Waivers, tell: Consumer) -> Sequence[Spec]:
    """The operators that reject their sentinel where statuses alone are judged. Each rejection is recorded."""
    capabilities = runner.host.capabilities
    if runner.settings.phases != 1 or not options.sentinels or not (capabilities.statuses and capabilities.phases):
        return ()
    operators = [spec for spec in options.operators if is_tested(spec, options.settings)]
    trials = {spec.operator: sentinel_trial(runner.sampler(spec)) for spec in operators}
    refused = refused_sentinels(runner.host, [trial.case for trial in trials.values()], options.specs, phases=1)
    # What was accepted lies in the operator cache, where later calls would not be checked.
    runner.host.refresh()
    dropped = []
    for spec in operators:
        if spec.operator not in refused:
            continue
        trial = trials[spec.operator]
        kind = trial.case.origin.kind
        tell(TrialsPlanned(operator=spec.operator, kind=kind, number=1))
        failed = False
        for judged in runner.run([trial]):
            _tell_judged(judged, waivers, tell)
            failed = failed or any(record.verdict.kind == Fault.REJECTED for record in judged.records)
        if failed:
            dropped.append(spec)
            if options.profile is not None:
                tell(TrialsPlanned(operator=spec.operator, kind="valid", number=1))
                tell(TrialsSkipped(operator=spec.operator, kind="valid", reason=SkipReason.SENTINEL))
            tell(Notice(message=rejection_text(spec.operator, trial, refused[spec.operator])))
    return dropped


def _given_trials(runner: TrialRunner, tell: Consumer, options: RunOptions, dropped: Sequence[Spec]) -> Sequence[Trial]:
    """Trials of files; those of operators that are not chosen, or were dropped, are skipped."""
    chosen = {spec.operator for spec in options.operators}
    rejecting = {spec.operator for spec in dropped}
    trials = []
    for item in options.trials:
        case = _case_of(item)
        if case.operator in chosen - rejecting:
            trials.append(as_trial(runner.specs[case.operator], item))
        else:
            tell(TrialsPlanned(operator=case.operator, kind=case.origin.kind, number=1))
            reason = SkipReason.SENTINEL if case.operator in rejecting else SkipReason.NOT_CHOSEN
            tell(TrialsSkipped(operator=case.operator, kind=case.origin.kind, reason=reason))
    return trials


def _run_trials(
    runner: TrialRunner, trials: Sequence[Trial], waivers: Waivers, tell: Consumer, limit: FindingLimit
) -> None:
    """Trials that are given, each under its own kind."""
    for trial in trials:
        tell(TrialsPlanned(operator=trial.case.operator, kind=trial.case.origin.kind, number=1))
    left = {trial.id: trial.case for trial in trials}
    for judged in () if limit.reached else runner.run(trials):
        _tell_judged(judged, waivers, tell)
        for record in judged.records:
            left.pop(record.trial_id, None)
        if limit.reached:
            break
    for case in left.values() if limit.reached else ():
        tell(TrialsSkipped(operator=case.operator, kind=case.origin.kind, reason=SkipReason.STOPPED))


def _case_of(item: Trial | Case) -> Case:
    return item.case if isinstance(item, Trial) else item


def _tell_judged(judged: JudgedBatch, waivers: Waivers, tell: Consumer) -> None:
    records = tuple(waivers.apply(record) for record in judged.records)
    tell(BatchJudged(records=records, coverage=judged.coverage, blobs=judged.blobs))


def _run_plan(
    runner: TrialRunner,
    operators: Sequence[Spec],
    chosen: Profile,
    options: RunOptions,
    waivers: Waivers,
    tell: Consumer,
    limit: FindingLimit,
) -> frozenset[str]:
    """Run a profile's plan; the operators that were given up, as every call of them ended the process."""
    settings = options.settings
    parts = plan_parts(
        operators,
        product=settings.target.product,
        chosen=chosen,
        phases=settings.phases,
        max_bytes=settings.max_bytes,
    )
    tell(TrialsExpected(number=sum(part.count for part in parts)))
    given_up: list[str] = []
    left = {part: part.count for part in parts}
    waiting = {operator: set(mine) for operator, mine in groupby(parts, key=lambda part: part.operator)}
    begun = set()
    with contextlib.closing(_judged_parts(runner, parts, options, tell)) as results:
        for part, number, judged in () if limit.reached else results:
            if part not in begun:
                begun.add(part)
                left[part] = number
                if number:
                    tell(TrialsPlanned(operator=part.operator, kind=part.kind, number=number))
            if judged.given_up:
                given_up.append(part.operator)
                _skip_rest(part, part.count, tell, is_planned=False)
                left[part] = 0
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
        _skip_rest(part, number, tell, is_planned=part in begun)
    return frozenset(given_up)


def _skip_rest(part: Part, number: int, tell: Callable[[Event], None], *, is_planned: bool) -> None:
    """Count trials of a part that are not tried any more."""
    if not is_planned:
        tell(TrialsPlanned(operator=part.operator, kind=part.kind, number=number))
    if number:
        tell(TrialsSkipped(operator=part.operator, kind=part.kind, reason=SkipReason.STOPPED, number=number))


def _judged_parts(
    runner: TrialRunner, parts: Sequence[Part], options: RunOptions, tell: Callable[[Event], None]
) -> Generator[tuple[Part, int, JudgedBatch], None, None]:
    if options.workers > 1:
        from aclnn_cts.runs.plan_worker import judge_parts  # noqa: PLC0415 - one process needs no scheduler

        yield from judge_parts(
            parts, settings=options.settings, seed=options.seed, workers=options.workers, waivers=options.waivers
        )
        return
    phase = ("", "")
    for part, number, judged in runner.run_parts(parts, seed=options.seed):
        if phase != (phase := (part.operator, part.kind)):
            tell(PhaseStarted(name=part.kind, operator=part.operator))
        yield part, number, judged


def _check_both_sides(operators: Sequence[Spec], options: RunOptions, writer: RunWriter) -> None:
    """A constraint that no trial held, or none broke, is a failure of the harness."""
    product = options.settings.target.product
    constraints = {spec.operator: [item.id for item in spec.constraints_for(product)] for spec in operators}
    writer.summary.miss(writer.summary.one_sided(constraints))
