"""A worker of a campaign: owns one device, judges chunks, and looks into findings."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec

from aclnn_cts.core.note import JUDGE_ENDED_FACT
from aclnn_cts.core.trial import Earlier, Trial
from aclnn_cts.core.verdict import Record, Result, Signature, Verdict
from aclnn_cts.engine.bench import Bench
from aclnn_cts.engine.campaign.chunk import Chunk, ChunkTrial, chunk_trials, parent_of
from aclnn_cts.engine.campaign.factors import Factors
from aclnn_cts.engine.campaign.finding import Confirmed, found_as, gravity, is_milder, shown_by
from aclnn_cts.engine.campaign.flight import Notes, NotingHost
from aclnn_cts.engine.campaign.jobs import ChunkJob, ChunkResult, Examined, ExamineJob, WorkerOptions
from aclnn_cts.engine.campaign.shrink import EXECUTIONS, shrink
from aclnn_cts.engine.campaign.tally import SAMPLE, Tally
from aclnn_cts.engine.host import SessionHost
from aclnn_cts.engine.waivers import Waivers, waivers_of_run
from aclnn_cts.judge.verdict import signature
from aclnn_cts.spec.load import Specs, load_specs

__all__ = ["CampaignWorker", "open_worker"]

ALONE = 3
"""Executions by which a finding is confirmed."""

EXECUTIONS_AFTER = 20
"""Executions that shrinking takes of a trial that needs calls before it: each has a process of its own."""


@dataclass(slots=True, kw_only=True)
class CampaignWorker:
    """Holds an open implementation. `open_worker` makes one; whoever did closes its host."""

    specs: Specs
    bench: Bench
    waivers: Waivers
    notes: Notes | None
    chunk_seconds: float
    _factors: dict[str, Factors] = field(default_factory=dict)
    _until: float = math.inf
    """When, by the monotonic clock, confirming is broken off."""

    def do(self, job: ChunkJob | ExamineJob) -> ChunkResult | Examined:
        """Do a job."""
        if isinstance(job, ChunkJob):
            return self.judge(job.chunk, avoid=frozenset(job.avoid), seconds=job.seconds)
        return self.examine(job)

    def judge(self, chunk: Chunk, *, avoid: frozenset[str] = frozenset(), seconds: float | None = None) -> ChunkResult:
        """Try a chunk, for so many seconds. `avoid`: ids of trials that must not be made, each an error."""
        began = time.monotonic()
        most = self.chunk_seconds if seconds is None else min(seconds, self.chunk_seconds)
        sampler = self.bench.sampler(self.specs[chunk.operator])
        items = list(chunk_trials(chunk, sampler))
        tally = Tally(chunk, self._factors_of(chunk.operator))
        tally.withhold(items)
        run = items
        if avoid:  # an id is a hash of the whole trial
            for item in items:
                if item.trial.id in avoid:
                    tally.add(item, _deadly(item.trial))
            run = [item for item in items if item.trial.id not in avoid]
        handout = _Handout(chunk, run, self.notes, until=began + most)
        for item, record in zip(run, self._records(handout, tally), strict=False):
            handout.judged += 1
            tally.add(item, record)
        if self.notes is not None:
            self.notes.idle()
        parents = tuple(parent_of(chunk, sampler, draw, share) for share, draw in tally.good)
        return tally.result(
            parents,
            seconds=time.monotonic() - began,
            broken_off=len(run) - handout.handed,
            waivers=self.waivers.evidence,
        )

    def _records(self, trials: Iterable[Trial], tally: Tally) -> Iterator[Record]:
        for judged in self.bench.run(trials):
            tally.summary.cover(judged.coverage)
            tally.outputs = judged.blobs
            for record in judged.records:
                waived = self.waivers.apply(record)
                yield self._bucketed(waived) if _failed(waived) else waived

    def _factors_of(self, operator: str) -> Factors:
        if operator not in self._factors:
            self._factors[operator] = Factors(self.bench.sampler(self.specs[operator]))
        return self._factors[operator]

    def examine(self, job: ExamineJob) -> Examined:
        """Confirm a finding by its first trial that fails again, and make that smaller."""
        until = math.inf if job.seconds is None else time.monotonic() + job.seconds
        self._until = until
        try:
            found = self._confirmed(job)
        except _OutOfTimeError:
            note = f"not confirmed: running it again was broken off after {job.seconds:.0f} s; --resume tries it again"
            return Examined(signature=job.signature, confirmed=Confirmed.WAITING, alone=(0, 0), note=note)
        finally:
            self._until = math.inf
        if not found.shows or not job.shrink:
            return Examined(
                signature=job.signature,
                confirmed=found.confirmed,
                alone=found.alone,
                trial=found.trial,
                note=found.note,
            )
        sampler = self.bench.sampler(self.specs[found.trial.case.operator])
        after = bool(found.trial.after)
        small = shrink(
            found.trial,
            sampler=sampler,
            execute=self._freshly if after else self._execute,
            same=lambda record: (
                self._same(record, job.signature) and not is_milder(record.verdict.kind, than=found.kind)
            ),
            executions=EXECUTIONS_AFTER if after else EXECUTIONS,
            repeats=ALONE if found.confirmed == Confirmed.SOMETIMES else 1,
            until=until,
        )
        record, blobs = self._last(small.trial)
        broken_off = "" if small.complete else f"shrinking was broken off after {small.executions} executions"
        return Examined(
            signature=job.signature,
            confirmed=found.confirmed,
            alone=found.alone,
            trial=small.trial,
            message=(small.record or record).verdict.message,
            executions=small.executions,
            shrunk=True,
            note="; ".join(filter(None, (found.note, broken_off))),
            blobs=blobs,
        )

    def _confirmed(self, job: ExamineJob) -> _Confirmation:
        """What comes of a finding's trials alone, and else after the calls that came before them."""
        executions = 0
        for trial in (tried for given in job.trials for tried in shown_by(given, job.signature, self.specs)):
            failures, executions = self._alone(trial, job.signature)
            if failures:
                return _Confirmation.of(trial, failures, executions)
        again, before = self._in_company(job)
        if again is None:
            return _Confirmation.of_none(job, executions)
        failures, more = self._alone(again.trial, job.signature)
        if failures:
            return _Confirmation.of(again.trial, failures, executions + more)
        after: tuple[Earlier, ...] = ()
        if self.bench.host.isolated:
            after = self.bench.calls_before(again.trial, before, same=lambda record: self._same(record, job.signature))
        return _Confirmation.of_company(again, after, job.chunk, executions + more)

    def _alone(self, trial: Trial, looked_for: Signature) -> tuple[list[Record], int]:
        """Those of some executions that fail the same way, each in a process without a past where the host has one."""
        records = [self._freshly(trial) for _ in range(ALONE)]
        return [record for record in records if self._same(record, looked_for)], ALONE

    def _in_company(self, job: ExamineJob) -> tuple[Record | None, list[Trial]]:
        """What fails the same way when the chunk that met it is run again in a fresh process, and what came before."""
        before: list[Trial] = []
        if job.chunk is None:
            return None, before
        self.bench.host.refresh()
        items = list(chunk_trials(job.chunk, self.bench.sampler(self.specs[job.chunk.operator])))
        tally = Tally(job.chunk, self._factors_of(job.chunk.operator))
        for record in self._records((item.trial for item in items), tally):
            if self._same(record, job.signature):
                return record, before
            before.append(record.trial)
        return None, before

    def _freshly(self, trial: Trial) -> Record:
        return self.bench.one(trial, fresh=True)

    def _execute(self, trial: Trial) -> Record:
        return self.bench.one(trial)

    def _last(self, trial: Trial) -> tuple[Record, tuple[bytes, ...]]:
        judged = next(iter(self.bench.run([trial])))
        return judged.records[0], judged.blobs

    def _same(self, record: Record, looked_for: Signature) -> bool:
        if time.monotonic() >= self._until:
            raise _OutOfTimeError
        return _failed(record) and self._bucketed(record).signature == looked_for and not self.waivers.explains(record)

    def _bucketed(self, record: Record) -> Record:
        return found_as(record, self.specs, self._execute)


