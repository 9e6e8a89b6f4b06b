"""Whatever names what was run on says where it was a software device."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from aclnn_cts.cli.campaign_screen import show_campaign_end, status_document
from aclnn_cts.cli.main import main
from aclnn_cts.cli.output import console
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Result
from aclnn_cts.reports.exporters import csv_bytes, junit_bytes
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.markdown import markdown_bytes, outline_bytes
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.runs import trial_rows
from aclnn_cts.reports.text import phrase
from aclnn_cts.reports.workbook import workbook_bytes
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.manifest import adapter_facts
from aclnn_cts.store.run_directory import RunDirectory
from tests.adapters.loopback.support import home, needs_compiler
from tests.cli.test_campaign_screen import a_status, shown
from tests.reports.synthetic import record, softmax_case, synthetic_run

FEW = ("--max-cases", "2")
DEVICE = "software device (loopback) standing in for Ascend910B3, atlas-a2; no hardware"
FACTS = {
    "implementation": "software device (loopback)",
    "description": DEVICE,
    "device": "software device standing in for Ascend910B3",
    "product": "atlas-a2 (software device)",
}
OTHER = {"implementation": "CANN", "description": "Ascend910B3 (Atlas A2)", "product": "atlas-a2"}


def made(path: Path, facts: dict[str, str]) -> Path:
    """A run of `cann`, whatever was behind it."""
    records = [
        record(softmax_case(1)),
        record(softmax_case(2), result=Result.FAILED, kind=Fault.VALUE, output="out", error_ratio=2.0),
    ]
    return synthetic_run(path, records, changes={"adapter": "cann"}, environment=adapter_facts(facts))


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("stand-in") / "run", FACTS)


@pytest.fixture(scope="module")
def report(stand_in: Path) -> Acceptance:
    return acceptance([stand_in])


def unmarked(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\\(.)", r"\1", re.sub(r"<[^>]+>", " ", text)))


FORMS: dict[str, Callable[[Acceptance], str]] = {
    "html": lambda report: render_html(report, sections=("cover",)),
    "markdown": lambda report: markdown_bytes(report, None, "en").decode(),
    "markdown in Chinese": lambda report: markdown_bytes(report, None, "zh").decode(),
    "outline": lambda report: outline_bytes(report, None, "zh").decode(),
    "junit": lambda report: junit_bytes(report, None, "en").decode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_product_never_stands_alone(form: str, report: Acceptance) -> None:
    text = unmarked(FORMS[form](report)) if form != "junit" else FORMS[form](report)
    assert DEVICE in text
    assert "atlas-a2 (software device)" in text or "atlas-a2（软件设备）" in text


def test_the_page_says_so_on_its_cover_and_in_its_bar_in_both_languages(report: Acceptance) -> None:
    page = render_html(report, sections=("cover",))
    bar = page.partition('<header class="bar">')[2].partition("</header>")[0]
    assert "software device" in bar
    assert "软件设备" in bar
    assert "no hardware took part" in page
    assert "未使用硬件" in page


def test_the_product_of_every_trial_says_so(stand_in: Path, report: Acceptance) -> None:
    rows = list(trial_rows([stand_in]))
    assert {row.product for row in rows} == {"atlas-a2 (software device)"}
    assert csv_bytes(report, lambda: rows, "en").decode("utf-8-sig").count("atlas-a2 (software device)") == len(rows)


def test_the_workbook_says_so(stand_in: Path, report: Acceptance) -> None:
    content = workbook_bytes(report, lambda: trial_rows([stand_in]), "en")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        strings = [node.text for node in ET.fromstring(archive.read("xl/sharedStrings.xml")).iter() if node.text]
    assert DEVICE in strings
    assert "atlas-a2" not in strings


def test_the_suites_of_junit_have_it_as_a_property(report: Acceptance) -> None:
    root = ET.fromstring(junit_bytes(report, None, "en"))
    for suite in root.findall("testsuite"):
        properties = {node.attrib["name"]: node.attrib["value"] for node in suite.findall("properties/property")}
        assert properties["ran on"] == DEVICE
        assert properties["product"] == "atlas-a2 (software device)"


def test_a_device_is_not_called_a_software_device(tmp_path: Path) -> None:
    report = acceptance([made(tmp_path / "run", OTHER)])
    assert not report.runs[0].software
    for form in FORMS.values():
        assert "software device" not in unmarked(form(report))
        assert "Ascend910B3" in unmarked(form(report)) or "Ascend910B3" in form(report)


def test_a_comparison_says_so_of_the_side_that_it_is(
    stand_in: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = made(tmp_path / "other", OTHER)
    assert main(["compare", str(stand_in), str(other)]) == 0
    first, second = " ".join(capsys.readouterr().out.split()).partition("B: ")[::2]
    assert "of cann for atlas-a2 (software device)," in first
    assert f"ran on {DEVICE}" in first
    assert "of cann for atlas-a2, " in second
    assert "ran on Ascend910B3 (Atlas A2)" in second
    assert main(["compare", "--json", str(stand_in), str(other)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["before"]["software"], document["after"]["software"]) == (True, False)
    assert DEVICE in render_html(acceptance([other], baseline=stand_in), sections=("comparison",)).partition("<main")[2]


def test_a_campaign_s_screen_and_progress_say_so() -> None:
    status = replace(a_status(operators=5, findings=3, slots=2), ran_on=DEVICE)
    assert any(line.startswith("on software device (loopback)") for line in shown(status, 80, 24))
    assert status_document(status)["ran_on"] == DEVICE


@needs_compiler
def test_a_library_that_turns_out_to_be_ours_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["softmax_backward", "--adapter", f"cann:library={home().library}", "--phases", "one", *FEW]
    assert main(["run", *words, "-o", str(tmp_path / "run")]) == 0
    assert "Ran on: software device (loopback)" in " ".join(capsys.readouterr().out.split())
    report = acceptance([tmp_path / "run"])
    assert report.runs[0].software
    assert "software device (loopback)" in markdown_bytes(report, None, "en").decode().replace("\\", "")


@needs_compiler
@pytest.mark.parametrize(("option", "said"), [("", "none: software device"), (":serial=SN-0815.7", "SN-0815.7")])
def test_a_serial_number_reaches_the_page_that_is_signed(option: str, said: str, tmp_path: Path) -> None:
    words = ["softmax_backward", "--adapter", f"loopback{option}", "--phases", "one", *FEW]
    assert main(["run", *words, "-o", str(tmp_path / "run")]) == 0
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "signing.html"), "--format", "signing"]) == 0
    page = (tmp_path / "signing.html").read_text(encoding="utf-8")
    assert f"<dt>{phrase('sign.serial', 'en')}</dt><dd>{said}</dd>" in page


def test_a_serial_number_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "softmax_backward", "--adapter", "loopback:serial=<b>"]) == 2
    assert "serial='<b>': expected a serial number of at most 64 letters" in capsys.readouterr().err


def test_a_campaign_s_end_says_so(stand_in: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = a_status(operators=1, findings=0, slots=1)
    status = replace(status, summary=RunDirectory(stand_in).summary(), ending="the time is over")
    show_campaign_end(console(), status, stand_in, load_specs())
    assert "Ran on: software device (loopback)" in capsys.readouterr().out
