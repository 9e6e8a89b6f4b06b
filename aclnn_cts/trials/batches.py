"""Trials that are made and judged together: few enough for their data to lie side by side."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Verdict
from aclnn_cts.execution.executor import Performed, Prepared
from aclnn_cts.speclang.evaluate import Evaluation

BATCH_TRIALS = 128
"""Enough for what is done with all of a batch at once to cost each trial little, and few enough for what they leave to
stay in a processor's cache."""
BATCH_BYTES = 1 << 26
"""Of arguments."""
_OVERLAPPED = 64
"""Trials of a batch that is at work while another is judged: nobody is while the first one of a chunk is."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """Trials on their way to their records."""

    trials: Sequence[Trial]
    evaluations: Sequence[Evaluation]
    skipped: Sequence[Verdict | None]
    """The verdict on what is not to be run."""
    spans: Sequence[tuple[int, int]]
    """Of each trial, the first of its calls and the first that is not its own."""
    prepared: Prepared
    seconds: float
    """Spent on it."""
    performed: Sequence[Performed] = ()
    finished: bool = False

    def finish(self) -> None:
        """Wait until the calls are made, unless that was done; afterwards nothing of it is under way."""
        if not self.finished:
            began = time.perf_counter()
            self.performed, self.finished = self.prepared.performed(), True
            self.seconds += time.perf_counter() - began


def batches(trials: Iterable[Trial], *, max_bytes: int, overlapped: bool = False) -> Iterator[Sequence[Trial]]:
    """Cut trials into batches; of a case beyond `max_bytes`, which is not run, no more than that is reckoned.

    `overlapped`: one is made while another is judged.
    """
    most = _OVERLAPPED if overlapped else BATCH_TRIALS
    batch: list[Trial] = []
    size = 0
    for trial in trials:
        batch.append(trial)
        size += min(trial.nbytes, max_bytes)
        if len(batch) >= most or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
