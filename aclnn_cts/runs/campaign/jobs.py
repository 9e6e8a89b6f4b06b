"""What the workers of a campaign are opened with, asked for, and answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import msgspec

from aclnn_cts.adapters.registry import parse_adapter_word
from aclnn_cts.core.finding import Counts
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import EarlierCall, Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.waivers.file import Waiver
from aclnn_cts.findings.waivers.matching import WaiverCounts
from aclnn_cts.runs.campaign.corpus.schedule import Chunk, CorpusUpdate
from aclnn_cts.store.summary import Summary
from aclnn_cts.workers.notes import ProgressNotes
from aclnn_cts.workers.service import Worker

KNOWN = 4
"""Sequences of calls that are tried before a finding that conforms alone; with so many known no other is searched."""


class ChunkJob(msgspec.Struct, frozen=True, tag="chunk"):
    """Try a chunk."""

    chunk: Chunk
    seconds: float | None = None
    """After so long it is broken off, where that is less than any chunk may take."""


class TriageJob(msgspec.Struct, frozen=True, tag="examine"):
    """Run a finding's trials again in a worker that was started for it, and shrink the first that fails."""

    key: Fingerprint
    trials: tuple[Trial, ...]
    chunk: Chunk | None
    """Which met the first of them."""
    shrink: bool = True
    """False: only count how often it fails here."""
    known: tuple[tuple[EarlierCall, ...], ...] = ()
    """Calls after which other findings of the operator show that conform alone."""
    seconds: float | None = None
    """After so long it is broken off: confirming without an answer, shrinking with what it has come to."""


class ChunkResult(msgspec.Struct, frozen=True, tag="result", kw_only=True):
    """What a chunk came to: counts, what it teaches, and records of failures, errors and a sample alone."""

    index: int
    summary: Summary
    """Of all its trials."""
    learned: CorpusUpdate
    records: tuple[Record, ...] = ()
    blobs: Mapping[str, bytes] = {}
    """Outputs of these records by their SHA-256, as far as they are small enough to be kept."""
    failures: Mapping[str, Counts] = {}
    """Failures by the name of the finding's trial file and by fingerprint, those without a record too."""
    seconds: float = 0.0
    broken_off: int = 0
    """Trials that were left out for time."""
    waivers: WaiverCounts = msgspec.field(default_factory=WaiverCounts)
    """What its worker has seen so far."""

    @property
    def failed(self) -> int:
        """Failures, waived ones too."""
        return sum(number for numbers in self.failures.values() for _, number in numbers)


class TriageResult(msgspec.Struct, frozen=True, tag="examined", kw_only=True):
    """What became of a finding's trials."""

    key: Fingerprint
    confirmed: str
    """Empty where there was no time for it; `note` says so."""
    alone: tuple[int, int]
    trial: Trial | None = None
    message: str = ""
    executions: int = 0
    shrunk: bool = False
    note: str = ""
    blobs: tuple[bytes, ...] = ()
    """Recorded outputs of the smallest trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignService:
    """What the workers of a campaign are opened with (`workers.service.Service`)."""

    jobs: ClassVar = ChunkJob | TriageJob
    answers: ClassVar = ChunkResult | TriageResult

    settings: RunnerSettings
    waivers: tuple[Waiver, ...]
    chunk_seconds: float = math.inf
    """After so long a chunk is broken off where it is: calls that hang would make it last for hours."""

    @property
    def device(self) -> str:
        """The device in words; empty where the adapter was given none."""
        name = parse_adapter_word(self.settings.adapter).options.get("device", "")
        return f"device {name}" if name else ""

    @property
    def opens(self) -> str:
        """The adapter."""
        return f"--adapter {self.settings.adapter}"

    def open(self, notes: ProgressNotes) -> Worker:
        """Open the implementation. Raises as `open_host` does."""
        from aclnn_cts.runs.campaign.worker import open_worker  # noqa: PLC0415 - the head needs none of it

        worker = open_worker(self, notes)
        return Worker(worker.do, worker.runner.host)

    def on_node(self, folder: Path, *, cores: int) -> CampaignService:
        """The same on a node of a cluster, where `ship` has filled the folder."""
        specs = tuple(folder / "specs" / str(number) for number in range(len(self.settings.spec_folders)))
        # How many of the workers this node has is not known; hardly more than it has cores.
        workers = min(self.settings.workers, cores)
        return replace(self, settings=replace(self.settings, spec_folders=specs, workers=workers))
