"""Every law finds a fault that it is there for, and none accuses correct arithmetic, whatever its order."""

from __future__ import annotations

import itertools

import pytest

from aclnn_cts.adapters.reference import ReferenceAdapter
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import FAILED_CHECKS, VALUE_CHECK, Result
from aclnn_cts.judgement.law import RELATION_FACT
from tests.support.emulated_laws import ORDERS, Emulated
from tests.support.laws import bench, hand_written, pairs, records
from tests.support.targets import first_fast

FAULTS = {
    "law/adjoint": "gain",
    "law/linear": "clipped",
    "law/zero": "offset",
    "law/scaling": "narrowed",
    "law/split": "first doubled",
    "law/permute": "first doubled",
    "law/layout": "strides ignored",
    "law/repeat": "wavers",
    "law/row-sum": "plain mean",
    "law/total": "last dropped",
    "law/padding": "padding times zero",
    "law/unused": "unused left",
    "law/index-order": "kept last",
    "law/relabel": "first row lost",
}
DETERMINISTIC = Target(product="atlas-a2", deterministic=True)


def test_every_law_has_a_fault_to_find() -> None:
    assert {law for law, _ in pairs()} == set(FAULTS)


EMULATED = [(law, operator) for law, operator in pairs() if operator in hand_written()]
"""`oracle check` emulates what is stated by its formula alone, and holds its laws."""


@pytest.mark.parametrize(("law", "operator"), first_fast(EMULATED, of=lambda pair: pair[0]))
def test_the_law_finds_its_fault(law: str, operator: str) -> None:
    made = bench(Emulated(fault=FAULTS[law]), DETERMINISTIC)
    failed = [record for record in records(made, law, operator, 24) if record.verdict.result == Result.FAILED]
    found = [record for record in failed if RELATION_FACT in record.verdict.facts[FAILED_CHECKS]]
    assert found
    assert {record.verdict.kind for record in failed} <= {Fault.VALUE, Fault.LAW, Fault.SPECIAL, Fault.MODEL}
    for record in failed:
        first = record.verdict.facts[FAILED_CHECKS][0]
        assert record.fingerprint.check == (law if first == RELATION_FACT else VALUE_CHECK)
        assert record.fingerprint.output
    # Precision is no excuse for any of these faults but the two that are of the size of a rounding.
    if FAULTS[law] not in ("wavers", "narrowed"):
        assert any(record.verdict.kind != Fault.MODEL for record in found)


@pytest.mark.parametrize(
    ("operator", "order"), first_fast(itertools.product(reversed(hand_written()), ORDERS), of=lambda pair: pair[1])
)
def test_correct_arithmetic_is_never_accused(operator: str, order: str) -> None:
    made = bench(Emulated(order=order), DETERMINISTIC)
    for law in (law for law, of in EMULATED if of == operator):
        for record in records(made, law, operator, 10, seed=ORDERS.index(order)):
            assert record.verdict.result in (Result.PASSED, Result.SKIPPED), record.verdict.message


@pytest.mark.parametrize("product", first_fast(["atlas-inference", "atlas-training"]))
def test_the_reference_keeps_every_law_on_other_products(product: str) -> None:
    target = Target(product=product)
    made = bench(ReferenceAdapter(), target)
    for law, operator in pairs():
        if product in made.specs[operator].products:
            results = [record.verdict.result for record in records(made, law, operator, 6)]
            assert results
            assert set(results) <= {Result.PASSED, Result.SKIPPED}, (law, operator)


def test_a_call_that_wavers_is_a_fact_where_nothing_checks_the_same_bits() -> None:
    made = bench(Emulated(fault="wavers"))
    found = records(made, "law/repeat", "aclnnConvTbcBackward", 24)
    assert any(record.verdict.result == Result.PASSED for record in found)
    said = [fact for record in found for key, fact in record.verdict.facts.items() if key.endswith("same call")]
    assert any("differ" in fact for fact in said)
    promised = records(made, "law/repeat", "aclnnSoftmaxBackward", 40)
    assert any(record.verdict.kind == Fault.LAW for record in promised)


@pytest.mark.parametrize(
    "operator",
    first_fast(
        sorted({operator for law, operator in EMULATED if law == "law/repeat"}), of="aclnnSoftmaxBackward".__eq__
    ),
)
def test_another_order_of_a_sum_shows(operator: str) -> None:
    """In narrow outputs too, but for a softmax, where other factors than the gradient keep sums from cancelling."""
    made = bench(Emulated(fault="order varies"), DETERMINISTIC)
    found = [record for record in records(made, "law/repeat", operator, 48) if record.verdict.result == Result.FAILED]
    softmax = operator == "aclnnSoftmaxBackward"
    assert len(found) >= (5 if softmax else 20)
    assert softmax or {record.fingerprint.dtype for record in found} >= {"FLOAT16", "BF16"}


@pytest.mark.parametrize("operator", ["aclnnUpsampleNearestExact1dBackward", "aclnnSoftmaxBackward"])
def test_one_call_in_four_that_differs_is_found_by_each_trial(operator: str) -> None:
    made = bench(Emulated(fault="wavers seldom"))
    found = records(made, "law/repeat", operator, 48)
    wide = [record for record in found if all(tensor.dtype == "FLOAT" for _, tensor in record.trial.case.tensors())]
    assert len(wide) >= 4
    assert {record.verdict.result for record in wide} == {Result.FAILED}


def test_exact_data_must_agree_bit_for_bit() -> None:
    """Small integers leave no tolerance: one unit in the last place is found."""
    made = bench(Emulated(fault="wavers"))
    for law in ("law/split", "law/permute", "law/layout", "law/linear"):
        exact = [
            deviation
            for record in records(made, law, "aclnnConvTbcBackward", 40)
            if record.verdict.result == Result.FAILED
            for deviation in record.verdict.deviations
            if deviation.beyond and deviation.bound == 0.0
        ]
        assert exact, law
