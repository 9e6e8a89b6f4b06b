"""Corner mutants: a plan finds them, and a corner is missing where the outputs of its calls are right."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.trials.plan import PROFILES
from benchmarks import corner_mutants, stored
from benchmarks.corner_mutants import corner_rows, listed_corners, main, missing_corners
from benchmarks.stored import read_figures

QUICK = PROFILES["quick"]


@pytest.fixture(scope="module")
def specs() -> Specs:
    return load_specs()


@pytest.mark.parametrize("operator", ["aclnnThresholdBackward", "aclnnSigmoidBackward"])
def test_a_quick_plan_finds_every_corner_of_a_small_operator(operator: str, specs: Specs) -> None:
    assert listed_corners(specs[operator], QUICK)
    assert missing_corners(specs[operator], QUICK, specs) == {}


def test_a_corner_without_calls_is_named(specs: Specs) -> None:
    missing = missing_corners(specs["aclnnUpsampleLinear1dBackward"], QUICK, specs)
    assert {corner: ends.total() for corner, ends in missing.items()} == {"sizes: all 32 or more": 0}


def test_a_corner_at_which_outputs_are_right_is_missing(specs: Specs) -> None:
    missing = missing_corners(specs["aclnnThresholdBackward"], QUICK, specs, trigger="dtype(gradOutput) != BF16")
    assert set(missing) == {"dtypes: BF16"}
    assert missing["dtypes: BF16"][corner_mutants.PASSED]


def test_outputs_that_are_right_everywhere_show_no_corner(specs: Specs) -> None:
    spec = specs["aclnnThresholdBackward"]
    assert set(missing_corners(spec, QUICK, specs, trigger="numel(self) < 0")) == set(listed_corners(spec, QUICK))


def test_a_call_without_values_is_no_survivor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    assert main(["--profile", "quick", "--op", "layer_norm_backward", "--store"]) == 0
    figures = read_figures(corner_mutants.NAMES["quick"])
    assert figures is not None
    whole, of_operator = corner_rows(figures.rounds)
    assert whole[0] == "all 1"
    assert "`mask outputMask: 000` (no values, " in of_operator[-1]
    assert of_operator[-1] in capsys.readouterr().out


def test_a_mutant_that_a_standard_plan_should_find_decides_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: dict[str, Counter[str]] = {}
    monkeypatch.setattr(corner_mutants, "missing_corners", lambda *_: missing)
    for ends, quick, standard in (({}, 0, 1), ({"open": 3}, 0, 0), ({"open": 3, "passed": 1}, 1, 1)):
        missing["dim: 2"] = Counter(ends)
        for profile, code in (("quick", quick), ("standard", standard)):
            assert main(["--profile", profile, "--op", "softmax_backward"]) == code


def test_an_unknown_operator_is_told_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--op", "nosuch"])
    assert ended.value.code == 2
    assert "nosuch" in capsys.readouterr().err
