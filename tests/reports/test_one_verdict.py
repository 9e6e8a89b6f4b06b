"""Every format spells the verdict alike and counts the same findings."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.reports.exporters import csv_bytes, junit_bytes, sarif_bytes
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.markdown import markdown_bytes
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.runs import trial_rows
from aclnn_cts.reports.signing import signing_bytes
from aclnn_cts.reports.text import phrase
from aclnn_cts.reports.workbook import workbook_bytes
from aclnn_cts.store.counts import Counts


@pytest.mark.parametrize("verdict", RunVerdict)
def test_the_catalogue_spells_a_verdict_as_the_terminal_does(verdict: RunVerdict) -> None:
    assert phrase(f"run_verdict.{verdict.value}", "en") == verdict.words


def test_all_formats_say_the_same(faulty: Acceptance, faulty_run: Path) -> None:
    verdict, number = faulty.verdict.words, len(faulty.findings)

    def rows() -> object:
        return trial_rows([faulty_run], findings=faulty.findings)

    sarif = json.loads(sarif_bytes(faulty, None, "en"))["runs"][0]
    assert (sarif["properties"]["verdict"], len(sarif["results"])) == (verdict, number)
    suites = fromstring(junit_bytes(faulty, None, "en").decode())
    properties = [(item.get("name"), item.get("value")) for item in suites.iter("property")]
    assert {value for name, value in properties if name == "verdict"} == {verdict}
    assert sum(int(value or 0) for name, value in properties if name == "findings") == number
    summary = markdown_bytes(faulty, None, "en").decode()
    assert summary.startswith(f"## aclnn-cts: {verdict}\n")
    assert f"### Findings: {number} not waived / {number}" in summary
    explorer = render_html(faulty)
    assert f'lang="en">{verdict}</span>' in explorer
    assert explorer.count('<article class="finding') == number
    assert f">{verdict}</span></h2>" in signing_bytes(faulty, None, "en").decode()
    with zipfile.ZipFile(io.BytesIO(workbook_bytes(faulty, rows, "en"))) as book:  # type: ignore[arg-type]  # as above
        strings = re.findall(r"<t[^>]*>([^<]*)</t>", book.read("xl/sharedStrings.xml").decode())
    assert verdict in strings
    lines = list(csv.DictReader(io.StringIO(csv_bytes(faulty, rows, "en").decode("utf-8-sig"))))  # type: ignore[arg-type]  # as above
    assert {line["verdict"] for line in lines} == {verdict}
    assert len({line["finding"] for line in lines if line["finding"]}) == number


def test_a_waived_finding_is_suppressed_and_names_its_waiver(faulty: Acceptance) -> None:
    from dataclasses import replace  # noqa: PLC0415 - of this test alone

    card = faulty.findings[0]
    waived = replace(faulty, findings=(replace(card, waived=card.number, waivers=("own.waiver",)),))
    [result] = json.loads(sarif_bytes(waived, None, "en"))["runs"][0]["results"]
    [suppression] = result["suppressions"]
    assert suppression["status"] == "accepted"
    assert suppression["justification"].startswith("own.waiver")
    assert result["level"] in ("error", "warning")
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": card.file.partition("/")[2],
        "uriBaseId": card.file.partition("/")[0],
    }


def test_rules_are_those_that_results_name(faulty: Acceptance) -> None:
    run = json.loads(sarif_bytes(faulty, None, "en"))["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules)) > 0
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])


def test_what_was_judged_is_the_sum_of_its_parts_where_waived_twins_failed() -> None:
    counts = Counts(cases=170, passed=138, failed=29, waived=26, twin_failed=10, twin_waived=8, skipped=3)
    assert (counts.judged_unwaived, counts.judged_waived) == (1, 18)
    assert counts.judged == counts.passed + counts.judged_unwaived + counts.judged_waived
