"""What a campaign covered, as its store keeps it, and a campaign as JSON Lines, for programs that read no SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.campaign.campaign_state import Memory
from aclnn_cts.campaign.resuming import SESSION_STATE
from aclnn_cts.core.printable import printable_json
from aclnn_cts.core.trial import trial_to_json
from aclnn_cts.findings.finding import FINDING_STATE, Finding
from aclnn_cts.store.files import write_atomically
from aclnn_cts.store.run_directory import EXPORT, RunDirectory, failure_name
from aclnn_cts.store.summary import Summary, summary_to_json

COVERAGE_STATE = "coverage/"
"""What the keys of coverage in a store's state begin with; the operator follows."""

NAMED = 500
"""Things of a sort that are named; of more, the number alone is kept."""


def keep_coverage(memory: Memory) -> None:
    """Store what all finished chunks of a campaign have covered."""
    part = Summary()
    state: dict[str, object] = {}
    for name, coverage in memory.coverage.items():
        covered = memory.so_far(name).covered
        summary = memory.writer.summary.operator(name)
        part.operator(name).coverage = {**coverage.shares(covered, summary)}
        state[COVERAGE_STATE + name] = {
            "operator": name,
            # Constraints (each held, and each broken), limits, laws and pairs.
            "sorts": part.operator(name).coverage,
            # By factor: the pairs that its values stand in.
            "factors": coverage.by_factor(covered),
            # What can be covered and was not.
            "missing": _named(coverage.gaps(covered, summary)),
            # What was tried and never judged: this implementation cannot be given it, or nothing can be said.
            "not_judged": _named(coverage.apart(covered)),
        }
    memory.writer.append_part(part, state=state)


def _named(found: Mapping[str, Sequence[str]]) -> dict[str, dict[str, object]]:
    """By sort of thing how many there are, and the names of the first."""
    return {sort: {"number": len(names), "names": names[:NAMED]} for sort, names in found.items() if names}


def export_campaign(run: RunDirectory) -> Path:
    """Write `campaign.jsonl` into a campaign's directory: summary, coverage, findings, sessions, chunks."""
    path = run.path / EXPORT
    lines = (printable_json(msgspec.json.encode(_sound(line)).decode()) for line in _lines(run))
    write_atomically(path, (line.encode() + b"\n" for line in lines))
    return path


def _lines(run: RunDirectory) -> Iterator[dict[str, Any]]:
    yield {"type": "summary", **summary_to_json(run.summary())}
    with run.results() as results:
        yield from _plain("coverage", results.states(COVERAGE_STATE))
        for _, value in results.states(FINDING_STATE):
            finding = msgspec.convert(value, Finding)
            words = msgspec.to_builtins(msgspec.structs.replace(finding, trial=None, record=None))
            words |= {"type": "finding", "file": f"failures/{failure_name(finding.key)}"}
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
