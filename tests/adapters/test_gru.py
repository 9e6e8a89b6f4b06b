"""aclnnGRUBackward takes seven lists of tensors and gives one.

The autograd of torch agrees with its formula. So does the software device, through whose C interface all lists cross.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.verdict import Result
from tests.adapters.loopback.support import needs_compiler
from tests.support.ran import Ran

Run = Callable[..., Ran]


@pytest.fixture
def cases(tmp_path: Path) -> Callable[[str, int], Path]:
    def made(kinds: str, count: int) -> Path:
        path = tmp_path / "cases.jsonl"
        assert main(("cases", "gru_backward", "--kind", kinds, "-n", str(count), "-o", str(path))) == 0
        return path

    return made


@needs_compiler
def test_lists_cross_the_interface_of_the_device(ran: Run, cases: Callable[[str, int], Path]) -> None:
    run = ran("run", "--adapter", "loopback", "--cases", str(cases("valid,invalid", 16)))
    assert run.code == 0, run.out + run.err
    passed = [record for record in run.records if record.verdict.result == Result.PASSED]
    outputs = {deviation.output for record in passed for deviation in record.verdict.deviations}
    assert {"dxOut", "dhPrevOut", "dparamsOut[0]", "dparamsOut[3]"} <= outputs
    refused = {record.fingerprint.clause for record in passed if record.trial.case.origin.constraint}
    assert len(refused) > 8


def test_autograd_of_torch_agrees(ran: Run, cases: Callable[[str, int], Path]) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    run = ran("run", "--adapter", "torch", "--cases", str(cases("valid", 12)))
    assert run.code == 0, run.out + run.err
    assert run.result["passed"] > 6
