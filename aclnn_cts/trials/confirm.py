"""A failure is run again before it is reported: does it fail alone, or only after other calls, and which?"""

from __future__ import annotations

import itertools
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.delta_debugging import shortest_end, without_others
from aclnn_cts.core.faults import fault_name
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.trial import EarlierCall, Trial
from aclnn_cts.core.verdict import ALONE_FACT, CONFORMS, FLAKY_FACT, Record, Result
from aclnn_cts.execution.executor import CallPerformer, CallRequest, PerformedCall
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.batches import BATCH_BYTES, calls_before, calls_of, with_input_guards
from aclnn_cts.trials.verdicts import TrialJudge

REPETITIONS = 20
"""Of a failure that no order of calls brings again."""

COMPANY_ALLOWED = 2
"""Failures of one key that are run again; those after them are of a finding that is known by then."""

FRESH = 128
"""Fresh processes that one judge gives to an implementation which keeps state between calls; failures after that are
not run again. Hundreds of calls can fail so, and a process of a real device takes seconds to start."""

_WENT_ON = frozenset({CallEnd.RETURNED, CallEnd.RAISED})


@dataclass(slots=True)
class CallHistory:
    """The calls that a process has been given, the latest last, as many as a search makes again."""

    calls: deque[Case] = field(default_factory=lambda: deque(maxlen=MOST_CALLS))

    def add_batch(self, performed: Sequence[PerformedCall], looks: Sequence[Case]) -> None:
        """The calls of a batch, those that looked at the device after them, and those that were made twice."""
        self._add(performed)
        self.calls.extend(looks)
        self.calls.extend(item.case for item in performed if item.twice)

    def latest_calls(self, performed: Sequence[PerformedCall]) -> list[Case]:
        """The calls before one that comes after these, which are not added; of so many bytes as a batch holds."""
        whole = CallHistory(self.calls.copy())
        whole._add(performed)
        sizes = itertools.accumulate(case.nbytes for case in reversed(whole.calls))
        number = sum(1 for _ in itertools.takewhile(lambda size: size <= BATCH_BYTES, sizes))
        return list(whole.calls)[len(whole.calls) - number :]

    def _add(self, performed: Sequence[PerformedCall]) -> None:
        """Calls that were made one after the other; one that ended its process has left nothing behind."""
        for item in performed:
            if item.outcome.ended in _WENT_ON:
                self.calls.append(item.case)
            elif item.outcome.ended not in (CallEnd.INEXPRESSIBLE, CallEnd.NOT_RUN):
                self.calls.clear()