class _OutOfTimeError(Exception):
    """Confirming a finding has taken its time."""


@dataclass(slots=True)
class _Handout:
    """Hands out a chunk's trials as batches take them, and notes which are under way or wait for their verdict."""

    chunk: Chunk
    items: Sequence[ChunkTrial]
    notes: Notes | None
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
                self.notes.batch(self.chunk.index, self.judged, self.handed - self.judged, len(self.items))
            yield item.trial


@dataclass(frozen=True, slots=True, kw_only=True)
class _Confirmation:
    """What became of a finding's trials when they were run again."""

    trial: Trial
    confirmed: str
    alone: tuple[int, int]
    kind: str = ""
    """The kind of fault that it showed."""
    note: str = ""
    shows: bool = True
    """Whether the trial fails by itself."""

    @staticmethod
    def of(trial: Trial, failures: Sequence[Record], executions: int) -> _Confirmation:
        confirmed = Confirmed.ALWAYS if len(failures) == executions else Confirmed.SOMETIMES
        kind = min((record.verdict.kind for record in failures), key=gravity)
        return _Confirmation(trial=trial, confirmed=confirmed, alone=(len(failures), executions), kind=kind)

    @staticmethod
    def of_company(met: Record, after: tuple[Earlier, ...], chunk: Chunk | None, executions: int) -> _Confirmation:
        number = sum(item.times for item in after)
        calls = "one call" if number == 1 else f"{number} calls"
        index = chunk.index if chunk is not None else 0
        note = (
            f"alone it conforms; it fails again after {calls} that came before it, which its trial makes first"
            if after
            else f"alone it conforms; in a fresh process it fails again after the trials of chunk {index} before it"
        )
        return _Confirmation(
            trial=msgspec.structs.replace(met.trial, after=after),
            confirmed=Confirmed.COMPANY,
            alone=(0, executions),
            kind=met.verdict.kind,
            note=note,
            shows=bool(after),
        )

    @staticmethod
    def of_none(job: ExamineJob, executions: int) -> _Confirmation:
        if job.chunk is not None:
            confirmed = Confirmed.SOMETIMES
            note = "it failed, then neither alone nor when its chunk was run again in a fresh process"
        else:
            confirmed, note = Confirmed.UNKNOWN, "alone it conforms, and the chunk that met it is not known any more"
        return _Confirmation(trial=job.trials[0], confirmed=confirmed, alone=(0, executions), note=note, shows=False)


