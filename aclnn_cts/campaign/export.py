"""What a campaign covered, as its store keeps it, and a campaign as JSON Lines, for programs that read no SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.campaign.campaign_state import Memory
from aclnn_cts.campaign.corpus.check_coverage import Share
from aclnn_cts.campaign.resuming import SESSION_STATE
from aclnn_cts.core.printable import printable_json
from aclnn_cts.core.trial import trial_to_json
from aclnn_cts.findings.finding import FINDING_STATE, Finding
from aclnn_cts.store.counts import CoverageCount
from aclnn_cts.store.files import write_atomically
from aclnn_cts.store.run_directory import EXPORT, RunDirectory, failure_name
from aclnn_cts.store.summary import Summary, summary_to_json

COVERAGE_STATE = "coverage/"
"""What the keys of coverage in a store's state begin with; the operator follows."""

NAMED = 500
"""Things of a sort that are named; of more, the number alone is kept."""


class Named(msgspec.Struct, kw_only=True):
    """Things of a sort: how many, and the first of them by name."""

    number: int
    names: Sequence[str]


class KeptCoverage(msgspec.Struct, kw_only=True):
    """One operator."""

    operator: str
    sorts: Mapping[str, CoverageCount]
    """`constraints` (each held, and each broken), `limits`, `laws`, `pairs`."""
    factors: Mapping[str, CoverageCount]
    """By factor: the pairs that its values stand in."""
    missing: Mapping[str, Named]
    """What can be covered and was not, by sort."""
    not_judged: Mapping[str, Named]
    """What was tried and never judged, by sort: this implementation cannot be given it, or nothing can be said."""


def keep_coverage(memory: Memory) -> None:
    """Store what all finished chunks of a campaign have covered."""
    part = Summary()
    state: dict[str, object] = {}
    for name, coverage in memory.coverage.items():
        covered = memory.so_far(name).covered
        summary = memory.writer.summary.operator(name)
        kept = KeptCoverage(
            operator=name,
            sorts=_counts(coverage.shares(covered, summary)),
            factors=_counts(coverage.by_factor(covered)),
            missing=_named(coverage.gaps(covered, summary)),
            not_judged=_named(coverage.apart(covered)),
        )
        part.operator(name).coverage = dict(kept.sorts)
        state[COVERAGE_STATE + name] = kept
    memory.writer.append_part(part, state=state)


def _counts(shares: Mapping[str, Share]) -> dict[str, CoverageCount]:
    return {name: CoverageCount(share.met, share.of, share.apart) for name, share in shares.items()}


def _named(found: Mapping[str, Sequence[str]]) -> dict[str, Named]:
    return {sort: Named(number=len(names), names=list(names[:NAMED])) for sort, names in found.items() if names}


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
