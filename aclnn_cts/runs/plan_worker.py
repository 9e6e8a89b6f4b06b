"""The plan of a run on several workers, its parts handed out one by one.

Results come in the order of the plan, whatever the workers' pace: a run's records do not depend on their number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.waivers.file import Waiver
from aclnn_cts.findings.waivers.matching import waivers_of_run
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.plan import Part
from aclnn_cts.trials.trial_runner import JudgedBatch, TrialRunner
from aclnn_cts.workers.notes import ProgressNotes
from aclnn_cts.workers.pool import TRIES, run_jobs
from aclnn_cts.workers.service import Worker


class PartJob(msgspec.Struct, frozen=True, tag="part"):
    """Run a part of a plan."""

    part: Part
    seed: int


class PartResult(msgspec.Struct, frozen=True, tag="batches"):
    """All that a part came to, as `TrialRunner.run_parts` gives it."""

    batches: tuple[tuple[Part, int, JudgedBatch], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanService:
    """What the workers of a run are opened with (`workers.service.Service`)."""

    jobs: ClassVar = PartJob
    answers: ClassVar = PartResult
    device: ClassVar[str] = ""

    settings: RunnerSettings
    waivers: tuple[Waiver, ...]

    @property
    def opens(self) -> str:
        """The adapter."""
        return f"--adapter {self.settings.adapter}"

    def open(self, notes: ProgressNotes) -> Worker:
        """Open the implementation. Raises as `open_host` does."""
        settings = self.settings
        specs = load_specs(settings.spec_folders, edition=settings.edition)
        host = settings.open_host(specs)
        waivers = waivers_of_run(
            self.waivers,
            settings=settings,
            environment=host.environment,
            bindings=host.capabilities.bindings,
            specs=specs,
        )
        benchmark = settings.open_benchmark(specs)
        runner = TrialRunner(
            specs=specs,
            host=host,
            settings=settings,
            is_waived=waivers.covers,
            sample_waived=True,
            benchmark=benchmark,
        )

        def do(job: PartJob) -> PartResult:
            batches: list[tuple[Part, int, JudgedBatch]] = []
            for batch in runner.run_parts([job.part], seed=job.seed):
                batches.append(batch)
                notes.note_batch(0, len(batches), 0)
            return PartResult(tuple(batches))

        return Worker(do, host, benchmark)


def judge_parts(
    parts: Sequence[Part], *, settings: RunnerSettings, seed: int, workers: int, waivers: tuple[Waiver, ...]
) -> Iterator[tuple[Part, int, JudgedBatch]]:
    """Judge parts on worker processes, as `TrialRunner.run_parts` does in this one. Raises as `run_jobs` does."""

    def lost(number: int, reason: str) -> str:
        part = parts[number]
        return (
            f"{part.operator}, check {part.check}: {TRIES} workers were lost with it, the last since {reason}; "
            "run with fewer workers if memory is short, or with --workers 1 to see why"
        )

    service = PlanService(settings=settings, waivers=waivers)
    jobs = [PartJob(part, seed) for part in parts]
    with contextlib.closing(run_jobs(service, jobs, workers=workers, lost=lost, in_order=True)) as results:
        for result in results:
            yield from result.batches
