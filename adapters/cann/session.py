"""An open installation: calls go through the two phases, one after the other or as their call mode says.

The operator library caches the plan of a call that it has accepted, by all of the call but addresses and contents, and
checks no argument of one that it finds there. Calls that differ in what a check reads differ in that key, so that a
broken call is never answered for a valid one. What this process has been accepted for is kept, so that a call can be
said to have met the cache cold or warm, and one that must be cold asks for a fresh process where it would not be.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from aclnn_cts.adapters.cann.bindings import SUCCESS, Functions, OperatorFunctions, bind_operator
from aclnn_cts.adapters.cann.descriptors import cache_key
from aclnn_cts.adapters.cann.device import Device
from aclnn_cts.adapters.cann.execution import (
    GIVEN_UP,
    Execution,
    RuntimeApi,
    RuntimeFailure,
    raise_on_error,
    times_of,
    whole_number,
)
from aclnn_cts.adapters.cann.library import Library, MissingSymbolError
from aclnn_cts.adapters.cann.process_memory import process_memory
from aclnn_cts.adapters.protocol import Call, Capabilities, Inexpressible
from aclnn_cts.adapters.results import COLD_FACT
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.generate.hazard import hazard_of
from aclnn_cts.speclang.model import Spec


class Streams:
    """Streams by number; 0 is the one that ordinary calls run on."""

    __slots__ = ("_handles", "_runtime")

    def __init__(self, runtime: Functions) -> None:
        self._runtime = runtime
        self._handles: dict[int, int] = {}

    def handle(self, number: int) -> int:
        """The stream of that number. Raises RuntimeFailure where it cannot be made."""
        if number not in self._handles:
            stream = ctypes.c_void_p()
            raise_on_error(self._runtime["aclrtCreateStream"](ctypes.byref(stream)), "aclrtCreateStream")
            self._handles[number] = stream.value or 0
        return self._handles[number]

    def wait(self, number: int, seconds: float) -> int:
        """Wait until a stream has done all; the runtime's code, which says so where the time ran out."""
        if "aclrtSynchronizeStreamWithTimeout" in self._runtime:
            return int(self._runtime["aclrtSynchronizeStreamWithTimeout"](self.handle(number), int(seconds * 1000)))
        # An old release waits for ever; then the limit of whoever watches this process ends it.
        return int(self._runtime["aclrtSynchronizeStream"](self.handle(number)))

    def close(self) -> None:
        """Destroy all."""
        while self._handles:
            self._runtime["aclrtDestroyStream"](self._handles.popitem()[1])


GROWTH_FACT = "bytes grown"
"""Resident memory gained over the second half of calls made in a row, in bytes."""
TIMES_FACT = "calls in the second half"


