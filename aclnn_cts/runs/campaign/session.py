"""One session of a campaign, from its options to its summary and its export as JSON Lines."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.adapters.registry import own_file
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.outside import numbers_as_words
from aclnn_cts.core.printable import printable_json
from aclnn_cts.core.trial import Trial, of_first_phase, trial_to_json
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.findings import FINDING_STATE, findings_in
from aclnn_cts.findings.waivers.file import waiver_texts
from aclnn_cts.findings.waivers.matching import Waivers, pinned_trials, waivers_of_run
from aclnn_cts.generate.regime_cells import planned_cells
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import QUICK
from aclnn_cts.runs.beginning import is_tested, new_manifest, why_not_tested
from aclnn_cts.runs.campaign.campaign_state import CampaignState
from aclnn_cts.runs.campaign.corpus.check_coverage import CheckCoverage, CoverageFactors, check_coverage
from aclnn_cts.runs.campaign.corpus.schedule import GENERATION, Chunk, Schedule, pinned_chunks
from aclnn_cts.runs.campaign.head import Head
from aclnn_cts.runs.campaign.jobs import CampaignService
from aclnn_cts.runs.campaign.resuming import (
    SESSION_STATE,
    CampaignOptions,
    SessionEntry,
    check_implementation,
    earlier_campaign,
    go_on,
)
from aclnn_cts.runs.campaign.status import CampaignStatus, Watcher, Watchers
from aclnn_cts.runs.possible import possible_state
from aclnn_cts.runs.programs import program_maker
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.manifest import (
    CAMPAIGN,
    Manifest,
    adapter_facts,
    own_adapter_facts,
    ran_on,
    sources_hash,
    timestamp,
)
from aclnn_cts.store.output_file import write_atomically
from aclnn_cts.store.run_directory import EXPORT, RunDirectory
from aclnn_cts.store.run_verdict import RunPlan, Terms
from aclnn_cts.store.run_writer import BLOB_LIMIT, RunWriter, create_run, resume_run
from aclnn_cts.store.scratch import memory_folder, scratch_folder
from aclnn_cts.store.store_reader import Query
from aclnn_cts.store.summary import Summary, summary_to_json
from aclnn_cts.trials.checks.sentinel import refused_sentinels, rejection_text, sentinel_case, sentinel_trial
from aclnn_cts.trials.trial_runner import TrialRunner
from aclnn_cts.workers.dispatch import Dispatcher, LocalDispatcher

_REJECTING = "rejecting"
"""Setting of a manifest: the operators that reject their sentinel, and what came back, where there are any."""
CHUNK_SECONDS = 600.0
"""After so long a chunk is broken off."""

OpenDispatcher: TypeAlias = Callable[[CampaignOptions], AbstractContextManager[Dispatcher]]
"""Opens the workers of a session."""


def fuzz(
    options: CampaignOptions, watchers: Sequence[Watcher] = (), *, dispatcher: OpenDispatcher | None = None
) -> CampaignStatus:
    """Run a session; how it stands at its end. Ctrl-C stores what has finished and raises KeyboardInterrupt again.

    `dispatcher` opens the workers; the default is processes of this machine, or Ray actors where a cluster is named.
    Raises UsageError where the directory or the options do not fit, HarnessError where no worker can be opened or the
    disk is full: what was committed before can be resumed.
    """
    watching = Watchers(watchers)
    earlier = earlier_campaign(options) if options.resume else None
    if earlier is not None:
        options = go_on(options, earlier)
    options, manifest, waivers, notice = _opened(options, earlier)
    for message in filter(None, (notice, waivers.ignored)):
        watching.notice(message)
    product = options.settings.target.product
    operators = tuple(spec for spec in options.operators if is_tested(spec, options.settings))
    if not operators:
        names = ", ".join(spec.operator for spec in options.operators)
        raise UsageError(f"--product {product}: none of {names} supports it and is offered by the adapter; name others")
    rejecting = {
        spec.operator: of_first_phase(sentinel_trial(Sampler(spec, options.settings.target)))
        for spec in operators
        if spec.operator in manifest.settings.get(_REJECTING, {})
    }
    for name, trial in rejecting.items():
        watching.notice(rejection_text(name, trial, str(manifest.settings[_REJECTING][name])))
    tried = tuple(spec for spec in operators if spec.operator not in rejecting)
    if not tried:
        # Nothing but the rejections is there to record.
        options = replace(options, stop=replace(options.stop, chunks=0))
    factors = {spec.operator: CoverageFactors(Sampler(spec, options.settings.target)) for spec in operators}
    schedule = Schedule(
        operators=tried,
        factors=factors,
        product=product,
        seed=options.seed,
        size=options.size,
        phases=options.settings.phases,
        generation=int(manifest.settings["generation"]),
    )
    # Workers first: they open while the rest is made ready, and where none can be there is nothing to keep.
    with (
        (dispatcher or _dispatcher)(options) as workers,
        _writer(options, manifest, operators, resume=earlier is not None) as writer,
    ):
        coverage: dict[str, CheckCoverage] = {}
        memory = CampaignState(writer=writer, schedule=schedule, coverage=coverage)
        head: Head | None = None
        try:
            if earlier is not None:
                memory.load_session(RunDirectory(options.out))
            for name, each in factors.items():
                coverage[name] = check_coverage(
                    each, seed=options.seed, unsafe=options.settings.unsafe, phases=options.settings.phases
                )
            rejections = [
                trial for trial in rejecting.values() if earlier is None or not _is_recorded(options.out, trial)
            ]
            head = Head(
                memory=memory,
                dispatcher=workers,
                specs=options.specs,
                stop=options.stop,
                spec_folders=options.settings.spec_folders,
                watcher=watching,
                ran_on=ran_on(manifest),
                pinned=_pinned([*rejections, *pinned_trials(waivers, operators)], memory, options.seed),
            )
            head.run()
        except KeyboardInterrupt:
            _leave(memory, head, interrupted=True)
            raise
        except Exception:
            # Without a worker, by a mistake of ours, or on a full disk, which may leave no room for this either.
            with contextlib.suppress(HarnessError):
                _leave(memory, head, interrupted=True)
            raise
        _judge_waivers(waivers, memory, watching)
        status = head.status()
        _leave(memory, head, interrupted=False)
        return replace(status, summary=writer.summary)


def _pinned(pins: Iterable[Trial], memory: CampaignState, seed: int) -> list[Chunk]:
    """Trials that come first, without those that an earlier session of the campaign has judged."""
    judged = memory.evidence.passed | memory.evidence.failed
    trials = [pin for pin in pins if not {pin.id, case_id(pin.case)} & judged]
    return pinned_chunks(trials, seed=seed)


def _is_recorded(run: Path, trial: Trial) -> bool:
    with RunDirectory(run).results() as results:
        return any(results.records(Query(trial_id=trial.id), limit=1))


def _judge_waivers(waivers: Waivers, memory: CampaignState, watching: Watcher) -> None:
    summary = memory.writer.summary
    waivers.evidence.include(memory.evidence)
    report = waivers.report()
    # Those of an earlier session may be mended, or renewed.
    summary.violate(report.violations())
    summary.notices[:] = report.notices()
    for message in report.notices():
        if message != waivers.ignored:  # the session began with that
            watching.notice(message)


def _leave(memory: CampaignState, head: Head | None, *, interrupted: bool) -> None:
    """Write what others read of a session that ends: coverage, summary and export."""
    writer = memory.writer
    directory = RunDirectory(writer.path)
    seconds = memory.before + (head.seconds if head is not None else 0.0)
    if interrupted:
        # What came in the middle of a chunk's commit may be in the store, or in the memory alone.
        writer.take_committed()
        memory = CampaignState(writer=writer, schedule=memory.schedule, coverage=memory.coverage)
        memory.load_session(directory)
    keep_coverage(memory)
    writer.finish(seconds=seconds, interrupted=interrupted)
    export_campaign(directory)


def _opened(options: CampaignOptions, earlier: Manifest | None) -> tuple[CampaignOptions, Manifest, Waivers, str]:
    """Open the implementation once, for its target, what it says of itself, and whatever is wrong with the options.

    With what a person should know before a campaign goes on.
    """
    first = _devices(options)[0]
    with first.open_host(options.specs) as host:
        settings = replace(first.on(host, options.operators), adapter=options.settings.adapter)
        environment: Mapping[str, Any] = dict(host.environment)
        capabilities = host.capabilities
        runner = TrialRunner(specs=options.specs, host=host, settings=settings)
        rejecting = _rejecting(runner, options) if earlier is None else {}
        for spec in options.operators:
            if settings.target.product in spec.products:
                # Whatever is wrong with an oracle is said before the campaign has a directory.
                runner.judge(spec)
    waivers = waivers_of_run(
        options.waivers,
        settings=settings,
        environment=environment,
        bindings=capabilities.bindings,
        specs=options.specs,
        operators=options.operators,
    )
    options = replace(options, settings=settings)
    if earlier is None:
        return options, _manifest(options, environment, capabilities, rejecting), waivers, ""
    facts = adapter_facts(environment) | own_adapter_facts(own_file(settings.adapter))
    return options, earlier, waivers, check_implementation(options.out, earlier, facts, settings.scope)


def _rejecting(runner: TrialRunner, options: CampaignOptions) -> dict[str, str]:
    """The operators that reject their sentinel where statuses alone are judged, with what came back."""
    capabilities = runner.host.capabilities
    if runner.settings.phases != 1 or not (capabilities.statuses and capabilities.phases):
        return {}
    cases = [sentinel_case(runner.sampler(spec)) for spec in options.operators if is_tested(spec, runner.settings)]
    return refused_sentinels(runner.host, cases, options.specs, phases=1)


def _manifest(
    options: CampaignOptions,
    environment: Mapping[str, Any],
    capabilities: Capabilities,
    rejecting: Mapping[str, str],
) -> Manifest:
    settings = options.settings
    # So many at least that no worker waits for the generation before; with a number of chunks that number alone counts.
    generation = GENERATION if options.stop.chunks is not None else max(GENERATION, 2 * options.workers)
    return new_manifest(
        command=CAMPAIGN,
        arguments=options.arguments,
        operators=options.operators,
        settings=settings,
        stated={
            "chunk_trials": options.size,
            "generation": generation,
            "devices": list(options.devices),
            "cluster": options.cluster,
            "workers": options.workers,
            **({_REJECTING: dict(rejecting)} if rejecting else {}),
        },
        seed=options.seed,
        inputs=options.inputs,
        environment=environment,
        capabilities=capabilities,
    )


@contextlib.contextmanager
def _writer(
    options: CampaignOptions, manifest: Manifest, operators: Sequence[Spec], *, resume: bool
) -> Iterator[RunWriter]:
    # What is kept to be judged again must not end the campaign.
    blob_limit = min(BLOB_LIMIT, options.stop.disk_bytes // 4)
    programs = program_maker(options.specs, options.settings.spec_folders)
    if resume:
        writer = resume_run(
            options.out,
            waivers=waiver_texts(options.waivers),
            blob_limit=blob_limit,
            grouping=findings_in,
            programs=programs,
        )
    else:
        specs = {f"{spec.stem}.yaml": spec.text.encode() for spec in options.operators}
        writer = create_run(
            options.out,
            manifest=manifest,
            specs=specs,
            waivers=waiver_texts(options.waivers),
            terms=Terms(plan=RunPlan.CAMPAIGN),
            blob_limit=blob_limit,
            grouping=findings_in,
            programs=programs,
        )
        for spec in operators if options.settings.phases == 2 else ():
            writer.summary.demand(spec.operator, cells=planned_cells(Sampler(spec, options.settings.target), QUICK))
        if options.settings.phases == 2:
            writer.append_part(Summary(), state=possible_state(operators, options.settings.target))
        for spec in options.operators:
            if spec not in operators:
                writer.summary.plan(spec.operator, "valid")
                reason, result = why_not_tested(spec, options.settings)
                writer.summary.skip(spec.operator, "valid", reason=reason, result=result)
    with writer:
        _note_session(writer, options)
        yield writer


def _note_session(writer: RunWriter, options: CampaignOptions) -> None:
    with RunDirectory(writer.path).results() as results:
        number = sum(1 for _ in results.states(SESSION_STATE))
    entry = SessionEntry(
        started=timestamp(),
        arguments=options.arguments,
        inputs=dict(options.inputs),
        workers=options.workers,
        devices=options.devices,
        cluster=options.cluster,
        harness=sources_hash(),
    )
    writer.append_part(Summary(), state={f"{SESSION_STATE}{number:04d}": entry})


def _devices(options: CampaignOptions) -> list[RunnerSettings]:
    """The settings of each worker."""
    settings = replace(options.settings, workers=options.workers)
    if not options.devices:
        return [settings] * options.workers
    joint = "," if ":" in settings.adapter else ":"
    names = [options.devices[number % len(options.devices)] for number in range(options.workers)]
    return [replace(settings, adapter=f"{settings.adapter}{joint}device={name}") for name in names]


@contextlib.contextmanager
def _dispatcher(options: CampaignOptions) -> Iterator[Dispatcher]:
    workers = [
        CampaignService(settings=settings, waivers=options.waivers, chunk_seconds=CHUNK_SECONDS)
        for settings in _devices(options)
    ]
    with contextlib.ExitStack() as things:
        if options.cluster is None:
            folder = things.enter_context(scratch_folder(memory_folder()))
            dispatcher: Dispatcher = LocalDispatcher(workers, folder=folder)
        else:
            try:
                from aclnn_cts.workers.ray_dispatch import RayDispatcher  # noqa: PLC0415 - an extra
            except ModuleNotFoundError as error:
                raise HarnessError(f'--cluster: {error.name} is not installed; pip install "aclnn-cts[ray]"') from None

            dispatcher = RayDispatcher(
                workers,
                address=options.cluster,
                resource=options.cluster_resource,
                adapter=workers[0].settings.adapter,
                folders=options.settings.spec_folders,
            )
        yield things.enter_context(contextlib.closing(dispatcher))


def seconds_of(text: str) -> float:
    """A span of time such as `90`, `15m`, `8h` or `2d`, in seconds. Raises ValueError."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    number = float(text[:-1]) * units[text[-1]] if text[-1:] in units else float(text)
    if not math.isfinite(number) or number <= 0.0:
        raise ValueError(text)
    return number


