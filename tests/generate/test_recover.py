"""Names that no argument shows as they are: a hidden choice decides on shapes, or only a product is passed."""

from __future__ import annotations

import math
from functools import reduce

import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.generate.corner_walk import corner_cases
from aclnn_cts.generate.recover import recover_drawing, recovered_case
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.speclang.small_spec import SMALL, changed
from tests.support.drawn import drawn
from tests.support.spec_text import spec_from_text

pytestmark = pytest.mark.mechanism


def small_sampler(*changes: tuple[str, str]) -> Sampler:
    text = reduce(lambda text, change: changed(*change, text=text), changes, SMALL)
    return Sampler(spec_from_text(text, stem="small"), Target(product="atlas-a2"))


def test_a_shape_is_read_as_the_hidden_choice_that_reads_its_names_has_it() -> None:
    sampler = small_sampler(
        ('shape: "[*A, D]"', 'shape: "[*A, D] if order == 0 else [D, *A] if order == 1 else [1, D, *A]"'),
        ('items: "[D, 2]"', 'items: "[3, 2]"'),
        (
            "{name: D, in: [1, 9]}",
            '{name: D, in: [1, 7]}\n  - {name: order, one_of: [0, 1, "2 if rank(A) > 1 else 0"]}',
        ),
        ("{name: pad, in: [0, 7]}", "{name: pad, is: D}"),
    )
    orders = set()
    for case in drawn(sampler, 60, stream="order"):
        drawing = recover_drawing(sampler, case)
        assert drawing is not None
        assert drawing.names["D"] == case.arguments["pad"]
        orders.add(drawing.names["order"])
    assert orders == {0, 1, 2}


def test_a_run_of_which_only_the_number_of_elements_is_passed_has_that_many() -> None:
    sampler = small_sampler(
        ('shape: "[*A, D]"', 'shape: "[*A] if D > 4 else [*B]"'),
        ("[0, 3], sizes: [1, 9]}", "[1, 3], sizes: [1, 99999]}\n  - {run: B, length: [1, 4], numel: numel(A)}"),
        # A constant comes first, which says nothing about the run.
        ("{name: pad, in: [0, 7]}", "{name: pad, one_of: [0, 7]}\n  - {name: count, is: numel(A)}"),
        ("int8_t, role: attribute}", "int8_t, role: attribute}\n  - {name: count, type: int64_t, role: attribute}"),
    )
    for case in drawn(sampler, 60, stream="count"):
        drawing = recover_drawing(sampler, case)
        assert drawing is not None
        tensor = case.arguments["x"]
        assert isinstance(tensor, Tensor)
        assert math.prod(drawing.names["A"]) == case.arguments["count"] == tensor.numel


NOT_ALL_RECOVERED = {
    "flash_attention_unpadding_score_grad_v2",
    "flash_attention_unpadding_score_grad_v3",
    "nsa_selected_attention_grad",
    "sparse_lightning_indexer_grad_kl_loss",
}
"""Masks follow from innerPrecise in V2 and V3, also from values that no draw gives; of the others the
sizes and lengths of sequences do."""


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.stem) for spec in load_specs().values()])
def test_calls_at_corners_are_recovered_with_values_that_no_draw_gives(spec: Spec) -> None:
    sampler = Sampler(spec, Target(spec.products[0]))
    for case in corner_cases(sampler, seed=4, first=0, count=8):
        drawing = recover_drawing(sampler, case)
        if drawing is None and spec.stem in NOT_ALL_RECOVERED:
            continue
        assert drawing is not None, case.origin.corners
        made = recovered_case(sampler, drawing, case)
        assert made is not None
        assert made.arguments == case.arguments
