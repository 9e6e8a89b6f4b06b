"""Trials that are made together fit into the memory of a batch, all their calls counted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.trial import Trial
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.batches import BATCH_BYTES, batches


def trials(check: str, sizes: Sequence[int]) -> list[Trial]:
    """Trials whose one tensor has so many bytes."""
    return [Trial(check, Case("aclnnTanhBackward", {"out": Tensor((size // 4,), "FLOAT")})) for size in sizes]


@pytest.mark.parametrize(
    ("check", "sizes", "expected"),
    [
        ("values", [BATCH_BYTES // 4] * 6, [4, 2]),
        # Equal calls are made four times.
        ("determinism", [BATCH_BYTES // 8] * 5, [2, 2, 1]),
        ("values", [4, 2 * BATCH_BYTES, 4, 4], [1, 1, 2]),
        ("values", [4] * 130, [128, 2]),
    ],
)
def test_batches_hold_as_many_bytes_as_all_calls_of_their_trials_need(
    check: str, sizes: Sequence[int], expected: Sequence[int]
) -> None:
    planned = trials(check, sizes)
    found = list(batches(planned, load_specs(), max_bytes=1 << 30))
    assert [len(batch) for batch in found] == expected
    assert [trial for batch in found for trial in batch] == planned