def _failed(record: Record) -> bool:
    return record.verdict.result == Result.FAILED


def _deadly(trial: Trial) -> Record:
    """The record of a trial that ended two workers and is not made a third time."""
    message = (
        "the judge's own process ended twice with this call under way, so it is not made again; an implementation "
        "that may end its process is to be run in one of its own"
    )
    verdict = Verdict(result=Result.ERROR, message=message, facts={JUDGE_ENDED_FACT: True})
    return Record(
        trial_id=trial.id,
        trial=trial,
        attempts=(),
        verdict=verdict,
        signature=signature(verdict, operator=trial.case.operator, promise=trial.promise),
    )


def open_worker(options: WorkerOptions, notes: Notes | None) -> CampaignWorker:
    """Open an implementation for a worker. Raises as `open_host` does."""
    settings = options.settings
    specs = load_specs(settings.spec_folders)
    host = settings.open_host(specs)
    if notes is not None and not host.isolated:
        host = cast("SessionHost", NotingHost(host, notes))
    waivers = waivers_of_run(options.waivers, settings=settings, environment=host.environment, specs=specs)
    # Whether a failure is one of company is asked once a finding, not once a worker.
    bench = Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True, sample=SAMPLE)
    return CampaignWorker(specs=specs, bench=bench, waivers=waivers, notes=notes, chunk_seconds=options.chunk_seconds)
