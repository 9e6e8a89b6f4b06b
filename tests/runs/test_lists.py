"""Lists of tensors from specs to findings: each tensor of a list is judged, and named, by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.verdict import Result
from tests.support.ran import Ran

Run = Callable[..., Ran]
FOLDER = Path(__file__).parents[1] / "fixtures" / "lists"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    arguments = ("cases", "fold_grad", "--specs", str(FOLDER), "--kind", "valid,invalid", "-n", "20", "-o", str(path))
    assert main(arguments) == 0
    return path


def test_the_reference_conforms(ran: Run, cases: Path) -> None:
    run = ran("run", "--adapter", "reference", "--specs", str(FOLDER), "--cases", str(cases))
    assert run.code == 0, run.out + run.err
    judged = [record for record in run.records if record.verdict.deviations]
    names = {deviation.output for record in judged for deviation in record.verdict.deviations}
    assert {"grads[0]", "grads[1]"} <= names
    assert all("[" in name for name in names)


def test_a_wrong_tensor_of_a_list_is_named(ran: Run, cases: Path) -> None:
    run = ran("run", "--adapter", "wrong_adapters:Wrong,fault=value", "--specs", str(FOLDER), "--cases", str(cases))
    assert run.code == 1
    failed = [record for record in run.records if record.verdict.result == Result.FAILED]
    assert failed
    assert {record.fingerprint.output for record in failed} == {"grads[0]"}
    files = run.directory.failures()
    again = ran("replay", str(files[0]), "--adapter", "reference", "--specs", str(FOLDER))
    assert (again.code, again.kinds) == (0, ["passed"])
    document = json.loads(files[0].read_text(encoding="utf-8"))
    assert "tensor_list" in json.dumps(document)
