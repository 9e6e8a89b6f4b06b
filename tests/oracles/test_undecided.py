"""What a document leaves undecided is undecided for every value: no answer there is a fault, beside inf and nan too."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Result, SkipReason
from aclnn_cts.execution.judging import Judge
from aclnn_cts.formula.emulator import UNDECIDED, TooManyTermsError, Variant
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.oracles import registry
from aclnn_cts.selftest.subject import Subject, with_data
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.drawn import drawn

SPECS = load_specs()
CASES = Path(__file__).parents[1] / "fixtures" / "cases"
CALLS = 64


def judge_of(spec: Spec) -> Judge:
    return Judge(spec=spec, oracle=registry.load(spec.stem), precision=precision_of(spec), has_statuses=False)


def with_specials(question: OracleInput, raw: frozenset[str], number: int) -> OracleInput:
    """The call with inf or nan in one floating input; in none of them where that is so already."""
    names = [name for name, array in question.tensors.items() if array.dtype == np.float64 and name not in raw]
    names = [name for name in names if question.tensors[name].size]
    if not names:
        return question
    name = names[number % len(names)]
    array = question.tensors[name].copy()
    array.reshape(-1)[:: 1 + number % 3] = (np.inf, -np.inf, np.nan)[number // 3 % 3]
    return msgspec.structs.replace(question, tensors={**question.tensors, name: array}, lattices={})


def answered(subject: Subject, value: float | None, number: int) -> Mapping[str, Float64]:
    """A correct implementation's outputs, with one answer to all that the document leaves undecided."""
    outputs = subject.emulated(Variant(undecided=value, key=number)).outputs
    if value is None:
        return outputs
    opened = ((name, got, subject.expected[name].open) for name, got in outputs.items())
    return {name: got if cells is None else np.where(cells, value, got) for name, got, cells in opened}


@pytest.mark.mechanism
@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: spec.stem)
def test_any_answer_to_what_is_undecided_conforms(spec: Spec) -> None:
    formula = registry.load_formula(spec.stem)
    judge = judge_of(spec)
    sampler = Sampler(spec, Target(spec.usual_product))
    for number, case in enumerate(drawn(sampler, CALLS, stream=f"{spec.operator}/undecided", budget=64)):
        performed = with_data(spec, case)
        question = judge.question(performed)
        if number % 2:
            question = with_specials(question, formula.raw, number // 2)
        subject = Subject.of(formula, judge.oracle, question, judge.models(performed))
        with contextlib.suppress(TooManyTermsError):
            answers = [answered(subject, value, number) for value in UNDECIDED]
            assert not any(subject.faulty(answers)), (number, case.arguments)


def test_chamfer_indices_may_count_through_all_batches() -> None:
    """As the document's example counts them, beside an input that holds inf and nan."""
    path = CASES / "chamfer_index_through_batches.json"
    case = case_from_json(json.loads(path.read_bytes()), where=path.name)
    spec = SPECS[case.operator]
    performed = with_data(spec, case)
    tensors = {name: array.astype(np.float64) for name, array in performed.arrays.items()}
    points = [tensors[name].reshape(-1, 2) for name in ("xyz1", "xyz2")]
    named = [performed.arrays[name].reshape(-1) for name in ("idx1", "idx2")]
    gradients = [tensors[name].reshape(-1, 1) for name in ("gradDist1", "gradDist2")]
    got = {}
    with np.errstate(invalid="ignore"):
        terms = [2.0 * gradients[i] * (points[i] - points[1 - i][named[i]]) for i in (0, 1)]
        for i in (0, 1):
            total = terms[i].copy()
            np.subtract.at(total, named[1 - i], terms[1 - i])
            output = f"gradXyz{i + 1}"
            got[output] = to_dtype(total.reshape(tensors["xyz1"].shape), "FLOAT16")
    verdict = judge_of(spec).values(msgspec.structs.replace(performed, got=got))
    assert (verdict.result, verdict.kind) == (Result.SKIPPED, SkipReason.OPEN)
