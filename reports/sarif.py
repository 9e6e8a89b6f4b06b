"""SARIF 2.1.0, as code review platforms read it: a rule for each kind of fault, a result for each finding."""

from __future__ import annotations

import json
from typing import Any

from aclnn_cts.core.printable import printable_json
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_findings import FindingCard
from aclnn_cts.reports.sentences import verdict_facts
from aclnn_cts.reports.text import Language, phrase
from aclnn_cts.reports.units import finding_text

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"critical": "error", "major": "error", "minor": "warning"}


def sarif_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The log; a waived finding is a suppressed result. The same runs give the same bytes."""
    kinds = list(dict.fromkeys(card.kind for card in report.findings))
    reasons = {row.id: row.reason or row.id for row in report.waivers}
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "aclnn-cts",
                        "version": report.runs[0].manifest.harness,
                        "rules": [_rule(kind, language) for kind in kinds],
                    }
                },
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
        ],
    }
    return printable_json(json.dumps(document, ensure_ascii=False, indent=1)).encode() + b"\n"


def _rule(kind: str, language: Language) -> dict[str, Any]:
    return {
        "id": kind.replace(" ", "-"),
        "name": "".join(word.capitalize() for word in kind.split()),
        "shortDescription": {"text": phrase(f"kind.{kind}", language)},
        "fullDescription": {"text": phrase(f"fault.{kind}", language)},
    }


def _result(card: FindingCard, rule: int, reasons: dict[str, str], language: Language) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": card.kind.replace(" ", "-"),
        "ruleIndex": rule,
        "level": _LEVELS[card.severity],
        "message": {"text": finding_text(card)},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": card.file, "uriBaseId": "RUNS"}},
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
