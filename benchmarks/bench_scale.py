"""What the head of a campaign costs, and how many devices it keeps busy: `make bench-scale`.

A real worker judges chunks of each kind once, on the reference. A dispatcher with a simulated clock then hands these
results to the real head, as 8, 64 and 512 workers would. Two things move the clock: the head's processor time, and the
workers. A trial takes the processor time that the real worker took, and the latency of one call. Each worker has a core
of its own. Disk waits are not counted.

`make bench-scale ARGS=--store` keeps the figures for docs/campaigns-at-scale.md (then: `make docs`).
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from aclnn_cts.cli.output import console, show_table, table, wrap
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.target import Target
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.runs.campaign.corpus.schedule import PLAN
from aclnn_cts.runs.campaign.head import StopLimits
from aclnn_cts.runs.campaign.jobs import ChunkJob, ChunkResult
from aclnn_cts.runs.campaign.resuming import CampaignOptions
from aclnn_cts.runs.campaign.session import fuzz
from aclnn_cts.runs.campaign.worker import CampaignWorker
from aclnn_cts.sandbox.limits import freeze_objects
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.workers.dispatch import Dispatcher
from aclnn_cts.workers.service import encode
from aclnn_cts.workers.slots import Event, JobDone, Slot, SlotHealth
from benchmarks.campaign_rates import open_alone
from benchmarks.measure import Figure
from benchmarks.shown import Row, row, show_rows
from benchmarks.stored import Rounds, figures_of, start, store

NAME = "campaign-scale"
"""Of the stored figures."""

DEVICES = (8, 64, 512)
CALLS = (50e-6, 500e-6, 5e-3)
"""Latency of a call on the device, in seconds."""
FIRST, ROUNDS = 100, 4
"""Chunks of a session: these, and so many for each worker."""

A_CASE, A_CHUNK, A_WORKER = "head, us a case", "head, ms a chunk", "worker, us a case"
EFFICIENCY, HEAD_BUSY, BARRIER = "efficiency", "head busy", "idle for feedback"
FED, CORES = "devices that a head can feed", "cores that the workers keep busy"
NEEDED = (A_CASE, A_CHUNK, A_WORKER, EFFICIENCY, HEAD_BUSY, BARRIER, FED, CORES)
GOAL_DEVICES, GOAL = 64, 0.9


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a real worker answered to a chunk."""

    answer: bytes
    cases: int
    seconds: float
    """Of the worker's processor time."""


class AnswerSource(Protocol):
    """Knows what a worker answers to a chunk."""

    def of(self, job: ChunkJob) -> Recorded:
        """The answer, its cases and what they take."""
        ...


@dataclass(slots=True)
class Recordings:
    """Chunks that a real worker judged: those of the plan, and of each operator one of each phase and size."""

    worker: CampaignWorker
    kept: dict[tuple[str, str, str], Recorded] = field(default_factory=dict)

    def of(self, job: ChunkJob) -> Recorded:
        """The recording for a chunk; it is made where there is none yet."""
        chunk = job.chunk
        key = (chunk.operator, chunk.phase, str(chunk.index if chunk.phase == PLAN else chunk.draws))
        if key not in self.kept:
            began = time.process_time()
            result = self.worker.judge(chunk)
            seconds = time.process_time() - began
            self.kept[key] = Recorded(encode(result), result.summary.total.cases, seconds)
        return self.kept[key]


@dataclass(slots=True)
class Timeline:
    """Simulated seconds of a session, from the first job to the last answer."""

    devices: int
    end: float = 0.0
    busy: float = 0.0
    """Of all workers together."""
    head: float = 0.0
    barrier: float = 0.0
    """Idle seconds of all workers together while the head had nothing to hand out."""
    cases: int = 0
    chunks: int = 0
    worker: float = 0.0
    """Of all workers together, without the latency of calls."""

    @property
    def efficiency(self) -> float:
        """Share of the workers' time in which they work."""
        return self.busy / (self.devices * self.end)


class SimulatedDispatcher:
    """Workers without processes: each answers with a recording, at a time that is reckoned.

    The head's processor time between two calls of this interface moves the simulated clock on.
    """

    def __init__(self, recordings: AnswerSource, *, devices: int, call_seconds: float, chunks: int) -> None:
        """`chunks`: after so many answers the session is interrupted, as by Ctrl-C."""
        self._recordings = recordings
        self._call_seconds = call_seconds
        self._chunks = chunks
        self._slots = [Slot(f"worker {number}", f"device {number}", SlotHealth.READY) for number in range(devices)]
        self._due: dict[int, tuple[float, float, Recorded, int]] = {}
        self._mark: float | None = None
        self.timeline = Timeline(devices)

    @property
    def slots(self) -> Sequence[Slot]:
        """All open from the start."""
        return self._slots

    @property
    def progress_by_slot(self) -> Sequence[None]:
        """Nobody is told how far a worker is."""
        return [None] * len(self._slots)

    def submit(self, slot: int, job: msgspec.Struct) -> None:
        """Begin a chunk at the simulated moment."""
        if not isinstance(job, ChunkJob):
            raise HarnessError("the reference implementation has a finding: correct it before its scale is measured")
        encode(job)
        self._tick()
        recorded = self._recordings.of(job)
        self._mark = time.process_time()  # a recording that was made now is nobody's time
        now = self.timeline.end
        seconds = recorded.seconds + recorded.cases * self._call_seconds
        self._due[slot] = (now + seconds, now, recorded, job.chunk.index)
        self._slots[slot].health = SlotHealth.BUSY

    def wait(self, seconds: float) -> list[Event]:
        """The answers that are due; where none is, the clock moves on to the next."""
        del seconds
        self._tick()
        if not self._due:
            raise HarnessError("no chunk is under way, and none is ready")
        line = self.timeline
        first = min(due for due, *_ in self._due.values())
        if first > line.end:
            line.barrier += (first - line.end) * (line.devices - len(self._due))
            line.end = first
        events: list[Event] = []
        for number in [number for number, (due, *_) in self._due.items() if due <= line.end]:
            due, began, recorded, index = self._due.pop(number)
            line.busy += due - began
            line.worker += recorded.seconds
            line.cases += recorded.cases
            line.chunks += 1
            self._slots[number].health = SlotHealth.READY
            answer = msgspec.msgpack.decode(recorded.answer, type=ChunkResult)
            events.append(JobDone(number, msgspec.structs.replace(answer, index=index)))
        if line.chunks >= self._chunks:
            line.busy += sum(line.end - began for _, began, *_ in self._due.values())
            raise KeyboardInterrupt
        return events

    def close(self) -> None:
        """There is nothing to end."""

    def _tick(self) -> None:
        """Let the simulated clock follow the head's processor time."""
        now = time.process_time()
        if self._mark is not None:
            self.timeline.head += now - self._mark
            self.timeline.end += now - self._mark
        self._mark = now


