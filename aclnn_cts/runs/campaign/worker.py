"""A worker owns one device: it judges chunks, counts what they come to, and looks into findings."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.finding import Confirmation, failure_name
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import EarlierCall, Trial
from aclnn_cts.core.verdict import Record, Result, Verdict, is_judged
from aclnn_cts.findings.calls_alone import calls_alone
from aclnn_cts.findings.findings import EXAMPLES
from aclnn_cts.findings.fingerprint import gravity_of_fault, is_milder
from aclnn_cts.findings.waivers.matching import WaiverCounts, Waivers, waivers_of_run
from aclnn_cts.runs.campaign.corpus.check_coverage import CoverageFactors, limit_key, pack_coverage
from aclnn_cts.runs.campaign.corpus.schedule import Chunk, ChunkTrial, CorpusUpdate, SeedCase, chunk_trials, parent_of
from aclnn_cts.runs.campaign.jobs import KNOWN, CampaignService, ChunkJob, ChunkResult, TriageJob, TriageResult
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.summary import Summary
from aclnn_cts.triage.shrink import EXECUTIONS, shrink
from aclnn_cts.trials.trial_runner import TrialRunner
from aclnn_cts.trials.verdicts import is_sampled
from aclnn_cts.workers.notes import ProgressNotes


@dataclass(slots=True, kw_only=True)
class CampaignWorker:
    """Holds an open implementation. `open_worker` makes one; whoever did closes its host."""

    runner: TrialRunner
    waivers: Waivers
    notes: ProgressNotes | None
    chunk_seconds: float
    _factors: dict[str, CoverageFactors] = field(default_factory=dict)

    def do(self, job: ChunkJob | TriageJob) -> ChunkResult | TriageResult:
        """Do a job."""
        match job:
            case ChunkJob():
                return self.judge(job.chunk, seconds=job.seconds)
            case TriageJob():
                return FindingExaminer(runner=self.runner, waivers=self.waivers).examine(job)

    def judge(self, chunk: Chunk, *, seconds: float | None = None) -> ChunkResult:
        """Try a chunk, for so many seconds."""
        began = time.monotonic()
        most = self.chunk_seconds if seconds is None else min(seconds, self.chunk_seconds)
        sampler = self.runner.sampler(self.runner.specs[chunk.operator])
        items = list(chunk_trials(chunk, sampler))
        tally = ChunkTally(chunk, self._factors_of(chunk.operator))
        handout = _Handout(chunk, items, self.notes, until=began + most)
        for item, record in zip(items, self._records(handout, tally), strict=False):
            handout.judged += 1
            tally.add(item, record)
        if self.notes is not None:
            self.notes.note_idle()
        return tally.result(
            tuple(parent_of(chunk, sampler, draw, error_ratio) for error_ratio, draw in tally.good),
            seconds=time.monotonic() - began,
            broken_off=len(items) - handout.handed,
            waivers=self.waivers.evidence,
        )

    def _records(self, trials: Iterable[Trial], tally: ChunkTally) -> Iterator[Record]:
        for judged in self.runner.run(trials):
            tally.summary.include(judged.coverage)
            tally.outputs = judged.blobs
            for record in judged.records:
                yield self.waivers.apply(record)

    def _factors_of(self, operator: str) -> CoverageFactors:
        if operator not in self._factors:
            self._factors[operator] = CoverageFactors(self.runner.sampler(self.runner.specs[operator]))
        return self._factors[operator]


@dataclass(slots=True)
class _Handout:
    """Hands out a chunk's trials as batches take them, and notes which are under way or wait for their verdict."""

    chunk: Chunk
    items: Sequence[ChunkTrial]
    notes: ProgressNotes | None
    until: float
    """When, by the monotonic clock, no more are handed out."""
    handed: int = 0
    judged: int = 0

    def __iter__(self) -> Iterator[Trial]:
        for item in self.items:
            if time.monotonic() >= self.until:
                return
            self.handed += 1
            if self.notes is not None:
                self.notes.note_batch(self.chunk.index, self.judged, len(self.items))
            yield item.trial


