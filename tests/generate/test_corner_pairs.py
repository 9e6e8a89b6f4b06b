"""Which pairs of corners are worth a call: those that none has had, and that refusals have not made doubtful."""

from __future__ import annotations

import pytest

from aclnn_cts.generate.corner_pairs import OptionPairs

pytestmark = pytest.mark.mechanism

A, B, C = 0, 1, 2
"""Factors: with two, three and two options."""


def made() -> OptionPairs:
    pairs = OptionPairs([2, 3, 2])
    pairs.note_call([(A, 0), (B, 0), (C, 0)])
    return pairs


def test_a_call_has_the_pairs_of_its_options_and_none_of_one_factor() -> None:
    pairs = made()
    pairs.note_call([(B, 1), (B, 2)])
    assert set(pairs.covered_pairs()) == {((A, 0), (B, 0)), ((A, 0), (C, 0)), ((B, 0), (C, 0))}
    assert pairs.visited == 5
    assert not pairs.is_met((A, 1))


def test_an_option_is_worth_its_pairs_that_no_call_has_had() -> None:
    pairs = made()
    pairs.note_call([(A, 1), (B, 1), (C, 0)])
    beside = pairs.bits([(A, 0), (C, 0)])
    assert [pairs.count_new_pairs((B, option), beside) for option in (0, 1)] == [0, 1]
    assert pairs.count_new_pairs((B, 2), beside) > 2
    assert pairs.rank_options(B, range(3), beside) == [2, 1, 0]


def test_a_pair_that_is_the_only_one_to_blame_is_doubtful_first() -> None:
    pairs = made()
    pairs.note_call([(A, 1), (B, 1), (C, 1)])
    alone, both = pairs.bits([(A, 1)]), pairs.bits([(A, 0), (C, 0)])
    for _ in range(8):
        pairs.note_refusal((B, 0), alone)
        pairs.note_refusal((B, 1), both)
    assert (pairs.count_new_pairs((B, 0), alone), pairs.count_new_pairs((B, 1), both)) == (0, 2)
    for _ in range(8):
        pairs.note_refusal((B, 1), both)
    assert pairs.count_new_pairs((B, 1), both) == 0
    pairs.clear_refusals()
    assert (pairs.count_new_pairs((B, 0), alone), pairs.count_new_pairs((B, 1), both)) == (1, 2)


def test_a_pair_that_calls_have_had_is_never_to_blame() -> None:
    pairs = made()
    pairs.note_call([(A, 1), (B, 1), (C, 1)])
    beside = pairs.bits([(A, 0), (C, 1)])
    for _ in range(8):
        pairs.note_refusal((B, 0), beside)
    assert pairs.count_new_pairs((C, 1), pairs.bits([(B, 0)])) == 0
    assert pairs.rank_options(B, (0, 1), beside)[-1] == 0
    assert pairs.count_new_pairs((B, 0), pairs.bits([(A, 1)])) == 1


def test_options_in_a_pair_that_no_call_can_have_come_last_whatever_is_forgiven() -> None:
    pairs = made()
    pairs.exclude_pair((A, 1), (B, 2))
    pairs.clear_refusals()
    assert pairs.rank_options(B, range(3), pairs.bits([(A, 1)]))[-1] == 2
    assert pairs.count_new_pairs((A, 1), pairs.bits([(B, 2)])) == pairs.count_new_pairs((A, 1), 0)
