"""The edition that two parties sign: what it says, and that ten sheets hold it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from selectolax.lexbor import LexborHTMLParser

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.findings.shared_condition import SharedCondition
from aclnn_cts.reports import signing
from aclnn_cts.reports.html import evidence_digest, report_number
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import WaiverRow
from aclnn_cts.reports.signing import FINDINGS, browser, finding_lines, pdf_bytes, signing_bytes
from aclnn_cts.reports.text import LANGUAGES, Language, phrase

SHEETS = 10
SHARED = SharedCondition(
    when=" and ".join(f"dim(gradOutput, {axis}) % 16 == 0" for axis in range(8)),
    failing=5,
    of_failing=5,
    passing=0,
    of_passing=9,
)
WAIVER = WaiverRow(
    id="own.waiver",
    failures=3,
    findings=(),
    reason="the device rounds twice " * 20,
    reason_zh="设备舍入两次" * 40,
    owner="A. Person",
    expiry="2027-01-31",
    link=None,
    expired=False,
)


def large(report: Acceptance) -> Acceptance:
    """With 60 operators, 60 waivers, 300 findings and a dozen runs."""
    names = [f"aclnnOperatorNumber{number}Backward" for number in range(60)]
    wordy = replace(report.findings[0], message="one of many words " * 40)
    return replace(
        report,
        operators=tuple(replace(report.operators[0], operator=name) for name in names),
        findings=tuple(replace(wordy, id=f"F{number}") for number in range(1, 301)),
        waivers=tuple(replace(WAIVER, id=f"own.waiver.of-an-operator.{number}") for number in range(60)),
        runs=tuple(replace(report.runs[0], name=f"run-{number}") for number in range(12)),
        evidence=tuple(replace(file, run=f"run-{number}") for number in range(12) for file in report.evidence),
    )


def text_of(report: Acceptance, language: Language) -> str:
    body = LexborHTMLParser(signing_bytes(report, None, language)).body
    assert body is not None
    return body.text(separator=" ").replace("\u202f", "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_verdict_is_in_one_sentence_with_its_shares(faulty: Acceptance, language: Language) -> None:
    page = signing_bytes(faulty, None, language).decode()
    [sentence] = re.findall(r'<p class="sentence[^"]*">([^<]+)</p>', page)
    assert len(re.findall(r"[.。](?:\s|$)", sentence)) == 1
    for number in (
        faulty.ends.unwaived,
        faulty.ends.judged,
        faulty.counted("untested"),
        faulty.counted("contradicted"),
    ):
        assert str(number) in sentence.replace("\u202f", "")
    text = text_of(faulty, language)
    assert text.count(phrase(f"run_verdict.{faulty.verdict.value}", language)) >= 1
    assert f"{100 * faulty.ends.judged / faulty.ends.cases:.1f}%" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_names_number_date_editions_hashes_and_fields(faulty: Acceptance, language: Language) -> None:
    text = text_of(faulty, language)
    assert re.fullmatch(r"CTS-\d{8}-[0-9A-F]{8}", report_number(faulty))
    assert report_number(faulty) in text
    assert faulty.runs[0].manifest.started[:10] in text
    for part in faulty.operators:
        assert part.document_sha256[:16] in text
    for name in ("supplier", "customer", "contract", "delivery", "tester", "reviewer", "for_supplier", "for_customer"):
        assert phrase(f"sign.{name}", language) in text
    assert {name: value for name, value, _ in faulty.runs[0].environment}["harness.sha256"] in text
    records = next(file for file in faulty.evidence if file.what == "records")
    assert records.sha256 in text
    assert evidence_digest(faulty.evidence) in text


def test_a_changed_file_changes_the_number(faulty: Acceptance) -> None:
    first, *others = faulty.evidence
    changed = replace(faulty, evidence=(replace(first, sha256="0" * 64), *others))
    assert report_number(changed) != report_number(faulty)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_waiver_has_owner_and_date(faulty: Acceptance, language: Language) -> None:
    lapsed = replace(WAIVER, id="lapsed", expired=True)
    unknown = replace(WAIVER, id="lost", reason=None, owner=None, expiry=None)
    text = text_of(replace(faulty, waivers=(WAIVER, lapsed, unknown)), language)
    assert "A. Person" in text
    assert "2027-01-31" in text
    assert text.count(phrase("sign.expired", language)) == 1
    assert phrase("sign.unknown_waiver", language) in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_twenty_findings_are_listed_and_the_others_counted(faulty: Acceptance, language: Language) -> None:
    report = large(faulty)
    page = signing_bytes(report, None, language).decode()
    assert len(re.findall(r"<li value=", page)) == FINDINGS
    assert str(len(report.findings) - FINDINGS) in text_of(report, language)
    lines = finding_lines(report.findings[0], report, language)
    assert all(0 < cell_len(line) <= 104 for line in (lines.what, lines.when, lines.clause))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_place_of_a_finding_is_named_as_what_it_is(faulty: Acceptance, language: Language) -> None:
    card = replace(faulty.findings[0], shared=None, constraint="self.not_empty", output="out", message="word " * 99)
    lines = finding_lines(card, faulty, language)
    assert {"en": "Constraint `self.not_empty`, output `out`, ", "zh": "约束 `self.not_empty`，输出 `out`，"}[
        language
    ] in lines.when
    long = replace(card, shared=SHARED)
    assert finding_lines(long, faulty, language).when.count("`") == 2


def test_an_adapter_s_serial_number_is_shown(faulty: Acceptance) -> None:
    run = faulty.runs[0]
    known = replace(run, environment=(*run.environment, ("adapter.device_serial", "SN-0815", "measured")))
    assert "SN-0815" in text_of(replace(faulty, runs=(known,)), "en")
    assert "SN-0815" not in text_of(faulty, "en")


def test_nothing_from_outside_is_markup(faulty: Acceptance) -> None:
    card = replace(faulty.findings[0], message="<img src=x onerror=alert(1)> `<b>`")
    page = signing_bytes(replace(faulty, findings=(card,)), None, "en").decode()
    assert "<img" not in page
    assert "<b>`" not in page
    assert "<script" not in page


def sheets(content: bytes) -> int:
    """Of a PDF."""
    return len(re.findall(rb"/Type /Page\b(?!s)", content))


NO_BROWSER = pytest.mark.skipif(browser() is None, reason="Chromium is not installed (apt-get install chromium)")


@NO_BROWSER
@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("faulty", "zh"),
        ("five", "en"),
        pytest.param("faulty", "en", marks=pytest.mark.slow),
        pytest.param("five", "zh", marks=pytest.mark.slow),
    ],
)
def test_ten_sheets_hold_the_report_of_a_real_run(
    name: str, language: Language, request: pytest.FixtureRequest
) -> None:
    """Of one operator with findings, and of all operators."""
    report: Acceptance = request.getfixturevalue(name)
    assert 1 <= sheets(pdf_bytes(report, None, language)) <= SHEETS


@NO_BROWSER
@pytest.mark.parametrize("language", LANGUAGES)
def test_ten_sheets_hold_the_largest_report(faulty: Acceptance, language: Language) -> None:
    assert 2 <= sheets(pdf_bytes(large(faulty), None, language)) <= SHEETS


@NO_BROWSER
def test_the_same_report_is_printed_as_the_same_bytes(faulty: Acceptance) -> None:
    assert pdf_bytes(faulty, None, "zh") == pdf_bytes(faulty, None, "zh")


def test_without_a_browser_the_message_says_what_to_do(
    faulty: Acceptance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(signing, "browser", lambda: None)
    with pytest.raises(HarnessError, match="--format signing"):
        pdf_bytes(faulty, None, "en")
