"""The plan of a run on several workers, its parts handed out one by one.

Results come in the order of the plan, whatever the workers' pace: a run's records do not depend on their number.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from aclnn_cts.campaign.corpus.schedule import PLAN, Chunk
from aclnn_cts.campaign.fleet.dispatch import LocalDispatcher, memory_folder, scratch_folder
from aclnn_cts.campaign.fleet.jobs import Failed, PlanJob, PlanResult, WorkerOptions
from aclnn_cts.campaign.fleet.slots import Done, Event, Health, Lost
from aclnn_cts.checks.plan import Part
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.waivers.file import Waiver
from aclnn_cts.trials.trial_runner import Judged

AHEAD = 3
"""Parts a worker that may be finished before an earlier one is: bounds what waits in memory."""
TRIES = 2
"""Workers that a part may cost."""
_WAIT_SECONDS = 0.5


@dataclass(slots=True)
class _Handout:
    """Which parts are under way, and what came of those that are not yet in turn."""

    chunks: Sequence[Chunk]
    next: int = 0
    """To be handed out."""
    again: list[int] = field(default_factory=list)
    working: dict[int, int] = field(default_factory=dict)
    """Number of the part by slot."""
    tries: Counter[int] = field(default_factory=Counter)
    finished: dict[int, PlanResult] = field(default_factory=dict)

    def take(self, told: int, most: int) -> int | None:
        """The next part, where less than `most` are not told by now; None where there is none."""
        if self.again:
            return self.again.pop()
        if self.next == len(self.chunks) or self.next - told >= most:
            return None
        self.next += 1
        return self.next - 1

    def heard(self, event: Event) -> None:
        """Take an answer, or hand a part out again whose worker was lost."""
        if isinstance(event, Done):
            number = self.working.pop(event.slot)
            if isinstance(event.answer, Failed):
                raise (UsageError if event.answer.usage else HarnessError)(event.answer.message)
            if isinstance(event.answer, PlanResult):
                self.finished[number] = event.answer
        elif isinstance(event, Lost):
            number = self.working.pop(event.slot)
            self.tries[number] += event.begun
            if self.tries[number] >= TRIES:
                part = self.chunks[number].parts[0]
                raise HarnessError(
                    f"{part.operator}, check {part.check}: {TRIES} workers were lost with it, the last since "
                    f"{event.reason}; run with fewer workers if memory is short, or with --workers 1 to see why"
                )
            self.again.append(number)


def judge_parts(
    parts: Sequence[Part], *, settings: BenchSettings, seed: int, workers: int, waivers: tuple[Waiver, ...]
) -> Iterator[tuple[Part, int, Judged]]:
    """Judge parts on so many worker processes, as `Bench.run_parts` does in this one.

    A part whose worker is lost is run again by another. HarnessError where it costs that one too, and where no worker
    can be opened.
    """
    options = WorkerOptions(settings=settings, waivers=waivers, conformance=True)
    handout = _Handout(
        [
            Chunk(index=number, seed=seed, snapshot="", phase=PLAN, operator=part.operator, parts=(part,))
            for number, part in enumerate(parts)
        ]
    )
    told = 0
    with (
        scratch_folder(memory_folder()) as folder,
        contextlib.closing(LocalDispatcher([options] * workers, folder=folder)) as dispatcher,
    ):
        while told < len(parts):
            for slot, place in enumerate(dispatcher.slots):
                if place.health == Health.READY and (number := handout.take(told, AHEAD * workers)) is not None:
                    handout.working[slot] = number
                    dispatcher.submit(slot, PlanJob(handout.chunks[number]))
            while told in handout.finished:
                yield from handout.finished.pop(told).batches
                told += 1
            if told < len(parts):
                for event in dispatcher.wait(_WAIT_SECONDS):
                    handout.heard(event)
