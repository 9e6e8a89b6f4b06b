"""What machines read: JUnit XML, SARIF and CSV, of the same tests, findings and trials."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from aclnn_cts.core.faults import fault_name
from aclnn_cts.core.printable import printable_document, printable_json
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.reports.model.acceptance import Acceptance, RunFacts, TrialRow
from aclnn_cts.reports.model.acceptance_rows import FindingCard
from aclnn_cts.reports.sentences import product_text, verdict_facts
from aclnn_cts.reports.text import Language, phrase
from aclnn_cts.store.counts import Counts

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
                SubElement(properties, "property", name=key, value=xml_text(value))
        found = {card.id for unit in units for card in unit.unwaived}
        SubElement(properties, "property", name="findings", value=str(len(found)))
        for unit in units:
            _add(suite, unit)
    root.attrib.update({name: str(number) for name, number in totals.items()})
    return xml_bytes(root)


def xml_bytes(root: Element) -> bytes:
    """A document with what XML cannot hold replaced."""
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
        failure = SubElement(test, "failure", type=kind, message=xml_text(first))
        failure.text = xml_text("\n\n".join([*unit.violations, *map(finding_text, cards)]))
    elif unit.state == "error":
        SubElement(
            test,
            "error",
            type="error of the harness",
            message=xml_text("; ".join(unit.problems) or counts_line(unit.ends)),
        )
    elif unit.state == "skipped":
        SubElement(test, "skipped", message=counts_line(unit.ends))
    waived = [card for card in unit.findings if card.waived]
    if waived:
        output = SubElement(test, "system-out")
        output.text = xml_text(
            "\n\n".join(f"waived by {', '.join(card.waivers)}\n{finding_text(card)}" for card in waived)
        )


def xml_text(text: str) -> str:
    """Text without what XML cannot hold."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", printable_document(text))


RUNS = "aclnn-cts"
"""Stands where an operator's name stands, for the tests that the runs as a whole are."""

_BY_CONSTRAINT = "status"
"""The check that is told constraint by constraint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestUnit:
    """One test: `failed` where a failure is not waived, `error` without a fault, `skipped` where nothing was judged."""

    __test__ = False

    operator: str
    name: str
    ends: Counts
    findings: tuple[FindingCard, ...]
    violations: tuple[str, ...] = ()
    """Of a run as a whole: why it fails whatever its trials say."""
    problems: tuple[str, ...] = ()
    """Of a run as a whole: why it says nothing."""

    @property
    def state(self) -> str:
        """`passed`, `failed`, `error` or `skipped`."""
        if self.violations:
            return "failed"
        if self.problems:
            return "error"
        if self.ends.unwaived and self.operator != RUNS:
            return "failed"
        if self.ends.errors and self.operator != RUNS:
            return "error"
        return "passed" if self.ends.judged else "skipped"

    @property
    def unwaived(self) -> tuple[FindingCard, ...]:
        """The findings that make it fail."""
        return tuple(card for card in self.findings if card.waived < card.number)


def test_units(report: Acceptance) -> Iterator[TestUnit]:
    """Each run as a whole, then all tests operator by operator."""
    for run in report.runs:
        said = (*run.problems, *run.discrepancies)
        if run.conclusion.verdict == RunVerdict.INCONCLUSIVE:
            reasons = (f"{row.number} {row.text}; such as {row.example}" for row in run.conclusion.reasons)
            said = (*(note.text for note in run.conclusion.causes), *reasons)
        yield TestUnit(
            operator=RUNS,
            name=f"run {run.name}",
            ends=run.ends,
            findings=(),
            violations=run.violations,
            problems=said,
        )
    cards = {card.id: card for card in report.findings}
    for row in report.checks:
        if row.check != _BY_CONSTRAINT:
            yield TestUnit(
                operator=row.operator,
                name=row.check,
                ends=row.ends,
                findings=tuple(cards[name] for name in row.findings),
            )
            continue
        for entry in report.constraints:
            if entry.operator == row.operator and entry.ends.cases:
                yield TestUnit(
                    operator=row.operator,
                    name=f"{row.check}/{entry.id}",
                    ends=entry.ends,
                    findings=tuple(cards[name] for name in entry.findings),
                )


# Else pytest takes it for a test where a test imports it.
test_units.__test__ = False  # type: ignore[attr-defined]  # mypy knows functions without attributes alone


def counts_line(ends: Counts) -> str:
    """The counts on one line, with every reason to skip."""
    text = (
        f"trials={ends.cases} passed={ends.passed} failed={ends.failed} waived={ends.waived} errors={ends.errors}"
        f" skipped={ends.skipped} out_of_scope={ends.out_of_scope}"
    )
    reasons = ", ".join(f"{name}: {number}" for name, number in (*ends.unjudged.items(), *ends.outside.items()))
    return f"{text} ({reasons})" if reasons else text


def _often(card: FindingCard) -> Iterator[str]:
    for run, finding in card.campaigns:
        failures, executions = finding.alone
        alone = f" ({failures} of {executions} alone)" if executions else ""
        said = finding.confirmed or "not run again by itself"
        yield f"{finding.failures} failures in the campaign {run}: {said}{alone}"
    if len(card.campaigns) < len(card.runs):
        yield f"{card.number} of {card.of} judged trials"
    yield f"met in {_counted(card.by_check(joined=False))}"
    if joined := card.by_check(joined=True):
        yield f"looks the same in {_counted(joined)}; their calls were not made again one by one"
    if card.waived:
        yield f"{card.waived} of {card.number} recorded failures are waived"


def _counted(checks: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({number})" for name, number in checks.items())


def finding_text(card: FindingCard) -> str:
    """A finding for a log: what, how often, the smallest case, and how to see it again."""
    lines = [
        f"{card.id} {card.severity}: "
        + " of ".join(filter(None, (fault_name(card.kind), card.constraint or card.output))),
        phrase(f"fault.{card.kind}", "en"),
        card.message,
        *([f"what failures share: {card.shared.en}"] if card.shared is not None else ()),
        *_often(card),
        *(f"  {name}: {value}" for name, value in card.case),
        *(
            f"worst {element.place}: got {element.got}, expected {element.expected}, bound {element.bound:.4g}"
            for element in card.record.verdict.deviations
        ),
        f"replay: {card.replay}",
    ]
    return "\n".join(lines)


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"critical": "error", "major": "error", "minor": "warning"}


def sarif_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The log; a waived finding is a suppressed result. The same runs give the same bytes."""
    kinds = list(dict.fromkeys(card.kind for card in report.findings))
    reasons = {row.id: row.reason or row.id for row in report.waivers}
    run = {
        "originalUriBaseIds": {run.name: _base(run) for run in report.runs},
        "invocations": [
            {
                "executionSuccessful": run.finished and not run.interrupted,
                "commandLine": " ".join(("aclnn-cts", run.manifest.command, *run.manifest.arguments)),
                "startTimeUtc": run.manifest.started.replace("+00:00", "Z"),
            }
            for run in report.runs
        ],
        "properties": dict(verdict_facts(report, language)),
        "results": [_result(card, kinds.index(card.kind), reasons, language) for card in report.findings],
    }
    return sarif_log(kinds, run, version=report.runs[0].manifest.harness, language=language)


