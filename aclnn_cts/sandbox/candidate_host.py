"""The judge's side of a candidate's function: a confined process that has nothing of the suite on its path.

Calls are made one by one: the outputs of each are looked at as soon as it has answered, and once more after its batch.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Buffers, Call, Capabilities
from aclnn_cts.core.case import Argument, BoolArray, Case, FloatArray, Scalar, Tensor, TensorList, number
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outcome import BufferState, CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.sandbox import candidate_program
from aclnn_cts.sandbox.child import Child, ChildEnd
from aclnn_cts.sandbox.confinement import ConfinementPlan
from aclnn_cts.sandbox.declaration import Declaration
from aclnn_cts.sandbox.limits import RunnerLimits
from aclnn_cts.sandbox.process import Answers, ProcessHost, Runners
from aclnn_cts.sandbox.visible_files import visible_files_of
from aclnn_cts.sandbox.wire import ChannelError, OpenRequest, decode_message

LIMITS: Mapping[str, int] = {"CORE": 0, "NOFILE": 1024, "NPROC": 4096, "FSIZE": 1 << 30}
NOT_CALLED = "not called"
"""Begins the message of a call that was not made."""
CPU_SECONDS = 3600
_FACTS = re.compile(r"(.+)\.(?:shape|dtype)")
"""The only facts that a candidate's process may state, of outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFunction:
    """A Python function in a file, or in a module that can be imported."""

    module: str
    function: str
    file: Path | None = None
    """Its file, whose text is given to the process; None: the module is imported there."""

    @property
    def word(self) -> str:
        """As the command line names it."""
        return f"{self.file or self.module}:{self.function}"


