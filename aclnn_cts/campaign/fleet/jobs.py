"""What goes between the head of a campaign and its workers: plain structs, as MessagePack."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aclnn_cts.campaign.corpus.chunk import Chunk
from aclnn_cts.campaign.corpus.corpus import Learned
from aclnn_cts.checks.plan import Part
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.trial import Earlier, Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.waivers.file import Waiver
from aclnn_cts.findings.waivers.report import WaiverEvidence
from aclnn_cts.store.summary import Summary
from aclnn_cts.trials.trial_runner import Judged

KNOWN = 4
"""Sequences of calls that are tried before a finding that conforms alone; with so many known no other is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What every worker is opened with. Pickled."""

    settings: BenchSettings
    waivers: tuple[Waiver, ...]
    chunk_seconds: float = math.inf
    """After so long a chunk is broken off where it is: calls that hang would make it last for hours."""
    conformance: bool = False
    """Whether it works for a conformance run, which confirms failures at once."""


class ChunkJob(msgspec.Struct, frozen=True, tag="chunk"):
    """Try a chunk, without the trials that have ended two workers."""

    chunk: Chunk
    avoid: tuple[str, ...] = ()
    """Ids of trials."""
    seconds: float | None = None
    """After so long it is broken off, where that is less than any chunk may take."""


class PlanJob(msgspec.Struct, frozen=True, tag="plan"):
    """Run the parts of a chunk as a conformance run does, which keeps every record."""

    chunk: Chunk


class ExamineJob(msgspec.Struct, frozen=True, tag="examine"):
    """Run a finding's trials again in a worker that was started for it, and shrink the first that fails."""

    key: Fingerprint
    trials: tuple[Trial, ...]
    chunk: Chunk | None
    """Which met the first of them."""
    shrink: bool = True
    """False: only count how often it fails here."""
    known: tuple[tuple[Earlier, ...], ...] = ()
    """Calls after which other findings of the operator show that conform alone."""
    seconds: float | None = None
    """After so long it is broken off: confirming without an answer, shrinking with what it has come to."""


Job = ChunkJob | PlanJob | ExamineJob


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """A worker is ready."""

    isolated: bool
    """Whether its implementation lives in a process of its own, which the worker can replace itself."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A worker cannot go on, and says why."""

    message: str
    usage: bool = False


class ChunkResult(msgspec.Struct, frozen=True, tag="result", kw_only=True):
    """What a chunk came to: counts, what it teaches, and records of failures, errors and a sample alone."""

    index: int
    summary: Summary
    """Of all its trials."""
    learned: Learned
    records: tuple[Record, ...] = ()
    blobs: Mapping[str, bytes] = {}
    """Outputs of these records by their SHA-256, as far as they are small enough to be kept."""
    failures: Mapping[str, tuple[tuple[Fingerprint, int], ...]] = {}
    """Failures by key (`record_codec.key_text`) and fingerprint, those without a record too."""
    kinds: Mapping[str, str] = {}
    """The gravest kind of fault of each of these."""
    seconds: float = 0.0
    broken_off: int = 0
    """Trials that were left out for time."""
    waivers: WaiverEvidence = msgspec.field(default_factory=WaiverEvidence)
    """What its worker has seen so far."""

    @property
    def failed(self) -> int:
        """Failures, waived ones too."""
        return sum(number for numbers in self.failures.values() for _, number in numbers)


class PlanResult(msgspec.Struct, frozen=True, tag="planned", kw_only=True):
    """All that the parts of a chunk came to."""

    index: int
    batches: tuple[tuple[Part, int, Judged], ...]
    """As `Bench.run_parts` gives them."""


class Examined(msgspec.Struct, frozen=True, tag="examined", kw_only=True):
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


class Gone(msgspec.Struct, frozen=True, tag="gone"):
    """The implementation is gone, and the worker with it: what a job came to that it could not finish."""

    reason: str
    answer: ChunkResult | PlanResult | Examined | Failed


Answer = Opened | Failed | ChunkResult | PlanResult | Examined | Gone


def _plain(value: Any) -> Any:  # noqa: ANN401 - a NumPy scalar among a verdict's facts
    return value.item()


encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
"""A job or an answer as bytes."""
decode_job: Callable[[bytes], Job] = msgspec.msgpack.Decoder(Job).decode
"""The job of `encode`."""
decode_answer: Callable[[bytes], Answer] = msgspec.msgpack.Decoder(Answer).decode
"""The answer of `encode`."""
