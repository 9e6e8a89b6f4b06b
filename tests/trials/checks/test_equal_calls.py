"""Equal calls: what determinism, layout and batch-invariance find, and on whom they stay silent."""

from __future__ import annotations

import functools
import itertools

import msgspec
import numpy as np
import pytest

from aclnn_cts.adapters.reference import ReferenceAdapter
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial, trial_from_json, trial_to_json
from aclnn_cts.core.verdict import FAILED_CHECKS, VALUE_CHECK, Result
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.trials.checks.equal_calls import EQUAL_CALLS, PART_OF_BATCH, SAME_CALL_FACT, BatchInvarianceCheck
from aclnn_cts.trials.checks.registry import check_by_id
from aclnn_cts.trials.plan import EQUAL_CALLS as PLANNED
from aclnn_cts.trials.plan import ON_REQUEST, PROFILES, plan_parts
from tests.support.emulated import OPERATORS, ORDERS, Emulated
from tests.support.targets import SELDOM_DECIDED, first_fast
from tests.support.trial_runs import bench, records, specs, trials

pytestmark = pytest.mark.mechanism

SOFTMAX = "aclnnSoftmaxBackward"
CONV = "aclnnConvTbcBackward"
DETERMINISTIC = Target(product="atlas-a2", deterministic=True)
CONTIGUOUS = (
    "aclnnClippedSwigluGrad",
    "aclnnCrossEntropyLossGrad",
    "aclnnGRUBackward",
    "aclnnMoeTokenPermuteGrad",
    "aclnnNormRopeConcatBackward",
    "aclnnRmsNormGrad",
    "aclnnSwigluGroupQuantGrad",
    "aclnnUnfoldGrad",
)
"""Operators whose documents allow no view or say nothing of them, so that all calls have one layout."""
PAIRS = list(itertools.product(EQUAL_CALLS, sorted(specs())))


@functools.cache
def few_trials(name: str, operator: str) -> list[Trial]:
    return trials(bench(ReferenceAdapter()), name, operator, 3)


def test_the_plan_names_every_check_of_equal_calls() -> None:
    assert (*PLANNED, *ON_REQUEST) == tuple(EQUAL_CALLS)
    quick = PROFILES["quick"]
    asked = msgspec.structs.replace(quick, requested=ON_REQUEST)
    for profile, checks in ((quick, PLANNED), (asked, (*PLANNED, *ON_REQUEST))):
        parts = plan_parts([specs()[SOFTMAX]], product="atlas-a2", chosen=profile)
        found = {part.check for part in parts} & EQUAL_CALLS.keys()
        assert found == set(checks)
        assert all(sum(p.count for p in parts if p.check == name) == quick.equal_calls for name in checks)


@pytest.mark.parametrize(("name", "operator"), PAIRS)
def test_trials_hold_all_constraints_and_survive_their_file(name: str, operator: str) -> None:
    spec, found = specs()[operator], few_trials(name, operator)
    assert found == trials(bench(ReferenceAdapter()), name, operator, 3)
    assert found or (name, operator) in {("layout", operator) for operator in CONTIGUOUS}
    for trial in found:
        assert all(not evaluate(spec, call).broken for call in check_by_id(name, where="test").calls(trial, spec))
        assert trial_from_json(trial_to_json(trial), where="test") == trial


@pytest.mark.parametrize(("name", "operator"), PAIRS)
def test_the_reference_passes(name: str, operator: str) -> None:
    judged = bench(ReferenceAdapter()).run(few_trials(name, operator))
    results = [record.verdict.result for item in judged for record in item.records]
    assert set(results) <= {Result.PASSED, Result.SKIPPED}


@pytest.mark.parametrize("operator", sorted(specs()))
def test_determinism_and_layout_judge_most_trials(operator: str) -> None:
    for name in PLANNED:
        results = [record.verdict.result for record in records(bench(ReferenceAdapter()), name, operator, 8)]
        # Of equal calls those without a decided element are left out.
        assert operator in SELDOM_DECIDED or results.count(Result.PASSED) >= len(results) / 2


@pytest.mark.parametrize(
    ("operator", "order"), first_fast(itertools.product(OPERATORS, ORDERS), of=lambda pair: pair[1])
)
def test_no_order_of_summation_is_accused(operator: str, order: str) -> None:
    made = bench(Emulated(order=order), DETERMINISTIC)
    for name in PLANNED:
        for record in records(made, name, operator, 10, seed=ORDERS.index(order)):
            assert record.verdict.result in (Result.PASSED, Result.SKIPPED), record.verdict.message


