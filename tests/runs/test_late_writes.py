"""An output that is written after its call has returned is a fault, however soon afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceSession
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.execution.executor import CallPerformer, CallRequest
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.speclang.load import load_specs
from tests.runs.test_run import softmax, written
from tests.support.ran import Ran

Run = Callable[..., Ran]
CALLS = 6


@pytest.mark.parametrize("first", ["nothing", "zeros"])
def test_an_output_that_the_next_call_writes_is_written_late(ran: Run, tmp_path: Path, first: str) -> None:
    cases = written(tmp_path / "cases.jsonl", *(softmax(2, 3 + width) for width in range(CALLS)))
    run = ran("run", "--adapter", f"wrong_adapters:Late,milliseconds=next,first={first}", "--cases", cases)
    # Nobody calls after the last one.
    last = {"nothing": "failed unwritten", "zeros": "failed value"}[first]
    assert run.kinds == ["failed late-write"] * (CALLS - 1) + [last]
    assert all(record.fingerprint.output == "out" for record in run.records)
    assert run.code == 1


def test_no_call_conforms_that_writes_milliseconds_late(ran: Run, tmp_path: Path) -> None:
    """Twenty: on a busy machine the judge may look at a call no sooner."""
    cases = written(tmp_path / "cases.jsonl", *(softmax(2, 3 + width) for width in range(CALLS)))
    run = ran("run", "--adapter", "wrong_adapters:Late,milliseconds=20,first=zeros", "--cases", cases)
    assert set(run.kinds) <= {"failed late-write", "failed unwritten", "failed value"}
    assert len(run.kinds) == CALLS


class _Keeping(ReferenceSession):
    """The reference, which keeps the outputs of its calls to write them later."""

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        self.views: list[Any] = [item.view for call in calls if call.buffers for item in call.buffers.outputs.values()]
        return super().run(calls)


@pytest.mark.parametrize("shape", [(2, 3), (200, 200)])
def test_a_write_after_the_batch_changes_nothing_of_what_is_judged(shape: tuple[int, ...]) -> None:
    specs = load_specs()
    session = _Keeping(Target(product="atlas-a2"), specs)
    (performed,) = CallPerformer(host=InProcessHost(session), specs=specs).perform([CallRequest(softmax(*shape))])
    before = performed.got["out"].copy()
    for view in session.views:
        view[...] = 7
    assert (performed.got["out"] == before).all()
