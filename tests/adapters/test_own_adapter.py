"""What somebody writes to test an implementation of their own, and that it is short."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.generate.buffers import block_layout, prepare
from aclnn_cts.sandbox.open_host import open_host

OUTPUTS = frozenset({"out"})


@pytest.mark.parametrize("isolate", [None, False])
def test_a_class_in_a_file_is_an_adapter(monkeypatch: pytest.MonkeyPatch, *, isolate: bool | None) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    word = "own_adapter:Softmax,scale=2"
    tensor = Tensor((2, 2), "FLOAT")
    case = Case("aclnnSoftmaxBackward", {"gradOutput": tensor, "output": tensor, "dim": -1, "out": tensor})
    arrays = {
        "gradOutput": np.array([[1, 2], [3, 5]], np.float32),
        "output": np.array([[0.25, 0.75], [0.5, 0.5]], np.float32),
    }
    with open_host(word, target=Target(), specs={}, isolate=isolate) as host:
        buffers = prepare(case, outputs=OUTPUTS, arrays=arrays, memory=host.memory(block_layout(case, OUTPUTS).size))
        outcomes = host.run([Call(case, buffers), Call(Case("aclnnRmsNormGrad", {}))])
        assert [outcome.ended for outcome in outcomes] == [CallEnd.RETURNED, CallEnd.INEXPRESSIBLE]
        assert buffers.outputs["out"].view.tolist() == [[-0.375, 0.375], [-1, 1]]
        assert host.environment == {"library": "mine 1.0", "scale": "2"}


def test_it_is_under_thirty_lines() -> None:
    lines = (Path(__file__).parent / "own_adapter.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < 30