COVERAGE_STATE = "coverage/"
"""What the keys of coverage in a store's state begin with; the operator follows."""

NAMED = 500
"""Things of a sort that are named; of more, the number alone is kept."""


def keep_coverage(memory: CampaignState) -> None:
    """Store what all finished chunks of a campaign have covered."""
    part = Summary()
    state: dict[str, object] = {}
    for name, coverage in memory.coverage.items():
        covered = memory.learned_by(name).covered
        summary = memory.writer.summary.operator(name)
        part.operator(name).coverage = {**coverage.shares(covered, summary)}
        state[COVERAGE_STATE + name] = {
            "operator": name,
            # Constraints (each held, and each broken), limits and pairs.
            "sorts": part.operator(name).coverage,
            # By factor: the pairs that its values stand in.
            "factors": coverage.by_factor(covered),
            # What can be covered and was not.
            "missing": _named(coverage.gaps(covered, summary)),
            # What was tried and never judged: this implementation cannot be given it, or nothing can be said.
            "not_judged": _named(coverage.never_judged(covered)),
        }
    memory.writer.append_part(part, state=state)


def _named(found: Mapping[str, Sequence[str]]) -> dict[str, dict[str, object]]:
    """By sort of thing how many there are, and the names of the first."""
    return {sort: {"number": len(names), "names": names[:NAMED]} for sort, names in found.items() if names}