def simulate(specs: Specs, target: Target, recordings: Recordings, *, devices: int, call_seconds: float) -> Timeline:
    """One session of the real head over so many simulated devices."""
    folder = Path(tempfile.mkdtemp(prefix="aclnn-cts-bench-"))
    options = CampaignOptions(
        arguments=(),
        specs=specs,
        operators=specs.select([]),
        settings=RunnerSettings(adapter="reference", target=target),
        out=folder / "run",
        stop=StopLimits(),
        workers=devices,
    )
    dispatcher = SimulatedDispatcher(
        recordings, devices=devices, call_seconds=call_seconds, chunks=FIRST + ROUNDS * devices
    )

    def opened(_: CampaignOptions) -> contextlib.AbstractContextManager[Dispatcher]:
        return contextlib.closing(dispatcher)

    try:
        with contextlib.suppress(KeyboardInterrupt):
            fuzz(options, dispatcher=opened)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return dispatcher.timeline


def scale(specs: Specs, target: Target, devices: Sequence[int], calls: Sequence[float]) -> Rounds:
    """Every number of devices at every latency; head and worker by the case, over all of them."""
    found: dict[str, list[float]] = {A_CASE: [], A_CHUNK: [], A_WORKER: []}
    with open_alone("reference", target) as worker:
        recordings = Recordings(worker)
        simulate(specs, target, recordings, devices=devices[0], call_seconds=calls[0])  # makes recordings
        for number in devices:
            for call in calls:
                line = simulate(specs, target, recordings, devices=number, call_seconds=call)
                found[A_CASE].append(line.head / line.cases * 1e6)
                found[A_CHUNK].append(line.head / line.chunks * 1e3)
                found[A_WORKER].append(line.worker / line.cases * 1e6)
                which = point(number, call)
                found[f"{EFFICIENCY}, {which}"] = [line.efficiency]
                found[f"{HEAD_BUSY}, {which}"] = [line.head / line.end]
                found[f"{BARRIER}, {which}"] = [line.barrier / (line.devices * line.end)]
                found[f"{FED}, {which}"] = [line.busy / line.head]
                found[f"{CORES}, {which}"] = [line.worker / line.end]
    return found


def point(devices: int, call: float) -> str:
    """Name of one simulation."""
    return f"{devices} devices at {call * 1e6:g} us a call"


def shown(rounds: Rounds) -> Iterator[Row]:
    """The costs, then a row a simulation with what its workers wait for."""
    for name in (A_CASE, A_CHUNK, A_WORKER):
        yield row(name, Figure(tuple(rounds[name])), ".1f")
    for which, figure in figures_of(rounds, EFFICIENCY).items():
        least = GOAL if which.startswith(f"{GOAL_DEVICES} ") else None
        yield row(f"{EFFICIENCY}, {which}", figure, ".3f", least=least)


TITLES = ("simulated", "efficiency", "idle for the head", BARRIER, HEAD_BUSY, FED, CORES)


def columns(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """A row a simulation: what the workers wait for, and what one more device would need."""
    others = {name: figures_of(rounds, name) for name in (BARRIER, HEAD_BUSY, FED, CORES)}
    for which, figure in figures_of(rounds, EFFICIENCY).items():
        barrier, head, fed, cores = (other[which].median for other in others.values())
        idle = max(1.0 - figure.median - barrier, 0.0)
        yield (
            which,
            f"{figure.median:.3f}",
            f"{idle:.1%}",
            f"{barrier:.1%}",
            f"{head:.1%}",
            f"{fed:,.0f}",
            f"{cores:,.0f}",
        )


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_scale", description=__doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=DEVICES, metavar="N", help="numbers of devices")
    parser.add_argument(
        "--store", action="store_true", help="keep the figures for docs/campaigns-at-scale.md (then: make docs)"
    )
    options = parser.parse_args(arguments)
    if options.store and tuple(options.devices) != DEVICES:
        parser.error("--store keeps the figures of all numbers of devices: give it alone")
    out = console()
    freeze_objects()  # as a campaign's head does
    started = start()
    wrap(out, f"scale: on {started.text}")
    out.print()
    rounds = scale(load_specs().for_product(Target().product), Target(), options.devices, CALLS)
    show_rows(out, list(shown(rounds)))
    made = table(*TITLES)
    for cells in columns(rounds):
        made.add_row(*cells)
    show_table(out, made)
    if options.store:
        store(NAME, rounds, command="make bench-scale ARGS=--store", started=started, needed=NEEDED)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