def open_worker(service: CampaignService, notes: ProgressNotes | None) -> CampaignWorker:
    """Open an implementation for a worker. Raises as `open_host` does."""
    settings = service.settings
    specs = load_specs(settings.spec_folders, edition=settings.edition)
    host = settings.open_host(specs)
    waivers = waivers_of_run(
        service.waivers,
        settings=settings,
        environment=host.environment,
        bindings=host.capabilities.bindings,
        specs=specs,
    )
    # Whether a failure depends on earlier calls is asked once a finding, not once a worker.
    runner = TrialRunner(specs=specs, host=host, settings=settings, is_waived=lambda _record: True, sample=SAMPLE)
    return CampaignWorker(runner=runner, waivers=waivers, notes=notes, chunk_seconds=service.chunk_seconds)


PARENTS = 8
"""Good cases that a chunk reports."""

ERRORS = 25
"""Errors of a chunk that come with their record; those after them are counted."""

SAMPLE = 256
"""Of so many passed trials of a campaign, which has some thousands a chunk, one is put to all tolerances."""
SAMPLES = 2
"""How many of these are kept of a chunk, with their outputs."""

OUTPUT_BYTES, CHUNK_OUTPUT_BYTES = 1 << 20, 1 << 24
"""Of outputs: most that a record is kept with, and most of a chunk."""


