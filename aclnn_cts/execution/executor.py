"""Putting calls to an implementation: data, memory, the run, and what became of it.

A batch's buffers lie in memory that the host lends, until the next batch is prepared, or a batch that was started ends.
What a `PerformedCall` shows of outputs are copies.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Call, CallMode
from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import ADDRESSES, BufferState, CallEnd, Outcome
from aclnn_cts.generate.buffers import CallBuffers, InputGuards, UnsafeViewError, block_layout, prepare
from aclnn_cts.generate.recipes import case_arrays, many_arrays
from aclnn_cts.sandbox.batch import PendingBatch, has_device_fault
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES
from aclnn_cts.speclang.model import Spec

TOO_LARGE = "too large: "
"""How the message of a call opens that was not made for its size."""


_WITHOUT_COUNTERPART = frozenset(name for name, dtype in DTYPES.items() if dtype.kind == "other")

_ADDRESS = re.compile("0x[0-9a-f]{1,16}")

_ORDINARY: CallMode = MappingProxyType({})


class CallRequest(msgspec.Struct, frozen=True):
    """One call to be made, and how it departs from the ordinary way."""

    case: Case
    call_mode: CallMode = _ORDINARY
    """Words of `Call.call_mode`."""
    group: int | None = None
    """Neighbours of one group are made together."""
    guards: InputGuards = InputGuards.START
    """Which end of an input a page touches that cannot be read, where the host has such pages."""
    repeats: int = 1
    """So often it is made; of an equal call of the same trial before it, only the first other result is kept."""


class PerformedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call and what came of it."""

    case: Case
    outcome: Outcome
    arrays: Mapping[str, NDArray[Any]] = {}
    """The inputs' contents, in their storage dtypes."""
    got: Mapping[str, NDArray[Any]] = {}
    """Copies of the outputs after the call, read-only."""
    twice: bool = False
    """Whether it was made once more after the calls of its batch, into memory that was filled otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPerformer:
    """Runs batches of calls on one host."""

    host: SessionHost
    specs: Mapping[str, Spec]
    max_bytes: int = DEFAULT_MAX_BYTES
    look: Callable[[str], Case | None] = lambda _operator: None
    """A plainly valid call of an operator, made after a batch on a device: a fault of its last call shows there."""

    def perform(self, asked: Sequence[CallRequest]) -> list[PerformedCall]:
        """Make the calls; the outputs of the batch before are gone."""
        return self.prepare(asked).performed()

    def prepare(self, asked: Sequence[CallRequest]) -> PreparedBatch:
        """Data and memory of a batch; the outputs of the batch before are gone, unless that was started."""
        self.host.recycle()
        refused: dict[int, str] = {}
        with_data: dict[int, tuple[Case, Sequence[str]]] = {}
        for place, item in enumerate(asked):
            case = item.case
            phase_one = self._first_phase_alone(case)
            if reason := self._refusal(case, phase_one=phase_one) or self._call_mode_refusal(item.call_mode):
                refused[place] = reason
            elif not phase_one and _has_counterparts(case):
                with_data[place] = case, self._present(case)
        contents = dict(zip(with_data, many_arrays(list(with_data.values())), strict=True))
        items: list[_Made | PerformedCall] = []
        for place, item in enumerate(asked):
            arrays: Mapping[str, NDArray[Any]] = {}
            buffers: CallBuffers | None = None
            try:
                if place in contents:
                    arrays, buffers = self._buffers(item.case, contents[place], guards=item.guards)
            except (UnsafeViewError, UsageError) as error:
                refused[place] = str(error)
            if place in refused:
                outcome = Outcome(ended=CallEnd.INEXPRESSIBLE, message=refused[place])
                items.append(PerformedCall(case=item.case, outcome=outcome))
            else:
                call = Call(item.case, buffers, call_mode=item.call_mode, group=item.group)
                computed = self.specs[item.case.operator].computed_outputs(item.case)
                items.append(_Made(call, arrays, buffers, computed, repeats=item.repeats))
        own = [item for item in items if isinstance(item, _Made)]
        looks: list[Call] = []
        if (
            any(item.buffers is not None for item in own)
            and (look := self.look(own[-1].call.case.operator)) is not None
        ):
            looks.append(self._remade(Call(look)))
        return PreparedBatch(host=self.host, items=items, own=own, looks=looks, remade=self._remade)

    def _remade(self, call: Call) -> Call:
        """A call in memory of its own."""
        case = call.case
        if self._first_phase_alone(case) or not _has_counterparts(case):
            return replace(call, buffers=None)
        guards = call.buffers.layout.guards if isinstance(call.buffers, CallBuffers) else InputGuards.START
        return replace(call, buffers=self._buffers(case, case_arrays(case, self._present(case)), guards=guards)[1])

    def _refusal(self, case: Case, *, phase_one: bool) -> str:
        """Why a call cannot be put to this implementation; empty where it can."""
        capabilities = self.host.capabilities
        if phase_one and not capabilities.phases:
            return "the call is of the first phase alone, which this implementation does not have"
        if case.call.null and not capabilities.phases:
            return f"{', '.join(case.call.null)}: this implementation has no such pointer"
        dtypes, formats = capabilities.dtypes, capabilities.formats
        for name, tensor in case.tensors() if dtypes is not None or formats is not None else ():
            if dtypes is not None and tensor.dtype not in dtypes:
                return f"{name}: the dtype {tensor.dtype} is not one that this implementation can be given"
            if formats is not None and tensor.format not in formats:
                return f"{name}: the format {tensor.format} is not one that this implementation can be given"
        if phase_one:
            return ""
        if not capabilities.executes:
            return "the call is of both phases, and this implementation answers the first alone"
        if case.nbytes > self.max_bytes:
            return f"{TOO_LARGE}{case.nbytes} bytes of arguments; --max-bytes allows {self.max_bytes}"
        return ""

    def _call_mode_refusal(self, call_mode: CallMode) -> str:
        unknown = sorted(set(call_mode) - self.host.capabilities.call_modes) if call_mode else []
        return f"this implementation cannot be called in such a call mode: {', '.join(unknown)}" if unknown else ""

    def _first_phase_alone(self, case: Case) -> bool:
        """Whether a case asks for no more, or has an input without contents, that only the first phase can be given."""
        return case.call.phases == 1 or any(
            (tensor := case.tensor(name)) is not None and tensor.data is None and 0 not in tensor.shape
            for name in self.specs[case.operator].given_inputs(case)
        )

    def _present(self, case: Case) -> list[str]:
        """The inputs that are not null."""
        return list(self.specs[case.operator].given_inputs(case))

    def _buffers(
        self, case: Case, arrays: Mapping[str, NDArray[Any]] | UsageError, *, guards: InputGuards
    ) -> tuple[Mapping[str, NDArray[Any]], CallBuffers]:
        """Memory that holds the contents; raises the error that stands in their place."""
        if isinstance(arrays, UsageError):
            raise arrays
        spec = self.specs[case.operator]
        return arrays, lend_buffers(self.host, spec, case, arrays, guards=guards)


def lend_buffers(
    host: SessionHost,
    spec: Spec,
    case: Case,
    arrays: Mapping[str, NDArray[Any]],
    *,
    guards: InputGuards = InputGuards.START,
) -> CallBuffers:
    """Memory of a host that holds these contents of a case's inputs."""
    outputs = spec.output_tensors(case)
    plan = block_layout(case, outputs, guards=guards if host.has_guard_pages else InputGuards.BANDS)
    memory = host.memory(plan.size, alignment=plan.alignment)
    return prepare(case, outputs=outputs, arrays=arrays, memory=memory, plan=plan)


