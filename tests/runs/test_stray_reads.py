"""A read outside an input, of an isolated implementation, is a fault that names the input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.generate.buffers import PAGE
from tests.runs.test_run import softmax, written
from tests.support.ran import Ran

Run = Callable[..., Ran]
WHOLE = softmax(PAGE // 4)
"""Its inputs fill their pages."""
SMALL = [softmax(2, 3 + width) for width in range(8)]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [("reads-last", "passed"), ("reads-behind", "failed stray-read"), ("reads-before", "failed stray-read")],
)
def test_a_read_is_found_by_the_page_that_it_meets(ran: Run, tmp_path: Path, fault: str, expected: str) -> None:
    run = ran("run", "--adapter", f"wrong_adapters:Wrong,fault={fault}", "--cases", written(tmp_path / "c.json", WHOLE))
    assert run.kinds == [expected]
    assert run.records[0].fingerprint.output == ("" if expected == "passed" else "output")


def test_of_small_inputs_some_calls_show_a_read_of_the_byte_behind_and_the_others_of_the_byte_before(
    ran: Run, tmp_path: Path
) -> None:
    cases = written(tmp_path / "c.jsonl", *SMALL)
    behind, before = (
        [
            kind == "failed stray-read"
            for kind in ran("run", "--adapter", f"wrong_adapters:Wrong,fault={fault}", "--cases", cases).kinds
        ]
        for fault in ("reads-behind", "reads-before")
    )
    assert 0 < sum(behind) < len(SMALL)
    assert before == [not found for found in behind]


def test_a_crash_of_another_kind_is_no_read(ran: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "c.json", softmax(2, 3))
    assert ran("run", "--adapter", "wrong_adapters:Wrong,fault=crash", "--cases", cases).kinds == ["failed crash"]


def test_torch_reads_beyond_an_output_of_the_forward_pass_that_is_too_small(ran: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    whole = softmax(16)
    small = msgspec.structs.replace(whole.arguments["output"], shape=(1,))  # type: ignore[type-var]
    arguments = {**whole.arguments, "output": small}
    case = msgspec.structs.replace(whole, operator="aclnnLogSoftmaxBackward", arguments=arguments)
    run = ran("run", "--adapter", "torch", "--cases", written(tmp_path / "c.json", case))
    # The cases of the operator's waivers come first.
    assert run.kinds[-1] == "failed stray-read"
    assert run.records[-1].fingerprint.output == "output"
