"""Faults that plans of an earlier version missed: the standard plan reaches each of them, and its values are judged.

Each implementation here is the reference with one mistake. Only planned calls that meet its condition are made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np
import pytest

from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession, Values
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.expected import Condensed, Float64, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.plan import PROFILES, plan_parts
from tests.support.trial_runs import bench, specs

TRIED = 12
"""Planned calls that meet the condition and are made, at most."""

Question = Callable[[OracleInput], OracleInput]
Results = Callable[[OracleInput, Mapping[str, Float64]], Mapping[str, Float64]]


@dataclass(frozen=True)
class Miss:
    """A mistake: when, and what it does to the inputs or to the outputs."""

    operator: str
    meets: Callable[[Case], bool]
    inputs: Question = lambda question: question
    outputs: Results = lambda _question, values: values


class Mistaken(ReferenceAdapter):
    def __init__(self, miss: Miss) -> None:
        self._miss = miss

    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        return _Session(target, specs, self._miss)


class _Session(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], miss: Miss) -> None:
        super().__init__(target, specs)
        self._miss = miss

    def _condensed(self, spec: Spec, question: OracleInput) -> Condensed | None:
        return super()._condensed(spec, self._miss.inputs(question))

    def _values(self, spec: Spec) -> Values:
        right = super()._values(spec)

        def wrong(question: OracleInput) -> Mapping[str, Float64]:
            question = self._miss.inputs(question)
            return self._miss.outputs(question, right(question))

        return wrong


def tensor(case: Case, name: str) -> Tensor:
    value = case.arguments[name]
    assert isinstance(value, Tensor)
    return value


def with_tensors(question: OracleInput, change: Callable[[str, Float64], Float64]) -> OracleInput:
    tensors = {name: change(name, array) for name, array in question.tensors.items()}
    return msgspec.structs.replace(question, tensors=tensors)


def channels_are_eights(case: Case) -> bool:
    _, *channels = tensor(case, "weight").shape
    return (
        all(size % 8 == 0 for size in channels)
        and case.arguments["cubeMathType"] == 0
        and tensor(case, "self").dtype == "FLOAT"
    )


def in_hf32(question: OracleInput) -> OracleInput:
    return with_tensors(question, lambda _name, array: round_to(array, BINARY_FORMATS["HFLOAT32"]))


def has_many_rows(case: Case, *, output: str) -> bool:
    shape = tensor(case, output).shape
    return int(np.prod(shape[:-1])) > 8192 and shape[-1] > 0


def late_rows_doubled(_question: OracleInput, values: Mapping[str, Float64]) -> Mapping[str, Float64]:
    def doubled(value: Float64) -> Float64:
        rows = np.array(value).reshape(-1, value.shape[-1])
        rows[8192:] *= 2
        return rows.reshape(value.shape)

    return {name: doubled(value) for name, value in values.items()}


def indices_of(case: Case) -> Float64:
    return case_arrays(case, ["indices"])["indices"].astype(np.float64)


def has_index(case: Case, *, beyond: int) -> bool:
    table = tensor(case, "out")
    return case.call.phases == 2 and table.shape[0] > beyond + 1 and bool((indices_of(case) > beyond).any())


def in_16_bits(question: OracleInput) -> OracleInput:
    return with_tensors(
        question, lambda name, array: np.fmod(array, 65536).astype(array.dtype) if name == "indices" else array
    )


def in_float(question: OracleInput) -> OracleInput:
    """Of integers; those that come in FLOAT are right."""
    return with_tensors(
        question, lambda name, array: array.astype(np.float32).astype(array.dtype) if name == "indices" else array
    )


def has_many_duplicates(case: Case) -> bool:
    if case.call.phases != 2 or tensor(case, "grad").dtype != "FLOAT" or tensor(case, "indices").numel <= 2048:
        return False
    return int(np.unique(indices_of(case), return_counts=True)[1].max()) > 2048


def summed_in_half(question: OracleInput, values: Mapping[str, Float64]) -> Mapping[str, Float64]:
    indices = question.tensors["indices"].reshape(-1).astype(np.int64)
    grad = question.tensors["grad"].reshape(indices.size, -1)
    out = np.array(values["out"])
    for row in np.flatnonzero(np.bincount(indices) > 2048):
        total = np.zeros(grad.shape[1], np.float16)
        with np.errstate(all="ignore"):
            for terms in grad[indices == row]:
                total = (total + terms.astype(np.float16)).astype(np.float16)
        out[row] = total
    return {"out": out}


def shrinks_to_one(case: Case) -> bool:
    length = tensor(case, "gradOutput").shape[2]
    return tensor(case, "out").shape[2] == 1 and length > 16 and length % 2 == 1


def last_dropped(question: OracleInput) -> OracleInput:
    def without(name: str, array: Float64) -> Float64:
        changed = np.array(array)
        if name == "gradOutput":
            changed[..., -1] = 0
        return changed

    return with_tensors(question, without)


MISSES = {
    "hf32-for-eights": Miss("aclnnConvTbcBackward", channels_are_eights, inputs=in_hf32),
    "softmax-late-rows": Miss(
        "aclnnSoftmaxBackward", functools.partial(has_many_rows, output="out"), outputs=late_rows_doubled
    ),
    "rms-norm-late-rows": Miss(
        "aclnnRmsNormGrad", functools.partial(has_many_rows, output="dxOut"), outputs=late_rows_doubled
    ),
    "index-of-16-bits": Miss(
        "aclnnEmbeddingDenseBackward", functools.partial(has_index, beyond=65_535), inputs=in_16_bits
    ),
    "index-in-float": Miss("aclnnEmbeddingDenseBackward", functools.partial(has_index, beyond=2**24), inputs=in_float),
    "many-duplicates-in-half": Miss("aclnnEmbeddingDenseBackward", has_many_duplicates, outputs=summed_in_half),
    "odd-length-to-one": Miss("aclnnUpsampleNearestExact1dBackward", shrinks_to_one, inputs=last_dropped),
}


def planned(operator: str) -> Iterator[Case]:
    """The random cases of a standard plan."""
    made = bench(ReferenceAdapter())
    plan = plan_parts([specs()[operator]], product="atlas-a2", chosen=PROFILES["standard"])
    for part in plan:
        if part.check == "values":
            yield from (trial.case for trial in made.expand(part, seed=0))


@pytest.mark.parametrize("name", MISSES)
def test_the_standard_plan_finds_what_was_missed(name: str) -> None:
    miss, made = MISSES[name], bench(Mistaken(MISSES[name]))
    results: list[str] = []
    for case in islice(filter(miss.meets, planned(miss.operator)), TRIED):
        results.append(made.run_one(Trial("values", case)).verdict.result)
        if len(results) >= 2 and Result.FAILED in results:
            return
    pytest.fail(f"{len(results)} planned calls meet the condition, and none fails: {results}")
