"""The kernel with a planted mistake that `make run` shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aclnn_cts.adapters.example import BLOCK
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.generate.predicate import compile_predicate
from aclnn_cts.triage.replay_status import recorded_findings
from tests.support.ran import Ran


@pytest.mark.slow
def test_the_planted_mistake_is_one_finding_with_its_condition(ran: Callable[..., Ran]) -> None:
    run = ran("run", "softmax_backward", "--adapter", "aclnn_cts.adapters.example:OneBlockSoftmax")
    assert run.code == 1
    [finding] = recorded_findings(run.path).values()
    assert finding.condition is not None
    holds = compile_predicate(finding.condition.when)

    def sized(length: int) -> Case:
        tensor = Tensor((2, length), "FLOAT", data=Data(recipe="normal"))
        return Case("aclnnSoftmaxBackward", {"gradOutput": tensor, "output": tensor, "dim": 1, "out": tensor})

    # Sizes behind the block that no call has may be said to pass, and none that passes to fail.
    assert not any(holds(sized(length)) for length in range(1, BLOCK + 1))
    assert all(holds(sized(length)) for length in (2 * BLOCK, 4 * BLOCK, 400))
