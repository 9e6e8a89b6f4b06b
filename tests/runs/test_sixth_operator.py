"""A sixth operator is one YAML file and one oracle file; its Python runs where values are computed and nowhere else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.store.case_files import read_case_file
from tests.support.ran import Ran

Run = Callable[..., Ran]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "specs"
NAME = "aclnnLogisticBackward"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The operator's folder; importing its oracle writes the file `imported` beside it."""
    folder = tmp_path / "specs"
    shutil.copytree(FIXTURES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    oracle = folder / "logistic_backward.py"
    marker = f"\nfrom pathlib import Path\n\nPath({str(folder / 'imported')!r}).touch()\n"
    oracle.write_text(oracle.read_text() + marker)
    return folder


def test_nothing_but_a_run_imports_the_oracle(ran: Run, folder: Path, tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    for arguments in (
        ("ops", "--json", "--specs", str(folder)),
        ("spec", "lint", str(folder / "logistic_backward.yaml")),
        ("spec", "show", NAME, "--specs", str(folder)),
        ("clauses", NAME, "--json", "--specs", str(folder)),
        ("cases", NAME, "--specs", str(folder), "-n", "12", "-o", str(cases)),
        ("validate", str(cases), "--json", "--specs", str(folder)),
    ):
        assert main(arguments) == 0, arguments
        assert not (folder / "imported").exists(), arguments
    assert len(list(read_case_file(cases))) > 24
    run = ran("run", "--adapter", "reference", "--specs", str(folder), "--cases", str(cases))
    assert run.code == 0, run.out + run.err
    assert (folder / "imported").exists()


@pytest.mark.slow
def test_a_whole_run_and_its_replay(ran: Run, folder: Path) -> None:
    for product in ("atlas-a2", "atlas-training"):
        run = ran("run", "logistic_backward", "--adapter", "reference", "--specs", str(folder), "--product", product)
        assert run.code == 0, run.out + run.err
        assert run.result["verdict"] == "conforms"
        assert run.result["passed"] > 300
    assert (run.path / "specs" / "logistic_backward.yaml").read_bytes() == (
        folder / "logistic_backward.yaml"
    ).read_bytes()
    wrong = ran("run", NAME, "--adapter", "wrong_adapters:Wrong,fault=value", "--specs", str(folder))
    assert wrong.code == 1
    files = wrong.directory.failures()
    assert files
    again = ran("replay", str(files[0]), "--adapter", "reference", "--specs", str(folder))
    assert (again.code, again.kinds) == (0, ["passed"])
    without = ran("replay", str(files[0]), "--adapter", "reference")
    assert without.code == 2
    assert f"$.operator: '{NAME}' is not known" in without.err


def test_it_stands_beside_those_that_ship(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--json", "--specs", str(folder)]) == 0
    names = [json.loads(line)["operator"] for line in capsys.readouterr().out.splitlines()]
    assert names[-1] == NAME
    assert main(["ops", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(names) - 1
