"""The smallest trial that fails the same way: structure first, by Hypothesis, then values, then everything to plain."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.triage.attempts import Attempts, Spent
from aclnn_cts.triage.simpler import make_plain, shrink_values
from aclnn_cts.triage.structure import Structure, structure_of

EXECUTIONS = 200
"""Executions that shrinking takes at most."""

FOR_STRUCTURE = 0.6
"""The share of them that structure may use."""
FOR_VALUES = 0.85
"""The share that structure and values may use together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """What shrinking came to."""

    trial: Trial
    record: Record | None
    """Of the smallest trial's own execution; None where nothing smaller was found."""
    executions: int
    complete: bool
    """Whether everything was tried within the limit."""


class ShrinkInterrupted(KeyboardInterrupt):
    """An interrupt while shrinking, with what it came to until then."""

    def __init__(self, error: KeyboardInterrupt, shrunk: Shrunk) -> None:
        super().__init__(*error.args)
        self.shrunk = shrunk


def shrink(
    trial: Trial,
    *,
    sampler: Sampler,
    execute: Callable[[Trial], Record],
    same: Callable[[Record], bool],
    executions: int = EXECUTIONS,
    repeats: int = 1,
    until: float = math.inf,
) -> Shrunk:
    """Make a failing trial smaller.

    - `execute`: runs and judges one trial. What it raises ends the shrinking.
    - `same`: whether a record shows the failure that is looked for.
    - `executions`: at most so many; one that ends the implementation counts `DEATH_COST` times.
    - `repeats`: executions before a trial counts as passing, for one that fails sometimes.
    - `until`: by the monotonic clock, from then on nothing more is executed.

    Raises ShrinkInterrupted for an interrupt.
    """
    attempts = Attempts(execute=execute, same=same, repeats=repeats, best=trial, until=until)
    complete = True
    steps: tuple[tuple[Callable[[], None], float], ...] = (
        (lambda: _structure(attempts, sampler), FOR_STRUCTURE),
        (lambda: shrink_values(attempts, sampler.spec), FOR_VALUES),
        (lambda: make_plain(attempts, sampler.spec), 1.0),
    )
    for step, share in steps:
        attempts.ceiling = int(executions * share)
        try:
            step()
        except Spent:
            complete = False
        except KeyboardInterrupt as error:
            raise ShrinkInterrupted(error, _shrunk(attempts, complete=False)) from None
    return _shrunk(attempts, complete=complete)


def _shrunk(attempts: Attempts, *, complete: bool) -> Shrunk:
    record = attempts.known.get(attempts.best.id)
    return Shrunk(trial=attempts.best, record=record, executions=attempts.executions, complete=complete)


def _structure(attempts: Attempts, sampler: Sampler) -> None:
    found = structure_of(sampler, attempts.best)
    if found is None:
        return
    start: list[int] = []

    def as_it_was(low: int, high: int, was: int) -> int:
        if low < high:
            start.append(was)
        return was

    if found.trial(as_it_was) is not None:
        _search(attempts, found, start)


def _search(attempts: Attempts, structure: Structure, start: Sequence[int]) -> None:
    """Let Hypothesis shrink the decisions, from those of the trial on.

    They reach it by way of its example database, from which it begins (`Phase.reuse`).
    """
    import hypothesis  # noqa: PLC0415 - only shrinking pays for it
    from hypothesis import strategies as st  # noqa: PLC0415 - as above
    from hypothesis.database import ExampleDatabase, choices_to_bytes  # noqa: PLC0415 - as above

    class Start(ExampleDatabase):
        """Holds the decisions that shrinking begins with, whatever they are asked for by."""

        def fetch(self, key: bytes) -> Iterable[bytes]:
            # One decision too many: what comes back just as it was stored is taken for shrunk already.
            yield choices_to_bytes([*start, 0])

        def save(self, key: bytes, value: bytes) -> None: ...

        def delete(self, key: bytes, value: bytes) -> None: ...

    @st.composite
    def trials(draw: Any) -> Trial | None:  # noqa: ANN401 - Hypothesis' own
        def decide(low: int, high: int, was: int) -> int:
            value: int = draw(st.integers(low, high)) if low < high else low
            return value

        return structure.trial(decide)

    spent: list[Spent] = []

    def fails(trial: Trial | None) -> bool:
        try:
            return not spent and trial is not None and attempts.fails(trial)
        except Spent as error:
            spent.append(error)
            return False

    settings = hypothesis.settings(
        # Two: the trial itself, which is in the database, and what Hypothesis asks of any strategy.
        max_examples=2,
        database=Start(),
        deadline=None,
        phases=(hypothesis.Phase.reuse, hypothesis.Phase.shrink),
    )
    with contextlib.suppress(hypothesis.errors.HypothesisException):
        # Whatever it makes of a test that answers otherwise from one moment to the next, `attempts` has the smallest.
        hypothesis.find(trials(), fails, settings=settings, database_key=b"shrink")
    if spent:
        raise spent[0]
