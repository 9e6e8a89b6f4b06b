"""Which precision was really used? Numbers that each format tells in its own way, put through the whole operator.

An input holds one number v at one place, and 0 elsewhere; the others hold 1. Then products and sums are exact, and an
output shows what became of v: 4097, 2049 and 257 need 13, 12 and 9 bits of significand; 98304 lies above FLOAT16's
range, 3 * 2^-27 below its smallest number, and 5 * 2^-24 is one of its subnormal numbers. The oracle is asked once for
each format, with the inputs rounded to it; of each output the formats whose answer is the implementation's are named.
Where two formats answer alike, both are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Data, Tensor, owner, with_arguments
from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, binary_format, round_to, to_dtype, widen
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import PRECISION_FACT, Verdict, formats_of
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.configuration import Drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds_data import INDEX_RECIPES
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.store_reader import Query
from aclnn_cts.trials.plan import Part

PROBES: Mapping[str, float] = {
    "13 bits": 4097.0,
    "12 bits": 2049.0,
    "9 bits": 257.0,
    "above 65504": 98304.0,
    "below 2^-25": 3.0 * 2.0**-27,
    "below 2^-14": 5.0 * 2.0**-24,
}
"""The numbers, by what they show."""


_SEED = 0
_DRAWINGS = 16
"""Of which the probes of an input take the most telling, one each: a result may be exact in one shape alone."""


def _hfloat32(significand: int) -> BinaryFormat:
    return binary_format("HFLOAT32", significand=significand, min_exponent=-126, max_exponent=127)


_MOST = 1 << 16
"""Elements of a probe, each of which stands in its case. A size from which others alone are derived may be huge."""
CANDIDATES: Mapping[str, BinaryFormat] = {
    "FLOAT": BINARY_FORMATS["FLOAT"],
    "HFLOAT32 with 11 stored bits": _hfloat32(12),
    "HFLOAT32 with 10 stored bits": _hfloat32(11),
    "FLOAT16": BINARY_FORMATS["FLOAT16"],
    "BF16": BINARY_FORMATS["BF16"],
}


def _settings(sampler: Sampler) -> list[tuple[Mapping[str, str], int | None]]:
    """Every row of dtypes with every mode that the document supports for it."""
    spec, product = sampler.spec, sampler.target.product
    rows = sampler.dtype_rows
    if spec.modes is None:
        return [(row, None) for row in rows]
    return [(row, mode) for row in rows for mode in spec.modes.supported(product, spec.modes.dtype_of(row))]


def _probed(case: Case, inputs: Sequence[str], name: str, value: float) -> Case | None:
    """The case with v at one place of one input and ones in the others.

    None where the dtype does not hold v, and where the input has too many elements to write out.
    """
    changes: dict[str, Tensor] = {}
    for other in inputs:
        tensor = case.tensor(other)
        if tensor is None or tensor.dtype not in FLOATING or not tensor.numel:
            return None
        if tensor.data is not None and tensor.data.recipe in INDEX_RECIPES:
            if other == name:
                return None
            # Indices held in floats stay what they are: a 1 may lie outside the table.
            continue
        if other == name:
            if float(round_to(np.array(value), BINARY_FORMATS[tensor.dtype])) != value or tensor.numel > _MOST:
                return None
            place = tensor.numel // 2
            values = tuple(value if position == place else 0.0 for position in range(tensor.numel))
            data = Data(values=values)
        else:
            data = Data(recipe="constant", mean=1.0)
        changes[other] = msgspec.structs.replace(tensor, data=data)
    return with_arguments(case, changes)


@dataclass(frozen=True, slots=True)
class PrecisionCheck:
    """Numbers that tell formats apart come out as the promised precision allows; the one really used is named."""

    id: str = "precision"
    sentence: str = "numbers that tell formats apart come out as the promised precision demands"

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Each dtype row and mode, each floating input, each probe, on a small drawing of its own.

        The drawings are the same for every `seed`: what a probe can tell depends on the shape, and so would the answer.
        """
        spec = sampler.spec
        name = f"{spec.operator}/{sampler.target.product}/precision"
        index = 0
        for row, mode in _settings(sampler):
            inputs = [entry for entry in spec.inputs if row[entry] in FLOATING]
            for probed in inputs:
                drawings = stream_block(_SEED, name, index, _DRAWINGS)
                index += _DRAWINGS
                cases = [
                    sampler.case(_settled(sampler.draw(choices, budget=24), row, mode, sampler)) for choices in drawings
                ]
                for case, value in zip(sorted(cases, key=_ones), PROBES.values(), strict=False):
                    given = [name for name in spec.given_inputs(case) if owner(name) in inputs]
                    # Of a list the first tensor is probed.
                    place = next((name for name in given if owner(name) == probed), probed)
                    trial = _probed(case, given, place, value)
                    if trial is not None and not evaluate(spec, trial).broken:
                        yield Trial(self.id, trial, {"input": place})

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """The case alone."""
        return (trial.case,)

    def judge(self, trial: Trial, performed: Sequence[PerformedCall], judge: Judge, evaluation: Evaluation) -> Verdict:
        """The bound decides; which formats answer alike is a fact."""
        verdict = judge.values(performed[0], allowed=evaluation.statuses)
        outcome = performed[0].outcome
        if outcome.ended != CallEnd.RETURNED or outcome.status or not performed[0].got:
            return verdict
        names = _answering_alike(performed[0], judge)
        if not names:
            return verdict
        return msgspec.structs.replace(verdict, facts={**verdict.facts, PRECISION_FACT: names})


