"""Kernels with mistakes that public reports describe: what published rules accept, and what ours finds."""

from __future__ import annotations

import pytest

from aclnn_cts import judge
from benchmarks.stored import read_figures
from benchmarks.wrong_kernels import NAME, NOT_FOUND, calls
from tests.wrong_kernels.catalogue import FOLDER, RULES, WrongKernel, accepted_by, found_by, judged, wrong_kernels
from tests.wrong_kernels.usual_inputs import SHAPES

ALL = list(wrong_kernels())
_QUICK = frozenset(
    {"embedding_dense_backward.row_sum_in_bf16", "gelu_backward_v2.sign_of_the_tail", "softmax_backward.ten_calls"}
)
"""Those that a fast test looks at."""
RIGHT = {
    "avg_pool2d_backward": "avg_pool",
    "batch_norm_backward": "batch_norm",
    "embedding_dense_backward": "embedding",
    "gelu_backward_v2": "gelu",
    "group_norm_backward": "group_norm",
    "layer_norm_backward": "layer_norm",
    "leaky_relu_backward": "leaky_relu",
    "nll_loss_backward": "nll_loss",
    "rms_norm_grad": "rms_norm",
    "rotary_position_embedding_grad": "rotary",
    "smooth_l1_loss_backward": "smooth_l1",
    "softmax_backward": "softmax_backward",
    "upsample_bilinear2d_backward_v2": "bilinear",
}
"""What computes the gradient of an operator without a mistake; max pooling has none."""


def named(kernel: WrongKernel) -> str:
    return kernel.id


def test_there_are_twenty_kernels_each_with_a_report() -> None:
    assert len(ALL) >= 20
    assert [kernel.id for kernel in ALL if not kernel.reports[0] or not kernel.sentence] == []
    assert {kernel.operator for kernel in ALL} == set(SHAPES)


@pytest.mark.parametrize("kernel", ALL, ids=named)
def test_rules_say_of_a_kernel_what_the_page_says(kernel: WrongKernel) -> None:
    figures = read_figures(NAME)
    assert figures is not None
    stored = {rule: bool(figures.rounds[f"accepted by {rule}, {kernel.id}"][0]) for rule in RULES}
    assert accepted_by(kernel) == stored


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "function"), RIGHT.items())
def test_what_the_kernels_spoil_is_right(operator: str, function: str) -> None:
    judgement = judge(f"{FOLDER / 'right.py'}:{function}", operator, seed=7, budget="60s")
    assert judgement.ok, judgement.reason


@pytest.mark.parametrize("kernel", [kernel for kernel in ALL if kernel.id in _QUICK], ids=named)
def test_a_wrong_kernel_fails(kernel: WrongKernel) -> None:
    judgement = judged(kernel, seed=7)
    assert judgement.verdict == "fails", judgement.reason


@pytest.mark.parametrize("kernel", ALL, ids=named)
def test_a_kernel_that_is_found_has_its_smallest_call(kernel: WrongKernel) -> None:
    figures = read_figures(NAME)
    assert figures is not None
    ends = [name.partition(": ") for name in figures.rounds if name.endswith(f", {kernel.id}")]
    found = any(profile in ("quick", "standard") and not end.startswith(NOT_FOUND) for profile, _, end in ends)
    assert (f"`{kernel.id}`" in [row[0] for row in calls(figures.rounds)]) == found


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ALL, ids=named)
def test_what_the_page_says_is_found_is_found(kernel: WrongKernel) -> None:
    """With another seed than those of the page."""
    figures = read_figures(NAME)
    assert figures is not None
    missed = any(f"{profile}: {NOT_FOUND}, {kernel.id}" in figures.rounds for profile in ("quick", "standard"))
    found = found_by(judged(kernel, seed=99))
    assert found not in ("inconclusive", NOT_FOUND) or missed


@pytest.mark.parametrize("kernel", [kernel for kernel in ALL if kernel.id in _QUICK], ids=named)
def test_a_mistake_is_no_failure_of_the_kernel_to_run(kernel: WrongKernel) -> None:
    assert found_by(judged(kernel, seed=1)) not in ("rejected", "crash", "hang", "shape")
