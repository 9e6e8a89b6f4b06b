from __future__ import annotations

import csv
import html
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import SharedCondition
from aclnn_cts.core.verdict import Result
from aclnn_cts.reports.exporters import csv_bytes, junit_bytes
from aclnn_cts.reports.exporters import test_units as units_of
from aclnn_cts.reports.markdown import CHAPTERS, markdown_bytes, outline_bytes
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.runs import trial_rows
from aclnn_cts.reports.pull_request import pull_request_bytes
from aclnn_cts.reports.text import Language, error_ratio_text
from aclnn_cts.reports.workbook import COLUMNS, SHEETS, workbook_bytes
from aclnn_cts.store.run_directory import RunDirectory
from tests.reports.page_text import half_width
from tests.reports.synthetic import record, renamed, softmax_case, synthetic_run

FORMULA = '=HYPERLINK("http://x","y")'


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A failure whose message is a formula with characters that XML cannot hold, and one that is waived."""
    message = FORMULA + "\x00\x1b[31m | `x` [a](b) @all <img>\n\n# heading"
    failed = record(
        softmax_case(1), result=Result.FAILED, kind=Fault.VALUE, message=message, output="out", error_ratio=2.0
    )
    waived = renamed(failed, waiver="known", trial_id="ab" * 32)
    return synthetic_run(tmp_path_factory.mktemp("forms") / "run", [record(softmax_case()), failed, waived])


@pytest.fixture(scope="module")
def hostile(hostile_run: Path) -> Acceptance:
    return acceptance([hostile_run])


def test_junit_counts_what_fails_without_a_waiver(faulty: Acceptance, hostile: Acceptance) -> None:
    for report in (faulty, hostile):
        root = ET.fromstring(junit_bytes(report, None, "en"))
        assert root.tag == "testsuites"
        tests = root.findall("testsuite/testcase")
        assert int(root.attrib["tests"]) == len(tests) == len(list(units_of(report)))
        assert int(root.attrib["failures"]) == len(root.findall(".//failure")) > 0
        assert int(root.attrib["skipped"]) == len(root.findall(".//skipped"))
        for suite in root.findall("testsuite"):
            assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        assert all("replay" in (failure.text or "") for failure in root.findall(".//failure"))


def test_a_waived_failure_passes_in_junit_and_says_so(tmp_path: Path) -> None:
    failed = record(
        softmax_case(), result=Result.FAILED, kind=Fault.VALUE, output="out", waiver="known", error_ratio=2.0
    )
    report = acceptance([synthetic_run(tmp_path / "run", [failed])])
    root = ET.fromstring(junit_bytes(report, None, "en"))
    assert root.attrib["failures"] == "0"
    assert "waived by known" in (root.findtext(".//system-out") or "")
    assert "waived=1" in junit_bytes(report, None, "en").decode()


def test_a_run_that_fails_as_a_whole_is_a_test_that_fails(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", [record(softmax_case())])
    path = run / "summary.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"violations": ["waiver w expired"]}))
    assert RunDirectory(run).summary().violations == ["waiver w expired"]
    report = acceptance([run])
    root = ET.fromstring(junit_bytes(report, None, "en"))
    assert [node.attrib["message"] for node in root.findall(".//failure")] == ["waiver w expired"]
    unfinished = synthetic_run(tmp_path / "other", [record(softmax_case())], finish=False)
    root = ET.fromstring(junit_bytes(acceptance([unfinished]), None, "en"))
    assert root.attrib["errors"] == "1"


def test_csv_holds_every_trial_and_no_formula(hostile: Acceptance, hostile_run: Path) -> None:
    content = csv_bytes(hostile, lambda: trial_rows([hostile_run]), "en")
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    with RunDirectory(hostile_run).results() as results:
        assert [row["trial_id"] for row in rows] == [item.trial_id for item in results.records()]
    assert [row["result"] for row in rows] == ["passed", "failed", "failed"]
    assert rows[1]["message"].startswith("'=HYPERLINK")
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "@")) or "\0" in cell]


def test_the_workbook_has_the_ecosystem_s_sheets(hostile: Acceptance, hostile_run: Path) -> None:
    content = workbook_bytes(hostile, lambda: trial_rows([hostile_run]), "en")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        book = archive.read("xl/workbook.xml").decode()
        assert tuple(re.findall(r'<sheet name="([^"]+)"', book)) == SHEETS
        sheets = [archive.read(f"xl/worksheets/sheet{number}.xml").decode() for number in range(1, 6)]
        strings = archive.read("xl/sharedStrings.xml").decode()
        assert "hyperlink" not in "".join(sheets)
        assert not [name for name in archive.namelist() if "externalLink" in name]
    rows = [sheet.count("<row ") for sheet in sheets]
    assert rows[1:3] == [3, 3]
    assert rows[4] == len(hostile.clauses) + 1
    assert not any("<f>" in sheet for sheet in sheets)
    assert "=HYPERLINK" in strings
    assert content == workbook_bytes(hostile, lambda: trial_rows([hostile_run]), "en")


def cells(content: bytes, sheet: str) -> list[list[str]]:
    """The texts of a sheet of a workbook, line by line."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        shared = re.findall(r"<si><t[^>]*>(.*?)</t></si>", archive.read("xl/sharedStrings.xml").decode(), re.DOTALL)
        text = archive.read(f"xl/worksheets/sheet{SHEETS.index(sheet) + 1}.xml").decode()
    lines = re.findall(r"<row .*?</row>", text, re.DOTALL)
    return [
        [
            html.unescape(shared[int(value)]) if kind == "s" else value
            for kind, value in re.findall(r'<c [^>]*?(?:t="(\w)")?><v>(.*?)</v></c>', line)
        ]
        for line in lines
    ]