@dataclass(slots=True)
class ChunkTally:
    """What the trials of a chunk come to."""

    chunk: Chunk
    factors: CoverageFactors
    summary: Summary = field(default_factory=Summary)
    records: list[Record] = field(default_factory=list)
    failures: dict[str, Counter[Fingerprint]] = field(default_factory=dict)
    """By the name of the finding's trial file."""
    errors: int = 0
    judged: list[list[int]] = field(default_factory=list)
    unjudged: list[list[int]] = field(default_factory=list)
    """Of what was drawn, the numbers of the factors' values (`CoverageFactors.of`)."""
    limits: set[str] = field(default_factory=set)
    limits_unjudged: set[str] = field(default_factory=set)
    worst: float = 0.0
    outputs: tuple[bytes, ...] = ()
    """Recorded outputs of the batch that is added."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    blob_bytes: int = 0
    samples: int = 0
    good: list[tuple[float, int]] = field(default_factory=list)
    """Share and draw of the cases that came nearest to their bounds, nearest first."""

    def add(self, item: ChunkTrial, record: Record) -> None:
        """Count a trial."""
        verdict = record.verdict
        case = record.trial.case
        self.summary.plan(case.operator, case.origin.kind)
        self.summary.add(record)
        judged = is_judged(verdict)
        if item.drawing is not None:
            numbers = self.factors.of(item.drawing, case)
            (self.judged if judged else self.unjudged).append(numbers)
        elif record.trial.check == "boundary" and verdict.result != Result.ERROR:
            met = self.limits if record.was_called else self.limits_unjudged
            met.add(limit_key(case, beyond="twin" in record.trial.parameters))
        match verdict.result:
            case Result.PASSED:
                self._pass(item, verdict)
                if self.samples < SAMPLES and is_sampled(record.trial_id, every=SAMPLE) and self._keep_outputs(record):
                    self.samples += 1
                    self.records.append(record)
            case Result.FAILED:
                self._keep(record)
            case Result.ERROR:
                self.errors += 1
                if self.errors <= ERRORS:
                    self.records.append(record)

    def _pass(self, item: ChunkTrial, verdict: Verdict) -> None:
        error_ratio = max((part.error_ratio for part in verdict.deviations), default=0.0)
        if not math.isfinite(error_ratio):
            return
        self.worst = max(self.worst, error_ratio)
        if item.draw >= 0 and error_ratio > 0.0 and (len(self.good) < PARENTS or error_ratio > self.good[-1][0]):
            self.good = sorted([*self.good, (error_ratio, item.draw)], key=lambda pair: (-pair[0], pair[1]))[:PARENTS]

    def _keep(self, record: Record) -> None:
        numbers = self.failures.setdefault(failure_name(record.key, waiver=record.waiver), Counter())
        numbers[record.fingerprint] += 1
        if numbers.total() <= EXAMPLES:
            self.records.append(record)
            self._keep_outputs(record)

    def _keep_outputs(self, record: Record) -> bool:
        """Keep what a record is judged again from; whether there is any, and room for it."""
        digests = record.output_digests()
        found = {digest: content for content in self.outputs if (digest := sha256(content).hexdigest()) in digests}
        size = sum(map(len, found.values()))
        if not digests <= set(found) or not found or size > min(OUTPUT_BYTES, CHUNK_OUTPUT_BYTES - self.blob_bytes):
            return False
        self.blobs |= found
        self.blob_bytes += size
        return True

    def result(
        self, parents: tuple[SeedCase, ...], *, seconds: float, broken_off: int, waivers: WaiverCounts
    ) -> ChunkResult:
        """All of it."""
        covered = pack_coverage(
            self.factors,
            judged=self.judged,
            unjudged=self.unjudged,
            limits=self.limits,
            limits_unjudged=self.limits_unjudged,
        )
        return ChunkResult(
            index=self.chunk.index,
            summary=self.summary,
            learned=CorpusUpdate(covered=covered, parents=parents, worst=self.worst),
            records=tuple(self.records),
            blobs=self.blobs,
            failures={key: tuple(numbers.items()) for key, numbers in self.failures.items()},
            seconds=seconds,
            broken_off=broken_off,
            waivers=waivers,
        )


_OF_SEVERAL_CALLS = Fault.of(Family.EQUAL_CALLS, Family.LEAK)
ALONE = 3
"""Executions by which a finding is confirmed."""

EXECUTIONS_AFTER = 20
"""Executions that shrinking takes of a trial that needs calls before it: each has a process of its own."""


@dataclass(slots=True, kw_only=True)
class FindingExaminer:
    """Does one examination on an open implementation."""

    runner: TrialRunner
    waivers: Waivers
    _until: float = math.inf
    """When, by the monotonic clock, confirming is broken off."""

    def examine(self, job: TriageJob) -> TriageResult:
        """Confirm a finding by its first trial that fails again, and make that smaller."""
        until = math.inf if job.seconds is None else time.monotonic() + job.seconds
        self._until = until
        try:
            found, kind = self._confirmed(job)
        except _OutOfTimeError:
            note = f"not confirmed: running it again was broken off after {job.seconds:.0f} s; --resume tries it again"
            return TriageResult(key=job.key, confirmed=Confirmation.WAITING, alone=(0, 0), note=note)
        finally:
            self._until = math.inf
        if not kind or found.trial is None or not job.shrink:
            return found
        sampler = self.runner.sampler(self.runner.specs[found.trial.case.operator])
        after = bool(found.trial.after)
        small = shrink(
            found.trial,
            sampler=sampler,
            execute=self._freshly if after else self.runner.run_one,
            same=lambda record: self._same(record, job.key) and not is_milder(record.verdict.kind, than=kind),
            executions=EXECUTIONS_AFTER if after else EXECUTIONS,
            repeats=ALONE if found.confirmed == Confirmation.FLAKY else 1,
            until=until,
        )
        judged = next(iter(self.runner.run([small.trial])))
        broken_off = "" if small.complete else f"shrinking was broken off after {small.executions} executions"
        return msgspec.structs.replace(
            found,
            trial=small.trial,
            message=(small.record or judged.records[0]).verdict.message,
            executions=small.executions,
            shrunk=True,
            note="; ".join(filter(None, (found.note, broken_off))),
            blobs=judged.blobs,
        )

    def _confirmed(self, job: TriageJob) -> tuple[TriageResult, str]:
        """What comes of a finding's trials alone, and else after the calls that came before them.

        With the kind of fault of the trial that is to be made smaller; empty where there is none.
        """
        for trial in (tried for given in job.trials for tried in self._plainest_first(given, job.key)):
            if failures := self._alone(trial, job.key):
                return _alone(job, trial, failures, ALONE)
        if (known := self._after_known(job)) is not None:
            return known
        again, before = self._in_company(job)
        if again is None:
            return _nothing(job), ""
        if failures := self._alone(again.trial, job.key):
            return _alone(job, again.trial, failures, 2 * ALONE)
        after: tuple[EarlierCall, ...] = ()
        if self.runner.host.isolated and len(job.known) < KNOWN:
            after = self.runner.calls_before(again.trial, before, same=lambda record: self._same(record, job.key))
        return _after(job, again, after, 2 * ALONE), again.verdict.kind if after else ""

    def _after_known(self, job: TriageJob) -> tuple[TriageResult, str] | None:
        """What fails in a fresh process after the calls that another finding needs."""
        for calls in job.known if self.runner.host.isolated else ():
            for given in job.trials:
                record = self._freshly(msgspec.structs.replace(given, after=calls))
                if self._same(record, job.key):
                    return _after(job, record, calls, ALONE, whose="another finding needs"), ""
        return None

    def _alone(self, trial: Trial, looked_for: Fingerprint) -> list[Record]:
        """Those of some executions that fail the same way, each in a process without a past where the host has one."""
        records = [self._freshly(trial) for _ in range(ALONE)]
        return [record for record in records if self._same(record, looked_for)]

    def _in_company(self, job: TriageJob) -> tuple[Record | None, list[Trial]]:
        """What fails the same way when the chunk that met it is run again in a fresh process, and what came before."""
        before: list[Trial] = []
        if job.chunk is None:
            return None, before
        self.runner.host.refresh()
        items = list(chunk_trials(job.chunk, self.runner.sampler(self.runner.specs[job.chunk.operator])))
        for judged in self.runner.run(item.trial for item in items):
            for record in judged.records:
                if self._same(record, job.key):
                    return record, before
                before.append(record.trial)
        return None, before

    def _freshly(self, trial: Trial) -> Record:
        return self.runner.run_one(trial, fresh=True)

    def _same(self, record: Record, looked_for: Fingerprint) -> bool:
        if time.monotonic() >= self._until:
            raise _OutOfTimeError
        is_same = record.verdict.result == Result.FAILED and record.key == looked_for
        return is_same and not self.waivers.covers(record)

    def _plainest_first(self, trial: Trial, looked_for: Fingerprint) -> list[Trial]:
        """The trial, and before it its calls by themselves where these can show the fault."""
        by_itself = looked_for.fault not in _OF_SEVERAL_CALLS
        return [*(calls_alone(trial, self.runner.specs) if by_itself else ()), trial]


class _OutOfTimeError(Exception):
    """Confirming a finding has taken its time."""


def _alone(job: TriageJob, trial: Trial, failures: list[Record], executions: int) -> tuple[TriageResult, str]:
    """A trial that fails again alone, and the gravest kind of fault that it shows."""
    confirmed = Confirmation.ALWAYS if len(failures) == executions else Confirmation.FLAKY
    kind = min((record.verdict.kind for record in failures), key=gravity_of_fault)
    return TriageResult(key=job.key, confirmed=confirmed, alone=(len(failures), executions), trial=trial), kind


def _after(
    job: TriageJob, met: Record, after: tuple[EarlierCall, ...], executions: int, *, whose: str = "came before it"
) -> TriageResult:
    """A trial that fails again after other calls, or where these are not known after those of its chunk."""
    number = sum(item.times for item in after)
    calls = "one call" if number == 1 else f"{number} calls"
    index = job.chunk.index if job.chunk is not None else 0
    note = (
        f"alone it conforms; it fails again after {calls} that {whose}, which its trial makes first"
        if after
        else f"alone it conforms; in a fresh process it fails again after the trials of chunk {index} before it"
    )
    trial = msgspec.structs.replace(met.trial, after=after)
    return TriageResult(key=job.key, confirmed=Confirmation.ORDER, alone=(0, executions), trial=trial, note=note)


def _nothing(job: TriageJob) -> TriageResult:
    """A trial that does not fail again."""
    confirmed, note = Confirmation.UNKNOWN, "alone it conforms, and the chunk that met it is not known any more"
    if job.chunk is not None:
        confirmed = Confirmation.FLAKY
        note = "it failed, then neither alone nor when its chunk was run again in a fresh process"
    return TriageResult(key=job.key, confirmed=confirmed, alone=(0, ALONE), trial=job.trials[0], note=note)
