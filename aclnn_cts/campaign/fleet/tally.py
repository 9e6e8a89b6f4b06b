"""What the trials of a chunk come to: counts, coverage, and the records and outputs that are kept of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from aclnn_cts.campaign.corpus.check_coverage import limit_key, packed
from aclnn_cts.campaign.corpus.chunk import Chunk, ChunkTrial, Parent
from aclnn_cts.campaign.corpus.corpus import Learned
from aclnn_cts.campaign.corpus.factors import Factors
from aclnn_cts.campaign.fleet.jobs import ChunkResult
from aclnn_cts.checks.laws import LAW_KIND
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.findings.dedup_key import kind_of, outputs_of
from aclnn_cts.findings.finding import EXAMPLES
from aclnn_cts.findings.waivers.report import WaiverEvidence
from aclnn_cts.store.record_codec import key_text
from aclnn_cts.store.summary import Summary
from aclnn_cts.trials.evidence import is_sampled

PARENTS = 8
"""Good cases that a chunk reports."""

ERRORS = 25
"""Errors of a chunk that come with their record; those after them are counted."""

SAMPLE = 256
"""Of so many passed trials of a campaign, which has some thousands a chunk, one is put to all tolerances."""
SAMPLES = 2
"""How many of these are kept of a chunk, with their outputs."""

OUTPUT_BYTES, CHUNK_OUTPUT_BYTES = 1 << 20, 1 << 24
"""Of outputs: most that a record is kept with, and most of a chunk."""

_JUDGED = (Result.PASSED, Result.FAILED)


@dataclass(slots=True)
class Tally:
    """What the trials of a chunk come to."""

    chunk: Chunk
    factors: Factors
    summary: Summary = field(default_factory=Summary)
    records: list[Record] = field(default_factory=list)
    failures: dict[str, Counter[Fingerprint]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    """The gravest kind of fault of each."""
    errors: int = 0
    judged: list[list[int]] = field(default_factory=list)
    unjudged: list[list[int]] = field(default_factory=list)
    """Of what was drawn, the numbers of the factors' values (`Factors.of`)."""
    limits: set[str] = field(default_factory=set)
    limits_unjudged: set[str] = field(default_factory=set)
    worst: float = 0.0
    number: int = 0
    outputs: tuple[bytes, ...] = ()
    """Recorded outputs of the batch that is added."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    blob_bytes: int = 0
    samples: int = 0
    good: list[tuple[float, int]] = field(default_factory=list)
    """Share and draw of the cases that came nearest to their bounds, nearest first."""

    def withhold(self, items: Sequence[ChunkTrial]) -> None:
        """Count the trials of laws that were asked for and could not be generated."""
        made = Counter(item.trial.check for item in items)
        for part in self.chunk.parts:
            if part.kind == LAW_KIND and made[part.check] < part.count:
                law = self.summary.operator(part.operator).law(part.check)
                law.withheld += part.count - made[part.check]

    def add(self, item: ChunkTrial, record: Record) -> None:
        """Count a trial."""
        verdict = record.verdict
        case = record.trial.case
        self.summary.plan(case.operator, case.origin.kind)
        self.summary.add(record)
        judged = verdict.result in _JUDGED
        self.number += judged
        if item.drawing is not None:
            numbers = self.factors.of(item.drawing, case)
            (self.judged if judged else self.unjudged).append(numbers)
        elif record.trial.check == "boundary" and verdict.result != Result.ERROR:
            met = self.limits if record.was_called else self.limits_unjudged
            met.add(limit_key(case, beyond="twin" in record.trial.parameters))
        match verdict.result:
            case Result.PASSED:
                self._pass(item, verdict)
                if self.samples < SAMPLES and is_sampled(record.trial_id, every=SAMPLE) and self._keep_outputs(record):
                    self.samples += 1
                    self.records.append(record)
            case Result.FAILED:
                self._keep(record)
            case Result.ERROR:
                self.errors += 1
                if self.errors <= ERRORS:
                    self.records.append(record)

    def _pass(self, item: ChunkTrial, verdict: Verdict) -> None:
        share = max((part.share for part in verdict.deviations), default=0.0)
        if not math.isfinite(share):
            return
        self.worst = max(self.worst, share)
        if item.draw >= 0 and share > 0.0 and (len(self.good) < PARENTS or share > self.good[-1][0]):
            self.good = sorted([*self.good, (share, item.draw)], key=lambda pair: (-pair[0], pair[1]))[:PARENTS]

    def _keep(self, record: Record) -> None:
        key = key_text(record.key)
        numbers = self.failures.setdefault(key, Counter())
        numbers[record.fingerprint] += 1
        self.kinds[key] = kind_of(record.key, (self.kinds.get(key, ""), record.verdict.kind))
        if numbers.total() <= EXAMPLES:
            self.records.append(record)
            self._keep_outputs(record)

    def _keep_outputs(self, record: Record) -> bool:
        """Keep what a record is judged again from; whether there is any, and room for it."""
        digests = outputs_of(record)
        found = {digest: content for content in self.outputs if (digest := sha256(content).hexdigest()) in digests}
        size = sum(map(len, found.values()))
        if not digests <= set(found) or not found or size > min(OUTPUT_BYTES, CHUNK_OUTPUT_BYTES - self.blob_bytes):
            return False
        self.blobs |= found
        self.blob_bytes += size
        return True

    def result(
        self, parents: tuple[Parent, ...], *, seconds: float, broken_off: int, waivers: WaiverEvidence
    ) -> ChunkResult:
        """All of it."""
        covered = packed(
            self.factors,
            judged=self.judged,
            unjudged=self.unjudged,
            limits=self.limits,
            limits_unjudged=self.limits_unjudged,
        )
        return ChunkResult(
            index=self.chunk.index,
            summary=self.summary,
            learned=Learned(covered=covered, parents=parents, worst=self.worst, judged=self.number),
            records=tuple(self.records),
            blobs=self.blobs,
            failures={key: tuple(numbers.items()) for key, numbers in self.failures.items()},
            kinds=self.kinds,
            seconds=seconds,
            broken_off=broken_off,
            waivers=waivers,
        )
