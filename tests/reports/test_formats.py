"""JUnit XML and SARIF against the rules of their formats; the rules themselves refuse what is wrong."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urljoin, urlsplit
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Result, SkipReason
from aclnn_cts.reports.exporters import junit_bytes, sarif_bytes
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.text import LANGUAGES, Language
from tests.reports.junit_rules import problems
from tests.reports.synthetic import record, softmax_case, synthetic_run

SARIF = json.loads((Path(__file__).parent / "sarif.schema.json").read_text(encoding="utf-8"))
_PART = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*"
"""The characters of RFC 3986 beside brackets, which hosts alone have."""
_FORMATS = jsonschema.FormatChecker(())
"""jsonschema's own looks at these formats only where further packages are installed."""
_FORMATS.checks("uri-reference")(lambda text: re.fullmatch(rf"{_PART}(?:#{_PART})?", text) is not None)
_FORMATS.checks("uri")(lambda text: re.fullmatch(rf"[A-Za-z][A-Za-z0-9+.-]*:{_PART}(?:#{_PART})?", text) is not None)
_FORMATS.checks("date-time", raises=ValueError)(
    lambda text: datetime.fromisoformat(text.replace("Z", "+00:00")) is not None
)
SARIF_VALIDATOR = jsonschema.Draft4Validator(SARIF, format_checker=_FORMATS)


@pytest.fixture(scope="module")
def reports(faulty: Acceptance, tmp_path_factory: pytest.TempPathFactory) -> list[Acceptance]:
    """One with failures of a real run, one of every end there is, one that failed as a whole and never ended."""
    folder = tmp_path_factory.mktemp("formats")
    message = "\x00\x1b[31m]]> <b>&amp; \ud800 \u4f60 \U0001f600"
    failed: dict[str, Any] = {
        "result": Result.FAILED,
        "kind": Fault.VALUE,
        "output": "out",
        "error_ratio": float("inf"),
    }
    every = [
        record(softmax_case(1)),
        record(softmax_case(2), message=message.replace("\ud800", "\ufffe"), **failed),
        record(softmax_case(3), check="memory", waiver="known", **failed),
        record(softmax_case(4), check="example", result=Result.SKIPPED, kind=SkipReason.OPEN),
        record(softmax_case(5), check="boundary", result=Result.ERROR, message="the harness failed"),
    ]
    broken = synthetic_run(folder / "broken", [record(softmax_case(1))], finish=False)
    return [faulty, acceptance([synthetic_run(folder / "every", every)]), acceptance([broken])]


def test_junit_keeps_to_the_rules_of_its_format(reports: list[Acceptance]) -> None:
    ends = set()
    for report in reports:
        root = ET.fromstring(junit_bytes(report, None, "en"))
        assert problems(root) == []
        ends |= {node.tag for node in root.iter()}
    assert ends >= {"failure", "error", "skipped", "system-out"}


WRONG: dict[str, Callable[[ET.Element], object]] = {
    "a count": lambda root: root.set("failures", "99"),
    "no number": lambda root: root[0].set("tests", "many"),
    "no name": lambda root: root[0].attrib.pop("name"),
    "an unknown attribute": lambda root: root[0].set("colour", "red"),
    "an unknown element": lambda root: ET.SubElement(root[0], "note"),
    "a suite in a test": lambda root: ET.SubElement(root[0].findall("testcase")[0], "testsuite"),
    "two ends": lambda root: [
        ET.SubElement(root[0].findall("testcase")[0], tag, type="x") for tag in ("error", "failure")
    ],
    "the same test twice": lambda root: root[0].append(root[0].findall("testcase")[0]),
    "properties behind the tests": lambda root: ET.SubElement(root[0], "properties"),
    "no moment": lambda root: root[0].set("timestamp", "today"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_rules_of_junit_refuse(name: str, reports: list[Acceptance]) -> None:
    root = ET.fromstring(junit_bytes(reports[1], None, "en"))
    WRONG[name](root)
    assert problems(root) != []


@pytest.mark.parametrize("language", LANGUAGES)
def test_sarif_keeps_to_its_schema(language: Language, reports: list[Acceptance]) -> None:
    jsonschema.Draft4Validator.check_schema(SARIF)
    levels, suppressed = set(), 0
    for report in reports:
        document = json.loads(sarif_bytes(report, None, language))
        SARIF_VALIDATOR.validate(document)
        for result in document["runs"][0]["results"]:
            levels.add(result["level"])
            suppressed += "suppressions" in result
    assert levels == {"error"}
    assert suppressed == 1


@pytest.mark.parametrize("name", ["run", "a run", "100%41 #1?", "运行", os.fsdecode(b"\xff")])
def test_the_places_in_sarif_lead_to_the_files_whatever_the_run_is_called(name: str, tmp_path: Path) -> None:
    failed = record(softmax_case(1), result=Result.FAILED, kind=Fault.VALUE, output="out")
    report = acceptance([synthetic_run(tmp_path / "made", [failed]).rename(tmp_path / name)])
    document = json.loads(sarif_bytes(report, None, "en"))
    SARIF_VALIDATOR.validate(document)
    [run] = document["runs"]
    [result] = run["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    uri = urljoin(run["originalUriBaseIds"][place["uriBaseId"]]["uri"], place["uri"])
    path = unquote_to_bytes(urlsplit(uri).path)
    assert path == os.fsencode(next((tmp_path / name / "failures").glob("*.json")))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), "2.0.0"),
        (("runs", 0, "colour"), "red"),
        (("runs", 0, "tool"), {}),
        (("runs", 0, "invocations", 0, "executionSuccessful"), "yes"),
        (("runs", 0, "results", 0, "level"), "major"),
        (("runs", 0, "results", 0, "message"), {}),
        (("runs", 0, "results", 0, "ruleIndex"), -2),
        (("runs", 0, "results", 0, "occurrenceCount"), 0),
        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "artifactLocation", "uri"), 1),
        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "artifactLocation", "uri"), "a file.json"),
        (("runs", 0, "originalUriBaseIds"), {"run": "file:///runs/"}),
        (("runs", 0, "invocations", 0, "startTimeUtc"), "today"),
        (("runs", 0, "results", 0, "suppressions"), [{"kind": "waived"}]),
    ],
)
def test_the_schema_of_sarif_refuses(path: tuple[Any, ...], value: object, reports: list[Acceptance]) -> None:
    document = json.loads(sarif_bytes(reports[1], None, "en"))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert not SARIF_VALIDATOR.is_valid(document)
