"""Figures that benchmarks store, and the parts of pages that are made from them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aclnn_cts.core.errors import HarnessError
from benchmarks import bench_fuzz, overlapping, stored
from benchmarks.bench_gate import COMMANDS, measured
from benchmarks.stored import Machine, Measured, read_figures, store_figures
from docs import power
from docs.markdown import between
from docs.overlap import OVERLAP_END, OVERLAP_START, overlap_section

MACHINE = Machine(architecture="x86-64", cores=2, load=0.25)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stored, "FOLDER", tmp_path / "figures")
    return tmp_path / "figures"


def test_figures_come_back(folder: Path) -> None:
    assert read_figures("gate") is None
    given = Measured(command="make it", machine=MACHINE, rounds={"run": (3.0, 1.0, 2.0)})
    assert store_figures("gate", given) == folder / "gate.json"
    assert read_figures("gate") == given
    assert given.figure("run").median == 2.0


@pytest.mark.parametrize("content", ["", "[]", '{"command": "x"}', '{"format": "other", "command": "", "rounds": {}}'])
def test_other_files_are_refused(content: str, folder: Path) -> None:
    folder.mkdir()
    (folder / "gate.json").write_text(content)
    with pytest.raises(HarnessError, match=r"gate\.json: .*; expected"):
        read_figures("gate")


def test_a_file_of_a_later_format_is_refused(folder: Path) -> None:
    store_figures("gate", Measured(format="aclnn-cts/figures/2", command="", machine=MACHINE, rounds={}))
    with pytest.raises(HarnessError, match="format 'aclnn-cts/figures/2'; expected 'aclnn-cts/figures/1'"):
        read_figures("gate")


def test_rounds_are_in_turns_and_the_first_is_not_counted() -> None:
    asked: list[str] = []

    def seconds(words: object) -> float:
        asked.append(next(name for name, known in COMMANDS.items() if known == words))
        return float(len(asked))

    assert measured(2, seconds=seconds) == {"run": (3.0, 5.0), "pytest": (4.0, 6.0)}
    assert asked == ["run", "pytest"] * 3


def test_the_page_on_power_has_what_is_stored(folder: Path) -> None:
    assert "was not measured yet; `make bench-gate ARGS=--store` does" in power.gate_time()
    rounds = {"run": (20.0, 21.2, 30.0), "pytest": (25.0, 24.0, 90.0)}
    store_figures("gate", Measured(command="make bench-gate ARGS=--store", machine=MACHINE, rounds=rounds))
    text = power.gate_time()
    assert text.startswith("All five operators took 21 s with `aclnn-cts run --adapter loopback --profile quick")
    assert "25 s with `pytest -q -n 2" in text
    assert folder.exists()


def test_the_page_on_campaigns_has_what_is_stored(folder: Path) -> None:
    assert "Not measured yet" in "\n".join(overlap_section())
    rounds = {f"loopback, {column}": (1.0, 1.2) for column in overlapping.COLUMNS}
    store_figures("overlap", Measured(command="make bench-fuzz", machine=MACHINE, rounds=rounds))
    page = between(
        f"a\n{OVERLAP_START}\nold\n{OVERLAP_END}\nb\n", OVERLAP_START, OVERLAP_END, "\n".join(overlap_section())
    )
    assert re.search(r"^\| loopback \| 1\.10 ±9% \| 1\.10 ±9% \|$", page, re.MULTILINE)
    assert "torch" not in page
    assert page.startswith(f"a\n{OVERLAP_START}\n")
    assert page.endswith(f"{OVERLAP_END}\nb\n")
    assert folder.exists()


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a line <a> and below it a line <b>"):
        between("<b>\n<a>", "<a>", "<b>", "")


@pytest.mark.parametrize("words", [["--store", "softmax_backward"], ["--store", "--only", "memory"]])
def test_only_figures_of_all_operators_are_stored(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench_fuzz.main(words)
    assert "--store keeps the figures on overlapping of all operators" in capsys.readouterr().err
