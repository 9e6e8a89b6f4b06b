"""Of known failures a sample is measured: the first of a key, the smallest, and some by their ids."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.measuring import Measuring
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.judgement.tolerances.registry import TOLERANCES
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.trial_runner import TrialRunner
from aclnn_cts.trials.verdicts import FIRST, KnownFailureSampler, is_measured, is_sampled
from tests.support.build_records import make_record
from tests.support.wrong_adapters import Wrong

SPECS = load_specs()
COUNT = 150


@given(numbers=st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["gradInput", "gradWeight"])), max_size=80))
def test_the_first_the_smallest_and_a_sample_of_each_key(numbers: list[tuple[int, str]]) -> None:
    evidence, met = KnownFailureSampler(), dict[str, list[int]]()
    for number, output in numbers:
        record = make_record(number, result=Result.FAILED, kind="value", output=output)
        before, size = met.setdefault(output, []), record.trial.case.nbytes
        smallest = size < min(before, default=size + 1)
        assert evidence.should_measure(record) == (len(before) < FIRST or smallest or is_measured(record.trial_id))
        before.append(size)


def test_what_is_sampled_among_all_trials_is_measured() -> None:
    ids = [f"{number:02x}" for number in range(256)]
    assert sum(map(is_measured, ids)) == 16
    assert all(is_measured(name) for name in ids if is_sampled(name))


def failures(*, is_waived: Callable[[Record], bool], sample_waived: bool, gate: tuple[str, ...] = ()) -> list[Record]:
    """The same trials on an implementation whose every value is wrong."""
    target = Target()
    settings = RunnerSettings(adapter="test", target=target, measuring=Measuring(gate=gate))
    session = Wrong(fault="value").open(target, SPECS)
    runner = TrialRunner(
        specs=SPECS, host=InProcessHost(session), settings=settings, is_waived=is_waived, sample_waived=sample_waived
    )
    sampler = runner.sampler(SPECS["aclnnSoftmaxBackward"])
    trials = [
        Trial("values", sampler.random_case(choices, number))
        for number, choices in enumerate(stream_block(1, "evidence", 0, COUNT))
    ]
    found = [record for judged in runner.run(trials) for record in judged.records]
    return [record for record in found if record.verdict.result == Result.FAILED]


def is_full(record: Record) -> bool:
    counted = all(entry.magnitudes for entry in record.verdict.deviations if entry.beyond)
    assert bool(record.verdict.tolerances) == counted
    return len(record.verdict.tolerances) == len(TOLERANCES)


@pytest.mark.slow
def test_known_failures_differ_in_their_evidence_alone() -> None:
    every = failures(is_waived=lambda _record: False, sample_waived=True)
    assert len(every) > COUNT / 2
    assert all(map(is_full, every)), "what no waiver speaks for is measured whole"
    assert all(map(is_full, failures(is_waived=lambda _record: True, sample_waived=False)))
    some = failures(is_waived=lambda _record: True, sample_waived=True)
    full = [record for record in some if is_full(record)]
    assert 0 < len(full) < len(some) / 2
    assert {record.key for record in full} == {record.key for record in some}
    assert all(map(is_full, (record for record in some if is_sampled(record.trial_id))))
    for left, right in zip(every, some, strict=True):
        assert (left.trial_id, left.fingerprint, left.verdict.message) == (
            right.trial_id, right.fingerprint, right.verdict.message,
        )  # fmt: skip
        assert left.verdict.facts == right.verdict.facts, "the second oracle is asked of every failure"
        assert [(entry.error_ratio, entry.histogram) for entry in left.verdict.deviations] == [
            (entry.error_ratio, entry.histogram) for entry in right.verdict.deviations
        ]


def test_where_a_tolerance_gates_every_failure_is_measured() -> None:
    assert all(map(is_full, failures(is_waived=lambda _record: True, sample_waived=True, gate=("mixed",))))