@pytest.mark.parametrize("operator", OPERATORS)
def test_another_order_of_a_sum_in_one_call_is_nondeterministic(operator: str) -> None:
    found = records(bench(Emulated(fault="order varies"), DETERMINISTIC), "determinism", operator, 48)
    failed = [record for record in found if record.verdict.result == Result.FAILED]
    assert {record.verdict.kind for record in failed} == {Fault.NONDETERMINISTIC}
    # Other factors than the gradient keep the sums of a softmax from cancelling.
    assert len(failed) >= (3 if operator == SOFTMAX else 12)
    assert operator == SOFTMAX or {record.fingerprint.dtype for record in failed} >= {"FLOAT16", "BF16"}
    assert {record.fingerprint.check for record in failed} == {"determinism"}
    assert all(record.fingerprint.output for record in failed)


@pytest.mark.parametrize("operator", [SOFTMAX, "aclnnUpsampleNearestExact1dBackward"])
def test_one_of_four_equal_calls_that_differs_is_found_in_each_trial(operator: str) -> None:
    found = records(bench(Emulated(fault="wavers seldom")), "determinism", operator, 48)
    wide = [item for item in found if all(tensor.dtype == "FLOAT" for _, tensor in item.trial.case.tensors())]
    assert len(wide) >= 4
    assert {item.verdict.kind for item in wide} == {Fault.NONDETERMINISTIC}
    assert all("of 3 repetitions differ" in item.verdict.message for item in wide)


def test_different_bits_are_a_fact_where_nothing_promises_equal_ones() -> None:
    found = records(bench(Emulated(fault="order varies")), "determinism", CONV, 24)
    assert {record.verdict.result for record in found} <= {Result.PASSED, Result.SKIPPED}
    facts = [text for record in found for key, text in record.verdict.facts.items() if key.endswith(SAME_CALL_FACT)]
    assert any("differ" in text for text in facts)
    assert any(text == "the same bits" for text in facts)


@pytest.mark.parametrize("name", PLANNED)
def test_equal_calls_that_are_all_wrong_fail_on_values(name: str) -> None:
    failed = [item for item in records(bench(Emulated(fault="gain")), name, SOFTMAX, 12) if item.verdict.kind]
    assert any(item.verdict.kind == Fault.VALUE for item in failed)
    for item in failed:
        assert item.verdict.facts[FAILED_CHECKS] == [VALUE_CHECK]
        assert item.fingerprint.check == VALUE_CHECK
        assert item.verdict.kind != Fault.NONDETERMINISTIC


@pytest.mark.parametrize("operator", [name for name in OPERATORS if name != "aclnnRmsNormGrad"])
def test_ignored_strides_fail_layout(operator: str) -> None:
    found = records(bench(Emulated(fault="strides ignored")), "layout", operator, 24)
    failed = [item for item in found if item.verdict.result == Result.FAILED]
    assert failed
    assert all(item.verdict.message.startswith("call 1 of 2") for item in failed)


def test_rows_that_depend_on_their_batch_are_found() -> None:
    """A kernel that sums in another order where the batch is large keeps its bound and not its bits."""
    found = records(bench(OrderByBatch(), DETERMINISTIC), "batch-invariance", SOFTMAX, 96)
    assert {record.verdict.kind for record in found if record.verdict.result == Result.FAILED} == {Fault.BATCH}
    for order in ORDERS:
        silent = records(bench(Emulated(order=order)), "batch-invariance", SOFTMAX, 12)
        assert {record.verdict.result for record in silent} <= {Result.PASSED, Result.SKIPPED}


class OrderByBatch(Emulated):
    """Sums in another order from 16 elements on."""

    def _call(self, call):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        largest = max(tensor.numel for _, tensor in call.case.tensors())
        self.order = "reversed" if largest >= 16 else "forward"
        return super()._call(call)


def test_part_of_a_batch_has_the_contents_of_its_rows() -> None:
    spec = specs()[SOFTMAX]
    [trial] = trials(bench(ReferenceAdapter()), "batch-invariance", SOFTMAX, 1)
    part = case_from_json(trial.parameters[PART_OF_BATCH], where="test")
    whole, fewer = (case_arrays(case, spec.given_inputs(case)) for case in (trial.case, part))
    for name, rows in fewer.items():
        assert rows.size < whole[name].size
        assert np.array_equal(rows, whole[name][tuple(slice(size) for size in rows.shape)])


def test_a_part_that_is_not_of_the_case_is_an_error() -> None:
    first, second = trials(bench(ReferenceAdapter()), "batch-invariance", SOFTMAX, 2)
    mixed = Trial(first.check, first.case, second.parameters)
    with pytest.raises(UsageError, match="not the first rows"):
        BatchInvarianceCheck().calls(mixed, specs()[SOFTMAX])
