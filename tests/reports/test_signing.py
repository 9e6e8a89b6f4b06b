"""The edition that two parties sign: what it says, and that ten sheets hold it."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

import pytest
from msgspec.structs import replace as replace_manifest
from selectolax.lexbor import LexborHTMLParser

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.finding import SharedCondition
from aclnn_cts.core.standard import STANDARDS
from aclnn_cts.reports import signing
from aclnn_cts.reports.html import evidence_digest, report_number
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import WaiverRow
from aclnn_cts.reports.model.standard_tally import StandardTally
from aclnn_cts.reports.model.standards import StandardPart, standard_part
from aclnn_cts.reports.signing import FINDINGS, browser, finding_lines, pdf_bytes, signing_bytes
from aclnn_cts.reports.text import LANGUAGES, Language, phrase
from aclnn_cts.speclang.load import load_specs

SHEETS = 10
SECTIONS = ("parties", "tested", "judged", "why", "by_operator", "waivers", "findings", "signoff", "evidence")
SHARED = SharedCondition(
    when=" and ".join(f"dim(gradOutput, {axis}) % 16 == 0" for axis in range(8)),
    met=5,
    missed=9,
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


def standard_table(report: Acceptance, name: str = "cann-l2") -> StandardPart:
    """What the signing edition says of a run by a standard that made no case of two operators."""
    tallies = {
        operator: StandardTally(
            standard=STANDARDS[name],
            spec=load_specs()["aclnnSoftmaxBackward"],
            manifest=replace_manifest(report.runs[0].manifest, settings={"max_cases": 3, "max_bytes": 1 << 30}),
            options={"dim": {f"{number}": "" for number in range(9)}},
            saved=("output",),
            documented={"a long name of an input": "uniform", "another": "softmax"},
        )
        for operator in ("aclnnOperatorNumberOneBackward", "aclnnOperatorNumberTwoBackward")
    }
    return standard_part("run-1", tallies)


def large(report: Acceptance) -> Acceptance:
    """With 60 operators, 60 waivers, 300 findings, a dozen runs and as many tables of standards."""
    names = [f"aclnnOperatorNumber{number}Backward" for number in range(60)]
    wordy = replace(report.findings[0], message="one of many words " * 40)
    return replace(
        report,
        operators=tuple(replace(report.operators[0], operator=name) for name in names),
        findings=tuple(replace(wordy, id=f"F{number}") for number in range(1, 301)),
        waivers=tuple(replace(WAIVER, id=f"own.waiver.of-an-operator.{number}") for number in range(60)),
        runs=tuple(replace(report.runs[0], name=f"run-{number}") for number in range(12)),
        standards=(standard_table(report),) * 12,
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


@pytest.mark.parametrize("name", STANDARDS)
def test_a_run_without_a_case_keeps_no_rule_of_a_standard(faulty: Acceptance, name: str) -> None:
    assert {row.rule: row.share for row in standard_table(faulty, name).rows if row.share} == {}


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
    cards = tuple(replace(faulty.findings[0], id=f"F{number}") for number in range(1, 301))
    report = replace(faulty, findings=cards)
    page = signing_bytes(report, None, language).decode()
    assert len(re.findall(r"<li value=", page)) == FINDINGS
    assert str(len(report.findings) - FINDINGS) in text_of(report, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_listed_finding_and_waiver_is_whole(faulty: Acceptance, language: Language) -> None:
    message = " ".join(f"word{number}" for number in range(120))
    card = replace(faulty.findings[0], message=message, shared=None)
    lines = finding_lines(card, faulty, language)
    operator, at = card.clauses[0]
    [clause] = [row.clause for row in faulty.clauses if (row.operator, row.clause.at) == (operator, at)]
    assert (clause.zh if language == "zh" else clause.en) in lines.clause
    assert language == "zh" or message in lines.what
    text = text_of(replace(faulty, findings=(card,), waivers=(WAIVER,)), language)
    for whole in (lines.what, lines.when, lines.clause, WAIVER.reason_zh if language == "zh" else WAIVER.reason):
        assert whole is not None
        assert re.sub(r"[`\s]", "", whole) in re.sub(r"\s", "", text)
    assert "…" not in text


def test_what_does_not_fit_is_counted_instead_of_cut(faulty: Acceptance) -> None:
    wordy = replace(faulty.findings[0], message="w" * 2000)
    page = signing_bytes(replace(faulty, findings=tuple(replace(wordy, id=f"F{n}") for n in range(20))), None, "en")
    shown = len(re.findall(rb"<li value=", page))
    assert 1 <= shown < 20
    assert page.count(b"w" * 2000) == shown
    assert f"{20 - shown} more findings".encode() in page


def test_the_share_of_what_was_judged_is_that_of_the_terminal(faulty: Acceptance, five: Acceptance) -> None:
    for report in (faulty, five):
        [run] = report.runs
        share = int(100 * run.conclusion.share + 1e-9)
        text = text_of(report, "en")
        assert re.findall(r"Judged: (?:at least )?(\d+)% of what must be judged", text) == [str(share)]
        # No other share of trials stands beside it.
        judged = text.partition("What was judged")[2].partition("Clauses of the documents")[0]
        assert re.findall(r"[\d.]+%", judged) == [f"{share}%"]


def test_every_hash_says_what_it_is_of(faulty: Acceptance) -> None:
    run = faulty.runs[0]
    sums = {
        "own_adapter.sha256": "a" * 64,
        "adapter.torch_git": "b" * 40,
        "adapter.library libopapi.so": "sha256 " + "c" * 64,
        "adapter.firmware": "d" * 64,
    }
    known = {"own_adapter.file": "/home/mine.py", **sums}
    changed = replace(run, environment=tuple((name, value, "measured") for name, value in known.items()))
    body = LexborHTMLParser(signing_bytes(replace(faulty, runs=(changed,)), None, "en"))
    rows = {
        node.text(strip=True): node.next.text(strip=True) for node in body.css(".facts dt") if node.next is not None
    }
    assert {name: value for name, value in rows.items() if re.fullmatch("[0-9a-f]{40,}", value)} == {
        "SHA-256 of the adapter's file mine.py": "a" * 64,
        "Git commit of torch": "b" * 40,
        "SHA-256 of the library libopapi.so": "c" * 64,
        "firmware, as the adapter gives it": "d" * 64,
    }


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


@pytest.mark.parametrize("name", STANDARDS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_without_cases_states_every_rule_and_does_none(faulty: Acceptance, language: Language, name: str) -> None:
    part = standard_table(faulty, name)
    text = text_of(replace(faulty, standards=(part,)), language)
    assert phrase(f"standard_name.{name}", language) in text
    assert all(phrase(f"standard_rule.{row.rule}", language).lower() in text.lower() for row in part.rows)
    assert not [row.rule for row in part.rows if row.share >= 1.0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_tables_of_standards_beyond_those_shown_are_counted(faulty: Acceptance, language: Language) -> None:
    text = text_of(replace(faulty, standards=(standard_table(faulty),) * 5), language)
    assert phrase("sign.more_standards", language, number=3) in text


@NO_BROWSER
@pytest.mark.parametrize("language", LANGUAGES)
def test_ten_sheets_hold_the_largest_report(faulty: Acceptance, language: Language) -> None:
    assert 2 <= sheets(pdf_bytes(large(faulty), None, language)) <= SHEETS


@NO_BROWSER
def test_every_sheet_has_number_verdict_and_page_and_ends_with_no_heading(faulty: Acceptance) -> None:
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed: pip install 'aclnn-cts[dev]'")
    report = large(faulty)
    content = pdf_bytes(report, None, "en")
    # Some fonts have a letter of its own for "ff".
    pages = [normalize("NFKC", page.extract_text()) for page in pypdf.PdfReader(io.BytesIO(content)).pages]
    headings = {phrase(f"sign.{name}", "en") for name in SECTIONS}
    for number, page in enumerate(pages, start=1):
        assert report_number(report) in page
        assert f"Verdict: {phrase(f'run_verdict.{report.verdict.value}', 'en')}" in page
        assert f"{number} / {len(pages)}" in page
        lines = [line.strip() for line in page.splitlines() if line.strip()]
        body = [line for line in lines if line != f"{number} / {len(pages)}"]
        assert body[-1] not in headings, number
    assert any(phrase("sign.signoff", "en") in page for page in pages)


@NO_BROWSER
def test_the_same_report_is_printed_as_the_same_bytes(faulty: Acceptance) -> None:
    assert pdf_bytes(faulty, None, "zh") == pdf_bytes(faulty, None, "zh")


def test_without_a_browser_the_message_says_what_to_do(
    faulty: Acceptance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(signing, "browser", lambda: None)
    with pytest.raises(HarnessError, match="--format signing"):
        pdf_bytes(faulty, None, "en")
