"""aclnnFlashAttentionUnpaddingScoreGrad on torch: autograd with the saved statistics agrees with the formula."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from tests.support.ran import Ran

Run = Callable[..., Ran]


def test_autograd_of_torch_agrees(ran: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    path = tmp_path / "cases.jsonl"
    operator = "flash_attention_unpadding_score_grad"
    assert main(("cases", operator, "--kind", "valid", "-n", "24", "-o", str(path))) == 0
    run = ran("run", "--adapter", "torch", "--cases", str(path))
    assert run.code == 0, run.out + run.err
    assert run.result["passed"] > 12
