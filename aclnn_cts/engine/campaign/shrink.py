"""The smallest trial that fails the same way: structure first, by Hypothesis, then values, then everything to plain."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.case_json import case_from_json, case_to_json
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import Ended
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Fault, Record
from aclnn_cts.engine.campaign.structure import Structure, structure_of
from aclnn_cts.engine.laws import PREFIX, law_of, usable
from aclnn_cts.engine.promises import check_trial
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.spec.evaluate import evaluate

__all__ = ["EXECUTIONS", "Shrunk", "shrink"]

EXECUTIONS = 200
"""Executions that shrinking takes at most."""

FOR_STRUCTURE = 0.6
"""The share of them that structure may use."""

DEATH_COST = 4
"""What an execution counts that ends the implementation: a new process is started for it."""
HANG_COST = 40
"""What one counts that does not come back, and takes a minute to be given up."""

EXPLICIT = 64
"""Elements up to which data may become explicit values."""

_SIMPLE = (
    Data(recipe="zeros"),
    Data(recipe="constant", mean=1.0),
    Data(recipe="one_hot"),
    Data(recipe="integers", low=-1, high=1),
    Data(recipe="integers", low=-4, high=4),
)
"""Contents, simplest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """What shrinking came to."""

    trial: Trial
    record: Record | None
    """Of the smallest trial's own execution; None where nothing smaller was found."""
    executions: int
    complete: bool
    """Whether everything was tried within the limit."""


class _Spent(Exception):  # noqa: N818 - no error: the limit is reached
    pass


@dataclass(slots=True)
class _Attempts:
    """Executes each trial once (or `repeats` times, until it fails) and keeps the smallest that fails the same way."""

    execute: Callable[[Trial], Record]
    same: Callable[[Record], bool]
    repeats: int
    best: Trial
    executions: int = 0
    cost: int = 0
    ceiling: int = 0
    known: dict[str, Record | None] = field(default_factory=dict)
    """By id of a trial that was tried: the record that shows the failure."""

    def fails(self, trial: Trial) -> bool:
        """Whether it fails the same way; such a trial is the smallest from then on, as callers offer smaller ones."""
        identifier = trial.id
        if identifier not in self.known:
            self.known[identifier] = self._tried(trial)
        if self.known[identifier] is None:
            return False
        self.best = trial
        return True

    def _tried(self, trial: Trial) -> Record | None:
        for _ in range(self.repeats):
            if self.cost >= self.ceiling:
                raise _Spent
            record = self.execute(trial)
            self.executions += 1
            ends = {outcome.ended for attempt in record.attempts for outcome in attempt}
            hung = record.verdict.kind == Fault.HANG or Ended.TIME_LIMIT in ends
            died = record.verdict.kind == Fault.CRASH or bool(ends & {Ended.SIGNAL, Ended.EXIT})
            self.cost += HANG_COST if hung else DEATH_COST if died else 1
            if self.same(record):
                return record
        return None


def shrink(
    trial: Trial,
    *,
    sampler: Sampler,
    execute: Callable[[Trial], Record],
    same: Callable[[Record], bool],
    executions: int = EXECUTIONS,
    repeats: int = 1,
) -> Shrunk:
    """Make a failing trial smaller.

    - `execute`: runs and judges one trial. What it raises ends the shrinking.
    - `same`: whether a record shows the failure that is looked for.
    - `executions`: at most so many; one that ends the implementation counts `DEATH_COST` times.
    - `repeats`: executions before a trial counts as passing, for one that fails sometimes.
    """
    attempts = _Attempts(execute=execute, same=same, repeats=repeats, best=trial)
    complete = True
    for step, share in ((_structure, FOR_STRUCTURE), (_values, 0.85), (_plain, 1.0)):
        attempts.ceiling = int(executions * share)
        try:
            step(attempts, sampler)
        except _Spent:
            complete = False
    record = attempts.known.get(attempts.best.id)
    return Shrunk(trial=attempts.best, record=record, executions=attempts.executions, complete=complete)


def _structure(attempts: _Attempts, sampler: Sampler) -> None:
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


def _search(attempts: _Attempts, structure: Structure, start: Sequence[int]) -> None:
    """Let Hypothesis shrink the decisions, from those of the trial on.

    They reach it by way of its example database, from which it begins (`Phase.reuse`).
    """
    import hypothesis  # noqa: PLC0415 - only shrinking pays for it
    from hypothesis import strategies as st  # noqa: PLC0415
    from hypothesis.database import ExampleDatabase, choices_to_bytes  # noqa: PLC0415

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

    spent: list[_Spent] = []

    def fails(trial: Trial | None) -> bool:
        try:
            return not spent and trial is not None and attempts.fails(trial)
        except _Spent as error:
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


def _values(attempts: _Attempts, sampler: Sampler) -> None:
    """Contents: zeros, ones, one element, small integers; few elements become explicit and simple one by one."""
    inputs = [name for name in sampler.spec.inputs if isinstance(attempts.best.case.arguments.get(name), Tensor)]
    for name in inputs:
        tensor = _tensor(attempts.best.case, name)
        if tensor is None or tensor.data is None or tensor.data in _SIMPLE[:1]:
            continue
        for data in _SIMPLE:
            if data == tensor.data or _try(attempts, sampler, {name: msgspec.structs.replace(tensor, data=data)}):
                break
    for name in inputs:
        _explicit(attempts, sampler, name)


