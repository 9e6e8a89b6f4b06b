"""Calls that must give equal results: the same call again, on copies of its views, and on part of its batch.

The values of every call are judged as those of any other call. Bounds on both results already bound their difference,
so only equal bits are compared here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Data, Origin, Tensor, with_arguments
from aclnn_cts.core.case_json import case_from_json, case_to_json
from aclnn_cts.core.dtypes import COMPONENTS, INEXACT, components
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outside import number_or_word, numbers_as_words
from aclnn_cts.core.printable import number_text
from aclnn_cts.core.rounding import widen
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import PARTS, Result, SkipReason, Verdict
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.configuration import VIEWS, Drawing
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.verdict import OUTPUT_FACT
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds import CaseChange
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.call_verdicts import REPEATS, as_value_failure, decided_by_calls, demand_valid, repeats_of
from aclnn_cts.trials.checks.sources import valid_cases
from aclnn_cts.trials.plan import Part

SAME_CALL_FACT = "of the same call"
"""Ends the keys of `Verdict.facts` that say, for each output, whether equal calls gave equal bits."""

PART_OF_BATCH = "part"
"""The parameter of a trial that holds the call on part of the batch."""

_CALLS = 4
"""Equal calls of a trial: a result that changes in one of four shows in each trial."""
_LONG = 1024
"""Most elements of a tensor for determinism: what varies between equal calls is the order of a sum."""
_SHORT = 256
"""Most elements of a tensor otherwise. Part of a batch is stored as explicit values."""
_ATTEMPTS = 64
"""Drawings tried for one trial."""
_CANDIDATES = 8
"""Cases from which determinism takes the one with the longest sums."""


@dataclass(frozen=True, slots=True)
class DeterminismCheck:
    """Equal calls give equal bits where the compute model is repeatable; elsewhere a difference is recorded."""

    id: str = "determinism"
    sentence: str = "the same call again gives the same bits where something promises it"

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Valid cases with long sums whose terms cancel, so that another order of summation changes the bits.

        Of a part with repeats, the cases of its source.
        """
        if part.repeats:
            for case in valid_cases(part, sampler, seed=seed):
                yield Trial(self.id, case, {REPEATS: part.repeats})
            return
        for number in range(part.first, part.first + part.count):
            cases = (
                sampler.case(sampler.draw(choices, budget=_LONG), origin=Origin(kind=self.id))
                for choices in _streams(self.id, sampler, number, seed=seed)
            )
            case = max(islice(cases, _CANDIDATES), key=lambda made: _terms_per_element(sampler.spec, made))
            yield Trial(self.id, _with_cancelling_sums(sampler.spec, case) if number % 3 else case)

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """The same call, several times; with repeats the first, and the one that differs from it."""
        return (trial.case,) * (2 if repeats_of(trial) else _CALLS)

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """Equal bits where they are promised, then the values."""
        demand_valid(trial, evaluation)
        first, *others = performed
        if (broken := _broken_form(performed, judge)) is not None:
            return broken
        differing = {
            name: [_differing(value, other.got[name]) for other in others] for name, value in first.got.items()
        }
        facts = {f"{name} {SAME_CALL_FACT}": _difference_text(masks) for name, masks in differing.items()}
        # Equal outputs have equal verdicts: the oracle is asked once for all of them.
        verdicts = [judge.values(first)]
        for number, other in enumerate(others):
            changed = any(masks[number].any() for masks in differing.values())
            verdicts.append(judge.values(other) if changed else verdicts[0])
        failed = [verdict.result == Result.FAILED for verdict in verdicts]
        promised = judge.repeatable_outputs(first)
        for name, masks in differing.items():
            if any(mask.any() for mask in masks) and (name in promised or (any(failed) and not all(failed))):
                return _nondeterministic(name, first, others, masks, facts, repeats=repeats_of(trial))
        if any(failed):
            return as_value_failure(decided_by_calls(verdicts), facts)
        verdict = decided_by_calls(verdicts)
        return msgspec.structs.replace(verdict, facts={**verdict.facts, **facts})


