from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.expected import Expected, OracleInput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result, SkipReason
from aclnn_cts.execution.executor import CallPerformer, CallRequest, PerformedCall
from aclnn_cts.execution.judging import Judge, as_operands
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.model import load_precision
from aclnn_cts.oracles import registry
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.trial_runner import TrialRunner
from tests.support.targets import SELDOM_DECIDED

SPECS = load_specs()
ENOUGH = 60
"""Elements of an operator that both oracles are asked for: an operator of many outputs has them in few calls."""


def inputs(case: Case, spec: Spec) -> OracleInput | None:
    """The question that a case puts to the oracles; None where its data hold inf or nan."""
    arrays = case_arrays(case, tuple(spec.given_inputs(case)))
    tensors = as_operands(case, arrays)
    if not all(np.isfinite(array).all() for array in tensors.values()):
        return None
    return OracleInput(
        tensors=tensors, arguments=case.arguments, target=case.target, updated=spec.updated_tensors(case)
    )


TWO_READINGS = {
    "aclnnBatchNormElemtBackward",
    "aclnnFusedLinearCrossEntropyLossGrad",
    "aclnnGeluBackward",
    "aclnnRmsNormGradQuant",
    "aclnnSeluBackward",
    "aclnnSparseFlashAttentionGrad",
    "aclnnSparseLightningIndexerGradKLLoss",
    "aclnnSwigluBackwardMxQuantWithDualAxis",
}
"""The value is in the middle between two readings of the document, and the second oracle takes the first of them."""


@pytest.mark.mechanism
@pytest.mark.parametrize("operator", list(SPECS))
def test_both_oracles_say_the_same_of_random_elements(operator: str) -> None:
    spec = SPECS[operator]
    sampler = Sampler(spec, Target(product=spec.products[-1]))
    oracle, second = registry.load(spec.stem), registry.load_second(spec.stem)
    asked = 0
    for number, choices in enumerate(stream_block(5, "second", 0, 60)):
        if asked >= ENOUGH:
            break
        case = sampler.case(sampler.draw(choices))
        question = inputs(case, spec)
        if question is None:
            continue
        expected = oracle(question)
        for name, output in expected.items():
            value = np.broadcast_to(output.value, question.shape(name))
            if not value.size:
                continue
            index = np.unravel_index(number * 7919 % value.size, value.shape)
            place = tuple(int(axis) for axis in index)
            if not math.isfinite(value[place]) or (
                output.open is not None and np.broadcast_to(output.open, value.shape)[place]
            ):
                continue
            # The magnitude of which the error is one rounding to FLOAT: terms that cancel are larger than the value.
            error = float(np.broadcast_to(output.error, value.shape)[place])
            size = abs(value[place]) + error * (2.0**40 if operator in TWO_READINGS else 2.0**24)
            if not math.isfinite(size):
                continue  # The absolute values overflow DOUBLE: no value is wrong.
            exact = second(question, name, place)
            if exact is None:
                continue  # It takes more nodes than are computed in 50 digits.
            assert abs(Fraction(float(value[place])) - exact) <= Fraction(size) * 2**-40 + Fraction(1, 2**1000)
            asked += 1
    assert asked > (0 if operator in SELDOM_DECIDED else 30)


def softmax(values: tuple[float, ...]) -> Case:
    data = Data(values=values)
    tensor = Tensor((2, 2), "FLOAT", data=data)
    return Case(
        "aclnnSoftmaxBackward", {"gradOutput": tensor, "output": tensor, "dim": 1, "out": Tensor((2, 2), "FLOAT")}
    )


def performed(case: Case) -> PerformedCall:
    with open_host("reference", target=Target(), specs=SPECS) as host:
        [result] = CallPerformer(host=host, specs=SPECS).perform([CallRequest(case)])
        return msgspec.structs.replace(result, got={name: view.copy() for name, view in result.got.items()})


def judge(oracle: object) -> Judge:
    return Judge(
        spec=SPECS["aclnnSoftmaxBackward"],
        oracle=oracle,  # type: ignore[arg-type]  # stands in for a module
        precision=load_precision(),
        has_statuses=True,
        second=registry.load_second("softmax_backward"),
    )


def test_an_oracle_that_errs_ends_in_a_dispute_and_accuses_nobody() -> None:
    right = registry.load("softmax_backward")

    def wrong(call: OracleInput) -> Expected:
        expected = right(call)
        return {"out": msgspec.structs.replace(expected["out"], value=expected["out"].value + 1.0)}

    verdict = judge(wrong).values(performed(softmax((1.0, 2.0, 3.0, 4.0))))
    assert (verdict.result, verdict.kind) == (Result.SKIPPED, SkipReason.DISPUTE)
    assert "two oracles disagree on out" in verdict.message


def test_a_wrong_implementation_is_accused_with_both_oracles_behind_it() -> None:
    done = performed(softmax((1.0, 2.0, 3.0, 4.0)))
    done.got["out"][1, 1] += 0.5
    verdict = judge(registry.load("softmax_backward")).values(done)
    assert (verdict.result, verdict.kind) == (Result.FAILED, Fault.VALUE)
    assert verdict.facts["second oracle"].startswith("agrees")


def test_inf_among_the_inputs_is_said_not_to_be_asked(tmp_path: Path) -> None:
    case = softmax((1.0, 2.0, 3.0, 4.0))
    special = Tensor((2, 2), "FLOAT", data=Data(values=("nan", 2.0, 3.0, 4.0)))
    case = Case(case.operator, {**case.arguments, "gradOutput": special})
    done = performed(case)
    done.got["out"][1, 1] += 0.5
    verdict = judge(registry.load("softmax_backward")).values(done)
    assert verdict.facts["second oracle"] == "not asked: the inputs hold inf or nan"


def test_a_run_reviews_its_failures() -> None:
    with open_host("reference", target=Target(), specs=SPECS) as host:
        runner = TrialRunner(specs=SPECS, host=host, settings=RunnerSettings(adapter="reference", target=Target()))
        [judged] = runner.run([Trial("values", softmax((1.0, 2.0, 3.0, 4.0)))])
    assert judged.records[0].verdict.result == Result.PASSED
    assert runner.judge(SPECS["aclnnSoftmaxBackward"]).second is not None
