"""Calls of the software device that come to grief on request, through the C interface, and what must come of each.

`ACLNN_LOOPBACK_INJECT` chooses them by the number of their output's elements, so that a call that is made again does
the same again, whichever process makes it and whatever was made before.
"""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.sandbox.batch import PendingBatch
from aclnn_cts.sandbox.child import Child, ChildEnd
from aclnn_cts.sandbox.limits import RunnerLimits
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.trial_runner import TrialRunner

VARIABLE = "ACLNN_LOOPBACK_INJECT"
ADAPTER = "loopback:timeout=1"
TARGET = Target(product="atlas-a2")
LIMITS = RunnerLimits(call_seconds=4.0, hung_seconds=4.0, memory_bytes=256 << 20)
_FIRST_NUMEL = 500
"""More elements than any sentinel has, and than an ordinary call here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One way to come to grief."""

    what: str
    """As the variable has it: what, and where."""
    result: str = Result.FAILED
    kind: str = Fault.CRASH
    words: str = ""
    """Part of the verdict's message."""
    signal: int | None = None
    slow: bool = False
    """It lasts until a limit is reached."""


def _of_process(place: str) -> Iterator[Deed]:
    yield Deed(what=f"segv/{place}", words="SIGSEGV", signal=signal.SIGSEGV)
    yield Deed(what=f"abort/{place}", words="SIGABRT", signal=signal.SIGABRT)
    yield Deed(what=f"exit/{place}", words="exited with code 7")


DEEDS = (
    *_of_process("one"),
    *_of_process("two"),
    *_of_process("kernel"),
    Deed(what="kill/two", words="SIGKILL", signal=signal.SIGKILL),
    Deed(what="hang/one", kind=Fault.HANG, words="no answer within 4 s", slow=True),
    Deed(what="hang/two", kind=Fault.HANG, words="no answer within 4 s", slow=True),
    Deed(what="hang/kernel", kind=Fault.HANG, words="507046", slow=True),
    Deed(what="swallow/two", words="memory limit", slow=True),
    Deed(what="fault", words="507015"),
    Deed(what="poison", words="507015"),
    # The device's own failure: no verdict on the operator.
    Deed(what="lost", result=Result.ERROR, kind="", words="507010"),
    # It shows in the call after this one, which has nothing to do with it.
    Deed(what="poison-late", words="507015"),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A trial, and the deed that its call is to meet."""

    trial: Trial
    deed: Deed | None


def orders() -> str:
    """The variable's text, for all deeds."""
    return ",".join(f"{deed.what}@numel={_FIRST_NUMEL + place}" for place, deed in enumerate(DEEDS))


def plan(injections: int, *, seed: int = 0, slow: int = 1) -> list[Planned]:
    """So many calls that come to grief, in random order among ordinary ones.

    Each deed is there as often as any other, or `slow` times less often where it lasts.
    """
    chance = random.Random(seed)  # noqa: S311 - an order, and no secret
    rounds = (deed for number in itertools.count() for deed in DEEDS if not deed.slow or number % slow == 0)
    deeds = list(itertools.islice(rounds, injections))
    chance.shuffle(deeds)
    planned: list[Planned] = []
    for deed in deeds:
        planned += [_planned(len(planned) + more, None) for more in range(chance.randrange(4))]
        planned.append(_planned(len(planned), deed))
    planned += [_planned(len(planned) + more, None) for more in range(3)]
    return planned


def _planned(number: int, deed: Deed | None) -> Planned:
    numel = 100 + number % 300 if deed is None else _FIRST_NUMEL + DEEDS.index(deed)
    grad = Tensor((numel,), "FLOAT", data=Data(recipe="normal", seed=number))
    output = Tensor((numel,), "FLOAT", data=Data(recipe="softmax", seed=number))
    case = Case("aclnnSoftmaxBackward", {"gradOutput": grad, "output": output, "dim": 0, "out": _bare(numel)}, TARGET)
    return Planned(Trial("values", case), deed)


def _bare(numel: int) -> Tensor:
    return Tensor((numel,), "FLOAT")


@dataclass(slots=True)
class _Clock:
    looking: bool = False
    """At the device, in the middle of a batch."""
    ended: float | None = None
    gaps: list[float] = field(default_factory=list)


class TimedHost(ProcessHost):
    """Keeps how long it took from a runner's end until the rest of its batch was with another."""

    clock = _Clock()

    def _work(
        self, child: Child, calls: Sequence[tuple[Call, msgspec.Raw, float]]
    ) -> tuple[list[Outcome], ChildEnd | None]:
        if self.clock.ended is not None:
            self.clock.gaps.append(time.monotonic() - self.clock.ended)
        answers, ending = super()._work(child, calls)
        self.clock.ended = time.monotonic() if ending is not None else None
        return answers, ending

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """What has ended before this batch has nothing to do with it; the sentinels in its middle are part of it."""
        self._finish()
        self._begin()
        return super().run(calls)

    def start(self, calls: Sequence[Call]) -> PendingBatch:
        """As `run`."""
        self._finish()
        self._begin()
        return super().start(calls)

    def _begin(self) -> None:
        if not self.clock.looking:
            self.clock.ended = None

    def _look_at_device(self, fault: Outcome) -> None:
        self.clock.looking = True
        try:
            super()._look_at_device(fault)
        finally:
            self.clock.looking = False


def injected_device() -> TimedHost:
    """The software device in a runner, with limits that end what hangs or swallows soon."""
    host = TimedHost(ADAPTER, target=TARGET, limits=LIMITS)
    host.clock = _Clock()
    return host


def run(planned: Sequence[Planned], host: ProcessHost) -> list[Record]:
    """The records of all trials, in their order."""
    runner = TrialRunner(specs=load_specs(), host=host, settings=RunnerSettings(adapter=ADAPTER, target=TARGET))
    return [record for judged in runner.run([item.trial for item in planned]) for record in judged.records]


def mistakes(planned: Sequence[Planned], records: Sequence[Record]) -> list[str]:
    """What is not as it must be; a lost result, or a wrong verdict."""
    found = []
    if [record.trial_id for record in records] != [item.trial.id for item in planned]:
        found.append(f"{len(records)} records of {len(planned)} trials, or others than those")
    for item, record in zip(planned, records, strict=False):
        deed, verdict = item.deed or Deed(what="nothing", result=Result.PASSED, kind=""), record.verdict
        outcome = record.attempts[0][0]
        right = (verdict.result, verdict.kind, outcome.signal) == (deed.result, deed.kind, deed.signal)
        if not right or deed.words not in outcome.message + verdict.message:
            found.append(
                f"{deed.what}: {verdict.result} {verdict.kind!r}, signal {outcome.signal}: "
                f"{verdict.message or outcome.message}"
            )
    return found
