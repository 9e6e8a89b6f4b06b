from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec

from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.kill_matrix import power_of
from aclnn_cts.selftest.kill_matrix import DecoyRow, FaultRow, KillMatrix, SeedResult
from aclnn_cts.store.provenance import MadeBy


def fault(name: str, kind: str, sentence: str, *checks: str, equivalent: str | None = None) -> FaultRow:
    """A fault with the check that found it by seed; empty where none did."""
    by_seed = tuple(
        SeedResult(seed=seed, found=bool(check), check=check, kind="", cases=1, seconds=1.0)
        for seed, check in enumerate(checks)
    )
    return FaultRow(
        id=f"softmax.{name}",
        operator="aclnnSoftmaxBackward",
        fault_class=kind,
        sentence=sentence,
        foreseen=(),
        clauses=(),
        equivalent=equivalent,
        by_seed=by_seed,
        caught_by=Counter(check for check in checks if check),
    )


MATRIX = KillMatrix(
    profile="standard",
    seeds=(0, 1),
    faults=(
        fault("found-always", "values", "<b>wrong</b>", "values", "values"),
        fault("found-once", "memory", "leaks", "memory", ""),
        fault("allowed", "values", "rounds otherwise", "", "", equivalent="no document forbids it"),
    ),
    decoys=(DecoyRow(id="decoy.x", operator="aclnnSoftmaxBackward", sentence="right", cases=7, accused=()),),
)
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


def credibility(faulty: Acceptance, matrix: KillMatrix | None, **facts: Any) -> str:
    """The section with a matrix, and more facts about it."""
    plain = replace(faulty, clauses=(), findings=(), precision=(), checks=(), constraints=())
    power = None if matrix is None else replace(power_of(matrix), **facts)
    return render_html(replace(plain, credibility=replace(faulty.credibility, power=power)), sections=("credibility",))


def made_by(**facts: object) -> KillMatrix:
    return msgspec.structs.replace(MATRIX, made_by=msgspec.convert({**MADE_BY, **facts}, MadeBy))


def test_by_what_the_matrix_was_made_stands_beside_it(faulty: Acceptance) -> None:
    page = credibility(faulty, made_by(), another=())
    assert "aclnn-cts faults -o &#39;&lt;x&gt;&#39;" in page
    assert "begun 2026-11-22 09:00:00 (UTC), in 1 h 02 min, by" in page
    assert "of commit 0123456789ab, with changes that were not committed." in page
    assert "Abacus 9" in page
    assert "planning, generation, calls and judgement are the same, byte for byte" in page
    assert "note warn" not in page.partition('<section id="credibility"')[2]
    assert "of which commit is unknown" in credibility(faulty, made_by(checkout=None), another=())


def test_another_harness_is_told_with_the_parts_that_differ(faulty: Acceptance) -> None:
    page = credibility(faulty, made_by(), another=("judge", "specs"))
    said = page.partition("The harness that writes this report differs from the measured one")[2].partition("</p>")[0]
    assert "judge, specs" in said
    assert page.count("(another one now)") == 2


def test_a_matrix_that_says_nothing_of_its_making_is_told_to_do_so(faulty: Acceptance) -> None:
    page = credibility(faulty, MATRIX)
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
        assert said in credibility(faulty, made_by(), another=(), judging_sha256=judging)


def test_the_page_shows_the_matrix_or_says_that_there_is_none(faulty: Acceptance) -> None:
    page = credibility(faulty, MATRIX)
    assert "1 of 2 faults are found with every seed" in page
    assert [text for text in ("2 / 2", "1 / 2", "0 / 2") if f">{text}</td>" not in page] == []
    assert page.count('class="n bad">1 / 2') == 1
    assert "softmax.found-once" in page
    assert "&lt;b&gt;wrong&lt;/b&gt;" in page
    assert "ships no kill matrix" in credibility(faulty, None)
