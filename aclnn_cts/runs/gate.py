"""The conformance run as a gate: one check of one operator at a time, for a test runner that reports by test."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aclnn_cts.adapters.registry import parse_adapter_word
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.target import OWN_PRODUCT, Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import OutOfScope, Record, Result, RunVerdict
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.explain import explain_record, replay_command
from aclnn_cts.findings.finding_text import finding_text
from aclnn_cts.findings.findings import Failures, with_best_record
from aclnn_cts.findings.waivers.file import Waiver, waivers_beside_shipped
from aclnn_cts.findings.waivers.matching import WaiverCounts, pinned_trials, pins_for, waivers_of_run
from aclnn_cts.runs.baseline import Baseline, read_baseline, without_exceptions, write_finding
from aclnn_cts.runs.changed import changed_files, operators_of
from aclnn_cts.runs.finding_limit import FindingLimit
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import check_product
from aclnn_cts.store.case_files import trial_text
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.output_file import storage_failure, write_atomically
from aclnn_cts.store.run_verdict import MIN_JUDGED, RunPlan, Terms, explain_conclusion, headline, listed_rules
from aclnn_cts.store.summary import Summary
from aclnn_cts.triage.condition import with_conditions
from aclnn_cts.triage.search import SEARCHED, search, trial_strategy
from aclnn_cts.trials.checks.sentinel import sentinel_trial
from aclnn_cts.trials.plan import STATUS_CHECKS, Profile, plan_parts, profile
from aclnn_cts.trials.trial_runner import TrialRunner

PINNED = "pinned/"
"""Before the name of a case that a waiver pins (`GateOptions.pinned`), where a check's id may stand."""

_SEEDS = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """What a gate is opened with."""

    settings: RunnerSettings
    profile: Profile
    seed: int
    specs: Specs
    operators: tuple[Spec, ...]
    """Those that are to be tested, in the order of the files."""
    waivers: tuple[Waiver, ...] = ()
    min_judged: int = MIN_JUDGED
    """Percent of a check's trials that must be judged."""
    max_findings: int | None = None
    """The number of findings without a waiver after which nothing more is tried; None: everything is."""
    named: frozenset[str] = frozenset()
    """Operators that the command line names; empty: all."""
    baseline: Baseline = field(default_factory=Baseline)
    """Findings whose failures fail no test."""
    unnamed: tuple[str, ...] = ()
    """Changed files that name no operator."""

    def pinned(self, spec: Spec) -> tuple[str, ...]:
        """The cases of an operator that waivers for this adapter pin, by names that `Gate.check` takes."""
        pins = pins_for(self.waivers, self.settings.adapter, [spec])[spec.operator]
        return tuple(PINNED + name for name in pins)


def gate_options(  # noqa: PLR0913 - one parameter an option
    *,
    adapter: str,
    product: str | None = None,
    operators: Sequence[str] = (),
    profile_name: str = "quick",
    seed: int = 0,
    waivers: Sequence[Path] = (),
    spec_folders: Sequence[Path] = (),
    edition: str = "",
    max_bytes: int = DEFAULT_MAX_BYTES,
    min_judged: int = MIN_JUDGED,
    max_findings: int | None = None,
    phases: int = 2,
    call_seconds: float | None = None,
    strict_limits: bool = False,
    baseline: Path | None = None,
    changed: str = "",
) -> GateOptions:
    """Options from the words of a command line; UsageError for the first that is wrong. Opens nothing."""
    parse_adapter_word(adapter)
    specs = load_specs(spec_folders, edition=edition)
    if product is not None:
        check_product(product, where="--product")
    if not 0 <= seed < _SEEDS:
        raise UsageError(f"--seed {seed}: expected an integer from 0 to {_SEEDS - 1}")
    if call_seconds is not None and not 0 < call_seconds <= 86_400:
        raise UsageError(f"--call-timeout {call_seconds}: expected seconds, above 0 and at most 86400")
    if not 1 <= min_judged <= 100:
        raise UsageError(f"--min-judged {min_judged}: expected percent, an integer from 1 to 100")
    if max_findings is not None and max_findings < 1:
        raise UsageError(f"--max-findings {max_findings}: expected a number of findings, at least 1")
    named = frozenset(specs.find(word, where="--op").operator for word in operators)
    change = operators_of(changed_files(changed, Path.cwd()), tuple(specs.values())) if changed else None
    chosen = named or frozenset(specs)
    if change is not None:
        chosen &= change.operators
    return GateOptions(
        settings=RunnerSettings(
            adapter=adapter,
            target=Target(product=product or OWN_PRODUCT),
            spec_folders=tuple(spec_folders),
            edition=edition,
            max_bytes=max_bytes,
            phases=phases,
            call_seconds=call_seconds,
            strict_limits=strict_limits,
            workers=_xdist_workers(),
        ),
        profile=profile(profile_name),
        seed=seed,
        specs=specs,
        operators=tuple(specs[name] for name in specs if name in chosen),
        waivers=waivers_beside_shipped(waivers, adapter=adapter),
        min_judged=min_judged,
        max_findings=max_findings,
        named=named,
        baseline=Baseline() if baseline is None else read_baseline(baseline),
        unnamed=() if change is None else change.others,
    )


