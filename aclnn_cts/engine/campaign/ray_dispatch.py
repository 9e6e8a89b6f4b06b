"""Workers of a campaign on a Ray cluster: one actor a device, and below it the same worker process as on one machine.

The actor takes no crash: an implementation that dies ends its own process, a worker that dies is replaced by the actor,
and a host that is lost ends the actor, which costs the one chunk that it had. Another actor is asked for in its place.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import ray

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.engine.campaign.dispatch import Done, Health, LocalDispatcher, Lost, Slot
from aclnn_cts.engine.campaign.flight import InFlight, Position
from aclnn_cts.engine.campaign.jobs import Failed, Job, WorkerOptions, decode_answer, decode_job, encode

__all__ = ["RayDispatcher"]

PATIENCE_SECONDS = 600.0
"""Without any worker for so long the campaign ends."""

_DONE, _LOST = "done", "lost"


class _Station:
    """The actor: watches one worker process on its node."""

    def __init__(self, options: bytes) -> None:
        # The code came as the working directory; the worker process is to find the same.
        here = Path.cwd()
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(here), os.environ.get("PYTHONPATH", "")]))
        sys.path.insert(0, str(here))
        given: WorkerOptions = pickle.loads(options)  # noqa: S301 - from the head of the same campaign
        folders = tuple(here / "specs" / str(number) for number in range(len(given.settings.spec_folders)))
        given = replace(given, settings=replace(given.settings, spec_folders=folders))
        self._folder = Path(tempfile.mkdtemp(prefix="aclnn-cts-"))
        self._dispatcher = LocalDispatcher([given], folder=self._folder)

    def where(self) -> str:
        """The node and the device: what tells devices apart."""
        context = ray.get_runtime_context()
        ids = [f"{kind} {number}" for kind, numbers in context.get_accelerator_ids().items() for number in numbers]
        return " ".join([context.get_node_id()[:8], *ids])

    def do(self, job: bytes, *, fresh: bool) -> tuple[str, bytes]:
        """Do a job; an answer, or why the worker was lost and what was under way."""
        self._dispatcher.submit(0, decode_job(job), fresh=fresh)
        while True:
            try:
                events = self._dispatcher.wait(1.0)
            except (UsageError, HarnessError) as error:
                return _DONE, encode(Failed(str(error), usage=isinstance(error, UsageError)))
            for event in events:
                if isinstance(event, Done):
                    return _DONE, encode(event.answer)
                return _LOST, msgspec.msgpack.encode((event.reason, event.flight))


class RayDispatcher:
    """Hands jobs to actors. `address` is Ray's, or `local` for a cluster of this machine alone."""

    def __init__(
        self, options: Sequence[WorkerOptions], *, address: str, resource: str, folders: Sequence[Path]
    ) -> None:
        """`resource`: what each actor takes one of (`NPU`, `GPU`); empty: one CPU.

        Raises HarnessError where there is no cluster.
        """
        self._options = [pickle.dumps(each) for each in options]
        self._resource = resource
        self._folder = Path(tempfile.mkdtemp(prefix="aclnn-cts-"))
        self._slots = [Slot(f"worker {number}", "", Health.OUT) for number in range(len(options))]
        self._actors: list[Any] = [None] * len(options)
        self._opening: dict[Any, int] = {}
        self._working: dict[Any, int] = {}
        self._alive = time.monotonic()
        try:
            _ship(self._folder, options[0].settings.adapter, folders)
            self._connect(address, len(options))
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._actor = ray.remote(_Station)
        for number in range(len(options)):
            self._start(number)

    def _connect(self, address: str, workers: int) -> None:
        environment = {"working_dir": str(self._folder)}
        try:
            if address == "local":
                more = {self._resource: float(workers)} if self._resource not in ("", "GPU") else {}
                ray.init(
                    address="local",
                    num_cpus=max(workers, os.cpu_count() or 1),
                    resources=more,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="ERROR",
                    runtime_env=environment,
                )
            else:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR", runtime_env=environment)
        except (ConnectionError, ImportError, ValueError, RuntimeError, OSError, TimeoutError) as error:
            said = str(error).strip().partition("\n")[0]
            raise HarnessError(f"--cluster {address}: no cluster answers: {said}") from None

    @property
    def slots(self) -> Sequence[Slot]:
        """The actors, with their health."""
        return self._slots

    @property
    def positions(self) -> Sequence[Position | None]:
        """Not known here: the workers' notes lie on their nodes."""
        return [None] * len(self._slots)

    def submit(self, slot: int, job: Job, *, fresh: bool = False) -> None:
        """Give an idle actor a job."""
        self._slots[slot].health = Health.BUSY
        self._working[self._actors[slot].do.remote(encode(job), fresh=fresh)] = slot

    def wait(self, seconds: float) -> list[Done | Lost]:
        """What has happened."""
        pending = [*self._working, *self._opening]
        ready, _ = ray.wait(pending, num_returns=len(pending), timeout=0) if pending else ([], [])
        if not ready and pending:
            ready, _ = ray.wait(pending, num_returns=1, timeout=seconds)
        events = [event for reference in ready if (event := self._heard(reference)) is not None]
        if any(slot.health != Health.OUT for slot in self._slots):
            self._alive = time.monotonic()
        elif time.monotonic() - self._alive > PATIENCE_SECONDS:
            raise HarnessError(
                f"--cluster: no node has had {self._resource or 'a CPU'} to spare for {PATIENCE_SECONDS:.0f} s"
            )
        return events

    def _heard(self, reference: Any) -> Done | Lost | None:  # noqa: ANN401 - an object of Ray's
        opening = self._opening.pop(reference, None)
        number = self._working.pop(reference) if opening is None else opening
        try:
            said = ray.get(reference)
        except ray.exceptions.RayError as error:
            if opening is not None and isinstance(error, ray.exceptions.RayTaskError):
                raise HarnessError(f"--cluster: {str(error).strip().splitlines()[-1]}") from None
            reason = f"its host or actor is gone ({type(error).__name__})"
            self._slots[number].lost += 1
            self._slots[number].health = Health.OUT
            self._start(number)
            return None if opening is not None else Lost(number, reason)
        self._slots[number].health = Health.READY
        if opening is not None:
            self._slots[number].device = str(said)
            return None
        kind, content = said
        if kind == _LOST:
            self._slots[number].lost += 1
            reason, flight = msgspec.msgpack.decode(content, type=tuple[str, InFlight | None])
            return Lost(number, reason, flight)
        return Done(number, decode_answer(content))

    def _start(self, number: int) -> None:
        """Ask for an actor; it comes when a node has room for it."""
        demand: dict[str, Any] = {"num_cpus": 1}
        if self._resource == "GPU":
            demand = {"num_cpus": 0, "num_gpus": 1}
        elif self._resource:
            demand = {"num_cpus": 0, "resources": {self._resource: 1}}
        actor = self._actor.options(**demand, max_restarts=0, scheduling_strategy="SPREAD")
        self._actors[number] = actor.remote(self._options[number])
        self._opening[self._actors[number].where.remote()] = number

    def close(self) -> None:
        """End all actors, and leave the cluster."""
        for actor in self._actors:
            if actor is not None:
                with contextlib.suppress(ray.exceptions.RayError, ValueError):
                    ray.kill(actor)
        ray.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)


