"""The steps of a program: the life cycles of its calls, in the order in which an adapter takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aclnn_cts.core.trial import Earlier
from aclnn_cts.execution.executor import Asked
from aclnn_cts.sandbox.call_groups import end_of_group

VERBS: Mapping[str, str] = {
    "prepare": "bring the data to the device and make the descriptors",
    "phase_one": "ask for the workspace's size and the executor",
    "workspace": "allocate it, as `way` says: `guarded` (what was asked for, between guards), `exact` or `larger`",
    "repeatable": "let the executor be run more than once",
    "phase_two": "queue the work on the stream of that number",
    "wait": "wait for the stream",
    "judge": "compare status, outputs and memory with what conforms",
    "refill": "make the memory what it was before the call",
    "destroy": "give back an executor that no phase two has used up",
    "release": "give back memory and descriptors",
    "loop": "take the steps up to `end` `times` times",
    "end": "go on after the loop",
    "refused": "make phase one `times` times in a row, whose status and memory must stay as they are",
}
"""What a step does, by its verb. All but `prepare`, `phase_one` and `release` pass over a call that phase one refused;
`judge` looks at that status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a program."""

    verb: str
    """One of `VERBS`."""
    call: int = 0
    """Which of the program's unlike calls it is about."""
    number: int = 1
    """Which call of the trial that is, from 1 on; 0: one that is made before the trial's own."""
    stream: int = 0
    way: str = ""
    times: int = 0


def steps_of(asked: Sequence[Asked], places: Sequence[int]) -> tuple[Step, ...]:
    """The steps of calls in their call modes; `places` tells which of the unlike calls each one is.

    A program is a fresh process: a call that must meet the operator cache cold comes before its like.
    """
    order = sorted(range(len(asked)), key=lambda number: asked[number].call_mode.get("cache") != "cold")
    arranged = [asked[number] for number in order]
    steps: list[Step] = []
    start = 0
    while start < len(arranged):
        end = end_of_group(arranged, start)
        steps += _together([_Made(places[number], number + 1, asked[number]) for number in order[start:end]])
        start = end
    return tuple(steps)


def steps_before(after: Sequence[Earlier], places: Sequence[int]) -> Iterator[Step]:
    """The steps of the calls before a trial's own, which nobody judges; `places` as in `steps_of`."""
    for item, place in zip(after, places, strict=True):
        made = _Made(place, 0, Asked(item.case))
        if item.times > 1:
            yield made.step("loop", times=item.times)
        yield from (step for step in _together([made]) if step.verb != "judge")
        if item.times > 1:
            yield made.step("end")


@dataclass(frozen=True, slots=True)
class _Made:
    call: int
    number: int
    asked: Asked

    @property
    def goes_on(self) -> bool:
        return self.asked.case.call.phases != 1

    @property
    def stream(self) -> int:
        return self.count("stream", 0)

    @property
    def repeat(self) -> int:
        return self.count("repeat", 1)

    def count(self, word: str, default: int) -> int:
        value = self.asked.call_mode.get(word, default)
        return value if isinstance(value, int) else default

    def step(self, verb: str, *, way: str = "", times: int = 0) -> Step:
        return Step(verb=verb, call=self.call, number=self.number, stream=self.stream, way=way, times=times)


def _together(made: Sequence[_Made]) -> Iterator[Step]:
    """The steps of one group, which are those of `adapters.cann.session`."""
    if len(made) == 1 and (times := made[0].count("times", 1)) > 1:
        yield made[0].step("refused", times=times)
        return
    for call in made:
        yield call.step("prepare")
    for call in made:
        yield call.step("phase_one")
        if call.goes_on:
            yield call.step("workspace", way=str(call.asked.call_mode.get("workspace", "guarded")))
    yield from _second_phases([call for call in made if call.goes_on])
    for call in made:
        yield call.step("judge")
    for call in made:
        if not call.goes_on or call.repeat > 1:
            yield call.step("destroy")
        yield call.step("release")


def _second_phases(going: Sequence[_Made]) -> Iterator[Step]:
    interleaved = any(call.asked.call_mode.get("order") == "interleaved" for call in going)
    for call in reversed(going) if interleaved else going:
        if call.repeat > 1:
            yield call.step("repeatable")
        yield call.step("phase_two")
        for _ in range(call.repeat - 1):
            yield from (call.step(verb) for verb in ("wait", "judge", "refill", "phase_two"))
    for call in {call.stream: call for call in going}.values():
        yield call.step("wait")
