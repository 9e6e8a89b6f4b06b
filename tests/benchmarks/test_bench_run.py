"""`make bench-run` measures the code of the tree that it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclnn_cts.speclang.load import load_specs
from benchmarks.bench_run import ALONE, Measure, main, measured
from benchmarks.same_verdicts.trees import Tree

PROGRAM = 'import sys\nprint("RESULT verdict=conforms cases={}")\nsys.exit({})\n'


def tree_of(folder: Path, *, cases: int, code: int = 0) -> Tree:
    package = folder / "aclnn_cts"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(PROGRAM.format(cases, code))
    return Tree(name=folder.name, folder=folder)


def test_each_tree_runs_its_own_code_in_turns(tmp_path: Path) -> None:
    trees = [tree_of(tmp_path / "new", cases=7), tree_of(tmp_path / "base", cases=5, code=3)]
    cases = Measure("cases", ("run",), lambda ended: float(ended.cases), ".0f", "")
    assert measured(trees, [cases], 2) == {"new": {"cases": (7.0, 7.0)}, "base": {"cases": (5.0, 5.0)}}


def test_a_command_that_ends_in_an_error_is_no_figure(tmp_path: Path) -> None:
    cases = Measure("cases", ("run",), lambda ended: float(ended.cases), ".0f", "")
    with pytest.raises(SystemExit, match=r"broken: aclnn-cts run.*exit code 2"):
        measured([tree_of(tmp_path / "broken", cases=1, code=2)], [cases], 1)


def test_a_word_in_no_figure_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "nonsense"])
    assert "no figure has this word in its name" in capsys.readouterr().err


def test_the_operators_that_run_alone_are_known() -> None:
    assert set(ALONE) <= {spec.stem for spec in load_specs().values()}
