"""CTRF, the Common Test Report Format (https://ctrf.io): the same tests as in JUnit XML, as JSON."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Any

import msgspec

from aclnn_cts.core.printable import printable_json
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.sentences import products_text, verdict_facts
from aclnn_cts.reports.units import TestUnit, counts_line, finding_text, test_units

_STATES = {"passed": "passed", "failed": "failed", "error": "other", "skipped": "skipped"}


def ctrf_bytes(report: Acceptance, rows: object, language: str) -> bytes:
    """The document; the same runs give the same bytes."""
    tests = [_test(unit) for unit in test_units(report)]
    begun = min(_milliseconds(run.manifest.started) for run in report.runs)
    ended = max(_milliseconds(run.manifest.started) + round(1000 * (run.seconds or 0.0)) for run in report.runs)
    identity = "/".join(f"{run.name}:{run.manifest.started}:{run.manifest.adapter}" for run in report.runs)
    document = {
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "reportId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"aclnn-cts/{identity}")),
        "generatedBy": "aclnn-cts",
        "results": {
            "tool": {"name": "aclnn-cts", "version": report.runs[0].manifest.harness},
            "summary": {
                "tests": len(tests),
                **{state: sum(test["status"] == state for test in tests) for state in ("passed", "failed", "skipped")},
                "pending": 0,
                "other": sum(test["status"] == "other" for test in tests),
                "suites": len(report.operators) + 1,
                "start": begun,
                "stop": ended,
                "extra": {
                    **dict(verdict_facts(report, "en")),
                    "suffices": report.suffices,
                    "trials": report.ends.cases,
                    "failed": report.ends.failed,
                    "waived": report.ends.waived,
                    "skipped": report.ends.skipped,
                    "outOfScope": report.ends.out_of_scope,
                    "observations": [
                        {
                            "operator": operator,
                            "what": row.kind,
                            "constraint": row.constraint,
                            "trials": row.number,
                            "trial": row.trial,
                        }
                        for operator, row in report.observations
                    ],
                },
            },
            "tests": tests,
            "environment": {
                "appName": ", ".join(dict.fromkeys(run.manifest.adapter for run in report.runs)),
                "testEnvironment": products_text(report, "en"),
                "extra": {
                    "runs": [run.name for run in report.runs],
                    "ranOn": [run.ran_on for run in report.runs],
                    "softwareDevice": [run.software for run in report.runs],
                },
            },
        },
    }
    return printable_json(json.dumps(document, ensure_ascii=False, indent=1)).encode() + b"\n"


def _test(unit: TestUnit) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": f"{unit.operator} {unit.name}",
        "status": _STATES[unit.state],
        "duration": 0,
        "suite": [unit.operator],
        "rawStatus": unit.state,
        "extra": {"counts": counts_line(unit.ends), "waived": unit.ends.waived},
    }
    cards = unit.unwaived if unit.state == "failed" else ()
    if cards:
        test["message"] = cards[0].message
        test["trace"] = "\n\n".join(map(finding_text, cards))
        test["extra"]["conditions"] = {
            card.id: msgspec.to_builtins(card.shared) for card in cards if card.shared is not None
        }
    elif unit.state != "passed":
        test["message"] = "; ".join((*unit.violations, *unit.problems)) or counts_line(unit.ends)
    return test


def _milliseconds(started: str) -> int:
    return round(1000 * datetime.fromisoformat(started).timestamp())
