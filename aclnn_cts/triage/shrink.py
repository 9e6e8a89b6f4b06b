"""The smallest trial that fails the same way: structure by Hypothesis, then values, then everything to plain."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from aclnn_cts.core.case import Argument, Case, Data, Tensor, owner, with_arguments
from aclnn_cts.core.case_json import case_from_json, case_to_json
from aclnn_cts.core.delta_debugging import without_others
from aclnn_cts.core.dtypes import components
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.outside import number_or_word
from aclnn_cts.core.trial import Trial, of_first_phase
from aclnn_cts.core.verdict import Record
from aclnn_cts.generate.configuration import Drawing
from aclnn_cts.generate.negative import break_at
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.recover import recover_drawing, recovered_case
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.strategies import WAYS
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.model import Draw, Spec
from aclnn_cts.trials.checks.registry import check_trial, derived_trial

EXECUTIONS = 200
"""Executions that shrinking takes at most."""

FOR_STRUCTURE = 0.6
"""The share of them that structure may use."""
FOR_VALUES = 0.85
"""The share that structure and values may use together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkResult:
    """What shrinking came to."""

    trial: Trial
    record: Record | None
    """Of the smallest trial's own execution; None where nothing smaller was found."""
    executions: int
    complete: bool
    """Whether everything was tried within the limit."""


class ShrinkInterrupted(KeyboardInterrupt):
    """An interrupt while shrinking, with what it came to until then."""

    def __init__(self, error: KeyboardInterrupt, shrunk: ShrinkResult) -> None:
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
) -> ShrinkResult:
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
        except ExecutionsSpentError:
            complete = False
        except KeyboardInterrupt as error:
            raise ShrinkInterrupted(error, _shrunk(attempts, complete=False)) from None
    return _shrunk(attempts, complete=complete)


def _shrunk(attempts: Attempts, *, complete: bool) -> ShrinkResult:
    record = attempts.known.get(attempts.best.id)
    return ShrinkResult(trial=attempts.best, record=record, executions=attempts.executions, complete=complete)


def _structure(attempts: Attempts, sampler: Sampler) -> None:
    found = structure_of(sampler, attempts.best)
    if found is None:
        return
    start: list[int] = []

    def as_it_was(low: int, high: int, was: int) -> int:
        start.append(abs(was - _plain(low, high)))
        return was

    if found.trial(as_it_was) is not None:
        _search(attempts, found, start)