def _xdist_workers() -> int:
    """Workers of pytest-xdist, each of which has a gate."""
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    return max(int(count), 1) if count.isdecimal() and len(count) < 5 else 1


@dataclass(slots=True)
class GateResult:
    """What one check of one operator came to."""

    check: str
    summary: Summary
    baseline: Baseline
    failures: Failures = field(default_factory=Failures)
    """Unwaived ones that the baseline does not know."""
    judged: list[Record] = field(default_factory=list)
    """Those records, and the ones that passed."""
    shrunk: Record | None = None
    """What a search has found: it is shown for its finding."""
    errors: list[str] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()
    """Of these failures, the most frequent first."""
    known: set[str] = field(default_factory=set)
    """Files of the baseline's findings that failed again."""
    beside: str = ""
    """Why nothing was tried; empty where something was."""
    unjudged: tuple[str, ...] = ()
    """Why it is inconclusive, in lines; empty where enough was judged, or nothing is to be."""

    @property
    def counts(self) -> Counts:
        return self.summary.total

    def add(self, record: Record) -> None:
        """Count one trial."""
        verdict, case = record.verdict, record.trial.case
        self.summary.plan(case.operator, case.origin.kind)
        self.summary.add(record)
        if verdict.result == Result.ERROR:
            self.errors.append(verdict.message)
        if record.waiver:
            return
        if known := self.baseline.finding_of(record):
            self.known.add(known)
        else:
            self.failures.add(record)
            if verdict.result in (Result.FAILED, Result.PASSED):
                self.judged.append(record)

    def records(self, operator: str, result: str) -> Iterator[Record]:
        """The unwaived records of an operator with a result."""
        return (item for item in self.judged if item.trial.case.operator == operator and item.verdict.result == result)


