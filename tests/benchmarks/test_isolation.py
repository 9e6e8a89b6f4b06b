"""The measurement of isolation at a tiny size: its parts measure what they say."""

from __future__ import annotations

from aclnn_cts.generate.buffers import InputGuards
from aclnn_cts.speclang.load import load_specs
from benchmarks.isolation import guarding, overhead

SPECS = load_specs()


def test_the_same_calls_are_timed_in_both_places() -> None:
    for cost in overhead("reference", SPECS["aclnnSoftmaxBackward"], SPECS, rounds=1):
        assert cost.in_process > 0
        assert cost.added == cost.isolated - cost.in_process


def test_all_guards_of_inputs_are_timed() -> None:
    found = guarding(SPECS["aclnnSoftmaxBackward"], SPECS, rounds=1)
    assert set(found) == set(InputGuards)
    assert all(0.0 < milliseconds < 1e3 for milliseconds in found.values())