@pytest.mark.parametrize("sheet", ["failed cases", "precision failures"])
def test_each_failed_case_names_its_finding_and_how_to_replay_it(
    faulty: Acceptance, faulty_run: Path, sheet: str
) -> None:
    content = workbook_bytes(faulty, lambda: trial_rows([faulty_run], findings=faulty.findings), "zh")
    head, *lines = cells(content, sheet)
    assert tuple(head) == tuple(COLUMNS[sheet])
    cards = {card.id: card for card in faulty.findings}
    seen = Counter(dict(zip(head, line, strict=True))["finding"] for line in lines)
    assert seen
    assert set(seen) <= set(cards)
    if sheet == "failed cases":
        assert seen == {card.id: card.number for card in faulty.findings}
    for line in lines:
        told = dict(zip(head, line, strict=True))
        card = cards[told["finding"]]
        assert (told["severity"], told["replay"]) == (card.severity, card.replay)
        assert told["smallest case"].startswith("gradOutput = ")


def test_the_sheets_and_columns_are_those_that_the_page_on_reports_names() -> None:
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `([a-z ]+)` \| ([^|]+) \|$", page.partition("| sheet |")[2], re.MULTILINE))
    assert {name: tuple(text.split(", ")) for name, text in told.items()} == {
        name: tuple(columns) for name, columns in COLUMNS.items()
    }
    assert sum(bool(re.search(r"\w", word)) for word in page.split()) <= 1500
    # What was there first stays where it was: other programs may count columns.
    assert COLUMNS["failed cases"][:13] == (
        "run",
        "operator",
        "product",
        "check",
        "constraint",
        "kind of fault",
        "message",
        "waiver",
        "dtype",
        "mode",
        "share of the bound",
        "arguments",
        "trial",
    )