def _has_counterparts(case: Case) -> bool:
    """Whether NumPy has a dtype for every tensor of a case."""
    return not any([tensor.dtype in _WITHOUT_COUNTERPART for _, tensor in case.tensors()])


@dataclass(slots=True)
class _Made:
    """A call that is made, on its way to a `PerformedCall`."""

    call: Call
    arrays: Mapping[str, NDArray[Any]]
    buffers: CallBuffers | None
    """The call's."""
    computed: tuple[str, ...]
    """The outputs that it asks for, null or not."""
    outcome: Outcome = Outcome()
    states: Mapping[str, BufferState] = field(default_factory=dict)
    got: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Copies of the outputs, so that nothing written later is judged."""
    twice: bool = False
    repeats: int = 1

    @property
    def seems_unwritten(self) -> bool:
        if self.buffers is None or self.outcome.ended != CallEnd.RETURNED or self.outcome.status:
            return False
        return any(self.states[name].unwritten for name in self.computed if name in self.states)

    def differs_from(self, other: _Made) -> bool:
        """Whether a call ended otherwise than an equal one, or wrote other bits."""
        mine, theirs = (
            (made.outcome.ended, made.outcome.status, {name: array.tobytes() for name, array in made.got.items()})
            for made in (self, other)
        )
        return mine != theirs

    def refill(self, fill: int) -> None:
        """Make the buffers ready for another run."""
        if self.buffers is not None:
            self.buffers = self.buffers.refill(fill)
            self.call = replace(self.call, buffers=self.buffers)

    def again(self) -> Mapping[str, NDArray[np.bool_]]:
        """Turn to a second run, in the call mode of the first, but alone and into whatever cache there is by now.

        Gives which elements seemed unwritten after the first.
        """
        earlier = {} if self.buffers is None else self.buffers.unwritten()
        self.twice = True
        self.refill(1)
        call_mode = {word: value for word, value in self.call.call_mode.items() if word != "cache"}
        self.call = replace(self.call, call_mode=call_mode, group=None)
        return earlier

    def take(self, outcome: Outcome, earlier: Mapping[str, NDArray[np.bool_]] | None = None) -> None:
        """The outcome of a run; that of the second replaces the first's, but for what was written late."""
        self.outcome = outcome
        if self.buffers is None:
            return
        contents = self.buffers.contents()
        self.got = {name: buffer.elements(contents[name]) for name, buffer in self.buffers.outputs.items()}
        late = {name for name, state in self.states.items() if state.late}
        states = self.buffers.inspect(contents=contents, earlier=earlier, returned=outcome.buffers)
        self.states = {
            name: msgspec.structs.replace(state, late=True) if name in late else state for name, state in states.items()
        }

    def performed(self) -> PerformedCall:
        if self.buffers is None:
            return PerformedCall(case=self.call.case, outcome=self.outcome, arrays=self.arrays)
        # What the adapter has seen (of a workspace) is kept beside what is seen from here, and never replaces it.
        outcome = _with_addresses(self.outcome, {**self.outcome.buffers, **self.states})
        return PerformedCall(case=self.call.case, outcome=outcome, arrays=self.arrays, got=self.got, twice=self.twice)