def sarif_log(kinds: Sequence[str], run: Mapping[str, Any], *, version: str, language: Language) -> bytes:
    """A log of one run of ours: its rules are kinds of fault, in the order in which results count them."""
    driver = {"name": "aclnn-cts", "version": version, "rules": [_rule(kind, language) for kind in kinds]}
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, **run}]}
    return printable_json(json.dumps(document, ensure_ascii=False, indent=1)).encode() + b"\n"


def rule_id(kind: str) -> str:
    """A kind of fault as SARIF names a rule."""
    return kind.replace(" ", "-")


def _base(run: RunFacts) -> dict[str, Any]:
    """The directory of a run, which the places of its findings are relative to: absolute, with a slash at its end."""
    return {
        "uri": f"{run.path.as_uri()}/",
        "description": {"text": f"The directory of the run {run.name}."},
    }


def _rule(kind: str, language: Language) -> dict[str, Any]:
    return {
        "id": rule_id(kind),
        "name": "".join(word.capitalize() for word in kind.split()),
        "shortDescription": {"text": phrase(f"kind.{kind}", language)},
        "fullDescription": {"text": phrase(f"fault.{kind}", language)},
    }


def _result(card: FindingCard, rule: int, reasons: dict[str, str], language: Language) -> dict[str, Any]:
    run, _, file = card.file.partition("/")
    result: dict[str, Any] = {
        "ruleId": rule_id(card.kind),
        "ruleIndex": rule,
        "level": _LEVELS[card.severity],
        "message": {"text": finding_text(card)},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": quote(os.fsencode(file)), "uriBaseId": run}},
                "logicalLocations": [
                    {"fullyQualifiedName": ".".join(filter(None, (card.operator, card.output))), "kind": "function"}
                ],
            }
        ],
        "partialFingerprints": {"trial/v1": card.trial_id},
        "occurrenceCount": max(card.number, 1),
        "properties": {
            "finding": card.id,
            "severity": card.severity,
            "clauses": [f"{operator or 'interface'} {at}" for operator, at in card.clauses],
            **({"condition": card.shared.en} if card.shared is not None else {}),
        },
    }
    if card.waived == card.number:
        result["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": f"{name}: {reasons.get(name, name)}"}
            for name in card.waivers
        ]
    return result


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_bytes(report: Acceptance, rows: Callable[[], Iterable[TrialRow]], language: str) -> bytes:
    """The whole table."""
    names = [field.name for field in fields(TrialRow)]
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\r\n")
    writer.writerow(names)
    for row in rows():
        writer.writerow([spreadsheet_text(getattr(row, name)) for name in names])
    return target.getvalue().encode("utf-8-sig")


def spreadsheet_text(value: object) -> object:
    """A cell that no spreadsheet takes for a formula (OWASP, CSV injection): text gets an apostrophe before it.

    Hidden characters are spelled out; many readers and Python 3.10's writer of CSV refuse a NUL.
    """
    if not isinstance(value, str):
        return value
    text = printable_document(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
