"""A campaign as JSON Lines, for programs that read no SQLite: one object a line, each with its `type`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.campaign.kept_coverage import COVERAGE_STATE
from aclnn_cts.campaign.resuming import SESSION_STATE
from aclnn_cts.core.printable import printable_json
from aclnn_cts.core.trial import trial_to_json
from aclnn_cts.findings.finding import FINDING_STATE, Finding
from aclnn_cts.store.files import write_atomically
from aclnn_cts.store.run_directory import EXPORT, RunDirectory, failure_name
from aclnn_cts.store.summary_json import summary_to_json

__all__ = ["export_campaign"]


def export_campaign(run: RunDirectory) -> Path:
    """Write `campaign.jsonl` into a campaign's directory: summary, coverage, findings, sessions, chunks."""
    path = run.path / EXPORT
    write_atomically(path, (_encoded(line) for line in _lines(run)))
    return path


def _encoded(line: dict[str, Any]) -> bytes:
    return printable_json(msgspec.json.encode(_sound(line)).decode()).encode() + b"\n"


def _lines(run: RunDirectory) -> Iterator[dict[str, Any]]:
    yield {"type": "summary", **summary_to_json(run.summary())}
    with run.results() as results:
        yield from _plain("coverage", results.states(COVERAGE_STATE))
        for _, value in results.states(FINDING_STATE):
            finding = msgspec.convert(value, Finding)
            words = msgspec.to_builtins(msgspec.structs.replace(finding, trial=None, record=None))
            words |= {"type": "finding", "file": f"failures/{failure_name(finding.signature)}"}
            if finding.trial is not None:
                words["trial"] = trial_to_json(finding.trial)
            yield words
        yield from _plain("session", results.states(SESSION_STATE))
        for line in _plain("chunk", results.states("chunk/")):
            line.pop("learned", None)
            yield line


def _plain(kind: str, states: Iterable[tuple[str, object]]) -> Iterator[dict[str, Any]]:
    for _, value in states:
        yield {"type": kind, **msgspec.convert(value, dict[str, Any])}


def _sound(value: Any) -> Any:  # noqa: ANN401 - JSON has no word for inf and nan
    if isinstance(value, dict):
        return {key: _sound(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_sound(item) for item in value]
    return str(value) if isinstance(value, float) and value - value != 0.0 else value
