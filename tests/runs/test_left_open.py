"""What documents leave open is told where a run meets it, and is no failure: success on an open call, nan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.core.verdict import Observation, OpenReason
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.markdown import markdown_bytes
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.clause_evidence import ClauseEvidence
from aclnn_cts.reports.model.clause_verdicts import UntestedReason
from aclnn_cts.speclang.load import load_specs
from tests.support.ran import Ran

Run = Callable[..., Ran]


def cdist(*, distance: float = 0.0, p: float = 2.0, dtype: str = "FLOAT") -> dict[str, object]:
    """Two points, and the distance between them as it is given."""

    def tensor(dtype: str, shape: list[int], *values: float) -> dict[str, object]:
        held = {"data": {"values": list(values)}} if values else {}
        return {"tensor": {"shape": shape, "dtype": dtype, "format": "ND", **held}}

    arguments = {
        "grad": tensor("FLOAT", [2, 1], 1.0, 1.0),
        "x1": tensor("FLOAT", [2, 1], 3.0, 4.0),
        "x2": tensor("FLOAT", [1, 1], 1.0),
        "cdist": tensor("FLOAT", [2, 1], distance, 3.0),
        "p": {"double": p},
        "out": tensor(dtype, [2, 1]),
    }
    return {
        "format": "aclnn-cts/case/1",
        "operator": "aclnnCdistBackward",
        "product": "atlas-a2",
        "arguments": arguments,
    }


def leaky_relu(dtype: str, out: str) -> dict[str, object]:
    def tensor(dtype: str, *values: float) -> dict[str, object]:
        held = {"data": {"values": list(values)}} if values else {}
        return {"tensor": {"shape": [2], "dtype": dtype, **held}}

    arguments = {
        "gradOutput": tensor(dtype, 1.0, 2.0),
        "self": tensor(dtype, 1.0, -2.0),
        "negativeSlope": {"scalar": {"dtype": "FLOAT", "value": 0.5}},
        "selfIsResult": {"bool": False},
        "out": tensor(out),
    }
    return {
        "format": "aclnn-cts/case/1",
        "operator": "aclnnLeakyReluBackward",
        "product": "atlas-a2",
        "arguments": arguments,
    }


@pytest.mark.parametrize(
    ("case", "kind", "place"),
    [
        (cdist(distance=0.0, p=1.0), Observation.OPEN_NAN, "out"),
        (cdist(distance=2.0, p=-1.0), Observation.OPEN_CALL, "p.positive"),
    ],
)
def test_left_open_is_a_line_on_the_terminal_and_never_a_failure(
    ran: Run, tmp_path: Path, case: dict[str, object], kind: Observation, place: str
) -> None:
    (tmp_path / "case.json").write_text(json.dumps(case))
    run = ran("run", "--adapter", "wrong_adapters:Lenient", "--cases", "case.json", "--strict-limits")
    assert run.code != 1, run.out
    [seen] = run.directory.summary().operators["aclnnCdistBackward"].observed.values()
    assert (seen.kind, seen.constraint, seen.number) == (kind.value, place, 1)
    [line] = [text for text in run.out.splitlines() if kind.value in text]
    assert line.startswith("Left open by the documents")
    assert f"| {place} | 1 |" in markdown_bytes(acceptance([run.path]), None, "en").decode().replace("\\", "")


def test_values_are_no_observation(ran: Run, tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(json.dumps(cdist(distance=2.0)))
    run = ran("run", "--adapter", "wrong_adapters:Lenient", "--cases", "case.json")
    assert not run.directory.summary().operators["aclnnCdistBackward"].observed
    assert "Left open" not in run.out


def test_verbose_run_shows_open_share_by_dtype_and_check(ran: Run, tmp_path: Path) -> None:
    (tmp_path / "case.jsonl").write_text("".join(json.dumps(cdist(distance=value)) + "\n" for value in (0.0, 2.0)))
    run = ran("run", "--adapter", "wrong_adapters:Lenient", "--cases", "case.jsonl", "-v")
    [share] = run.directory.summary().openness
    assert (share.operator, share.dtype, share.check) == ("aclnnCdistBackward", "FLOAT", "values")
    # One of two elements of the first call, and none of the second.
    assert (share.open.calls, share.open.open, share.open.elements) == (2, 1, 4)
    assert share.open.share == 0.25
    assert share.open.why == {OpenReason.NO_VALUE: 1}
    assert "25.0%" in run.out
    assert OpenReason.NO_VALUE in " ".join(run.out.split())
    assert (
        "Left open by the documents, of the calls"
        not in ran("run", "--adapter", "wrong_adapters:Lenient", "--cases", "case.jsonl").out
    )
    report = acceptance([run.path])
    assert [row.open.open for row in report.openness] == [1]
    assert "25.0%" in markdown_bytes(report, None, "en").decode().replace("\\", "")
    assert '<table class="openness">' in render_html(report, sections=["precision"])


def test_open_dtype_leaves_clauses_that_only_calls_of_another_dtype_meet(ran: Run, tmp_path: Path) -> None:
    cases = [leaky_relu("FLOAT16", "FLOAT16"), leaky_relu("FLOAT16", "FLOAT")]
    (tmp_path / "case.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    records = ran("run", "--adapter", "reference", "--cases", "case.jsonl").records
    specs = load_specs()
    speakers = ClauseEvidence(specs["aclnnLeakyReluBackward"], specs.interface_clauses)
    for record in records:
        speakers.add(record)
    speakers.openness["FLOAT16"].count_call(opened=9, elements=10, why={})
    on_all, on_float = [
        item for item in speakers.spec.clauses if item.check == "values" and item.at in ("function.1", "params.out.3")
    ]
    assert (speakers.is_mostly_open(on_all), speakers.is_mostly_open(on_float)) == (True, False)


@pytest.mark.parametrize(("distances", "verdict"), [((0.0, 2.0), "untested"), ((2.0, 2.5), "met")])
def test_no_clause_on_values_is_met_where_a_fifth_of_a_dtype_is_open(
    ran: Run, tmp_path: Path, distances: tuple[float, ...], verdict: str
) -> None:
    (tmp_path / "case.jsonl").write_text("".join(json.dumps(cdist(distance=value)) + "\n" for value in distances))
    run = ran("run", "--adapter", "wrong_adapters:Lenient", "--cases", "case.jsonl")
    clauses = acceptance([run.path]).clauses
    rows = [row for row in clauses if (row.operator, row.clause.at) == ("aclnnCdistBackward", "function.2")]
    assert [row.verdict for row in rows] == [verdict]
    assert {row.reason for row in rows} == {UntestedReason.OPEN_ELEMENTS if verdict == "untested" else ""}