@dataclass(frozen=True, slots=True)
class LayoutCheck:
    """Strided views and contiguous copies of their contents both give right results."""

    id: str = "layout"
    sentence: str = "strided views and contiguous copies of their contents both give right results"

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Valid cases with views; none where the document allows contiguous tensors alone."""
        for number in range(part.first, part.first + part.count if sampler.strided else 0):
            for choices in _streams(self.id, sampler, number, seed=seed):
                drawing = sampler.draw(choices, budget=_SHORT)
                views = {name: choices.integer(0, len(VIEWS) - 1) for name in sampler.strided}
                drawing = msgspec.structs.replace(drawing, views=views)
                case = sampler.case(drawing, origin=Origin(kind=self.id))
                if _copied(case) != case and not evaluate(sampler.spec, case).broken:
                    yield Trial(self.id, case)
                    break

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """The call on views, and on contiguous copies."""
        return trial.case, _copied(trial.case)

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """The values of both calls."""
        demand_valid(trial, evaluation)
        broken = _broken_form(performed, judge)
        return broken if broken is not None else _judge_values(performed, judge)


@dataclass(frozen=True, slots=True)
class BatchInvarianceCheck:
    """A row has the same bits whatever rows share its batch. No document promises it: it is checked on request."""

    id: str = "batch-invariance"
    sentence: str = "rows of a batch have the same bits when part of the batch is computed"

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Valid cases with a call on the first rows of their batch; none where no size can change without the rest."""
        for number in range(part.first, part.first + part.count):
            for choices in _streams(self.id, sampler, number, seed=seed):
                drawing = sampler.draw(choices, budget=_SHORT, data_kind="realistic")
                case = sampler.case(drawing, origin=Origin(kind=self.id))
                made = _part_of_batch(sampler, drawing, case, turn=number)
                if made is not None:
                    yield Trial(self.id, case, {PART_OF_BATCH: case_to_json(made, origin=False)})
                    break

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """The call on the whole batch, and on part of it."""
        part = case_from_json(trial.parameters.get(PART_OF_BATCH), where=f"trial: $.parameters.{PART_OF_BATCH}")
        if _with_data_of(trial.case, part, spec) != part:
            raise UsageError(
                f"trial: $.parameters.{PART_OF_BATCH}: not the first rows of the trial's case; expected inputs and "
                "outputs with fewer rows and equal contents; keep what a run has written"
            )
        return trial.case, part

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """The values of both calls, then the bits of the rows that both have and the oracle gives the same value."""
        demand_valid(trial, evaluation)
        if (broken := _broken_form(performed, judge)) is not None:
            return broken
        verdict = _judge_values(performed, judge)
        if verdict.result == Result.FAILED:
            return verdict
        whole, part = performed
        judge = judge.with_answers(performed)
        limits = [judge.limits(item) for item in performed]
        compared = 0
        for name, rows in part.got.items():
            place = tuple(slice(size) for size in rows.shape)
            if name not in limits[1] or rows.shape == whole.got[name].shape:
                continue
            all_values, values = (item[name].expected.value for item in limits)
            if not np.array_equal(all_values[tuple(slice(size) for size in values.shape)], values, equal_nan=True):
                continue  # the rows depend on one another
            compared += 1
            mask = _differing(whole.got[name][place], rows)
            if mask.any():
                message = (
                    f"{_first_difference(name, mask, whole.got[name][place], rows)} for the first rows of the batch "
                    f"without the others; {int(mask.sum())} of {mask.size} elements differ"
                )
                return Verdict(result=Result.FAILED, kind=Fault.BATCH, message=message, facts={OUTPUT_FACT: name})
        if compared:
            return verdict
        message = "no output has rows that are independent of the rest of the batch"
        return Verdict(result=Result.SKIPPED, kind=SkipReason.OPEN, message=message)


EQUAL_CALLS: Mapping[str, DeterminismCheck | LayoutCheck | BatchInvarianceCheck] = MappingProxyType(
    {check.id: check for check in (DeterminismCheck(), LayoutCheck(), BatchInvarianceCheck())}
)
"""By id; `plan.EQUAL_CALLS` and `plan.ON_REQUEST` name them too."""


def _streams(check: str, sampler: Sampler, number: int, *, seed: int) -> Iterator[StreamChoices]:
    """The streams of choices from which the trial of that number may be drawn."""
    name = f"{sampler.spec.operator}/{sampler.target.product}/{check}"
    return (StreamChoices(seed, name, number * _ATTEMPTS + attempt) for attempt in range(_ATTEMPTS))


def _broken_form(performed: Sequence[PerformedCall], judge: Judge) -> Verdict | None:
    """The verdict of calls of which one did not come back in form."""
    forms = [verdict for item in performed if (verdict := judge.form(item)) is not None]
    order = (Result.FAILED, Result.ERROR, Result.SKIPPED, Result.OUT_OF_SCOPE, Result.PASSED)
    return min(forms, key=lambda verdict: order.index(verdict.result), default=None)


def _judge_values(performed: Sequence[PerformedCall], judge: Judge) -> Verdict:
    """The values of all calls."""
    verdict = decided_by_calls([judge.values(item) for item in performed])
    return as_value_failure(verdict) if verdict.result == Result.FAILED else verdict


