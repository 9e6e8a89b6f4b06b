from __future__ import annotations

from dataclasses import replace
from typing import Any

from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.matrix import kill_matrix_view
from aclnn_cts.reports.model.acceptance import Acceptance

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
                {"seed": 0, "found": True, "check": "values"},
                {"seed": 1, "found": True, "check": "values"},
            ],
        },
        {
            "id": "softmax.found-once",
            "operator": "aclnnSoftmaxBackward",
            "class": "memory",
            "sentence": "leaks",
            "equivalent": None,
            "by_seed": [{"seed": 0, "found": True, "check": "memory"}, {"seed": 1, "found": False, "check": ""}],
        },
        {
            "id": "softmax.allowed",
            "operator": "aclnnSoftmaxBackward",
            "class": "values",
            "sentence": "rounds otherwise",
            "equivalent": "no document forbids it",
            "by_seed": [{"seed": 0, "found": False, "check": ""}, {"seed": 1, "found": False, "check": ""}],
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


MADE_BY: dict[str, Any] = {
    "command": "aclnn-cts faults -o '<x>'",
    "harness": "0.1.0",
    "sha256": "f" * 64,
    "parts": {"judge": "a" * 64, "specs": "b" * 64},
    "checkout": {"commit": "0123456789abcdef", "clean": False},
    "started": "2026-11-22T09:00:00+00:00",
    "seconds": 3730.0,
    "environment": {
        "machine.cpu": {"value": "Abacus 9", "known": "measured"},
        "library.ray": {"value": None, "known": "unknown"},
    },
}


def credibility(faulty: Acceptance, **facts: object) -> str:
    """The section with the matrix and more facts."""
    plain = replace(faulty, clauses=(), findings=(), precision=(), checks=(), constraints=())
    shown = replace(plain, credibility=replace(faulty.credibility, matrix={**MATRIX, **facts}))
    return render_html(shown, sections=("credibility",))


def test_by_what_the_matrix_was_made_stands_beside_it(faulty: Acceptance) -> None:
    page = credibility(faulty, made_by=MADE_BY, another=[], judging_sha256="0")
    assert "aclnn-cts faults -o &#39;&lt;x&gt;&#39;" in page
    assert "begun 2026-11-22 09:00:00 (UTC), in 1 h 02 min, by" in page
    assert "of commit 0123456789ab, with changes that were not committed." in page
    assert "Abacus 9" in page
    assert "planning, generation, calls and judgement are the same, byte for byte" in page
    assert "note warn" not in page.partition('<section id="credibility"')[2]
    installed = credibility(faulty, made_by={**MADE_BY, "checkout": None}, another=[], judging_sha256="0")
    assert "of which commit is unknown" in installed


def test_another_harness_is_told_with_the_parts_that_differ(faulty: Acceptance) -> None:
    page = credibility(faulty, made_by=MADE_BY, another=["judge", "specs"], judging_sha256="0")
    warning = page.partition('<p class="note warn">')[2].partition("</p>")[0]
    assert "The harness that writes this report differs from the measured one" in warning
    assert "judge, specs" in warning
    assert page.count("(another one now)") == 2


def test_a_matrix_that_says_nothing_of_its_making_is_told_to_do_so(faulty: Acceptance) -> None:
    for facts in ({}, {"made_by": None, "another": None, "judging_sha256": ""}):
        page = credibility(faulty, **facts)
        assert "The document does not name the command, harness, time and machine of this measurement" in page
        assert "The harness that writes this report differs" not in page


def test_each_run_is_told_apart_by_what_judged_in_it(faulty: Acceptance) -> None:
    [run] = faulty.runs
    mine = next(value for name, value, _ in run.environment if name == "harness.judging_sha256")
    for judging, said in (
        (mine, f"Run {run.name} was judged by the measured harness."),
        ("0", f"Run {run.name} was judged by another harness than the measured one."),
        ("", f"Whether run {run.name} was judged by the measured harness is unknown."),
    ):
        assert said in credibility(faulty, made_by=MADE_BY, another=[], judging_sha256=judging)


def test_the_page_shows_the_matrix_or_says_that_there_is_none(faulty: Acceptance) -> None:
    plain = replace(faulty, clauses=(), findings=(), precision=(), checks=(), constraints=())
    page = render_html(
        replace(plain, credibility=replace(faulty.credibility, matrix=MATRIX)), sections=("credibility",)
    )
    assert "1 of 2 faults are found with every seed" in page
    assert "softmax.found-once" in page
    assert "&lt;b&gt;wrong&lt;/b&gt;" in page
    page = render_html(replace(plain, credibility=replace(faulty.credibility, matrix=None)), sections=("credibility",))
    assert "ships no kill matrix" in page
