"""Simulated devices: what the timeline of a session counts, and that the real head runs over them."""

from __future__ import annotations

import pytest

from aclnn_cts.core.target import Target
from aclnn_cts.runs.campaign.corpus.schedule import RANDOM, Chunk, CorpusUpdate
from aclnn_cts.runs.campaign.jobs import ChunkJob, ChunkResult
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.store.summary import Summary
from aclnn_cts.workers.service import encode
from benchmarks import bench_scale
from benchmarks.bench_scale import Recorded, SimulatedDispatcher, columns, shown


class Answers:
    """Every chunk has ten cases and takes one second of its worker."""

    def of(self, job: ChunkJob) -> Recorded:
        result = ChunkResult(index=job.chunk.index, summary=Summary(), learned=CorpusUpdate())
        return Recorded(encode(result), 10, 1.0)


def job(index: int) -> ChunkJob:
    return ChunkJob(Chunk(index=index, seed=0, snapshot="", phase=RANDOM, operator="aclnnSoftmaxBackward", draws=10))


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The head's processor time, which a test moves on."""
    now = [0.0]
    monkeypatch.setattr("benchmarks.bench_scale.time.process_time", lambda: now[0])
    return now


def test_the_clock_moves_with_the_head_and_to_the_next_answer(processor: list[float]) -> None:
    dispatcher = SimulatedDispatcher(Answers(), devices=2, call_seconds=0.1, chunks=100)
    dispatcher.submit(0, job(0))
    processor[0] = 0.5
    dispatcher.submit(1, job(1))
    [first] = dispatcher.wait(1.0)
    assert first.slot == 0
    assert dispatcher.timeline.end == pytest.approx(2.0)
    dispatcher.submit(0, job(2))
    [second] = dispatcher.wait(1.0)
    assert second.slot == 1
    assert dispatcher.timeline.end == pytest.approx(2.5)
    assert dispatcher.timeline.head == pytest.approx(0.5)
    assert dispatcher.timeline.barrier == 0.0


def test_idle_workers_wait_for_feedback_where_the_head_hands_out_nothing(processor: list[float]) -> None:
    del processor
    dispatcher = SimulatedDispatcher(Answers(), devices=4, call_seconds=0.0, chunks=1)
    dispatcher.submit(0, job(0))
    with pytest.raises(KeyboardInterrupt):
        dispatcher.wait(1.0)
    assert dispatcher.timeline.barrier == pytest.approx(3.0)
    assert dispatcher.timeline.efficiency == pytest.approx(0.25)


@pytest.mark.slow
def test_the_real_head_runs_over_simulated_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_scale, "FIRST", 4)
    monkeypatch.setattr(bench_scale, "ROUNDS", 1)
    specs = Specs(load_specs().select(["softmax_backward", "gelu_backward", "embedding_dense_backward"]))
    rounds = bench_scale.scale(specs, Target(), [4], [1e-3])
    assert [row.what for row in shown(rounds)][3:] == ["efficiency, 4 devices at 1000 us a call"]
    [cells] = columns(rounds)
    assert len(cells) == len(bench_scale.TITLES)
    assert 0.0 < rounds["efficiency, 4 devices at 1000 us a call"][0] <= 1.0
