"""JUnit XML, as CI systems read it: a suite an operator, a test a check or a broken constraint."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.sentences import product_text
from aclnn_cts.reports.units import TestUnit, counts_line, finding_text, test_units

# What XML 1.0 cannot hold, not even escaped (https://www.w3.org/TR/xml/#charsets).
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_bytes(report: Acceptance, rows: object, language: str) -> bytes:
    """The document. A test whose failures are all waived passes, and says so in its output."""
    root = Element("testsuites", name="aclnn-cts")
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    suites: dict[str, list[TestUnit]] = {}
    for unit in test_units(report):
        suites.setdefault(unit.operator, []).append(unit)
    for name, units in suites.items():
        suite = SubElement(
            root,
            "testsuite",
            name=name,
            tests=str(len(units)),
            failures=str(sum(unit.state == "failed" for unit in units)),
            errors=str(sum(unit.state == "error" for unit in units)),
            skipped=str(sum(unit.state == "skipped" for unit in units)),
            timestamp=report.runs[0].manifest.started.partition("+")[0],
        )
        for kind in totals:
            totals[kind] += int(suite.attrib[kind])
        properties = SubElement(suite, "properties")
        for run in report.runs:
            for key, value in (
                ("verdict", report.verdict.words),
                ("run", run.name),
                ("adapter", run.manifest.adapter),
                ("ran on", run.ran_on),
                ("product", product_text(run, "en")),
                ("profile", run.manifest.profile),
            ):
                SubElement(properties, "property", name=key, value=_clean(value))
        found = {card.id for unit in units for card in unit.unwaived}
        SubElement(properties, "property", name="findings", value=str(len(found)))
        for unit in units:
            _add(suite, unit)
    root.attrib.update({name: str(number) for name, number in totals.items()})
    indent(root)
    content: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return printable_document(content.decode()).encode() + b"\n"


def _add(suite: Element, unit: TestUnit) -> None:
    test = SubElement(suite, "testcase", classname=unit.operator, name=unit.name)
    properties = SubElement(test, "properties")
    SubElement(properties, "property", name="aclnn-cts", value=counts_line(unit.ends))
    if unit.state == "failed":
        cards = unit.unwaived
        first = cards[0].message if cards else "; ".join(unit.violations) or counts_line(unit.ends)
        kind = cards[0].kind if cards else "failed"
        failure = SubElement(test, "failure", type=kind, message=_clean(first))
        failure.text = _clean("\n\n".join([*unit.violations, *map(finding_text, cards)]))
    elif unit.state == "error":
        SubElement(
            test,
            "error",
            type="error of the harness",
            message=_clean("; ".join(unit.problems) or counts_line(unit.ends)),
        )
    elif unit.state == "skipped":
        SubElement(test, "skipped", message=counts_line(unit.ends))
    waived = [card for card in unit.findings if card.waived]
    if waived:
        output = SubElement(test, "system-out")
        output.text = _clean(
            "\n\n".join(f"waived by {', '.join(card.waivers)}\n{finding_text(card)}" for card in waived)
        )


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", printable_document(text))