class Gate:
    """An open implementation, tried check by check."""

    def __init__(self, options: GateOptions, host: SessionHost, *, failures: Path) -> None:
        self.options = options
        self._failures = failures
        self._host = host
        self.waivers = waivers_of_run(
            options.waivers,
            settings=options.settings,
            environment=host.environment,
            bindings=host.capabilities.bindings,
            specs=options.specs,
            operators=options.operators,
        )
        self.runner = TrialRunner(
            specs=options.specs,
            host=host,
            settings=options.settings,
            is_waived=self.waivers.covers,
            sample_waived=True,
        )
        self._reported = WaiverCounts()
        self._limit = FindingLimit(options.max_findings)
        self._sentinels: dict[str, Record | None] = {}

    def check(self, spec: Spec, check: str) -> GateResult:
        """All trials that the profile plans of a check, and a search by Hypothesis where that draws cases.

        Or one case that a waiver pins.
        """
        if not self.runner.scope.offers(spec.operator, self.options.settings.target.product):
            return self._not_offered(spec)
        result = self._nothing_yet(spec, check)
        if self._limit.reached:
            return self._finished(result, beside=self._limit.notice)
        if check.startswith(PINNED):
            return self._check_pinned(spec, check.removeprefix(PINNED), result)
        settings = self.options.settings
        if settings.phases == 1:
            if check not in STATUS_CHECKS:
                return self._finished(result, beside=f"{check}: the first phase alone says nothing of it")
            if (rejected := self._rejected_sentinel(spec)) is not None:
                result.add(rejected)
                return self._finished(result)
        self._run_plan(spec, check, result)
        if check in SEARCHED and not self._limit.reached:
            self._search(spec, check, result)
        return self._finished(result)

    def _run_plan(self, spec: Spec, check: str, result: GateResult) -> None:
        settings = self.options.settings
        parts = plan_parts(
            [spec],
            product=settings.target.product,
            chosen=self.options.profile,
            phases=settings.phases,
        )
        for part in parts:
            if part.check == check:
                for record in self._run(self.runner.expand(part, seed=self.options.seed)):
                    result.add(record)

    def _rejected_sentinel(self, spec: Spec) -> Record | None:
        """The record of a known-good call that is rejected: then no other rejection says anything."""
        if spec.operator not in self._sentinels:
            records = self._run([sentinel_trial(self.runner.sampler(spec))])
            rejected = (record for record in records if record.verdict.kind == Fault.REJECTED)
            self._sentinels[spec.operator] = next(rejected, None)
            # What was accepted lies in the operator cache, where later calls would not be checked.
            self._host.refresh()
        return self._sentinels[spec.operator]

    def _check_pinned(self, spec: Spec, name: str, result: GateResult) -> GateResult:
        trial = pins_for(self.options.waivers, self.options.settings.adapter, [spec])[spec.operator][name]
        if trial not in pinned_trials(self.waivers, [spec]):
            target = self.options.settings.target.product
            version = self._host.environment.get("version", "of an unknown version")
            what = f"its waiver does not cover {self.options.settings.adapter} {version} on {target}"
            return self._finished(result, beside=what)
        for record in self._run([trial]):
            result.add(record)
        return self._finished(result)

    def _nothing_yet(self, spec: Spec, check: str) -> GateResult:
        """Nothing yet, and what the trials of a check must come to."""
        options, scope = self.options, self.runner.scope
        product = options.settings.target.product
        named = (spec.operator,) if spec.operator in options.named else ()
        terms = Terms(RunPlan.CHECK, min_judged=options.min_judged, named=named)
        summary = Summary(terms=terms, scope=scope, finished=True)
        if check == "values" and options.settings.phases == 2:
            summary.demand(spec.operator, dtypes=scope.listed_dtypes(self.runner.sampler(spec).given_rows))
        elif check == "status" and scope.statuses:
            summary.demand(spec.operator, rules=listed_rules(spec, product))
        return GateResult(check, summary, options.baseline)

    def _finished(self, result: GateResult, *, beside: str = "") -> GateResult:
        conclusion = result.summary.conclusion
        counted = sum(found.counted for found in conclusion.operators.values())
        if conclusion.verdict == RunVerdict.INCONCLUSIVE and counted and not beside:
            result.unjudged = (f"{headline(conclusion)}:", *explain_conclusion(conclusion))
        failed = [record for record in result.judged if record.verdict.result == Result.FAILED]
        found = tuple(self._found(result))
        result.findings = tuple(map(self._kept, found))
        for item in without_exceptions(found, failed):
            write_finding(item, self._failures / item.file, check=result.check)
        result.beside = beside
        return result

    def _not_offered(self, spec: Spec) -> GateResult:
        """What a test of an operator comes to that the adapter does not offer."""
        result = self._nothing_yet(spec, "")
        result.summary.plan(spec.operator, "valid")
        reason = f"{OutOfScope.OPERATOR} {spec.operator}"
        result.summary.skip(spec.operator, "valid", reason=reason, result=Result.OUT_OF_SCOPE)
        if spec.operator in self.options.named:
            result.unjudged = tuple(explain_conclusion(result.summary.conclusion))
        return self._finished(result, beside=f"{spec.operator}: the adapter does not offer it")

    def news(self) -> WaiverCounts:
        """What the trials since the last call say of waivers."""
        news = self.waivers.evidence.since(self._reported)
        self._reported.include(news)
        return news

    def describe(self, finding: Finding, spec: Spec) -> Iterator[str]:
        """Lines about a finding: what the terminal says of it, one case whole, and the command that replays it."""
        assert finding.record is not None  # noqa: S101 - the gate keeps all records
        settings = self.options.settings
        command = replay_command(
            self._failures / finding.file,
            settings.adapter,
            spec_folders=settings.spec_folders,
            edition=settings.edition,
            strict_limits=settings.strict_limits,
        )
        text = finding_text(finding, self.options.specs, replay=command)
        yield text.what
        yield text.clause
        yield from explain_record(finding.record, spec)
        yield f"replay: {text.replay}"

    def sarif_facts(self, finding: Finding) -> dict[str, str]:
        """A finding as SARIF names it; its file as this process sees it."""
        text = finding_text(finding, self.options.specs, replay="")
        return {
            "operator": finding.key.operator,
            "fault": finding.kind,
            "message": text.what,
            "clause": text.clause,
            "file": (self._failures / finding.file).as_posix(),
        }

    def close(self) -> None:
        """Close the implementation."""
        self._host.close()

    def _run(self, trials: Iterable[Trial]) -> Iterator[Record]:
        for judged in self.runner.run(list(trials)):
            for record in judged.records:
                applied = self.waivers.apply(record)
                if not self.options.baseline.finding_of(applied):
                    self._limit.add(applied)
                yield applied
            if self._limit.reached:
                break

    def _found(self, result: GateResult) -> Iterator[Finding]:
        """The findings of a check, with what a search has made smaller."""
        found = result.failures.findings
        if self.options.settings.phases == 2:
            found = with_conditions(found, result.records, self.runner)
        for finding in found:
            if result.shrunk is not None and result.shrunk.fingerprint in finding.fingerprints:
                yield with_best_record(finding, [result.shrunk])
            else:
                yield finding

    def _kept(self, finding: Finding) -> Finding:
        """A finding whose smallest trial has a file, for `replay`."""
        file = self._failures / finding.file
        assert finding.trial is not None  # noqa: S101 - as above
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_failure(file.parent, error) from error
        write_atomically(file, trial_text(finding.trial))
        from aclnn_cts.repro.keep import keep_programs  # noqa: PLC0415 - only where something failed
        from aclnn_cts.repro.write import Programs, languages_for  # noqa: PLC0415

        settings, record = self.options.settings, finding.record
        programs = Programs(specs=self.options.specs, spec_folders=settings.spec_folders)
        languages = languages_for(settings.adapter, has_phases=self._host.capabilities.phases)
        key = finding.key if record is None else record.key
        keep_programs(file, finding.trial, key=key, record=record, programs=programs, languages=languages)
        return finding

    def _search(self, spec: Spec, check: str, result: GateResult) -> None:
        """What Hypothesis draws beside the plan; a failure comes shrunk, and is the one that is shown."""
        strategy = trial_strategy(spec, self.options.settings.target, check)
        found = search(strategy, lambda trial: next(self._run([trial])), seed=self.options.seed)
        for record in found.records:
            result.add(record)
        if found.smallest is not None and not self.options.baseline.finding_of(found.smallest):
            result.shrunk = found.smallest


def open_gate(options: GateOptions, *, failures: Path) -> Gate:
    """Open the implementation; trial files of findings go to `failures`. Raises as `open_host` does."""
    host = options.settings.open_host(options.specs)
    settings = options.settings.on(host, options.operators)
    return Gate(replace(options, settings=settings), host, failures=failures)
