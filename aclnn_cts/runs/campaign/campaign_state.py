"""What the head of a campaign knows, and how it stands in the run's store: everything that a resumed one needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.finding import Finding, failure_name
from aclnn_cts.core.outside import convert_document
from aclnn_cts.core.verdict import Record
from aclnn_cts.findings.findings import EXAMPLES, FINDING_STATE
from aclnn_cts.findings.waivers.matching import WaiverCounts
from aclnn_cts.runs.campaign.corpus.check_coverage import CheckCoverage
from aclnn_cts.runs.campaign.corpus.schedule import FEEDBACK_LAG, Chunk, CorpusUpdate, Schedule, Snapshot, take_snapshot
from aclnn_cts.runs.campaign.jobs import ChunkResult
from aclnn_cts.store.counts import total_of
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_writer import RunWriter
from aclnn_cts.store.summary import Summary

_CHUNK, _LEARNED, _SNAPSHOT, _CAMPAIGN = "chunk/", "learned/", "snapshot/", "campaign"
_WAIVERS = "waivers"


class ChunkEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A finished chunk, as it is kept."""

    index: int
    phase: str
    operator: str
    snapshot: str = ""
    """Id of the feedback that it was made from."""
    cases: int = 0
    failed: int = 0
    errors: int = 0
    seconds: float = 0.0
    slot: str = ""
    broken_off: int = 0
    learned: CorpusUpdate | None = None
    """Until its whole generation is finished."""