def _ones(case: Case) -> int:
    """How many dimensions are 1: where a sum has a single term, formats look alike."""
    return sum(tensor.shape.count(1) for _, tensor in case.tensors())


def _settled(drawing: Drawing, row: Mapping[str, str], mode: int | None, sampler: Sampler) -> Drawing:
    names = dict(drawing.names)
    if mode is not None and sampler.spec.modes is not None:
        names[sampler.spec.modes.attribute] = mode
    return msgspec.structs.replace(drawing, dtypes=row, names=names, views={})


def _answering_alike(performed: PerformedCall, judge: Judge) -> dict[str, list[str]]:
    """The formats that answer as the implementation does, for each real output whose exact answer is a FLOAT number."""
    question = judge.question(performed)
    ideal = judge.oracle(question)
    alike: dict[str, list[str]] = {
        output: []
        for output in judge.outputs_of_mode(performed)
        if _exact_in_float(ideal[output]) and performed.got[output].dtype.kind != "c"
    }
    if not alike:
        return {}
    saturates, oracle = judge.saturates(performed), judge.first or judge.oracle
    for name, form in CANDIDATES.items():
        for away in (False, True):
            tensors = {
                key: _rounded(array, form, away=away, saturates=saturates) if array.dtype == np.float64 else array
                for key, array in question.tensors.items()
            }
            expected = oracle(msgspec.structs.replace(question, tensors=tensors, lattices={}))
            for output, names in alike.items():
                if name not in names and _same(expected[output].value, expected[output].open, performed, output):
                    names.append(name)
            if all(name in names for names in alike.values()):
                break
    # Without a step an intermediate result may be rounded, so that no answer at all tells of no format.
    return {output: names for output, names in alike.items() if names or ideal[output].step is not None}


def _rounded(array: NDArray[Any], form: BinaryFormat, *, away: bool, saturates: bool) -> NDArray[np.float64]:
    """Operands in a format, by either rule for ties: no source says which one HFLOAT32 has."""
    # A relative step far below any format's unit takes a tie to the larger magnitude and moves nothing else.
    rounded = round_to(array * (1.0 + 2.0**-40) if away else array, form)
    return np.clip(rounded, -form.largest, form.largest) if saturates else rounded


def _exact_in_float(output: ExpectedOutput) -> bool:
    """Whether every order of evaluation in FLOAT gives the exact result, which then is a FLOAT number."""
    is_number = np.array_equal(round_to(output.value, CANDIDATES["FLOAT"]), output.value)
    return is_number and bool(np.all(output.exact))


def _same(value: NDArray[Any], open_: NDArray[np.bool_] | None, performed: PerformedCall, output: str) -> bool:
    got = performed.got[output]
    tensor = performed.case.tensor(output)
    if tensor is None:
        return False
    wanted, found = widen(to_dtype(np.broadcast_to(value, got.shape), tensor.dtype)), widen(got)
    same = (wanted == found) | (np.isnan(wanted) & np.isnan(found))
    return bool(same.all() if open_ is None else (same | open_).all())


def precision_used(run: RunDirectory) -> Mapping[tuple[str, str, str, str], tuple[str, ...]]:
    """By operator, output, mode and dtype of a run's probes: the formats that all of them leave possible."""
    found: dict[tuple[str, str, str, str], set[str]] = {}
    with run.results() as results:
        for record in results.records(Query(check_id=PrecisionCheck().id)):
            if record.waiver and record.verdict.kind != Fault.MODEL:
                # A waiver says where the wrong value comes from, and that is no format.
                continue
            for deviation in record.verdict.deviations:
                if (names := formats_of(record, deviation.output)) is not None:
                    mode, dtype = record.verdict.mode, record.fingerprint.dtype
                    key = (record.trial.case.operator, owner(deviation.output), mode, dtype)
                    found.setdefault(key, set(CANDIDATES)).intersection_update(names)
    return {key: tuple(name for name in CANDIDATES if name in names) for key, names in found.items()}