@dataclass(slots=True)
class CannSession:
    """One thread's access to one device, or to the first phases alone where there is no runtime."""

    api: RuntimeApi
    library: Library
    specs: Mapping[str, Spec]
    capabilities: Capabilities
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    device: Device | None = None
    time_limit: float = 45.0
    """Seconds that the device may take for a call."""
    _streams: Streams = field(init=False)
    _operators: dict[str, OperatorFunctions | str] = field(default_factory=dict)
    _accepted: set[bytes] = field(default_factory=set)
    _lost: str = ""
    """Why nothing can be run any more."""

    def __post_init__(self) -> None:
        """Make no stream yet."""
        self._streams = Streams(self.api.runtime)

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make a call, or the calls of one group together."""
        if self._lost:
            return [Outcome(ended=CallEnd.NOT_RUN, message=self._lost)] * len(calls)
        for call in calls:
            self._check(call)
        if any(call.call_mode.get("cache") == "cold" and cache_key(call.case) in self._accepted for call in calls):
            return [Outcome(ended=CallEnd.WANTS_FRESH)] * len(calls)
        if times_of(calls) > 1:
            return [self._many(calls[0], times_of(calls))]
        runs = [Execution(self.api, *self._operator(call), call) for call in calls]
        self._go(runs)
        outcomes = [self._remembered(run) for run in runs]
        for outcome in outcomes:
            if outcome.ended in GIVEN_UP:
                self._lost = f"the process was given up after a call before this one: {outcome.message}"
        return outcomes

    def close(self) -> None:
        """Give streams and device back; after a fault that is left to the system, which ends the process."""
        if self._lost or self.device is None:
            return
        self._streams.close()
        self.device.close()

    def _check(self, call: Call) -> None:
        spec = self.specs.get(call.case.operator)
        if spec is None:
            raise Inexpressible(f"no document here speaks of {call.case.operator}")
        unknown = sorted(set(call.call_mode) - self.capabilities.call_modes)
        if unknown:
            raise Inexpressible(f"{', '.join(unknown)}: not a call mode that this installation has")
        both = call.buffers is not None and call.case.call.phases != 1
        if both and self.device is None:
            raise Inexpressible("there is no CANN runtime here, so that first phases alone can be called")
        if self.capabilities.hardware:
            # Trials have asked too. Here nothing gets past, whoever calls.
            reason = hazard_of(spec, call.case, both_phases=both)
            if reason:
                raise Inexpressible(f"never sent to a real device: {reason}")

    def _operator(self, call: Call) -> tuple[OperatorFunctions, Spec]:
        name = call.case.operator
        spec = self.specs[name]
        if name not in self._operators:
            try:
                self._operators[name] = bind_operator(self.library, spec)
            except MissingSymbolError as missing:
                self._operators[name] = f"this installation does not ship {name}: {missing}"
        functions = self._operators[name]
        if isinstance(functions, str):
            raise Inexpressible(functions)
        return functions, spec

    def _go(self, runs: Sequence[Execution]) -> None:
        try:
            for run in runs:
                run.prepare()
            for run in runs:
                run.phase_one()
                if run.goes_on:
                    run.allocate_workspace()
            self._second_phases(runs)
            for run in runs:
                if run.wants_phase_two:
                    run.read_back()
        except RuntimeFailure as failure:
            for run in runs:
                run.failed(failure)
            self._drain(runs)
        except Inexpressible:
            self._drain(runs)
            raise
        finally:
            for run in runs:
                run.release()

    def _second_phases(self, runs: Sequence[Execution]) -> None:
        going = [run for run in runs if run.goes_on]
        if not going:
            return
        # The order of interleaved calls is turned round: each executor must know its own call.
        interleaved = any(run.call.call_mode.get("order") == "interleaved" for run in going)
        for run in reversed(going) if interleaved else going:
            repeat = whole_number(run.call, "repeat", default=1)
            if repeat > 1:
                run.make_repeatable()
            for turn in range(repeat):
                if turn:
                    self._wait((run,))
                    run.refill()
                run.phase_two(self._streams.handle(run.stream_number), repeatable=repeat > 1)
        self._wait(going)

    def _wait(self, runs: Sequence[Execution]) -> None:
        codes: dict[int, int] = {}
        for run in runs:
            number = run.stream_number
            if number not in codes:
                codes[number] = self._streams.wait(number, self.time_limit)
            run.synchronised(codes[number])
        for code in codes.values():
            if code != SUCCESS:
                raise RuntimeFailure(code, "aclrtSynchronizeStream")

    def _drain(self, runs: Sequence[Execution]) -> None:
        """Wait for what is queued of calls that failed, so that nothing is freed under it."""
        for run in runs:
            if run.is_queued and (code := self._streams.wait(run.stream_number, self.time_limit)) != SUCCESS:
                run.failed(RuntimeFailure(code, "aclrtSynchronizeStream"), outranks=True)

    def _many(self, call: Call, times: int) -> Outcome:
        """Phase one that many times in a row, and how much the process grew over the second half of them."""
        middle = times // 2
        before = process_memory()
        first = self._first_phase(call)
        for number in range(1, times):
            if number == middle:
                before = process_memory()
            outcome = self._first_phase(call)
            if outcome.phase_one != first.phase_one:
                message = f"call {number} in a row returned {outcome.phase_one}, the first {first.phase_one}"
                return msgspec.structs.replace(outcome, message=message, facts={"differs at": number})
        facts = {GROWTH_FACT: process_memory().growth_since(before), TIMES_FACT: times - middle}
        return msgspec.structs.replace(first, facts={**first.facts, **facts})

    def _first_phase(self, call: Call) -> Outcome:
        run = Execution(self.api, *self._operator(call), call)
        try:
            run.prepare()
            run.phase_one()
        finally:
            run.release()
        return run.outcome()

    def _remembered(self, run: Execution) -> Outcome:
        """The outcome of a call, with the fact whether the library met it cold where it accepted it."""
        if run.accepted:
            key = cache_key(run.call.case)
            run.facts[COLD_FACT] = key not in self._accepted
            self._accepted.add(key)
        return run.outcome()
