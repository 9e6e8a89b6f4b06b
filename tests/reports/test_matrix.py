from __future__ import annotations

from dataclasses import replace
from typing import Any

from aclnn_cts.core.acceptance import Acceptance
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.matrix import kill_matrix_view

MATRIX: dict[str, Any] = {
    "format": "aclnn-cts/kill-matrix/1",
    "profile": "standard",
    "seeds": [0, 1],
    "faults": [
        {
            "id": "softmax.found-always",
            "operator": "aclnnSoftmaxBackward",
            "class": "values",
            "sentence": "<b>wrong</b>",
            "equivalent": None,
            "by_seed": [
                {"seed": 0, "found": True, "promise": "values"},
                {"seed": 1, "found": True, "promise": "values"},
            ],
        },
        {
            "id": "softmax.found-once",
            "operator": "aclnnSoftmaxBackward",
            "class": "memory",
            "sentence": "leaks",
            "equivalent": None,
            "by_seed": [{"seed": 0, "found": True, "promise": "memory"}, {"seed": 1, "found": False, "promise": ""}],
        },
        {
            "id": "softmax.allowed",
            "operator": "aclnnSoftmaxBackward",
            "class": "values",
            "sentence": "rounds otherwise",
            "equivalent": "no document forbids it",
            "by_seed": [{"seed": 0, "found": False, "promise": ""}, {"seed": 1, "found": False, "promise": ""}],
        },
    ],
    "decoys": [{"id": "decoy.x", "operator": "aclnnSoftmaxBackward", "sentence": "right", "cases": 7, "accused": []}],
}


def test_a_fault_counts_as_found_where_every_seed_finds_it() -> None:
    view = kill_matrix_view(MATRIX)
    assert view is not None
    assert (view.found, view.counted) == (1, 2)
    assert [fault.found for fault in view.faults] == [2, 1, 0]
    assert view.faults[0].by == ("values",)


def test_the_page_shows_the_matrix_or_says_that_there_is_none(faulty: Acceptance) -> None:
    plain = replace(faulty, clauses=(), findings=(), precision=(), promises=(), constraints=())
    page = render_html(
        replace(plain, credibility=replace(faulty.credibility, matrix=MATRIX)), sections=("credibility",)
    )
    assert "1 of 2 faults are found with every seed" in page
    assert "softmax.found-once" in page
    assert "&lt;b&gt;wrong&lt;/b&gt;" in page
    page = render_html(replace(plain, credibility=replace(faulty.credibility, matrix=None)), sections=("credibility",))
    assert "ships no kill matrix" in page