def _explicit(attempts: _Attempts, sampler: Sampler, name: str) -> None:
    tensor = _tensor(attempts.best.case, name)
    if tensor is None or tensor.data is None or not 0 < tensor.numel <= EXPLICIT or tensor.data == _SIMPLE[0]:
        return
    try:
        made = case_arrays(attempts.best.case, [name])[name]
    except UsageError:
        return
    values = [_number(value) for value in made.reshape(-1).tolist()]
    for start, stop in _pieces(len(values)):
        kept = values[start:stop]
        if any(kept) and _try(
            attempts, sampler, {name: _with(tensor, [*values[:start], *[0] * len(kept), *values[stop:]])}
        ):
            values[start:stop] = [0] * len(kept)
    for place, value in enumerate(values):
        for simple in _simpler(value):
            changed = [*values[:place], simple, *values[place + 1 :]]
            if _try(attempts, sampler, {name: _with(tensor, changed)}):
                values = changed
                break


def _number(value: Any) -> int | float | str:  # noqa: ANN401 - an element
    if isinstance(value, bool | int):
        return int(value)
    if value != value:  # noqa: PLR0124 - nan
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def _simpler(value: float | str) -> Iterator[int]:
    """Integers to stand for a value, simplest first."""
    if isinstance(value, str) or value in (0, 1):
        return
    yield 1
    if value not in (-1, 2) and abs(value) < 2**31 and round(value) not in (0, 1, value):
        yield round(value)


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    """Halves, quarters, ... and single elements of a range."""
    size = count
    while size >= 1:
        yield from ((start, min(start + size, count)) for start in range(0, count, size))
        size //= 2


def _with(tensor: Tensor, values: Sequence[int | float | str]) -> Tensor:
    return msgspec.structs.replace(tensor, data=Data(values=tuple(values)))


def _plain(attempts: _Attempts, sampler: Sampler) -> None:
    """Layouts, formats, mode and attributes as an ordinary call has them."""
    spec, case = sampler.spec, attempts.best.case
    laid_out = {name: _contiguous(tensor) for name, tensor in case.tensors() if _contiguous(tensor) != tensor}
    if laid_out and not _try(attempts, sampler, laid_out):
        for name, tensor in laid_out.items():
            _try(attempts, sampler, {name: tensor})
    named = {
        name: msgspec.structs.replace(tensor, format="ND")
        for name, tensor in attempts.best.case.tensors()
        if tensor.format != "ND"
    }
    if named and not _try(attempts, sampler, named):
        for name, tensor in named.items():
            _try(attempts, sampler, {name: tensor})
    for item in spec.parameters:
        value = attempts.best.case.arguments.get(item.name)
        if item.role != "attribute" or isinstance(value, tuple) or not value:
            continue
        for plain in (False,) if isinstance(value, bool) else (0.0, 1.0) if isinstance(value, float) else (0, 1):
            if plain != value and _try(attempts, sampler, {item.name: plain}):
                break


def _contiguous(tensor: Tensor) -> Tensor:
    return Tensor(tensor.shape, tensor.dtype, tensor.format, data=tensor.data)


def _tensor(case: Case, name: str) -> Tensor | None:
    value = case.arguments.get(name)
    return value if isinstance(value, Tensor) else None


def _try(attempts: _Attempts, sampler: Sampler, changes: dict[str, Any]) -> bool:
    """Whether the best trial with other arguments is one that breaks the same rules, and fails the same way."""
    trial = _changed(attempts.best, sampler, changes)
    return trial is not None and trial.id != attempts.best.id and attempts.fails(trial)


def _changed(trial: Trial, sampler: Sampler, changes: dict[str, Any]) -> Trial | None:
    spec = sampler.spec
    case = msgspec.structs.replace(trial.case, arguments={**trial.case.arguments, **changes})
    before = {item.id for item in evaluate(spec, trial.case).broken}
    if {item.id for item in evaluate(spec, case).broken} != before:
        return None
    parameters = dict(trial.parameters)
    if (twin := parameters.get("twin")) is not None:
        old = case_from_json(twin, where="trial: $.parameters.twin")
        # What the break itself has changed stays different in the twin.
        alike = {
            name: value for name, value in changes.items() if old.arguments.get(name) == trial.case.arguments[name]
        }
        mended = msgspec.structs.replace(old, arguments={**old.arguments, **alike})
        if evaluate(spec, mended).broken:
            return None
        parameters["twin"] = case_to_json(mended, origin=False)
    made = Trial(trial.promise, case, parameters)
    try:
        check_trial(made, spec, where="shrinking")
        if trial.promise.startswith(PREFIX) and not usable(law_of(spec, trial.promise), spec, made):
            return None
    except (UsageError, HarnessError):
        return None
    return made