def test_a_waived_trial_is_counted_once(tmp_path: Path) -> None:
    failed = record(softmax_case(1), result=Result.FAILED, kind=Fault.VALUE, output="out", error_ratio=2.0)
    found = [record(softmax_case()), *(renamed(failed, waiver="known", trial_id=f"{n:064x}") for n in range(3))]
    run = synthetic_run(tmp_path / "run", found)
    report = acceptance([run])
    text = markdown_bytes(report, None, "en").decode()
    # Planned, passed, failed, waived, error, skipped, out of scope.
    assert "| Total | 4 | 1 | 0 | 3 | 0 | 0 | 0 |" in text
    contradicted = report.counted("contradicted")
    assert report.excused == contradicted > 0
    assert f"| {contradicted} ({contradicted} waived) |" in text
    content = workbook_bytes(report, lambda: trial_rows([run]), "en")
    summary = dict(cells(content, "summary")[1:])
    assert (summary["failed"], summary["waived"]) == ("0", "3")
    assert summary["Clauses in scope: contradicted: waived"] == str(contradicted)
    head, *lines = cells(content, "statistics")
    [values] = [line for line in lines if "values" in line]
    told = dict(zip(head, values, strict=False))
    assert (told["planned"], told["passed"], told["failed"], told["waived"]) == ("4", "1", "0", "3")
    head, *lines = cells(content, "traceability")
    place, waived = head.index("failed"), head.index("waived")
    assert ("0", "3") in {(line[place], line[waived]) for line in lines}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_markdown_is_short_and_holds_no_markup_from_outside(hostile: Acceptance, language: str) -> None:
    text = markdown_bytes(hostile, None, language).decode()  # type: ignore[arg-type]  # a language, as text
    assert len(text) < 4000
    assert "F1" in text
    assert "<img>" not in text.replace("\\<", "").replace("\\>", "") or "\\<img\\>" in text
    assert "[a](b)" not in text
    assert not re.search(r"(?<!\\)@all", text)
    assert "\n# heading" not in text
    for line in text.splitlines():
        if line.startswith("| F1"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 10
    assert ("不符合" if language == "zh" else "aclnn-cts: fails") in text


def test_a_chinese_summary_has_chinese_marks(faulty: Acceptance) -> None:
    """Below the heading, by which the file is known as ours."""
    _, _, text = markdown_bytes(faulty, None, "zh").decode().partition("\n")
    assert half_width(re.sub("`[^`]*`", "", text)) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_report_of_a_pull_request_is_a_screen(faulty: Acceptance, hostile: Acceptance, language: Language) -> None:
    for report in (faulty, hostile):
        text = pull_request_bytes(report, None, language).decode()
        assert len(text.splitlines()) <= 40
        assert "[a](b)" not in text
        assert not re.search(r"(?<!\\)@all", text)
    text = pull_request_bytes(faulty, None, language).decode()
    [run] = faulty.runs
    for part in (*(item.operator for item in faulty.operators), f" {run.manifest.seed}", run.manifest.adapter, "mixed"):
        assert part in text
    assert ("不符合" if language == "zh" else "**fails**") in text
    if language == "zh":
        assert half_width(re.sub("`[^`]*`", "", text)) == []


def test_the_report_of_a_pull_request_gives_the_worst_ratio_of_each_output(faulty: Acceptance) -> None:
    text = pull_request_bytes(faulty, None, "en").decode()
    worst = max(faulty.precision, key=lambda row: (row.largest_unwaived, row.largest))
    [first] = re.findall(r"^\| \w+\.\w+ .*$", text, re.MULTILINE)[:1]
    assert first.startswith(f"| {worst.operator.removeprefix('aclnn')}.{worst.output} | {worst.dtype}")
    assert error_ratio_text(worst.worst) in first
    rules = [row.tolerances["mixed"] for row in faulty.precision if "mixed" in row.tolerances]
    measured = next(rule for rule in rules if rule.passed + rule.failed)
    assert f" {measured.passed}/{measured.passed + measured.failed} |" in text
    assert "%" not in text


@pytest.mark.parametrize(("language", "told"), [("en", "0.9 (waived: 2)"), ("zh", "0.9（已豁免：2）")])
def test_the_worst_ratio_that_a_waiver_accepts_stands_apart(tmp_path: Path, language: Language, told: str) -> None:
    passed = record(softmax_case(), output="out", error_ratio=0.9)
    failed = record(
        softmax_case(1), result=Result.FAILED, kind=Fault.VALUE, output="out", error_ratio=2.0, waiver="known"
    )
    text = pull_request_bytes(acceptance([synthetic_run(tmp_path / "run", [passed, failed])]), None, language).decode()
    assert f"| {told} |" in text


def test_a_finding_of_the_report_of_a_pull_request_names_its_operator(faulty: Acceptance) -> None:
    lines = pull_request_bytes(faulty, None, "en").decode().partition("**Findings**")[2].splitlines()[1:]
    cards = faulty.unwaived_findings[: len(lines)]
    named = [line.partition(",")[0] for line in lines if not line.endswith("explorer.")]
    assert named == [f"- {card.operator.removeprefix('aclnn')}" for card in cards][: len(named)] != []


def test_the_report_of_a_pull_request_is_a_screen_whatever_it_is_of(faulty: Acceptance) -> None:
    [run] = faulty.runs
    text = pull_request_bytes(replace(faulty, runs=(run,) * 30), None, "en").decode()
    assert len(text.splitlines()) <= 40
    assert "- 26 more runs are in the explorer." in text


def test_the_trials_of_the_report_of_a_pull_request_add_up(faulty: Acceptance) -> None:
    text = pull_request_bytes(faulty, None, "en").decode().replace("\u202f", "")
    [line] = re.findall(r"^- Trials: (.*)$", text, re.MULTILINE)
    planned, *parts = map(int, re.findall(r"\d+", line))
    assert planned == sum(parts) == faulty.ends.cases


@pytest.mark.parametrize("form", [pull_request_bytes, markdown_bytes])
def test_a_condition_is_code_in_markdown(
    faulty: Acceptance, form: Callable[[Acceptance, object, Language], bytes]
) -> None:
    shared = SharedCondition(when="dim > 1", met=9, missed=8)
    findings = tuple(replace(card, shared=shared) for card in faulty.findings)
    text = form(replace(faulty, findings=findings), None, "en").decode()
    assert "`dim > 1` (9 calls made with it fail" in text
    assert "\\`" not in text


def test_the_outline_is_filled_in(faulty: Acceptance) -> None:
    text = outline_bytes(faulty, None, "en").decode()
    assert tuple(re.findall(r"^## \d (.+)$", text, re.MULTILINE)) == CHAPTERS
    chapters = re.split(r"^## \d .+$", text, flags=re.MULTILINE)[1:]
    assert all(len(chapter.strip()) > 20 for chapter in chapters)
    assert "不足以作为验收依据" in chapters[2]
    assert all(card.id in chapters[6] for card in faulty.findings)
    assert "本工具不对此作出结论" in chapters[4]
    assert "results.sqlite" in chapters[7].replace("\\", "")