def export_campaign(run: RunDirectory) -> Path:
    """Write `campaign.jsonl` into a campaign's directory: summary, coverage, findings, sessions, chunks."""
    path = run.path / EXPORT
    lines = (printable_json(msgspec.json.encode(numbers_as_words(line)).decode()) for line in _lines(run))
    write_atomically(path, (line.encode() + b"\n" for line in lines))
    return path


def _lines(run: RunDirectory) -> Iterator[dict[str, Any]]:
    yield {"type": "summary", **summary_to_json(run.summary())}
    with run.results() as results:
        yield from _plain("coverage", results.states(COVERAGE_STATE))
        for _, value in results.states(FINDING_STATE):
            finding = msgspec.convert(value, Finding)
            words = msgspec.to_builtins(msgspec.structs.replace(finding, trial=None, record=None))
            words |= {
                "type": "finding",
                "file": f"failures/{finding.file}",
                "failures": finding.failures,
                "kind": finding.kind,
            }
            if finding.trial is not None:
                words["trial"] = trial_to_json(finding.trial)
            yield words
        yield from _plain("session", results.states(SESSION_STATE))
        for line in _plain("chunk", results.states("chunk/")):
            line.pop("learned", None)
            yield line


def _plain(kind: str, states: Iterable[tuple[str, object]]) -> Iterator[dict[str, Any]]:
    for _, value in states:
        yield {"type": kind, **msgspec.convert(value, dict[str, Any])}