def _differing(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two results differ; nan equals nan."""
    one, other = components(left), components(right)
    with np.errstate(all="ignore"):
        return np.asarray((one != other) & ~((one != one) & (other != other)))  # noqa: PLR0124 - nan alone differs from itself


def _difference_text(masks: Sequence[NDArray[np.bool_]]) -> str:
    most = max(int(mask.sum()) for mask in masks)
    return f"{most} elements differ" if most else "the same bits"


def _nondeterministic(
    name: str,
    first: PerformedCall,
    others: Sequence[PerformedCall],
    masks: Sequence[NDArray[np.bool_]],
    facts: Mapping[str, Any],
    *,
    repeats: int,
) -> Verdict:
    changed = [place for place, mask in enumerate(masks) if mask.any()]
    mask = masks[changed[0]]
    number = (
        f"one of at most {repeats} repetitions differs"
        if repeats
        else f"{len(changed)} of {len(masks)} repetitions differ"
    )
    message = (
        f"{_first_difference(name, mask, first.got[name], others[changed[0]].got[name])} of an equal call; "
        f"{number}, in up to {max(int(item.sum()) for item in masks)} of "
        f"{mask.size} elements"
    )
    facts = {**facts, OUTPUT_FACT: name}
    return Verdict(result=Result.FAILED, kind=Fault.NONDETERMINISTIC, message=message, facts=facts)


def _first_difference(name: str, mask: NDArray[np.bool_], left: NDArray[Any], right: NDArray[Any]) -> str:
    """`out[1, 2] is 3 in one call and 4 in another`."""
    place = tuple(int(axis) for axis in np.argwhere(mask)[0])
    one, other = (number_text(number_or_word(float(components(item)[place])), 9) for item in (left, right))
    whole = mask.ndim > np.ndim(left)
    index = list(place[:-1] if whole else place)
    part = f".{PARTS[place[-1]]}" if whole else ""
    return f"{name}{index or ''}{part} is {one} in one call and {other} in another"


def _terms_per_element(spec: Spec, case: Case) -> float:
    """Elements of the inputs for each element of the smallest output: how long the sums of an output can be."""
    sizes = {name: tensor.numel for name, tensor in case.tensors()}
    outputs = [sizes[name] for name in spec.computed_outputs(case) if sizes.get(name)]
    return sum(sizes[name] for name in spec.given_inputs(case)) / min(outputs) if outputs else 0.0


def _with_cancelling_sums(spec: Spec, case: Case) -> Case:
    """The case with terms that cancel in the first floating input whose contents the document leaves free."""
    for item in spec.parameters:
        tensor = case.tensor(item.name) if item.is_input and not item.data else None
        if tensor is not None and tensor.data is not None and tensor.dtype in INEXACT:
            data = Data(recipe="swamped", seed=tensor.data.seed)
            changed = with_arguments(case, {item.name: msgspec.structs.replace(tensor, data=data)})
            return case if evaluate(spec, changed).broken else changed
    return case


def _copied(case: Case) -> Case:
    """The case with a contiguous copy in place of each view."""
    copies = {
        name: msgspec.structs.replace(tensor, strides=None, offset=0, storage_shape=None)
        for name, tensor in case.tensors()
        if not tensor.is_contiguous
    }
    return with_arguments(case, copies)


def _part_of_batch(sampler: Sampler, drawing: Drawing, case: Case, *, turn: int) -> Case | None:
    """The call on the first rows of a case: with one drawn size halved in inputs and outputs, and the data cut.

    `turn`: which of the sizes is tried first. Any of them may count the batch.
    """
    draws = sampler.spec.draws
    first = turn % len(draws)
    for draw in (*draws[first:], *draws[:first]):
        size = drawing.names[draw.name]
        rows = size[0] if isinstance(size, tuple) and size else size
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 2:
            continue
        fewer = rows // 2
        way = CaseChange(text="", assign={draw.name: (fewer, *size[1:]) if isinstance(size, tuple) else fewer})
        try:
            made = sampler.case(drawing, change=way, origin=case.origin)
        except UNDEFINED:
            continue
        cut = _with_data_of(case, made, sampler.spec)
        if cut is not None and not evaluate(sampler.spec, cut).broken:
            return cut
    return None


def _with_data_of(case: Case, made: Case, spec: Spec) -> Case | None:
    """The smaller case with the contents of the larger one; None unless sizes of an input and an output shrink."""
    inputs = spec.given_inputs(case)
    whole, smaller = dict(case.tensors()), dict(made.tensors())
    if any(name not in smaller or not _holds(tensor.shape, smaller[name].shape) for name, tensor in whole.items()):
        return None
    cut = {"input" if name in inputs else "output" for name in whole if whole[name].shape != smaller[name].shape}
    if cut != {"input", "output"}:
        return None
    contents: dict[str, Any] = {}
    for name, array in case_arrays(case, inputs).items():
        other = smaller[name]
        data = Data(values=_values(array[tuple(slice(size) for size in other.shape)], other.dtype))
        contents[name] = Tensor(other.shape, other.dtype, other.format, data=data)
    return with_arguments(made, contents)


def _holds(whole: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Whether no dimension of the part is larger."""
    return len(whole) == len(part) and all(size <= most for size, most in zip(part, whole, strict=True))


def _values(array: NDArray[Any], dtype: str) -> tuple[Any, ...]:
    flat = components(array).reshape(-1)
    if dtype in INEXACT or dtype in COMPONENTS:
        return tuple(numbers_as_words(widen(flat).tolist()))
    return tuple(map(int, flat.tolist()))
