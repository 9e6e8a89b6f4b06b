"""Every view of a run counts the findings that the run has stored, and none counts its own."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from rich.console import Console

from aclnn_cts.cli.screen import show_end
from aclnn_cts.core.case import Origin
from aclnn_cts.core.faults import Fault, fault_name
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.findings import findings_of
from aclnn_cts.reports.exporters import csv_bytes, junit_bytes, sarif_bytes
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.markdown import markdown_bytes
from aclnn_cts.reports.model.acceptance import TrialRow
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.runs import trial_rows
from aclnn_cts.reports.signing import signing_bytes
from aclnn_cts.reports.workbook import workbook_bytes
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.run_directory import RunDirectory
from tests.reports.synthetic import record, softmax_case, synthetic_run
from tests.reports.test_forms import cells

EQUAL = "determinism"


def failed(seed: int, check: str = "values", kind: str = Fault.VALUE, **fields: Any) -> Record:
    constraint, dtype = fields.pop("constraint", ""), fields.pop("dtype", "FLOAT")
    origin = Origin(kind="invalid", constraint=constraint) if constraint else Origin(kind="valid")
    case = softmax_case(seed, dtype=dtype, origin=origin)
    fields = {"output": "" if constraint else "out", **fields}
    fields = {"error_ratio": 2.0, **fields}
    return record(case, check=check, result=Result.FAILED, kind=kind, constraint=constraint, **fields)


# A wrong formula in two dtypes, unequal calls, a stray write, two rules that are not enforced, and a waived fault.
SEVERAL = [
    *(failed(number, dtype=dtype) for number, dtype in enumerate(("FLOAT", "BF16") * 3)),
    failed(10, EQUAL, Fault.NONDETERMINISTIC),
    # The largest error of the finding is of a milder fault.
    failed(20, kind=Fault.MODEL, error_ratio=5.0),
    failed(11, kind=Fault.GUARD),
    failed(12, kind=Fault.GUARD, dtype="BF16"),
    failed(13, "status", Fault.STATUS, constraint="gradOutput.null"),
    failed(14, "status", Fault.STATUS, constraint="dim.range"),
    failed(15, waiver="accepted"),
    failed(16, EQUAL, Fault.NONDETERMINISTIC, waiver="accepted"),
    record(softmax_case(17)),
]
STANDING, WAIVED = 4, 1


def terminal(run: RunDirectory) -> list[str]:
    out = io.StringIO()
    show_end(Console(file=out, width=400), run.summary(), run.path, load_specs())
    return out.getvalue().splitlines()


def ids_of(texts: Sequence[str]) -> set[str]:
    return {found for text in texts for found in re.findall(r"\bF\d+\b", text)}


def test_all_views_count_the_same_findings(tmp_path: Path) -> None:
    path = synthetic_run(tmp_path / "run", SEVERAL)
    run = RunDirectory(path)
    with run.results() as results:
        stored = findings_of(results)
    assert [bool(item.waiver) for item in stored] == [False] * STANDING + [True] * WAIVED
    assert sum(item.failures for item in stored) == len(SEVERAL) - 1

    assert json.loads((path / "summary.json").read_text())["findings"] == STANDING
    lines = terminal(run)
    assert sum(bool(re.match(r" *\d+ SoftmaxBackward: ", line)) for line in lines) == STANDING
    assert sum(line == f"{WAIVED} waived finding, by waiver: accepted ({WAIVED})" for line in lines) == 1

    report = acceptance([path])
    assert sorted(card.number for card in report.findings) == sorted(item.failures for item in stored)
    named = {
        f"SoftmaxBackward: {fault_name(card.kind)}{(about := card.constraint or card.output) and f' of {about}'},"
        for card in report.unwaived_findings
    }
    assert all(any(name in line for line in lines) for name in named)
    standing = {card.id for card in report.unwaived_findings}
    assert (len(standing), len(report.findings)) == (STANDING, STANDING + WAIVED)

    def rows() -> Iterable[TrialRow]:
        return trial_rows([path], findings=report.findings)

    suites = ET.fromstring(junit_bytes(report, (), "en"))
    counted = [item.get("value") for item in suites.iterfind("testsuite/properties/property[@name='findings']")]
    assert sum(int(number or 0) for number in counted) == STANDING
    assert ids_of([item.text or "" for item in suites.iter("failure")]) == standing
    [sarif] = json.loads(sarif_bytes(report, (), "en"))["runs"]
    unsuppressed = [item for item in sarif["results"] if "suppressions" not in item]
    assert (len(unsuppressed), len(sarif["results"])) == (STANDING, STANDING + WAIVED)
    summary = {row[0]: row[1] for row in cells(workbook_bytes(report, rows, "en"), "summary")}
    assert (summary["findings"], summary["waived findings"]) == (str(STANDING), str(WAIVED))
    assert signing_bytes(report, (), "en").decode().count("<li value=") == STANDING + WAIVED
    markdown = markdown_bytes(report, (), "en").decode()
    assert f": {STANDING} not waived / {STANDING + WAIVED}" in markdown
    assert set(re.findall(r"^\| (F\d+) \|", markdown, re.MULTILINE)) == standing
    page = render_html(report, sections=("findings",))
    assert page.count("<article") == STANDING + WAIVED
    listed = list(csv.DictReader(io.StringIO(csv_bytes(report, rows, "en").decode("utf-8-sig"))))
    assert {row["finding"] for row in listed} == {card.id for card in report.findings} | {""}
    # And all spell the verdict as the terminal does.
    verdict = report.verdict.words
    assert lines[0] == f"Verdict: {verdict}."
    assert {row["verdict"] for row in listed} == {sarif["properties"]["verdict"], summary["verdict"]} == {verdict}