def _ship(folder: Path, adapter: str, spec_folders: Sequence[Path]) -> None:
    """Lay out what nodes run: this package, the user's specs and oracles, and an adapter of the user's own."""
    package = Path(__file__).resolve().parents[2]
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(package, folder / "aclnn_cts", ignore=ignore)
    for number, specs in enumerate(spec_folders):
        shutil.copytree(specs, folder / "specs" / str(number), ignore=ignore)
    for path in _own_module(adapter):
        target = folder / path.name
        if path.is_dir():
            shutil.copytree(path, target, ignore=ignore)
        else:
            shutil.copy2(path, target)


def _own_module(adapter: str) -> Iterator[Path]:
    """The file or folder of the module that an adapter's word names, where it lies in no installation."""
    from aclnn_cts.adapters.registry import choose  # noqa: PLC0415 - only a cluster needs it

    top = choose(adapter).factory.partition(":")[0].partition(".")[0]
    if top == "aclnn_cts":
        return
    found = importlib.util.find_spec(top)
    if found is None or found.origin is None or "site-packages" in found.origin:
        return
    origin = Path(found.origin)
    yield origin.parent if origin.name == "__init__.py" else origin
    # What it imports from beside it, as a script would find it.
    if origin.name != "__init__.py":
        yield from (each for each in origin.parent.glob("*.py") if each != origin)
