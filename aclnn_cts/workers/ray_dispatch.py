"""Workers on a Ray cluster: one actor a device, and below it the same worker process as on one machine.

The actor takes no crash: an implementation that dies ends its own process, a worker that dies is replaced by the actor,
and a host that is lost ends the actor, which costs the one chunk that it had. Another actor is asked for in its place.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import msgspec
import ray

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.store.scratch import memory_folder, scratch_folder
from aclnn_cts.workers.dispatch import LocalDispatcher
from aclnn_cts.workers.notes import WorkerProgress
from aclnn_cts.workers.service import Service, WorkerFailed, WorkerOpened, answer_decoder, encode, job_decoder
from aclnn_cts.workers.shipping import ship
from aclnn_cts.workers.slots import Event, JobDone, Slot, SlotHealth, WorkerBackoff, WorkerLost, WorkerUnavailable

CLOSE_SECONDS = 5.0
"""How long actors are waited for that put their things away."""

_DONE, _LOST = "done", "lost"


class ShippedService(Service, Protocol):
    """What can be opened on a node of a cluster."""

    def on_node(self, folder: Path, *, cores: int) -> Service:
        """The same on a node with so many cores, where `ship` has filled the folder."""
        ...


class _Station:
    """The actor: watches one worker process on its node."""

    def __init__(self, service: bytes) -> None:
        # The code came as the working directory; the worker process is to find the same.
        here = Path.cwd()
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(here), os.environ.get("PYTHONPATH", "")]))
        sys.path.insert(0, str(here))
        given: ShippedService = pickle.loads(service)  # noqa: S301 - from the head of the same campaign
        self._service = given.on_node(here, cores=os.cpu_count() or 1)
        self._things = contextlib.ExitStack()
        self._dispatcher: LocalDispatcher | None = None

    def open(self) -> tuple[str, bytes]:
        """Wait until the worker is open, or cannot be; the node and the device, and an Opened or a Failed.

        What cannot be opened is not tried again here: another actor may come to another node.
        """
        try:
            if self._dispatcher is None:
                folder = self._things.enter_context(scratch_folder(memory_folder()))
                self._dispatcher = LocalDispatcher([self._service], folder=folder)
                self._things.enter_context(contextlib.closing(self._dispatcher))
            while self._dispatcher.slots[0].health != SlotHealth.READY:
                for event in self._dispatcher.wait(1.0):
                    if isinstance(event, WorkerUnavailable):
                        return self._where(), encode(WorkerFailed(event.reason))
        except (UsageError, HarnessError) as error:
            return self._where(), encode(WorkerFailed(str(error), usage=isinstance(error, UsageError)))
        return self._where(), encode(WorkerOpened())

    def _where(self) -> str:
        """The node and the device: what tells devices apart."""
        context = ray.get_runtime_context()
        ids = [f"{kind} {number}" for kind, numbers in context.get_accelerator_ids().items() for number in numbers]
        return " ".join(filter(None, [context.get_node_id()[:8], *ids, self._service.device]))

    def do(self, job: bytes) -> tuple[str, bytes]:
        """Do a job, once open; an answer, or why the worker was lost, and whether it was open."""
        if self._dispatcher is None:
            return _lost(WorkerLost(0, "it was never open", begun=False))
        self._dispatcher.submit(0, job_decoder(self._service)(job))
        while True:
            try:
                events = self._dispatcher.wait(1.0)
            except (UsageError, HarnessError) as error:
                return _lost(WorkerLost(0, str(error), begun=False))
            for event in events:
                if isinstance(event, JobDone):
                    return _DONE, encode(event.answer)
                if isinstance(event, WorkerLost):
                    return _lost(event)

    def close(self) -> None:
        """End the worker, and remove what it noted."""
        self._things.close()


class RayDispatcher:
    """Hands jobs to actors. `address` is Ray's, or `local` for a cluster of this machine alone."""

    def __init__(
        self,
        services: Sequence[ShippedService],
        *,
        address: str,
        resource: str,
        adapter: str,
        folders: Sequence[Path],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`resource`: what each actor takes one of (`NPU`, `GPU`); empty: one CPU.

        `adapter`, `folders`: what is shipped to the nodes.

        Raises HarnessError where there is no cluster.
        """
        self._services = [pickle.dumps(each) for each in services]
        self._decode = answer_decoder(services[0])
        self._decode_lost = msgspec.msgpack.Decoder(WorkerLost[services[0].answers | WorkerFailed]).decode  # type: ignore[misc]  # known when it runs
        self._resource = resource
        self._slots = [Slot(f"worker {number}") for number in range(len(services))]
        self._openings = WorkerBackoff(
            self._slots, nothing=f"--cluster: no node has had {resource or 'a CPU'} to spare and opened it", clock=clock
        )
        self._actors: list[Any] = [None] * len(services)
        self._opening: dict[Any, int] = {}
        self._working: dict[Any, int] = {}
        self._things = contextlib.ExitStack()
        try:
            folder = self._things.enter_context(scratch_folder(Path(tempfile.gettempdir())))
            shipped = folder / "shipped"
            ship(shipped, adapter, folders)
            self._connect(address, len(services), shipped)
        except BaseException:
            self._things.close()
            raise
        self._actor = ray.remote(_Station)
        self._start_due()

    def _connect(self, address: str, workers: int, shipped: Path) -> None:
        here: dict[str, Any] = {}
        if address == "local":
            here = {"num_cpus": max(workers, os.cpu_count() or 1), "include_dashboard": False, "resources": {}}
            if self._resource not in ("", "GPU"):
                here["resources"] = {self._resource: float(workers)}
        environment = {"working_dir": str(shipped)}
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", runtime_env=environment, **here)
        except (ConnectionError, ImportError, ValueError, RuntimeError, OSError, TimeoutError) as error:
            said = str(error).strip().partition("\n")[0]
            raise HarnessError(f"--cluster {address}: no cluster answers: {said}") from None

    @property
    def slots(self) -> Sequence[Slot]:
        """The actors, with their health."""
        return self._slots

    @property
    def progress_by_slot(self) -> Sequence[WorkerProgress | None]:
        """Not known here: the workers' notes lie on their nodes."""
        return [None] * len(self._slots)

    def submit(self, slot: int, job: msgspec.Struct) -> None:
        """Give an idle actor a job."""
        self._slots[slot].health = SlotHealth.BUSY
        self._working[self._actors[slot].do.remote(encode(job))] = slot

    def wait(self, seconds: float) -> list[Event]:
        """What has happened."""
        self._openings.check_slots()
        self._start_due()
        seconds = self._openings.until_due(seconds)
        pending = [*self._working, *self._opening]
        if not pending:
            time.sleep(seconds)
            return []
        ready, _ = ray.wait(pending, num_returns=len(pending), timeout=0)
        if not ready:
            ready, _ = ray.wait(pending, num_returns=1, timeout=seconds)
        return [event for reference in ready for event in self._heard(reference)]

    def _heard(self, reference: Any) -> list[Event]:  # noqa: ANN401 - an object of Ray's
        opening = reference in self._opening
        number = self._opening.pop(reference) if opening else self._working.pop(reference)
        try:
            said = ray.get(reference)
        except ray.exceptions.RayError as error:
            return self._gone(number, error, opening=opening)
        return self._opened(number, *said) if opening else self._did(number, *said)

    def _gone(self, number: int, error: Exception, *, opening: bool) -> list[Event]:
        """An actor does not answer any more: another takes its place, on another node where this one is lost."""
        self._let_go(number)
        if opening:
            # What the actor's own code raises, a module that is missing on the node say, stands in the last line.
            told = str(error).strip().splitlines()[-1:] if isinstance(error, ray.exceptions.RayTaskError) else []
            return self._openings.note_failed(
                number, f"its actor was lost ({': '.join([type(error).__name__, *told])})"
            )
        self._slots[number].lost += 1
        self._openings.note_lost(number)
        return [WorkerLost(number, f"its host or actor is gone ({type(error).__name__})")]

    def _opened(self, number: int, device: str, content: bytes) -> list[Event]:
        answer = self._decode(content)
        self._slots[number].device = device
        if isinstance(answer, WorkerFailed):
            self._let_go(number)
            return self._openings.note_failed(number, answer.message, usage=answer.usage)
        self._slots[number].health = SlotHealth.READY
        return self._openings.note_opened(number)

    def _did(self, number: int, kind: str, content: bytes) -> list[Event]:
        slot = self._slots[number]
        if kind == _DONE:
            slot.health = SlotHealth.READY
            return [JobDone(number, self._decode(content))]
        event = replace(self._decode_lost(content), slot=number)
        slot.lost += event.begun
        # The actor opens another worker by itself.
        self._openings.note_lost(number)
        return [event]

    def _let_go(self, number: int) -> None:
        actor, self._actors[number] = self._actors[number], None
        if actor is not None:
            _end([actor])

    def _start_due(self) -> None:
        """Wait for the actors of slots to be open, or ask for them; one comes when a node has room for it."""
        for number in self._openings.due_slots():
            if self._actors[number] is None:
                self._actors[number] = self._asked_for(number)
            self._opening[self._actors[number].open.remote()] = number

    def _asked_for(self, number: int) -> Any:  # noqa: ANN401 - an object of Ray's
        demand: dict[str, Any] = {"num_cpus": 1}
        if self._resource == "GPU":
            demand = {"num_cpus": 0, "num_gpus": 1}
        elif self._resource:
            demand = {"num_cpus": 0, "resources": {self._resource: 1}}
        actor = self._actor.options(**demand, max_restarts=0, scheduling_strategy="SPREAD")
        return actor.remote(self._services[number])

    def close(self) -> None:
        """End all actors, and leave the cluster. What one at work has noted is swept by the next on its node."""
        busy = {*self._working.values(), *self._opening.values()}
        _end([actor for number, actor in enumerate(self._actors) if actor is not None and number not in busy])
        ray.shutdown()
        self._things.close()


def _lost(event: WorkerLost[Any]) -> tuple[str, bytes]:
    return _LOST, encode(event)


def _end(actors: Sequence[Any]) -> None:
    """End actors, which put their things away if they can."""
    with contextlib.suppress(ray.exceptions.RayError, ValueError):
        ray.wait([actor.close.remote() for actor in actors], num_returns=len(actors), timeout=CLOSE_SECONDS)
    for actor in actors:
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.kill(actor)
