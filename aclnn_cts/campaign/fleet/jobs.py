"""What goes between head and workers as MessagePack, and the mapped file that holds what a worker is about to run."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import msgspec

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.campaign.corpus.schedule import Chunk, Learned
from aclnn_cts.checks.plan import Part
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.trial import Earlier, Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.finding import Counts
from aclnn_cts.findings.waivers.file import Waiver
from aclnn_cts.findings.waivers.matching import WaiverEvidence
from aclnn_cts.sandbox.batch import Pending, groups
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.store.output_file import storage_failure
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
    failures: Mapping[str, Counts] = {}
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


_SIZE = 1 << 16
_HEADER = struct.Struct("<qqqqqq")
"""A counter that grows with every note, the chunk, the first trial of the batch, how many these are, how many the chunk
has, and the case's bytes."""
_IDLE = -1


@dataclass(frozen=True, slots=True)
class Position:
    """How far a worker is, as it noted that last."""

    counter: int
    """Tells whether it still moves."""
    chunk: int
    """-1 between chunks."""
    first: int
    count: int
    total: int
    """Trials of the chunk."""
    case: Case | None = None
    """The call that was under way, where the implementation lives in the worker's own process."""


@final
class Notes:
    """The worker's side."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(exist_ok=True)
            with path.open("w+b") as file:
                file.truncate(_SIZE)
                self._map = mmap.mmap(file.fileno(), _SIZE)
        except OSError as error:
            raise storage_failure(path, error) from error
        self._encoder = msgspec.msgpack.Encoder()
        self._counter = 0
        self.idle()

    def batch(self, chunk: int, first: int, count: int, total: int = 0) -> None:
        """Say that trials `first` to `first + count - 1` of a chunk's `total` are next or under way."""
        self._where = (chunk, first, count, total)
        self._put(b"")

    def call(self, case: Case) -> None:
        """Say that a call is next."""
        content = self._encoder.encode(case)
        self._put(content if len(content) <= _SIZE - _HEADER.size else b"")

    def idle(self) -> None:
        """Say that nothing is under way."""
        self._where = (_IDLE, 0, 0, 0)
        self._put(b"")

    def _put(self, content: bytes) -> None:
        self._counter += 1
        # The length is 0 while the case is written, so that half a case is never read.
        _HEADER.pack_into(self._map, 0, self._counter, *self._where, 0)
        if content:
            self._map[_HEADER.size : _HEADER.size + len(content)] = content
            _HEADER.pack_into(self._map, 0, self._counter, *self._where, len(content))


def read_position(path: Path) -> Position | None:
    """How far a worker noted last to be, without the call, which costs little; None where there is no such file."""
    return _read(path, _HEADER.size)


def read_notes(path: Path) -> Position | None:
    """What a worker noted last, with the call; None where there is no such file."""
    return _read(path, _SIZE)


def _read(path: Path, size: int) -> Position | None:
    try:
        with path.open("rb", buffering=0) as file:
            content = file.read(size)
        counter, chunk, first, count, total, length = _HEADER.unpack_from(content)
    except (OSError, struct.error):
        return None
    case = None
    if 0 < length <= len(content) - _HEADER.size:
        try:
            case = msgspec.msgpack.decode(content[_HEADER.size : _HEADER.size + length], type=Case)
        except msgspec.MsgspecError as error:
            raise HarnessError(f"{path}: cannot be read: {error}") from None
    return Position(counter, chunk, first, count, total, case)


class NotingHost:
    """A host that says of each call that it is next; for one that lives in this process, and would die with it."""

    def __init__(self, host: SessionHost, notes: Notes) -> None:
        self._host = host
        self._notes = notes

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the host's
        return getattr(self._host, name)

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls, group by group."""
        outcomes: list[Outcome] = []
        for group in groups(calls):
            together = calls[group.start : group.stop]
            self._notes.call(together[0].case)
            outcomes += self._host.run(together)
        return outcomes

    def start(self, calls: Sequence[Call]) -> Pending:
        """Make the calls at once."""
        return Pending(self.run(calls))

    def __enter__(self) -> NotingHost:  # noqa: PYI034 - typing has Self from Python 3.11 on
        return self

    def __exit__(self, *exception: object) -> None:
        self._host.close()
