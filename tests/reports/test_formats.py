"""JUnit XML, CTRF and SARIF against the rules of their formats; the rules themselves refuse what is wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Result, Skip
from aclnn_cts.reports.junit import ctrf_bytes, junit_bytes, sarif_bytes
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.text import LANGUAGES, Language
from tests.reports.junit_rules import problems
from tests.reports.synthetic import record, softmax_case, synthetic_run

SCHEMA = json.loads((Path(__file__).parent / "ctrf.schema.json").read_text(encoding="utf-8"))
SARIF = json.loads((Path(__file__).parent / "sarif.schema.json").read_text(encoding="utf-8"))
SARIF_VALIDATOR = jsonschema.Draft4Validator(SARIF, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)


@pytest.fixture(scope="module")
def reports(faulty: Acceptance, tmp_path_factory: pytest.TempPathFactory) -> list[Acceptance]:
    """One with failures of a real run, one of every end there is, one that failed as a whole and never ended."""
    folder = tmp_path_factory.mktemp("formats")
    message = "\x00\x1b[31m]]> <b>&amp; \ud800 \u4f60 \U0001f600"
    failed: dict[str, Any] = {"result": Result.FAILED, "kind": Fault.VALUE, "output": "out", "share": float("inf")}
    every = [
        record(softmax_case(1)),
        record(softmax_case(2), message=message.replace("\ud800", "\ufffe"), **failed),
        record(softmax_case(3), check="memory", waiver="known", **failed),
        record(softmax_case(4), check="example", result=Result.SKIPPED, kind=Skip.OPEN),
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


def test_ctrf_keeps_to_its_schema(reports: list[Acceptance]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    states = set()
    for report in reports:
        document = json.loads(ctrf_bytes(report, None, "en"))
        jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
        states |= {test["status"] for test in document["results"]["tests"]}
    assert states == {"passed", "failed", "skipped", "other"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("reportFormat",), "JUnit"),
        (("specVersion",), "new"),
        (("results", "summary", "passed"), -1),
        (("results", "summary", "start"), "2026"),
        (("results", "tool"), {}),
        (("results", "colour"), "red"),
        (("results", "tests", 0, "status"), "broken"),
        (("results", "tests", 0, "duration"), 0.5),
        (("results", "tests", 0, "suite"), "softmax"),
    ],
)
def test_the_schema_of_ctrf_refuses(path: tuple[Any, ...], value: object, reports: list[Acceptance]) -> None:
    document = copy.deepcopy(json.loads(ctrf_bytes(reports[1], None, "en")))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)


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