@dataclass(slots=True, kw_only=True)
class PreparedBatch:
    """A batch whose data lie ready. `CallPerformer.prepare` makes one."""

    host: SessionHost
    items: Sequence[_Made | PerformedCall]
    """What was asked for: calls, and what cannot be made."""
    own: Sequence[_Made]
    """The calls among them."""
    looks: Sequence[Call]
    """What is called after them to look at the device."""
    remade: Callable[[Call], Call]
    pending: PendingBatch | None = None

    @property
    def calls(self) -> list[Call]:
        """All that are made."""
        return [*(item.call for item in self.own), *self.looks]

    def start(self) -> None:
        """Have the calls made meanwhile; then `end` is to be called."""
        self.pending = self.host.start(self.calls)

    def advance(self) -> None:
        """See to it that what was started goes on."""
        if self.pending is not None:
            self.pending.advance()

    def end(self) -> None:
        """Let go of what was started: its outputs may go, and calls under way are broken off."""
        if self.pending is not None:
            self.pending.end()

    def performed(self) -> list[PerformedCall]:
        """Wait until the calls are made, or make them now."""
        calls = self.calls
        outcomes = self.pending.outcomes() if self.pending is not None else self.host.run(calls)
        if self.host.isolated and has_device_fault(outcomes):
            from aclnn_cts.sandbox.attribution import attribute_faults  # noqa: PLC0415 - only where a device failed

            outcomes = attribute_faults(calls, outcomes, alone=self._alone, company=self._company, trials=len(self.own))
        for item, outcome in zip(self.own, outcomes, strict=False):
            item.take(outcome)
        # An element may hold the fill by chance: the second fill tells.
        doubtful = [item for item in self.own if item.seems_unwritten]
        earlier = [item.again() for item in doubtful]
        again = self.host.run([item.call for item in doubtful]) if doubtful else []
        for item, before, outcome in zip(doubtful, earlier, again, strict=True):
            item.take(outcome, before)
        self._repeat()
        return [item.performed() if isinstance(item, _Made) else item for item in self.items]

    def _repeat(self) -> None:
        """Make calls as often as is asked for, each until its result is another than that of the call before it."""
        equal = list(zip(self.own, self.own[1:], strict=False))
        for turn in itertools.count(1):
            equal = [(first, item) for first, item in equal if turn < item.repeats and not item.differs_from(first)]
            if not equal:
                return
            for _, item in equal:
                # A result that looked like the first fill is none.
                item.refill(1 if item.twice else 0)
            outcomes = self.host.run([item.call for _, item in equal])
            for (_, item), outcome in zip(equal, outcomes, strict=True):
                item.take(outcome)

    def _alone(self, places: Sequence[int]) -> list[Outcome]:
        """Make calls again in a fresh process, into their own buffers."""
        self.host.refresh()
        for place in places:
            if place < len(self.own):
                self.own[place].refill(0)
        calls = self.calls
        return self.host.run([calls[place] for place in places])

    def _company(self, places: Sequence[int]) -> list[Outcome]:
        """Make calls again in a fresh process, and nothing of them is kept."""
        self.host.refresh()
        calls = self.calls
        return self.host.run([self.remade(calls[place]) for place in places])


def _with_addresses(outcome: Outcome, states: Mapping[str, BufferState]) -> Outcome:
    """The outcome with what became of its memory; what the adapter says of addresses goes to stray writes alone."""
    facts = outcome.facts
    if ADDRESSES in facts:
        told = (pair.partition("=") for pair in str(facts[ADDRESSES]).split(","))
        starts = {name: start for name, _, start in told}
        facts = {name: value for name, value in facts.items() if name != ADDRESSES}
        states = {name: _placed(state, starts.get(name, "")) for name, state in states.items()}
    return msgspec.structs.replace(outcome, buffers=states, facts=facts)


def _placed(state: BufferState, start: str) -> BufferState:
    if state.stray is None or state.stray.address or not _ADDRESS.fullmatch(start):
        return state
    address = f"{int(start, 16) + state.stray.offset:#x}"
    return msgspec.structs.replace(state, stray=msgspec.structs.replace(state.stray, address=address))