class _Opened(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    missing: tuple[str, ...]


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a candidate's process may say of a call."""

    ended: str
    message: str = ""
    seconds: float = 0.0
    facts: dict[str, str] = {}


class _CandidateRunners(Runners):
    """Processes that execute `candidate_program` under a plan."""

    def __init__(self, first: bytes, plan: str, **given: Any) -> None:  # noqa: ANN401 - as Runners
        self._first, self._plan = first, plan
        self.missing: tuple[str, ...] = ()
        super().__init__(**given)

    def _start(self) -> Child:
        child = Child(self._arena, memory_bytes=self._memory_bytes, memory_note=self._memory_note, plan=self._plan)
        self.children.append(child)
        child.send(self._first, seconds=self._limits.open_seconds)
        return child

    def _declaration(self, reply: bytes) -> Declaration:
        try:
            missing = decode_message(msgspec.json.Decoder(_Opened), reply).missing
            unlimited = () if self.children[-1].limits_processes else ("a limit on the number of processes",)
            self.missing = (*missing, *unlimited)
        except ChannelError as error:
            raise HarnessError(f"the process of a candidate could not be started: {error}") from None
        return Declaration(capabilities=Capabilities(in_place=True), environment={})


class CandidateHost(ProcessHost):
    """A candidate's function in a confined process, replaced when it dies."""

    isolated = False
    """Failures are run again by whoever judges: a batch's own calls are not."""

    def __init__(  # noqa: PLR0913 - what a process is, and what a call of it may take
        self,
        candidate: CandidateFunction,
        *,
        names: Mapping[str, str],
        outputs: Sequence[str],
        computed: Callable[[Case], Collection[str]],
        target: Target,
        call_seconds: float,
        memory_bytes: int,
        stops: bool,
        end: float,
    ) -> None:
        """`names`: C names of parameters by every name; `outputs`: those of the outputs, as the prototype has them.

        `computed`: the outputs that a call asks for.
        `stops`: no call is made after one that ended the process. `end`: none begins after that moment of the
        monotonic clock.

        Raises HarnessError where no process can be started, UsageError where the file cannot be read.
        """
        self._candidate = candidate
        self._names, self._outputs, self._computed = names, outputs, computed
        self._stops = stops
        self._decoder = msgspec.json.Decoder(_Answer)
        self._shift, self._end = 0, end
        limits = RunnerLimits(call_seconds=call_seconds, close_seconds=0.0, memory_bytes=memory_bytes)
        super().__init__(candidate.word, target=target, limits=limits)
        self.has_guard_pages = False
        self.environment = {"implementation": candidate.word}

    def _new_runners(self, opening: OpenRequest, *, memory: tuple[int, str], spare: bool) -> Runners:
        candidate = self._candidate
        file = None if candidate.file is None else candidate.file.resolve()
        view = visible_files_of(None if file is None else file.parent)
        first = {
            "module": candidate.module,
            "function": candidate.function,
            "file": str(file or ""),
            "text": None if file is None else file.read_text(encoding="utf-8"),
            "path": view.path,
            "names": dict(self._names),
        }
        program = Path(candidate_program.__file__).read_text(encoding="utf-8")
        limits = {**LIMITS, "CPU": CPU_SECONDS}
        plan = ConfinementPlan(hidden=view.hidden, kept=view.kept, limits=limits, program=program)
        return _CandidateRunners(
            msgspec.json.encode(first),
            plan.to_json(),
            opening=opening,
            arena=self._arena,
            limits=self._limits,
            memory=memory,
            spare=False,
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """What the system did not allow of the confinement; empty: nothing."""
        return self._runners.missing if isinstance(self._runners, _CandidateRunners) else ()

    def shift(self, size: int) -> None:
        """Leave so many bytes before the next batches' memory, so that equal calls meet other addresses."""
        self._shift = size

    def recycle(self) -> None:
        """End all loans of memory."""
        super().recycle()
        if self._shift:
            self._arena.lend(self._shift)

    def refresh(self) -> None:
        """Replace the process by one that has made no call."""
        self._lost = None
        super().refresh()

    def _wire(self, call: Call) -> msgspec.Raw | Outcome:
        buffers = call.buffers
        if buffers is None:
            return Outcome(ended=CallEnd.INEXPRESSIBLE, message="a function has no first phase of its own")
        base = self._arena.locate(buffers.memory) - _address(buffers.memory)
        case = call.case
        outputs = {name: _place(item.view, base) for name, item in buffers.outputs.items()}
        places = {**{name: _place(item.view, base) for name, item in buffers.inputs.items()}, **outputs}
        body = {
            "memory": self._arena.size,
            "outputs": outputs,
            "orders": output_orders(self._outputs, outputs, self._computed(case)),
            "arguments": {name: plain_argument(name, value, places) for name, value in case.arguments.items()},
            "formats": {name: tensor.format for name, tensor in case.tensors()},
        }
        return msgspec.Raw(msgspec.json.encode(body))

    def _work(self, child: Child, calls: Sequence[tuple[Call, msgspec.Raw, float]]) -> Answers:
        outcomes: list[Outcome] = []
        for call, raw, seconds in calls:
            if time.monotonic() >= self._end:
                outcomes.append(Outcome(ended=CallEnd.INEXPRESSIBLE, message=f"{NOT_CALLED}: the budget was spent"))
                continue
            reply = child.send(bytes(raw), seconds=seconds) or child.receive(seconds=seconds)
            ending: ChildEnd | None = reply if isinstance(reply, ChildEnd) else None
            if not isinstance(reply, ChildEnd):
                try:
                    outcomes.append(_outcome(decode_message(self._decoder, reply), call.buffers))
                except ChannelError as error:
                    ending = child.end_as_broken(str(error))
            if ending is not None:
                if self._stops:
                    message = f"{NOT_CALLED}: an earlier call ended the process"
                    self._lost = Outcome(ended=CallEnd.INEXPRESSIBLE, message=message)
                # What it wrote into the pipe, or did to the processes around it, is its own doing.
                ended = CallEnd.EXIT if ending.ended == CallEnd.NOT_RUN else ending.ended
                return outcomes, replace(ending, ended=ended, in_flight=len(outcomes), in_answer=False)
        return outcomes, None


def _outcome(answer: _Answer, buffers: Buffers | None) -> Outcome:
    """The outcome of a call that has answered: what its outputs hold now is known to the judge alone."""
    if answer.ended not in (CallEnd.RETURNED, CallEnd.RAISED):
        raise ChannelError(f"`ended` is {answer.ended[:80]!r}")
    outputs = buffers.outputs if buffers is not None else {}
    named = {name: _FACTS.fullmatch(name) for name in answer.facts}
    facts = {name: answer.facts[name] for name, found in named.items() if found is not None and found[1] in outputs}
    states = {
        name: BufferState(sha256=hashlib.sha256(item.view.tobytes()).hexdigest()) for name, item in outputs.items()
    }
    seconds = answer.seconds if 0.0 <= answer.seconds < CPU_SECONDS else 0.0
    return Outcome(ended=answer.ended, message=answer.message, seconds=seconds, buffers=states, facts=facts)


def output_orders(names: Sequence[str], outputs: Collection[str], computed: Collection[str]) -> list[list[str]]:
    """All outputs of a prototype, and those that a call computes; of lists their tensors.

    One that is a null pointer stands under its parameter's name.
    """
    tensors = {name: [item for item in outputs if item == name or item.startswith(f"{name}[")] for name in names}
    every = [item for name, found in tensors.items() for item in found or [name]]
    return [every, [item for name, found in tensors.items() if name in computed for item in found]]


def _place(view: NDArray[Any], base: int) -> dict[str, Any]:
    return {
        "offset": _address(view) + base,
        "shape": view.shape,
        "strides": view.strides,
        "dtype": view.dtype.name,
    }


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def plain_argument(name: str, value: Argument, tensors: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any argument
    """An argument as a candidate gets it, with what stands for its tensors; None for those that it is not given."""
    if isinstance(value, Tensor):
        return tensors.get(name)
    if isinstance(value, TensorList):
        return [tensors.get(f"{name}[{place}]") for place in range(len(value))]
    if isinstance(value, Scalar):
        return number(value)
    return list(value.items) if isinstance(value, (BoolArray, FloatArray)) else value
