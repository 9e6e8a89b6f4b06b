"""Kernels of attention and of convolutions: right ones are silent, and mistakes are found."""

from __future__ import annotations

import pytest

from aclnn_cts import judge
from benchmarks.kernel_mistakes import GOALS, NAME, summary
from benchmarks.stored import read_figures
from tests.kernel_mistakes.catalogue import FOLDER, RIGHT, Mistake, alarms, judged, mistakes

ALL = list(mistakes())
PAIRS = [(kernel, operator) for kernel, operators in RIGHT.items() for operator in operators]
FOUND_BY_QUICK = frozenset(
    {
        "attention.WrongGroupOfKeyGradient",
        "attention.DropoutBitsReversed",
        "attention.LastKeyBlockDropped",
        "convolution.DilationOfOneAxis",
        "convolution.OutputPaddingIgnored",
    }
)


def test_there_are_forty_mistakes_each_with_a_sentence() -> None:
    assert len(ALL) >= 40
    assert [mistake.id for mistake in ALL if not mistake.sentence.endswith(".")] == []
    assert {mistake.id for mistake in ALL} >= FOUND_BY_QUICK


@pytest.mark.parametrize(("kernel", "operator"), PAIRS)
def test_no_fault_is_found_in_a_right_kernel(kernel: str, operator: str) -> None:
    found, compared = alarms(kernel, operator, calls=16, seed=1, profile="quick")
    assert found == []
    assert compared > 10


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "operator"), PAIRS)
def test_no_fault_is_found_in_five_hundred_calls_of_a_right_kernel(kernel: str, operator: str) -> None:
    found, compared = alarms(kernel, operator, calls=500, seed=2)
    assert found == []
    assert compared > 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "operator"),
    [
        ("attention.py:Attention", "flash_attention_score_grad_v2"),
        ("convolution.py:Convolution", "convolution_backward"),
    ],
)
def test_a_right_kernel_conforms(kernel: str, operator: str) -> None:
    judgement = judge(str(FOLDER / f"{kernel}.run"), operator, seed=3, budget="120s")
    assert judgement.ok, judgement.reason


@pytest.mark.slow
@pytest.mark.parametrize("mistake", [item for item in ALL if item.id in FOUND_BY_QUICK], ids=lambda item: item.id)
def test_quick_finds_a_mistake(mistake: Mistake) -> None:
    assert judged(mistake, seed=5, profile="quick").verdict == "fails"


def test_the_stored_figures_are_of_all_mistakes_and_say_how_many_are_found() -> None:
    figures = read_figures(NAME)
    assert figures is not None
    for profile in GOALS:
        assert {name for name in figures.rounds if name.startswith(f"{profile}, ")} == {
            f"{profile}, {mistake.id}" for mistake in ALL
        }
    assert len(list(summary(figures.rounds))) == len(GOALS)
