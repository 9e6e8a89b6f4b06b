"""The pieces that laws are made of, on arrays whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.expected import ErrorTerm, ExpectedOutput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.law import Law, LawCall, LawCheck, LawInput, LawOutput, exactly_stored, with_values
from aclnn_cts.core.rounding import BINARY_FORMATS
from aclnn_cts.core.verdict import Result, Skip
from aclnn_cts.judgement.law import judge_law, law_output
from aclnn_cts.judgement.model import ComputeModel, load_precision
from aclnn_cts.oracles import _laws

LARGEST = BINARY_FORMATS["FLOAT"].largest
BASE = LawInput(case=Case("aclnnSoftmaxBackward", {"out": Tensor((3,), "FLOAT")}), tensors={})


def model(dtype: str = "FLOAT", operator: str = "aclnnSoftmaxBackward") -> ComputeModel:
    return load_precision().model(operator=operator, output="out", dtype=dtype)


def checking(*checks: LawCheck) -> Law:
    return Law(id="x", en="x holds", zh="x 成立", calls=lambda base: (), check=lambda base, calls: checks)


def check(left: list[float], right: list[float], bound: list[float]) -> LawCheck:
    return LawCheck(
        output="out", left=np.array(left), right=np.array(right), bound=np.array(bound), relation="one and other"
    )


def verdict_of(*checks: LawCheck, coarse: Law | None = None) -> tuple[str, str, str]:
    law = checking(*checks)
    verdict = judge_law(law, BASE, (), models={"out": model()}, coarse=tuple)
    return verdict.result, verdict.kind, verdict.message


def test_an_error_is_nothing_between_equal_specials_and_infinite_between_others() -> None:
    inf, nan = math.inf, math.nan
    found = check([1.0, inf, nan, nan, inf, inf], [1.5, inf, nan, 0.0, -inf, 1.0], [0.0] * 6).error
    assert found.tolist() == [0.5, 0.0, 0.0, inf, inf, inf]


def test_a_difference_beyond_the_bound_is_told_with_both_sides() -> None:
    result, kind, message = verdict_of(check([1.0, 2.0, 5.0], [1.0, 2.5, 5.0], [0.0, 0.25, 0.0]))
    assert (result, kind) == (Result.FAILED, Fault.LAW)
    assert message == "x holds: one and other: out[1] is 2 and 2.5, which may be 0.25 apart; 1 of 3 beyond"
    assert "must be equal" in verdict_of(check([1.0], [2.0], [0.0]))[2]


def test_a_difference_within_the_bound_passes_and_unjudged_elements_are_not_looked_at() -> None:
    assert verdict_of(check([1.0, 9.0], [1.25, -9.0], [0.25, math.inf]))[0] == Result.PASSED
    assert verdict_of(check([1.0], [2.0], [math.inf]))[:2] == (Result.SKIPPED, Skip.OPEN)
    assert verdict_of()[:2] == (Result.SKIPPED, Skip.OPEN)


def test_what_coarser_arithmetic_explains_is_a_fault_of_the_assumed_model() -> None:
    """The law's bound follows the calls, so that it widens with their arithmetic."""

    def relation(base: LawInput, calls: object) -> list[LawCheck]:
        assert isinstance(calls, tuple)
        return [check([1.0], [1.1], [1.0 if calls else 0.01])]

    law = Law(id="x", en="x", zh="某", calls=lambda base: (), check=relation)
    coarse = LawCall(case=BASE.case, tensors={}, outputs={})
    kinds = [
        judge_law(law, BASE, (), models={"out": model()}, coarse=lambda more=more: more).kind  # type: ignore[misc]  # bound when it is made
        for more in ((), (coarse,))
    ]
    assert kinds == [Fault.LAW, Fault.MODEL]


def output(value: list[float], magnitude: list[float], dtype: str = "FLOAT", **more: object) -> LawOutput:
    expected = ExpectedOutput(
        value=np.array(value),
        terms=(ErrorTerm(kind="compute", count=4, magnitude=np.array(magnitude)),),
        partial=np.array(magnitude),
        **more,  # type: ignore[arg-type]  # any of its fields
    )
    return law_output(np.array(value), expected, model(dtype), operands=None, deterministic=False)


def test_distances_hold_the_error_and_the_last_rounding() -> None:
    one = output([1.0], [1.0])
    assert 4 * 2.0**-24 <= one.distance[0] <= 4.01 * 2.0**-24
    assert not one.single[0]
    half = output([1.0 + 2.0**-9], [1.0], "BF16")
    # A fourth of BF16's unit above 1: nothing but 1 conforms.
    assert half.distance[0] == pytest.approx(2.0**-9, rel=1e-6)
    exact = output([3.0], [5.0], lattice=1.0)
    assert exact.distance[0] == 0.0
    assert exact.single[0]
    rounded = output([1.0 + 2.0**-9], [1.0], "BF16", lattice=2.0**-9)
    assert rounded.distance[0] == 2.0**-9
    assert rounded.single[0]


def test_the_oracles_own_rounding_counts_where_the_last_rounding_swallows_the_error() -> None:
    """Both ends round to one number, and the exact value may yet lie beside the oracle's."""
    swallowed = output([1.001], [1.0], "BF16")
    assert swallowed.single[0]
    assert swallowed.distance[0] > abs(1.001 - 1.0)


def test_open_overflowing_and_special_elements_are_not_judged() -> None:
    many = output([1.0, math.inf, 1.0, LARGEST], [1.0, 1.0, 1e39, LARGEST], open=np.array([True, False, False, False]))
    assert many.judged.tolist() == [False, False, False, False]
    assert many.open.tolist() == [True, False, False, False]
    assert np.isinf(many.bound).all()


def test_values_keep_their_bits_and_infinities_their_words() -> None:
    tensor = Tensor((2, 2), "BF16", strides=(1, 2), storage_shape=(2, 2), data=Data(recipe="normal"))
    same_shape = with_values(tensor, np.array([[1.0, -0.0], [math.inf, math.nan]]))
    assert same_shape.data is not None
    assert same_shape.data.values == (1.0, -0.0, "inf", "nan")
    assert same_shape.strides == (1, 2)
    smaller = with_values(tensor, np.array([[-math.inf]]))
    assert smaller.shape == (1, 1)
    assert smaller.strides is None
    assert smaller.data is not None
    assert smaller.data.values == ("-inf",)
    integers = with_values(Tensor((2,), "INT64"), np.array([3, -4]))
    assert integers.data is not None
    assert integers.data.values == (3, -4)
    assert exactly_stored(np.array([1.0, 1.0 + 2.0**-7]), "BF16")
    assert not exactly_stored(np.array([1.0 + 2.0**-9]), "BF16")


def test_shuffling_is_a_permutation_that_depends_on_its_start() -> None:
    for count in (0, 1, 2, 7, 256):
        assert sorted(_laws.shuffled(count, 5).tolist()) == list(range(count))
    assert _laws.shuffled(64, 1).tolist() == _laws.shuffled(64, 1).tolist()
    assert _laws.shuffled(64, 1).tolist() != _laws.shuffled(64, 2).tolist()


def test_totals_round_once() -> None:
    values = np.array([[1.0, 2.0**60, -(2.0**60)], [0.25, math.inf, 1.0]])
    assert _laws.totals(values, 1).tolist() == [1.0, math.inf]
    assert _laws.totals(values, 0).tolist() == [1.25, math.inf, 1.0 - 2.0**60]