@dataclass(slots=True, kw_only=True)
class FailureConfirmer:
    """Runs failures of an isolated implementation again, each in a fresh process."""

    host: SessionHost
    specs: Mapping[str, Spec]
    performer: CallPerformer
    verdicts: TrialJudge
    _history: CallHistory = field(default_factory=CallHistory)
    _repeated: Counter[str] = field(default_factory=Counter)
    """How many failures of each key were run again."""
    _fresh: int = FRESH
    """How many more are started for failures that conform alone, and for all others once calls were found."""
    _shown: set[Fingerprint] = field(default_factory=set)
    """Sorts of failures that calls before them were found for."""
    _suspect: bool = True
    """Whether what was run in the process may change what a call does in it."""

    def is_new(self, record: Record) -> bool:
        """Whether a failure is one of the first of its key, which are run again."""
        text = record.key.text()
        self._repeated[text] += 1
        return self._repeated[text] <= COMPANY_ALLOWED

    def confirm(self, record: Record, before: Sequence[PerformedCall]) -> Record:
        """The record of a failure with what came of it alone; as it is where no fresh process is left.

        `before`: the calls of its batch that came before it.
        """
        if self._fresh <= 0:
            return record
        trial = record.trial
        sort = msgspec.structs.replace(record.key, check="", mode="", dtype="")
        found = _marked(record, self._attempt(trial, fresh=self._suspect))
        conforms = found.conforms_alone
        # State that is kept between calls would reach the next failure that is run again too.
        self._suspect = conforms or bool(self._shown)
        self._fresh -= self._suspect
        if conforms and trial.after:
            return self._repeated_alone(found)
        # The calls that a fault of the device needs were looked for already (`attribution`).
        faulty = any(outcome.ended == CallEnd.DEVICE_FAULT for outcomes in record.attempts for outcome in outcomes)
        if not conforms or trial.after or sort in self._shown or faulty:
            return found
        after = self.calls_before(
            trial, self._history.latest_calls(before), same=lambda again: again.verdict.kind == record.verdict.kind
        )
        if not after:
            return self._repeated_alone(found)
        self._shown.add(sort)
        return _with_calls_before(found, after)

    def _repeated_alone(self, record: Record) -> Record:
        """The record of a failure that no order of calls brings again, with its rate over repetitions."""
        trial = record.trial
        times = max(min(REPETITIONS, BATCH_BYTES // max(trial.nbytes, 1)), 1)
        self.host.refresh()
        failures = sum(self._attempt(trial, fresh=False).verdict.result == Result.FAILED for _ in range(times))
        verdict = record.verdict
        message = f"{verdict.message}; flaky: it failed in {failures} of {times} repetitions"
        facts = {**verdict.facts, FLAKY_FACT: [failures, times]}
        return msgspec.structs.replace(record, verdict=msgspec.structs.replace(verdict, message=message, facts=facts))

    def note_batch(self, performed: Sequence[PerformedCall], looks: Sequence[Case]) -> None:
        """The calls of a whole batch, and those that looked at the device after it: what comes is after them."""
        self._history.add_batch(performed, looks)
        self._suspect = True

    def calls_before(
        self, trial: Trial, history: Sequence[Case], *, same: Callable[[Record], bool]
    ) -> tuple[EarlierCall, ...]:
        """The calls after which a trial fails in the `same` way; empty where none are found."""

        def shows(record: Record) -> bool:
            return record.verdict.result == Result.FAILED and same(record)

        def fails(tried: Trial) -> bool:
            self._fresh -= 1
            return shows(self._attempt(tried))

        def repeated(tried: Trial, times: int) -> int | None:
            records = self._in_a_row(tried, min(times, BATCH_BYTES // max(tried.case.nbytes, 1)))
            return next((number for number, record in enumerate(records) if shows(record)), None)

        return find_calls_before(trial, history, fails=fails, repeated=repeated)

    def _attempt(self, trial: Trial, *, fresh: bool = True) -> Record:
        if fresh:
            self.host.refresh()
        earlier, own = calls_before(trial), self._calls(trial)
        return self._record(trial, self.performer.perform([*earlier, *own])[len(earlier) :])

    def _in_a_row(self, trial: Trial, times: int) -> Iterator[Record]:
        """A trial of one ordinary call so many times, without a pause in between."""
        calls = self._calls(trial)
        if calls == [CallRequest(trial.case, guards=calls[0].guards)]:
            self.host.refresh()
            for item in self.performer.perform(calls * times):
                yield self._record(trial, [item])

    def _calls(self, trial: Trial) -> list[CallRequest]:
        broken = bool(evaluate(self.specs[trial.case.operator], trial.case).broken)
        return with_input_guards(calls_of(trial, self.specs, capabilities=self.host.capabilities), trial, broken=broken)

    def _record(self, trial: Trial, attempt: Sequence[PerformedCall]) -> Record:
        evaluation = evaluate(self.specs[trial.case.operator], trial.case)
        verdict = self.verdicts.verdict(trial, attempt, evaluation, self.verdicts.judge(trial))
        return self.verdicts.record(trial, trial.id, attempt, evaluation, verdict)


def _marked(record: Record, again: Record) -> Record:
    """The record with its second attempt, and what that says of the first.

    The verdict stays a failure: what fails only after other calls fails. But it is marked, since it will not show
    when the trial is replayed.
    """
    verdict, [outcomes] = again.verdict, again.attempts
    if any(outcome.ended == CallEnd.NOT_RUN for outcome in outcomes):
        said = "could not be run"
    elif verdict.result == Result.FAILED:
        said = "fails too" if verdict.kind == record.verdict.kind else f"fails otherwise ({fault_name(verdict.kind)})"
    elif verdict.result == Result.PASSED:
        said = CONFORMS
    else:
        said = f"{verdict.result} ({fault_name(verdict.kind)})"
    message = record.verdict.message
    if verdict.result == Result.PASSED:
        message = f"{message}; run again alone in a fresh process it conforms"
    first = msgspec.structs.replace(record.verdict, message=message, facts={**record.verdict.facts, ALONE_FACT: said})
    return msgspec.structs.replace(record, attempts=(*record.attempts, outcomes), verdict=first)


def _with_calls_before(record: Record, after: tuple[EarlierCall, ...]) -> Record:
    """The record of a failure that conforms alone, with the calls after which it fails again."""
    number = sum(item.times for item in after)
    calls = "one call" if number == 1 else f"{number} calls"
    message = (
        f"{record.verdict.message}; order-dependent: it fails again after {calls} that came before it, which its trial "
        "makes first"
    )
    return msgspec.structs.replace(
        record, after=after, verdict=msgspec.structs.replace(record.verdict, message=message)
    )


MOST_CALLS = 1024
"""Calls that are made before the failure at most."""

_KEPT = 16
"""Most calls that show something to a reader."""

_TAILS = (0, 32, MOST_CALLS)


def find_calls_before(
    trial: Trial,
    history: Sequence[Case],
    *,
    fails: Callable[[Trial], bool],
    repeated: Callable[[Trial, int], int | None],
) -> tuple[EarlierCall, ...]:
    """The fewest calls found after which a trial fails, and without which it does not; empty where none are.

    - `history`: what was called before it, the latest last.
    - `fails`: whether a trial fails in the way that is looked for, in a fresh process.
    - `repeated`: makes the trial's one call so many times in a row in a fresh process, and tells how many went well
      before one failed so; None where none did.
    """
    known: dict[tuple[str, ...], bool] = {}

    def show(cases: Sequence[Case]) -> bool:
        key = tuple(map(case_id, cases))
        if key not in known:
            known[key] = fails(_after(trial, [EarlierCall(case) for case in cases]))
        return known[key]

    found = [EarlierCall(case) for case in _fewest(trial.case, history, show)]
    if not found and (times := repeated(trial, MOST_CALLS)):
        found = [EarlierCall(trial.case, times)]
    if len(found) > 1 and fails(_after(trial, often := [EarlierCall(trial.case, len(found))])):
        found = often
    if not 0 < len(found) <= _KEPT:
        return ()
    # Once more, for chance alone must not name a call.
    return tuple(found) if fails(_after(trial, found)) and not fails(trial) else ()


def _after(trial: Trial, earlier: Sequence[EarlierCall]) -> Trial:
    return msgspec.structs.replace(trial, after=tuple(earlier))


def _fewest(case: Case, history: Sequence[Case], show: Callable[[Sequence[Case]], bool]) -> list[Case]:
    for single in _likely(case, history):
        if show([single]):
            return [single]
    for shorter, longer in pairwise(min(size, len(history)) for size in _TAILS):
        if shorter < longer and show(history[-longer:]):
            return without_others(shortest_end(history[-longer:], show), show)
    return []


def _likely(case: Case, history: Sequence[Case]) -> Iterator[Case]:
    """The call before, and the latest ones with as many elements, with the same shapes and with other dtypes."""
    alike: tuple[Callable[[Case], bool], ...] = (
        lambda item: True,
        lambda item: _elements(item) == _elements(case),
        lambda item: _shapes(item) == _shapes(case),
        lambda item: _shapes(item) == _shapes(case) and _dtypes(item) != _dtypes(case),
    )
    for is_alike in alike:
        latest = next((item for item in reversed(history) if item != case and is_alike(item)), None)
        if latest is not None:
            yield latest


def _shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    return tuple(tensor.shape for _, tensor in case.tensors())


def _dtypes(case: Case) -> tuple[str, ...]:
    return tuple(tensor.dtype for _, tensor in case.tensors())


def _elements(case: Case) -> tuple[int, ...]:
    return tuple(math.prod(shape) for shape in _shapes(case))