@dataclass(slots=True)
class CampaignState:
    """The state of a campaign. Every change goes through `finished` or `found`, which store it at once."""

    writer: RunWriter
    schedule: Schedule
    coverage: Mapping[str, CheckCoverage]
    learned: dict[str, CorpusUpdate] = field(default_factory=dict)
    """By operator, of all generations that are finished."""
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    entries: dict[int, ChunkEntry] = field(default_factory=dict)
    """Finished chunks of generations that are not."""
    folded: int = 0
    """Generations that are finished, all chunks of them."""
    findings: dict[str, Finding] = field(default_factory=dict)
    """By the name of the trial file, in the order in which they were met."""
    chunks: int = 0
    """Finished chunks."""
    before: float = 0.0
    """Seconds that earlier sessions of the campaign took."""
    evidence: WaiverCounts = field(default_factory=WaiverCounts)
    """What all trials of all sessions say of waivers."""

    def is_done(self, index: int) -> bool:
        """Whether a chunk is finished."""
        return self.schedule.generation_of(index) < self.folded or index in self.entries

    def is_ready(self, index: int) -> bool:
        """Whether all is known from which a chunk is made."""
        return self.schedule.generation_of(index) - FEEDBACK_LAG < self.folded

    def chunk(self, index: int) -> Chunk:
        """A chunk that is ready."""
        generation = self.schedule.generation_of(index) - FEEDBACK_LAG
        return self.schedule.chunk(index, self.snapshots.get(generation, Snapshot(-1)))

    def remake_chunk(self, index: int) -> Chunk | None:
        """A chunk that was made before; None where the snapshot that it was made from is not kept any more."""
        generation = self.schedule.generation_of(index) - FEEDBACK_LAG
        if index < 0:
            return None
        known = index < self.schedule.planned or generation < 0 or generation in self.snapshots
        return self.chunk(index) if known else None

    def learned_by(self, operator: str) -> CorpusUpdate:
        """What an operator's trials have shown, those of unfinished generations too."""
        total = CorpusUpdate()
        if operator in self.learned:
            total.include(self.learned[operator])
        for entry in self.entries.values():
            if entry.operator == operator and entry.learned is not None:
                total.include(entry.learned)
        return total

    def store_chunk(
        self, chunk: Chunk, result: ChunkResult, *, slot: str, seconds: float, device: str = ""
    ) -> list[Finding]:
        """Store a chunk with all that it came to; the findings that it is the first to meet."""
        counts = total_of(part for operator in result.summary.operators.values() for part in operator.kinds.values())
        entry = ChunkEntry(
            index=chunk.index,
            phase=chunk.phase,
            operator=chunk.operator,
            snapshot=chunk.snapshot,
            cases=counts.cases,
            failed=counts.failed,
            errors=counts.errors,
            seconds=round(result.seconds, 3),
            slot=slot,
            broken_off=result.broken_off,
            learned=result.learned,
        )
        if chunk.index >= 0:
            self.chunks += 1
            self.entries[chunk.index] = entry
        else:
            entry.learned = None
        new, kept, changed = self._failures(chunk, result, slot, device, seconds)
        self.evidence.include(result.waivers)
        state: dict[str, Any] = {_chunk_key(chunk.index): entry, _WAIVERS: self.evidence}
        state |= {FINDING_STATE + item.file: item for item in changed}
        folded, forget = self._fold()
        state |= folded
        state[_CAMPAIGN] = {"chunks": self.chunks, "folded": self.folded, "seconds": self.before + seconds}
        self.writer.append_part(result.summary, kept, state=state, forget=forget)
        for digest in {digest for record in kept for digest in record.output_digests()} & set(result.blobs):
            self.writer.blob(result.blobs[digest])
        return new

    def _failures(
        self, chunk: Chunk, result: ChunkResult, slot: str, device: str, seconds: float
    ) -> tuple[list[Finding], list[Record], list[Finding]]:
        new: list[Finding] = []
        changed: dict[str, Finding] = {}
        kept: list[Record] = []
        for record in result.records:
            key = failure_name(record.key, waiver=record.waiver)
            if key not in result.failures:
                kept.append(record)
                continue
            finding = self.findings.get(key)
            if finding is None:
                finding = self.findings[key] = Finding(
                    key=record.key,
                    chunk=chunk.index,
                    slot=slot,
                    device=device,
                    seconds=round(self.before + seconds, 1),
                    waiver=record.waiver,
                    trial=record.trial,
                    message=record.verdict.message,
                )
                new.append(finding)
            if finding.examples < EXAMPLES:
                finding.examples += 1
                kept.append(record)
            changed[key] = finding
        for key, numbers in result.failures.items():
            finding = self.findings[key]
            finding.counts = tuple((Counter(dict(finding.counts)) + Counter(dict(numbers))).most_common())
            changed[key] = finding
        return new, kept, list(changed.values())

    def _fold(self) -> tuple[dict[str, Any], list[str]]:
        """Take the generations that are finished by now into what is learned; what to store and to forget."""
        state: dict[str, Any] = {}
        forget: list[str] = []
        size = self.schedule.generation
        while all(index in self.entries for index in range(self.folded * size, (self.folded + 1) * size)):
            for index in range(self.folded * size, (self.folded + 1) * size):
                entry = self.entries.pop(index)
                if entry.learned is not None:
                    self.learned.setdefault(entry.operator, CorpusUpdate()).include(entry.learned)
                entry.learned = None
                state[_chunk_key(index)] = entry
            snapshot = take_snapshot(self.folded, self.learned, self.coverage, self.coverage)
            self.snapshots[self.folded] = snapshot
            state[f"{_SNAPSHOT}{self.folded}"] = snapshot
            state |= {_LEARNED + name: learned for name, learned in self.learned.items()}
            if self.snapshots.pop(self.folded - FEEDBACK_LAG - 1, None) is not None:
                forget.append(f"{_SNAPSHOT}{self.folded - FEEDBACK_LAG - 1}")
            self.folded += 1
        return state, forget

    def store_finding(self, finding: Finding) -> None:
        """Store what has become known of a finding."""
        self.writer.append_part(Summary(), state={FINDING_STATE + finding.file: finding})

    def load_session(self, run: RunDirectory) -> None:
        """Take up what the store of an earlier session holds. Raises HarnessError where that does not fit."""
        with run.results() as results:
            stored = _read(results.state(_CAMPAIGN) or {}, dict[str, Any], _CAMPAIGN)
            self.chunks = int(stored.get("chunks", 0))
            self.folded = int(stored.get("folded", 0))
            self.before = float(stored.get("seconds", 0.0))
            self.evidence = _read(results.state(_WAIVERS) or {}, WaiverCounts, _WAIVERS)
            first = self.folded * self.schedule.generation
            learned = {
                key.removeprefix(_LEARNED): _read(value, CorpusUpdate, key) for key, value in results.states(_LEARNED)
            }
            snapshots = [_read(value, Snapshot, key) for key, value in results.states(_SNAPSHOT)]
            entries = [
                _read(value, ChunkEntry, key)
                for key, value in results.states(_CHUNK)
                if int(key.removeprefix(_CHUNK)) >= first
            ]
            findings = [_read(value, Finding, key) for key, value in results.states(FINDING_STATE)]
        self.learned |= learned
        self.snapshots |= {snapshot.generation: snapshot for snapshot in snapshots}
        self.entries |= {entry.index: entry for entry in entries}
        findings.sort(key=lambda item: (item.seconds, item.chunk))
        self.findings |= {finding.file: finding for finding in findings}


def _chunk_key(index: int) -> str:
    return f"{_CHUNK}{index:08d}"


def _read(value: object, kind: Any, key: str) -> Any:  # noqa: ANN401 - a type, and a value of it
    where = f"results.sqlite (state {key})"
    return convert_document(value, kind, where=where, expected="what this version wrote", error=HarnessError)
