"""Batches that are made while their starter does something else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.sandbox.batch import PendingBatch
from aclnn_cts.sandbox.limits import RunnerLimits
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.plan import Part
from aclnn_cts.trials.trial_runner import TrialRunner

HERE = Path(__file__).parents[1] / "support"
ADAPTER = "troublesome_adapter:Troublesome"
TARGET = Target(product="atlas-a2")
SPECS = load_specs()
PART = Part("aclnnSoftmaxBackward", "values", "valid", count=150)


@pytest.fixture(autouse=True)
def adapters_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


@pytest.fixture
def host() -> Iterator[ProcessHost]:
    with ProcessHost(ADAPTER, target=Target(), limits=RunnerLimits(call_seconds=60.0)) as found:
        yield found


def call(do: str = "double") -> Call:
    return Call(Case("aclnnDouble", {}), call_mode={"do": do})


def test_calls_are_made_meanwhile(host: ProcessHost) -> None:
    pending = host.start([call("nap"), call(), call("refuse")])
    assert pending._work is not None
    assert [outcome.ended for outcome in pending.outcomes()] == [CallEnd.RETURNED, CallEnd.RETURNED, CallEnd.RAISED]
    assert pending.outcomes() is pending.outcomes()
    pending.end()


def test_buffers_of_a_started_batch_outlive_recycling(host: ProcessHost) -> None:
    from tests.sandbox import test_process  # noqa: PLC0415 - its calls with buffers

    first = [test_process.call(host, "nap"), test_process.call(host)]
    pending = host.start(first)
    host.recycle()
    second = [test_process.call(host, size=7) for _ in range(3)]
    places = [host._arena.locate(item.buffers.memory) for item in (*first, *second) if item.buffers is not None]
    assert len(set(places)) == 5
    host.run(second)
    assert all(map(test_process.doubled, first))
    assert all(map(test_process.doubled, second))
    pending.end()
    host.recycle()
    assert host._arena.locate(host.memory(8)) == 0


def test_a_batch_ends_once(host: ProcessHost) -> None:
    from tests.sandbox import test_process  # noqa: PLC0415 - its calls with buffers

    pending = host.start([test_process.call(host)])
    pending.end()
    host.recycle()
    again = [test_process.call(host)]
    other = host.start(again)
    pending.end()
    host.recycle()
    host.run([test_process.call(host, size=9)])
    other.outcomes()
    assert all(map(test_process.doubled, again))
    other.end()


def test_what_is_asked_meanwhile_waits(host: ProcessHost) -> None:
    pending = host.start([call("nap"), call()])
    (after,) = host.run([call()])
    assert after.facts["calls"] == 3
    pending = host.start([call("nap")])
    host.refresh()
    (fresh,) = host.run([call()])
    assert fresh.facts["calls"] == 1
    assert [outcome.facts["calls"] for outcome in pending.outcomes()] == [4]


def test_the_rest_of_a_batch_goes_on_before_anybody_waits_for_it(host: ProcessHost) -> None:
    pending = host.start([call(), call("exit"), call(), call("abort"), call()])
    deadline = time.monotonic() + 60
    while pending._work is not None and time.monotonic() < deadline:
        pending.advance()
        time.sleep(0.01)
    assert pending._work is None
    ends = [outcome.ended for outcome in pending.outcomes()]
    assert ends == [CallEnd.RETURNED, CallEnd.EXIT, CallEnd.RETURNED, CallEnd.SIGNAL, CallEnd.RETURNED]


def test_limits_hold_while_nobody_waits() -> None:
    for do, seconds, ended in (("hang", 0.5, CallEnd.TIME_LIMIT), ("swallow", 60.0, CallEnd.MEMORY_LIMIT)):
        limits = RunnerLimits(call_seconds=seconds, memory_bytes=200 << 20)
        with ProcessHost(ADAPTER, target=Target(), limits=limits) as host:
            pending = host.start([call(do), call()])
            time.sleep(0.2)
            assert [outcome.ended for outcome in pending.outcomes()] == [ended, CallEnd.RETURNED]


def test_a_batch_that_nobody_wants_any_more_is_broken_off(host: ProcessHost) -> None:
    pending = host.start([call("hang"), call()])
    began = time.monotonic()
    pending.end()
    (after,) = host.run([call()])
    assert after.ended == CallEnd.RETURNED
    assert after.facts["calls"] == 1
    assert time.monotonic() - began < 50


def test_a_host_closes_over_a_batch_that_is_under_way(host: ProcessHost) -> None:
    pending = host.start([call("hang")])
    host.close()
    assert pending._work is None


def test_few_quick_calls_are_made_at_once(host: ProcessHost) -> None:
    host.run([call() for _ in range(200)])
    host._call_seconds = 0.001
    pending = host.start([call(), call()])
    assert pending._work is None
    assert len(pending.outcomes()) == 2
    pending.end()


def _runner(host: ProcessHost) -> TrialRunner:
    return TrialRunner(specs=SPECS, host=host, settings=RunnerSettings(adapter="reference", target=TARGET))


def _told(record: Record) -> tuple[object, ...]:
    ends = [[msgspec.structs.replace(item, seconds=0.0) for item in attempt] for attempt in record.attempts]
    return record.trial_id, record.verdict, record.fingerprint, ends


def test_records_are_those_of_one_batch_after_the_other() -> None:
    with ProcessHost("reference", target=TARGET) as host:
        runner = _runner(host)
        trials = list(runner.expand(PART, seed=3))
        started: list[int] = []
        start = host.start

        def counted(calls: Sequence[Call]) -> PendingBatch:
            started.append(len(calls))
            return start(calls)

        host.start = counted  # type: ignore[method-assign]  # for this test alone
        overlapped = [record for judged in runner.run(trials) for record in judged.records]
        runner.overlapped = False
        plain = [record for judged in runner.run(trials) for record in judged.records]
    assert started == [64, 64, 22]
    assert list(map(_told, overlapped)) == list(map(_told, plain))
    assert [record.trial_id for record in overlapped] == [trial.id for trial in trials]


def test_other_trials_may_run_between_the_batches_and_the_rest_may_be_left() -> None:
    with ProcessHost("reference", target=TARGET) as host:
        runner = _runner(host)
        trials = list(runner.expand(PART, seed=3))
        for judged in runner.run(iter(trials)):
            found: list[Trial] = [record.trial for record in judged.records]
            again = [record for other in runner.run([found[0]]) for record in other.records]
            assert [record.verdict for record in again] == [judged.records[0].verdict]
            if found[-1] == trials[127]:
                break
        assert host._batch is not None
        assert host._batch._work is None
        assert not host._arena._held
        assert [len(judged.records) for judged in runner.run(trials)] == [64, 64, 22]
