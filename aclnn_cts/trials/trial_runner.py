"""Where trials are run and judged: an open implementation, the specs, the oracles and the compute models together."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.trial import EarlierCall, Trial, of_first_phase
from aclnn_cts.core.verdict import Record, Result, Verdict, compares_values, is_valid_call
from aclnn_cts.execution.executor import CallPerformer, CallRequest
from aclnn_cts.execution.judging import Judge, Judges
from aclnn_cts.execution.settings import RunnerSettings, unsupported_phases
from aclnn_cts.generate.regime_cells import cells_of, planned_cells
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import QUICK, STANDARD
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.scope import Scope, declared_scope
from aclnn_cts.store.summary import Summary
from aclnn_cts.trials.batches import (
    TrialBatch,
    batches,
    calls_before,
    calls_of,
    needs_no_second_phase,
    verdict_without_call,
    with_input_guards,
)
from aclnn_cts.trials.checks.registry import check_by_id
from aclnn_cts.trials.checks.sentinel import device_check, sentinel_case
from aclnn_cts.trials.plan import Part
from aclnn_cts.trials.verdicts import SAMPLE, TrialJudge, is_sampled

if TYPE_CHECKING:
    from aclnn_cts.execution.benchmark import AdapterBenchmark
    from aclnn_cts.trials.confirm import FailureConfirmer


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBatch:
    """What a batch of trials came to."""

    records: tuple[Record, ...]
    coverage: Summary
    """Which constraints their cases held and broke, and which cells they reached: these counts alone."""
    blobs: tuple[bytes, ...] = ()
    """Outputs of failures and of a sample, row by row; a record names each by its SHA-256."""
    given_up: bool = False
    """Nothing of the part was tried: every call of its operator before had ended the process."""


MOST_ENDED = 20
"""Calls of an operator that may end the process while none has answered; no further part of it is tried then. Each
takes a new process, so that a whole plan of them would take minutes and say the same."""
_ENDED = Fault.of(Family.ENDED)


@dataclass(slots=True, kw_only=True)
class TrialRunner:
    """Runs and judges trials in one process. Holds an open host; whoever opened that closes it."""

    specs: Specs
    host: SessionHost
    settings: RunnerSettings
    """With the target that cases are made for."""
    is_waived: Callable[[Record], bool] = lambda _record: False
    """True if a waiver covers the failure; a waived failure is not run again alone."""
    sample_waived: bool = False
    """Whether a sample of the waived failures is put to the tolerances, and not every one."""
    sample: int = SAMPLE
    """Of so many trials that pass, one is put to all tolerances, and its outputs are kept."""
    benchmark: SessionHost | None = None
    """A second implementation that tolerances compare with; None: each operator's own in FLOAT."""
    overlapped: bool = True
    """Whether an isolated implementation is at work on the next batch while one is judged."""
    scope: Scope = field(init=False)
    """What the implementation offers: all else is out of scope, and is not asked for."""
    _judges: Judges = field(init=False)
    _verdicts: TrialJudge = field(init=False)
    _confirmer: FailureConfirmer | None = None
    _samplers: dict[str, Sampler] = field(default_factory=dict)
    _looks: dict[str, Case | None] = field(default_factory=dict)
    """By operator, the call that shows whether a device is well."""
    _ended: Counter[str] = field(default_factory=Counter)
    """By operator, calls that ended the process before one answered."""
    _answering: set[str] = field(default_factory=set)
    """Operators of which a call has answered."""

    def __post_init__(self) -> None:
        """Refuse what the implementation must not, or cannot, be asked for; see to its device after faults."""
        capabilities = self.host.capabilities
        if self.settings.unsafe and capabilities.hardware:
            raise UsageError(
                f"--unsafe: {capabilities.description} is a real device; calls that could harm it are for software "
                f"devices alone (--adapter loopback)"
            )
        if reason := unsupported_phases(self.host, self.settings.phases):
            raise HarnessError(f"--adapter {self.settings.adapter}: {reason}")
        if not capabilities.executes:
            # First phases of a library without a runtime reach no device, so that nothing can be harmed.
            self.settings = replace(self.settings, unsafe=True)
        self.scope = self.settings.scope or declared_scope(capabilities, adapter=self.settings.adapter)
        self._judges = Judges(
            has_statuses=self.scope.statuses,
            spec_folders=self.settings.spec_folders,
            measuring=self.settings.measuring,
            implementation=self._implementation(),
        )
        self._verdicts = TrialJudge(
            specs=self.specs,
            judges=self._judges,
            settings=self.settings,
            is_waived=self.is_waived,
            sample_waived=self.sample_waived,
        )
        self.host.on_device_fault(device_check(self.host, self.specs, phases=self.settings.phases))

    def _implementation(self) -> AdapterBenchmark | None:
        """What calls the second implementation."""
        if self.benchmark is None:
            return None
        from aclnn_cts.execution.benchmark import AdapterBenchmark  # noqa: PLC0415 - few runs have one

        performer = CallPerformer(host=self.benchmark, specs=self.specs, max_bytes=self.settings.max_bytes)
        return AdapterBenchmark(performer=performer)

    @property
    def _again(self) -> FailureConfirmer:
        """Runs failures again."""
        if self._confirmer is None:
            from aclnn_cts.trials.confirm import FailureConfirmer  # noqa: PLC0415 - only where something failed

            self._confirmer = FailureConfirmer(
                host=self.host, specs=self.specs, performer=self._performer, verdicts=self._verdicts
            )
        return self._confirmer

    def sampler(self, spec: Spec) -> Sampler:
        """The generator of an operator's cases for the runner's target."""
        if spec.operator not in self._samplers:
            self._samplers[spec.operator] = Sampler(spec, self.settings.target)
        return self._samplers[spec.operator]

    def planned_cells(self, spec: Spec, *, heavy: bool) -> Iterator[str]:
        """The cells of size regime, dtype and layout that a plan of the operator is to reach."""
        return planned_cells(self.sampler(spec), STANDARD if heavy else QUICK)

    def judge(self, spec: Spec) -> Judge:
        """The judge of an operator."""
        return self._judges.of(spec)

    def expand(self, part: Part, *, seed: int) -> Iterator[Trial]:
        """The trials of a part of a plan."""
        sampler = self.sampler(self.specs[part.operator])
        return check_by_id(part.check, where="plan").trials(part, sampler, seed=seed)

    def run_one(self, trial: Trial, *, fresh: bool = False) -> Record:
        """The record of one trial; `fresh`: in a process without a past, where the host can give one."""
        if fresh:
            self.host.refresh()
        return next(record for judged in self.run([trial]) for record in judged.records)

    def run(self, trials: Iterable[Trial]) -> Iterator[JudgedBatch]:
        """Run and judge trials, batch by batch; they are taken from an iterator as batches need them."""
        return self.judge_batches(self._batches(trials))

    def run_parts(self, parts: Iterable[Part], *, seed: int) -> Iterator[tuple[Part, int, JudgedBatch]]:
        """Expand, run and judge parts of a plan: part, trials that it planned (with its first batch), what came.

        Of an operator whose calls all end the process, parts are given up.
        """
        waiting: deque[tuple[Part, int, bool]] = deque()

        def expanded() -> Iterator[Sequence[Trial]]:
            for part in parts:
                given_up = self._ended[part.operator] >= MOST_ENDED and part.operator not in self._answering
                trials = [] if given_up else list(self.expand(part, seed=seed))
                number = len(trials)
                for batch in self._batches(trials):
                    waiting.append((part, number, False))
                    yield batch
                    number = 0
                if not trials:
                    waiting.append((part, 0, given_up))
                    yield ()

        for judged in self.judge_batches(expanded()):
            part, number, given_up = waiting.popleft()
            yield part, number, replace(judged, given_up=True) if given_up else judged

    def _batches(self, trials: Iterable[Trial]) -> Iterator[Sequence[Trial]]:
        return batches(trials, self.specs, max_bytes=self.settings.max_bytes, overlapped=self._overlaps)

    @property
    def _overlaps(self) -> bool:
        return self.overlapped and self.host.isolated

    def judge_batches(self, batches: Iterable[Sequence[Trial]]) -> Iterator[JudgedBatch]:
        """Run and judge batches. An isolated implementation is at work on the next while one is judged.

        What else the host is asked for meanwhile waits for that next one; records are the same as one by one.
        """
        remaining = iter(batches)
        trials = next(remaining, None)
        started: deque[TrialBatch] = deque()
        try:
            while trials is not None:
                batch = self._prepared(trials)
                trials = next(remaining, None)
                if not self._overlaps or (trials is None and not started):
                    # Nothing is to be done meanwhile.
                    yield self._judged(batch)
                    continue
                for before in started:
                    before.finish()
                batch.prepared.start()
                started.append(batch)
                if len(started) > 1:
                    yield self._judged(started[0], meanwhile=batch)
                    started.popleft().prepared.end()
            if started:
                yield self._judged(started[0])
        finally:
            for batch in started:
                batch.prepared.end()

    def _prepared(self, trials: Sequence[Trial]) -> TrialBatch:
        began = time.perf_counter()
        evaluations = [evaluate(self.specs[trial.case.operator], trial.case) for trial in trials]
        made: list[Trial] = []
        skipped: list[Verdict | None] = []
        asked: list[CallRequest] = []
        spans: list[tuple[int, int]] = []
        capabilities = self.host.capabilities
        for planned, evaluation in zip(trials, evaluations, strict=True):
            calls: list[CallRequest] = []
            verdict = verdict_without_call(planned, evaluation, specs=self.specs, settings=self.settings)
            # Records and files keep the trial as this run makes it.
            first_alone = self.settings.phases == 1 and needs_no_second_phase(planned)
            trial = of_first_phase(planned) if first_alone else planned
            made.append(trial)
            if verdict is None:
                calls = calls_of(trial, self.specs, capabilities=capabilities, group=len(spans))
                verdict = self.scope.verdict(trial, calls, self.specs[trial.case.operator])
            if verdict is None:
                if self.host.has_guard_pages:
                    calls = with_input_guards(calls, trial, broken=bool(evaluation.broken))
                asked.extend(calls_before(trial))
            else:
                calls = []
            skipped.append(verdict)
            spans.append((len(asked), len(asked) + len(calls)))
            asked.extend(calls)
        prepared = self._performer.prepare(asked)
        return TrialBatch(
            trials=made,
            evaluations=evaluations,
            skipped=skipped,
            spans=spans,
            prepared=prepared,
            seconds=time.perf_counter() - began,
        )

    def _judged(self, batch: TrialBatch, *, meanwhile: TrialBatch | None = None) -> JudgedBatch:
        """What a batch came to; `meanwhile` is under way and is seen to."""
        batch.finish()
        share = batch.seconds / max(len(batch.trials), 1)
        records: list[Record] = []
        coverage = Summary()
        coverage.cover([trial.case.operator for trial in batch.trials], batch.evaluations)
        blobs: list[bytes] = []
        began = time.perf_counter()
        trial_ids = [trial.id for trial in batch.trials]
        known: set[str] = set()
        judges = self._verdicts.judges_for_batch(batch, trial_ids, known)
        share += (time.perf_counter() - began) / max(len(batch.trials), 1)
        for trial, trial_id, evaluation, unsafe, (first, last) in zip(
            batch.trials, trial_ids, batch.evaluations, batch.skipped, batch.spans, strict=True
        ):
            if meanwhile is not None:
                meanwhile.prepared.advance()
            started = time.perf_counter()
            attempt = batch.performed[first:last]
            sampled = is_sampled(trial_id, every=self.sample)
            verdict = unsafe or self._verdicts.verdict(
                trial, attempt, evaluation, judges[trial.case.operator], sampled=sampled
            )
            seconds = share + time.perf_counter() - started
            record = self._verdicts.record(trial, trial_id, attempt, evaluation, verdict, seconds)
            records.append(record)
            if compares_values(verdict) and is_valid_call(trial):
                cells = cells_of(trial.case, record.fingerprint.dtype)
                coverage.operator(trial.case.operator).reach(dict.fromkeys(cells, 1))
            if verdict.result == Result.FAILED or sampled:
                blobs.extend(view.tobytes() for item in attempt for view in item.got.values())
        if self.host.isolated:
            records = self._confirmed(records, batch, meanwhile, known)
            self._again.note_batch(batch.performed, [call.case for call in batch.prepared.looks])
        for record in records:
            if record.verdict.kind in _ENDED:
                self._ended[record.trial.case.operator] += 1
            elif record.verdict.result in (Result.PASSED, Result.FAILED):
                self._answering.add(record.trial.case.operator)
        return JudgedBatch(records=tuple(records), coverage=coverage, blobs=tuple(blobs))

    @property
    def _performer(self) -> CallPerformer:
        return CallPerformer(
            host=self.host,
            specs=self.specs,
            max_bytes=self.settings.max_bytes,
            look=self._look,
        )

    def _look(self, operator: str) -> Case | None:
        """What shows that a device is well; None where the implementation has none, or nothing is plainly valid."""
        if not self.host.isolated or self.host.capabilities.target is None or self.settings.phases == 1:
            return None
        if operator not in self._looks:
            try:
                self._looks[operator] = sentinel_case(self.sampler(self.specs[operator]))
            except HarnessError:
                self._looks[operator] = None
        return self._looks[operator]

    def _confirmed(
        self, records: Sequence[Record], batch: TrialBatch, meanwhile: TrialBatch | None, known: set[str]
    ) -> list[Record]:
        """The records, with the first unwaived failures of each key run again alone in a fresh process.

        `known`: ids of trials whose failure is waived; of others that is asked.
        """
        found = list(records)
        finished = False
        for place, record in enumerate(records):
            if record.verdict.result != Result.FAILED or record.trial_id in known:
                continue
            if self.is_waived(record) or not self._again.is_new(record):
                continue
            if not finished and meanwhile is not None:
                meanwhile.finish()
                finished = True
            found[place] = self._again.confirm(record, batch.performed[: batch.spans[place][0]])
        return found

    def calls_before(
        self, trial: Trial, history: Iterable[Trial], *, same: Callable[[Record], bool]
    ) -> tuple[EarlierCall, ...]:
        """The calls of earlier trials after which one fails in the `same` way, in a fresh process; empty: none."""
        from aclnn_cts.trials.confirm import MOST_CALLS  # noqa: PLC0415 - only where something failed

        capabilities = self.host.capabilities
        calls = [call.case for item in history for call in calls_of(item, self.specs, capabilities=capabilities)]
        return self._again.calls_before(trial, calls[-MOST_CALLS:], same=same)
