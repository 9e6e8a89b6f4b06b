"""Judgements of candidates, and findings of a gate, in the forms that CI takes: JUnit XML and SARIF."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement

from aclnn_cts import __version__
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.reports.exporters import rule_id, sarif_log, xml_bytes, xml_text

Document = Mapping[str, Any]
"""A judgement as `to_json` gives it."""


def judgements_junit(judgements: Sequence[Document]) -> bytes:
    """A suite for each operator, a test for each candidate: an inconclusive one is an error."""
    root = Element("testsuites", name="aclnn-cts")
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for operator in dict.fromkeys(str(item["operator"]) for item in judgements):
        mine = [item for item in judgements if item["operator"] == operator]
        counts = {
            "tests": len(mine),
            "failures": sum(item["verdict"] == RunVerdict.FAILS.value for item in mine),
            "errors": sum(item["verdict"] == RunVerdict.INCONCLUSIVE.value for item in mine),
            "skipped": 0,
        }
        suite = SubElement(root, "testsuite", name=operator)
        suite.attrib.update({name: str(number) for name, number in counts.items()})
        for name, number in counts.items():
            totals[name] += number
        for item in mine:
            _test(suite, item)
    root.attrib.update({name: str(number) for name, number in totals.items()})
    return xml_bytes(root)


def _test(suite: Element, item: Document) -> None:
    name = xml_text(str(item["candidate"]))
    test = SubElement(suite, "testcase", classname=str(item["operator"]), name=name, time=f"{item['seconds']:.3f}")
    properties = SubElement(test, "properties")
    for key in ("seed", "product", "planned", "passed", "failed", "unjudged", "repeated", "isolation"):
        SubElement(properties, "property", name=key, value=xml_text(str(item[key])))
    if item["verdict"] == RunVerdict.FAILS.value:
        found = item["findings"]
        kind = str(found[0]["fault"]) if found else "failed"
        failure = SubElement(test, "failure", type=xml_text(kind), message=xml_text(str(item["reason"])))
        failure.text = xml_text("\n\n".join(map(_text, found)))
    elif item["verdict"] == RunVerdict.INCONCLUSIVE.value:
        SubElement(test, "error", type="inconclusive", message=xml_text(str(item["reason"])))


def _text(finding: Document) -> str:
    """A finding for a log."""
    lines = [f"{finding['fault']}: {finding['sentence']}"]
    lines += [f"clause {finding['clause']}"] if finding["clause"] else []
    lines += [str(finding["condition"])] if finding["condition"] else []
    return "\n".join([*lines, f"trial {finding['trial']}"])


def judgements_sarif(judgements: Sequence[Document]) -> bytes:
    """A result for each finding, at the candidate's file."""
    kinds = list(dict.fromkeys(str(found["fault"]) for item in judgements for found in item["findings"]))
    results = [_result(item, found, kinds) for item in judgements for found in item["findings"]]
    return sarif_log(kinds, {"results": results}, version=__version__, language="en")


def gate_sarif(findings: Sequence[Document]) -> bytes:
    """A result for each finding of a gate, at its trial file: `operator`, `fault`, `message`, `clause` and `file`."""
    kinds = list(dict.fromkeys(str(item["fault"]) for item in findings))
    results = [
        {
            "ruleId": rule_id(str(item["fault"])),
            "ruleIndex": kinds.index(str(item["fault"])),
            "level": "error",
            "message": {"text": str(item["message"])},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": {"uri": quote(os.fsencode(str(item["file"])))}},
                    "logicalLocations": [{"fullyQualifiedName": str(item["operator"]), "kind": "function"}],
                }
            ],
            "partialFingerprints": {"finding/v1": PurePath(str(item["file"])).stem},
            "properties": {"clause": item["clause"]},
        }
        for item in findings
    ]
    return sarif_log(kinds, {"results": results}, version=__version__, language="en")


def _result(item: Document, finding: Document, kinds: Sequence[str]) -> dict[str, Any]:
    file, _, function = str(item["candidate"]).rpartition(":")
    path = PurePath(file or function)
    # A relative reference: nobody knows where the repository of the candidate begins.
    address = quote(os.fsencode(path.name if path.is_absolute() else path.as_posix()))
    return {
        "ruleId": rule_id(str(finding["fault"])),
        "ruleIndex": kinds.index(str(finding["fault"])),
        "level": "error",
        "message": {"text": _text(finding)},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": address}},
                "logicalLocations": [{"fullyQualifiedName": f"{item['operator']} {function}", "kind": "function"}],
            }
        ],
        "partialFingerprints": {"trial/v1": str(finding["trial"])},
        "properties": {
            "seed": item["seed"],
            "clause": finding["clause"],
            "condition": finding["condition"],
            "errorRatio": finding["error_ratio"],
        },
    }
