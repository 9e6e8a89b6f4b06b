"""What workers are opened with, and what goes between them and the head as MessagePack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.workers.notes import ProgressNotes

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Worker:
    """What does one job after the other in a process of its own."""

    do: Callable[[Any], Any]
    """Does a job: one of `Service.jobs` becomes one of `Service.answers`."""
    host: SessionHost | None = None
    """The implementation that it holds open, if it holds one."""
    benchmark: SessionHost | None = None
    """The second one that it compares with, if there is one."""


class Service(Protocol):
    """What one worker is opened with. Pickled."""

    @property
    def jobs(self) -> Any:  # noqa: ANN401 - a type
        """The structs that it may be asked for, each with a tag."""
        ...

    @property
    def answers(self) -> Any:  # noqa: ANN401 - a type
        """The structs that it answers with, each with a tag."""
        ...

    @property
    def opens(self) -> str:
        """What its worker opens, in words (`--adapter torch`)."""
        ...

    @property
    def device(self) -> str:
        """Its device in words; empty where that tells no workers apart."""
        ...

    def open(self, notes: ProgressNotes) -> Worker:
        """Make the worker. Raises UsageError where the words are wrong, HarnessError where something is missing."""
        ...


class WorkerOpened(msgspec.Struct, frozen=True, tag="opened"):
    """A worker is ready."""


class WorkerFailed(msgspec.Struct, frozen=True, tag="failed"):
    """A worker cannot go on, and says why."""

    message: str
    usage: bool = False


class ImplementationGone(msgspec.Struct, Generic[A], frozen=True, tag="gone"):
    """The implementation is gone, and the worker with it: what a job came to that it could not finish."""

    reason: str
    answer: A | WorkerFailed


def _plain(value: Any) -> Any:  # noqa: ANN401 - a NumPy scalar among a verdict's facts
    return value.item()


encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
"""A job or an answer as bytes."""


def job_decoder(service: Service) -> Callable[[bytes], Any]:
    """Reads a job of `encode`."""
    return msgspec.msgpack.Decoder(service.jobs).decode


def answer_decoder(service: Service) -> Callable[[bytes], Any]:
    """Reads what a worker says: `WorkerOpened`, `WorkerFailed`, `ImplementationGone`, or one of its answers."""
    gone = ImplementationGone[service.answers]  # type: ignore[name-defined]  # known when it runs
    return msgspec.msgpack.Decoder(WorkerOpened | WorkerFailed | gone | service.answers).decode
