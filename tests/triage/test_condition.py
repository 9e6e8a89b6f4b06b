"""Conditions of findings are stated where calls made for the purpose confirm them, and split what two faults share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.finding import Finding, SharedCondition
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.predicate import compile_predicate
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.triage.condition import CALLS, ROUNDS, confirmed_conditions, merge_equal_conditions

SAMPLER = Sampler(load_specs()["aclnnSoftmaxBackward"], Target(product=DEFAULT_PRODUCT))


def calls(number: int, seed: int) -> list[Case]:
    return [SAMPLER.random_case(StreamChoices(seed, "test", each), each) for each in range(number)]


def found(fails: Callable[[Case], bool], seen: Sequence[Case]) -> tuple[tuple[SharedCondition, ...], int]:
    """The conditions, and how many calls were made for them."""
    made: list[Case] = []

    def tried(cases: Sequence[Case]) -> list[bool | None]:
        made.extend(cases)
        return [fails(case) for case in cases]

    failing = [case for case in seen if fails(case)]
    passing = [case for case in seen if not fails(case)]
    return confirmed_conditions(failing, passing, sampler=SAMPLER, fails=tried), len(made)


def out(case: Case) -> Tensor:
    tensor = case.arguments["out"]
    assert isinstance(tensor, Tensor)
    return tensor


def agreement(conditions: Sequence[SharedCondition], trigger: Callable[[Case], bool]) -> float:
    holds = [compile_predicate(item.when) for item in conditions]
    fresh = calls(200, 9)
    return sum(any(each(case) for each in holds) == trigger(case) for case in fresh) / len(fresh)


@pytest.mark.parametrize("when", ["dtype(out) == FLOAT16", "numel(out) % 2 == 1", "rank(out) >= 3"])
def test_a_condition_is_confirmed_by_calls_that_meet_and_miss_it(when: str) -> None:
    trigger = compile_predicate(when)
    [condition], made = found(trigger, calls(300, 1))
    assert agreement([condition], trigger) >= 0.95, condition.when
    assert 3 <= condition.met <= CALLS
    assert 3 <= condition.missed <= CALLS
    assert made <= 2 * CALLS * ROUNDS


def test_two_faults_of_one_output_have_two_conditions() -> None:
    def fails(case: Case) -> bool:
        return (out(case).dtype == "FLOAT16" and out(case).numel % 2 == 1) or (
            out(case).dtype == "FLOAT" and out(case).numel % 13 == 9
        )

    conditions, _ = found(fails, calls(500, 2))
    assert len(conditions) == 2
    assert agreement(conditions, fails) >= 0.95


def test_a_seldom_fault_beside_a_frequent_one_has_its_condition() -> None:
    often, seldom = compile_predicate("dtype(out) == FLOAT16"), compile_predicate("numel(out) % 29 == 3")

    def fails(case: Case) -> bool:
        return often(case) or seldom(case)

    conditions, _ = found(fails, calls(500, 5))
    assert len(conditions) == 2, conditions
    assert agreement(conditions, fails) >= 0.95


def test_one_failing_call_is_enough_where_further_calls_can_be_made() -> None:
    trigger = compile_predicate("dtype(out) == BF16")
    seen = calls(200, 3)
    failing = [case for case in seen if trigger(case)][:1]
    conditions, _ = found(trigger, [*failing, *(case for case in seen if not trigger(case))])
    assert agreement(conditions, trigger) >= 0.95, conditions


def test_what_calls_do_not_confirm_is_not_stated() -> None:
    seen = calls(200, 4)
    chance = {id(case) for case in seen[::20]}
    conditions, made = found(lambda case: id(case) in chance, seen)
    assert conditions == ()
    assert 0 < made <= 2 * CALLS * ROUNDS


def test_findings_with_one_condition_are_one() -> None:
    def finding(output: str, when: str, number: int) -> Finding:
        fingerprint = Fingerprint(operator="aclnnRmsNormGrad", check="values", fault="value", output=output)
        condition = SharedCondition(when=when, met=6, missed=6)
        return Finding(key=fingerprint.key, counts=((fingerprint, number),), condition=condition)

    alike = [finding("dx", "rank(x) == 2", 5), finding("dgamma", "rank(x) == 2", 9), finding("dx", "rank(x) == 3", 4)]
    assert [(item.key.output, item.failures) for item in merge_equal_conditions(alike)] == [("dgamma", 14), ("dx", 4)]