def _plain(low: int, high: int) -> int:
    """What a decision shrinks to: the number nearest to 0."""
    return min(max(0, low), high)


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
            # How far from the plain one, whatever the bounds are: those that follow from another decision change with
            # it, and a decision more or less would shift all that come after.
            far: int = draw(st.integers(min_value=0))
            plain = _plain(low, high)
            return max(plain - far, low) if was < plain else min(plain + far, high)

        return structure.trial(decide)

    spent: list[ExecutionsSpentError] = []

    # The seed stands inside: outside, it would take the database away.
    @hypothesis.settings(
        # Two: the trial itself, which is in the database, and what Hypothesis asks of any strategy.
        max_examples=2,
        database=Start(),
        deadline=None,
        phases=(hypothesis.Phase.reuse, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
    )
    @hypothesis.seed(0)
    @hypothesis.given(trials())
    def attempt(trial: Trial | None) -> None:
        try:
            fails = not spent and trial is not None and attempts.fails(trial)
        except ExecutionsSpentError as error:
            spent.append(error)
            return
        if fails:
            raise _FailsError

    with contextlib.suppress(_FailsError, hypothesis.errors.HypothesisException):
        # Whatever it makes of a test that answers otherwise from one moment to the next, `attempts` has the smallest.
        attempt()
    if spent:
        raise spent[0]


class _FailsError(Exception):
    """Tells Hypothesis that a trial fails the same way."""


DEATH_COST = 4
"""What an execution counts that ends the implementation: a new process is started for it."""
HANG_COST = 40
"""What one counts that does not come back, and takes a minute to be given up."""


class ExecutionsSpentError(Exception):
    """No more executions."""


@dataclass(slots=True)
class Attempts:
    """Executes each trial once (or `repeats` times, until it fails) and keeps the smallest that fails the same way."""

    execute: Callable[[Trial], Record]
    same: Callable[[Record], bool]
    repeats: int
    best: Trial
    until: float = math.inf
    """When, by the monotonic clock, nothing more is executed."""
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
            if self.cost >= self.ceiling or time.monotonic() >= self.until:
                raise ExecutionsSpentError
            record = self.execute(trial)
            self.executions += 1
            ends = {outcome.ended for attempt in record.attempts for outcome in attempt}
            hung = record.verdict.kind == Fault.HANG or CallEnd.TIME_LIMIT in ends
            died = record.verdict.kind == Fault.CRASH or bool(ends & {CallEnd.SIGNAL, CallEnd.EXIT})
            self.cost += HANG_COST if hung else DEATH_COST if died else 1
            if self.same(record):
                return record
        return None

    def try_change(self, spec: Spec, changes: Mapping[str, Argument]) -> bool:
        """Whether the best trial with other arguments is one that breaks the same rules, and fails the same way."""
        trial = _changed(self.best, spec, changes)
        return trial is not None and trial.id != self.best.id and self.fails(trial)


def _argument(case: Case, name: str) -> Argument:
    """An argument, or one tensor of a list."""
    return case.arguments[name] if name in case.arguments else case.tensor(name)


def _changed(trial: Trial, spec: Spec, changes: Mapping[str, Argument]) -> Trial | None:
    case = with_arguments(trial.case, changes)
    before = {item.id for item in evaluate(spec, trial.case).broken}
    if {item.id for item in evaluate(spec, case).broken} != before:
        return None
    parameters = dict(trial.parameters)
    if (twin := parameters.get("twin")) is not None:
        old = case_from_json(twin, where="trial: $.parameters.twin")
        # What the break itself has changed stays different in the twin.
        alike = {name: value for name, value in changes.items() if _argument(old, name) == _argument(trial.case, name)}
        mended = with_arguments(old, alike)
        if evaluate(spec, mended).broken:
            return None
        parameters["twin"] = case_to_json(mended, origin=False)
    made = msgspec.structs.replace(trial, case=case, parameters=parameters)
    try:
        check_trial(made, spec, where="shrinking")
    except (UsageError, HarnessError):
        return None
    return made


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


def shrink_values(attempts: Attempts, spec: Spec) -> None:
    """Contents: zeros, ones, one element, small integers; few elements become explicit and simple one by one."""
    inputs = spec.given_inputs(attempts.best.case)
    for name in inputs:
        tensor = attempts.best.case.tensor(name)
        if tensor is None or tensor.data is None or tensor.data in _SIMPLE[:1]:
            continue
        for data in _SIMPLE:
            if data == tensor.data or attempts.try_change(spec, {name: msgspec.structs.replace(tensor, data=data)}):
                break
    for name in inputs:
        _explicit(attempts, spec, name)


def _explicit(attempts: Attempts, spec: Spec, name: str) -> None:
    tensor = attempts.best.case.tensor(name)
    if tensor is None or tensor.data is None or not 0 < tensor.numel <= EXPLICIT or tensor.data == _SIMPLE[0]:
        return
    try:
        made = case_arrays(attempts.best.case, [name])[name]
    except UsageError:
        return
    values = [_number(value) for value in components(made).reshape(-1).tolist()]

    def only(places: Sequence[int]) -> list[int | float | str]:
        return [values[place] if place in places else 0 for place in range(len(values))]

    values = only(
        without_others(
            [place for place, value in enumerate(values) if value],
            lambda places: attempts.try_change(spec, {name: _with(tensor, only(places))}),
        )
    )
    for place, value in enumerate(values):
        for simple in _simpler(value):
            changed = [*values[:place], simple, *values[place + 1 :]]
            if attempts.try_change(spec, {name: _with(tensor, changed)}):
                values = changed
                break


def _number(value: Any) -> int | float | str:  # noqa: ANN401 - an element
    if isinstance(value, bool | int):
        return int(value)
    value = float(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else number_or_word(value)


def _simpler(value: float | str) -> Iterator[int]:
    """Integers to stand for a value, simplest first."""
    if isinstance(value, str) or value in (0, 1):
        return
    yield 1
    if value not in (-1, 2) and abs(value) < 2**31 and round(value) not in (0, 1, value):
        yield round(value)


def _with(tensor: Tensor, values: Sequence[int | float | str]) -> Tensor:
    return msgspec.structs.replace(tensor, data=Data(values=tuple(values)))


def make_plain(attempts: Attempts, spec: Spec) -> None:
    """Layouts, formats, mode and attributes as an ordinary call has them."""
    case = attempts.best.case
    laid_out = {name: _contiguous(tensor) for name, tensor in case.tensors() if _contiguous(tensor) != tensor}
    if laid_out and not attempts.try_change(spec, laid_out):
        for name, tensor in laid_out.items():
            attempts.try_change(spec, {name: tensor})
    named = {
        name: msgspec.structs.replace(tensor, format="ND")
        for name, tensor in attempts.best.case.tensors()
        if tensor.format != "ND"
    }
    # Formats may have to be equal, and those of outputs may have to stay.
    inputs = {name: tensor for name, tensor in named.items() if owner(name) in spec.inputs}
    if named and not attempts.try_change(spec, named) and not (inputs and attempts.try_change(spec, inputs)):
        for name, tensor in named.items():
            attempts.try_change(spec, {name: tensor})
    for item in spec.parameters:
        value = attempts.best.case.arguments.get(item.name)
        if item.role != "attribute" or isinstance(value, tuple) or not value:
            continue
        for plain in (False,) if isinstance(value, bool) else (0.0, 1.0) if isinstance(value, float) else (0, 1):
            if plain != value and attempts.try_change(spec, {item.name: plain}):
                break


def _contiguous(tensor: Tensor) -> Tensor:
    return Tensor(tensor.shape, tensor.dtype, tensor.format, data=tensor.data)


Decide = Callable[[int, int, int], int]
"""Takes the least, the most and what it is in the trial as it was; gives an integer in between."""


@dataclass(frozen=True, slots=True)
class Structure:
    """A trial taken apart: `trial(decide)` puts another of its kind together, None where that is none."""

    sampler: Sampler
    origin: Trial
    drawing: Drawing
    base: Case
    """The valid case that the drawing makes: the trial's own, or the twin of one that breaks a constraint."""
    way: int | None = None
    """By which of the constraint's ways the trial's case was broken."""

    def trial(self, decide: Decide) -> Trial | None:
        """The trial of other decisions."""
        try:
            names, picks = self._names(decide)
            drawing = msgspec.structs.replace(self.drawing, names=names, picks=picks)
            case = recovered_case(self.sampler, drawing, self.base)
        except (*UNDEFINED, LookupError, UsageError):
            return None
        if case is None:
            return None
        return self._of(case, drawing)

    def _of(self, case: Case, drawing: Drawing) -> Trial | None:
        spec, origin = self.sampler.spec, self.origin
        if self.way is not None:
            constraint = spec.constraint(str(origin.case.origin.constraint))
            derived = break_at(self.sampler, constraint, drawing, self.way, twin=case)
            return None if derived is None else self._after(derived_trial(origin.check, derived))
        if evaluate(spec, case).broken:
            return None
        return self._after(Trial(origin.check, case, origin.parameters))

    def _after(self, trial: Trial) -> Trial:
        """The trial made as the original is: after the same calls, and with as many phases."""
        if self.origin.after:
            trial = msgspec.structs.replace(trial, after=self.origin.after)
        return of_first_phase(trial) if self.origin.case.call.phases == 1 else trial

    def _names(self, decide: Decide) -> tuple[dict[str, Any], dict[str, int]]:
        names: dict[str, Any] = {}
        picks: dict[str, int] = {}
        spec, target, old = self.sampler.spec, self.sampler.target, self.drawing
        for draw in spec.draws:
            was = old.names[draw.name]
            if draw.kind == "dtype":
                names[draw.name] = was
            elif draw.kind == "derived":
                names[draw.name] = draw.given(names, target)
            elif draw.kind == "choice":
                names[draw.name] = self._choice(draw, names, picks, decide)
            elif draw.kind == "integer":
                low, high = draw.bounds(names, target)
                plain = _plain(low, high)
                names[draw.name] = decide(min(plain, was), max(plain, was), was)
            elif draw.kind == "run":
                names[draw.name] = self._run(draw, names, was, decide)
            elif draw.kind == "broadcast":
                names[draw.name] = self._broadcast(draw, names, was, decide)
            elif draw.kind == "partition":
                names[draw.name] = self._parts(draw, names, was, decide)
            else:
                low, _ = draw.bounds(names, target)
                names[draw.name] = _factors(draw.given(names, target), was, low, decide)
        for name, value in old.names.items():
            names.setdefault(name, value)
        return names, picks

    def _choice(self, draw: Draw, names: Mapping[str, Any], picks: dict[str, int], decide: Decide) -> Any:  # noqa: ANN401
        """One of the alternatives, or the value that is none of them."""
        old = self.drawing
        if draw.name not in old.picks and decide(0, 1, 1):
            return old.names[draw.name]
        pick = old.picks.get(draw.name, 0)
        picks[draw.name] = decide(0, pick, pick)
        return draw.choices[picks[draw.name]](names, self.sampler.target)

    def _run(self, draw: Draw, names: Mapping[str, Any], was: tuple[int, ...], decide: Decide) -> tuple[int, ...]:
        low, _ = draw.bounds(names, self.sampler.target)
        least, _ = draw.size_bounds(names, self.sampler.target)
        most = max([least, *was])
        # One decision an axis, whether it stands, so that Hypothesis can take an axis away with its size.
        sizes = [decide(least, most, size) for size in was if decide(0, 1, 1)]
        sizes += [least] * (min(low, len(was)) - len(sizes))
        return tuple(sizes)

    def _parts(self, draw: Draw, names: Mapping[str, Any], was: tuple[int, ...], decide: Decide) -> tuple[int, ...]:
        """Parts of a total: as they were where they add up to it, else all but the first as small as they may be."""
        target = self.sampler.target
        low, _ = draw.bounds(names, target)
        total, least = draw.given(names, target), draw.size_bounds(names, target)[0]
        length = decide(min(low, len(was)), len(was), len(was))
        if length == len(was) and sum(was) == total and min(was, default=least) >= least:
            return was
        return (total - least * (length - 1), *[least] * (length - 1))[:length]

    def _broadcast(self, draw: Draw, names: Mapping[str, Any], was: tuple[int, ...], decide: Decide) -> tuple[int, ...]:
        """Sizes that broadcast with another run: an axis is taken away, set to 1, or left where it still fits."""
        low, _ = draw.bounds(names, self.sampler.target)
        other = draw.given(names, self.sampler.target)
        kept = [decide(1, max(1, size), size) for size in was if decide(0, 1, 1)]
        sizes = [1] * (min(low, len(was)) - len(kept)) + kept
        places = range(len(other) - len(sizes), len(other))
        return tuple(
            size if place < 0 or other[place] in (1, size) else 1 for place, size in zip(places, sizes, strict=True)
        )


def _factors(number: int, was: tuple[int, ...], low: int, decide: Decide) -> tuple[int, ...]:
    """Axes whose product is a number: as they were where that fits, else all in the first axis."""
    length = decide(low, max(len(was), low), len(was))
    if math.prod(was) == number and length == len(was):
        return was
    if number == 1 and not length:
        return ()
    return (number, *[1] * (length - 1))


def structure_of(sampler: Sampler, trial: Trial) -> Structure | None:
    """A trial's structure; None where its case cannot be made by the spec's own draws (it was written by hand, say)."""
    spec = sampler.spec
    broken = bool(evaluate(spec, trial.case).broken)
    if not broken:
        drawing = recover_drawing(sampler, trial.case)
        return None if drawing is None else Structure(sampler, trial, drawing, trial.case)
    twin = trial.parameters.get("twin")
    if twin is None or trial.case.origin.constraint is None:
        return None
    base = case_from_json(twin, where="trial: $.parameters.twin")
    drawing = recover_drawing(sampler, base)
    if drawing is None:
        return None
    constraint = spec.constraint(trial.case.origin.constraint)
    wanted = _place(trial.case.origin.change or "")
    for number in range(WAYS):
        derived = break_at(sampler, constraint, drawing, number, twin=base)
        if derived is not None and (derived.case.arguments == trial.case.arguments or _place(derived.change) == wanted):
            return Structure(sampler, trial, drawing, base, number)
    return None


def _place(change: str) -> str:
    """What a change changes, without the values."""
    return re.sub(r"-?\d+", "#", change)
