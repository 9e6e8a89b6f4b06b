"""8-bit floats, integers with a structure and shapes by layout from specs to verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.verdict import Result
from tests.support.ran import Ran

Run = Callable[..., Ran]
FIXTURES = Path(__file__).parents[1] / "fixtures"
OPERATORS = (
    ("float8", "scaled_cast_grad", "ascend-950"),
    ("hifloat8", "halved_grad", "ascend-950"),
    ("segments", "segment_sum_grad", "atlas-a2"),
)


@pytest.mark.parametrize(("folder", "operator", "product"), OPERATORS)
def test_the_reference_conforms_and_a_wrong_one_does_not(
    ran: Run, tmp_path: Path, folder: str, operator: str, product: str
) -> None:
    specs, cases = ("--specs", str(FIXTURES / folder)), str(tmp_path / "cases.jsonl")
    drawn = ("cases", operator, *specs, "--product", product, "--kind", "valid,invalid", "-n", "24", "-o", cases)
    assert main(drawn) == 0
    run = ran("run", "--adapter", "reference", *specs, "--product", product, "--cases", cases)
    assert run.code == 0, run.out + run.err
    assert sum(bool(record.verdict.deviations) for record in run.records) > 20
    wrong = ran("run", "--adapter", "wrong_adapters:Wrong,fault=value", *specs, "--product", product, "--cases", cases)
    assert wrong.code == 1
    assert sum(record.verdict.result == Result.FAILED for record in wrong.records) > 10


@pytest.mark.parametrize(
    ("fault", "right"),
    [("away", True), ("truncates", False), ("flushes", False), ("negative-zero", False)],
)
def test_ties_of_hifloat8_are_open_and_other_conversions_are_not(
    ran: Run, tmp_path: Path, fault: str, right: bool
) -> None:
    specs, cases = ("--specs", str(FIXTURES / "hifloat8")), str(tmp_path / "cases.jsonl")
    drawn = ("cases", "halved_grad", *specs, "--product", "ascend-950", "--kind", "valid", "-n", "48", "-o", cases)
    assert main(drawn) == 0
    adapter = f"wrong_adapters:Wrong,fault=hifloat8-{fault}"
    run = ran("run", "--adapter", adapter, *specs, "--product", "ascend-950", "--cases", cases)
    assert run.code == (0 if right else 1), run.out + run.err
    assert any(record.verdict.result == Result.FAILED for record in run.records) is not right
