"""Large tables: the oracle is asked about the rows that are not 0 alone, and the verdict is that on the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Buffers
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution import judging
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.model import Spec
from tests.support.trial_runs import bench, specs

EMBEDDING = "aclnnEmbeddingDenseBackward"


class Changed(ReferenceAdapter):
    """Adds 1 to the element of one row, counted from the end."""

    def __init__(self, row: int) -> None:
        self._row = row

    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        return _Session(target, specs, self._row)


class _Session(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], row: int) -> None:
        super().__init__(target, specs)
        self._row = row

    def _compute(self, spec: Spec, case: Case, buffers: Buffers) -> dict[str, NDArray[Any]]:
        results = super()._compute(spec, case, buffers)
        results["out"][self._row % len(results["out"])] += np.ones((), results["out"].dtype)
        return results


def judged(adapter: ReferenceAdapter, cases: Sequence[Case]) -> list[Record]:
    made = bench(adapter)
    trials = [Trial("values", case) for case in cases]
    return [record for batch in made.run(trials) for record in batch.records]


def small_cases(count: int) -> list[Case]:
    sampler = Sampler(specs()[EMBEDDING], Target(product="atlas-a2"))
    return [sampler.case(sampler.draw(StreamChoices(5, "condensed", number), budget=512)) for number in range(count)]


def vast_cases(count: int) -> list[Case]:
    sampler = Sampler(specs()[EMBEDDING], Target(product="atlas-a2"))
    return [sampler.random_case(StreamChoices(0, "vast", number), number, heavy=True) for number in range(count)]


@pytest.mark.parametrize("row", [0, 1, -1])
@pytest.mark.parametrize("right", [False, True])
def test_a_condensed_call_has_the_verdict_of_the_whole_one(
    row: int, *, right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = small_cases(40)
    adapter = ReferenceAdapter() if right else Changed(row)
    monkeypatch.setattr(judging, "_SMALL", 0)
    whole = judged(adapter, cases)
    monkeypatch.setattr(judging, "_CONDENSED", 1)
    condensed = judged(adapter, cases)
    for one, other in zip(whole, condensed, strict=True):
        assert (one.verdict.result, one.verdict.kind) == (other.verdict.result, other.verdict.kind)
        if one.verdict.result == Result.FAILED:
            assert [item.index for item in one.verdict.deviations] == [item.index for item in other.verdict.deviations]
            assert one.verdict.message.partition(";")[0] == other.verdict.message.partition(";")[0]
    assert any(item.verdict.result == (Result.PASSED if right else Result.FAILED) for item in condensed)


def test_rows_beyond_what_16_bits_and_float_count_are_judged() -> None:
    """A wrong row that no index names is found at its place, and a right table passes."""
    cases = vast_cases(2)
    for case in cases:
        out = case.arguments["out"]
        assert isinstance(out, Tensor)
        assert out.shape[0] > 2**24
        assert case.call.phases == 2
    assert [item.verdict.result for item in judged(ReferenceAdapter(), cases)] == [Result.PASSED] * 2
    for item in judged(Changed(-2), cases[:1]):
        assert item.verdict.kind in (Fault.VALUE, Fault.MODEL)
        out = item.trial.case.arguments["out"]
        assert isinstance(out, Tensor)
        assert item.verdict.deviations[0].index == (out.shape[0] - 2, 0)
        assert f"out[{out.shape[0] - 2}, 0]" in item.verdict.message
