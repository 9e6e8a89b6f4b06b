"""The sources of decisions: the stream against its stated rule, and the four of them against one another."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.choices import (
    WORDS_PER_CASE,
    ChoiceError,
    Choices,
    HypothesisChoices,
    RandomStreams,
    RecordedChoices,
    StreamChoices,
    stream_block,
    stream_words,
)
from tests.support.replay import ReplayChoices

MASK = 2**64 - 1


def philox_block(key: tuple[int, int], counter: int) -> list[int]:
    """Philox4x64-10 in plain integers, with the constants of the paper's table 2 and Random123's bumps."""
    c = [counter >> (64 * place) & MASK for place in range(4)]
    k = list(key)
    for _ in range(10):
        product = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [
            product[1] >> 64 ^ c[1] ^ k[0],
            product[1] & MASK,
            product[0] >> 64 ^ c[3] ^ k[1],
            product[0] & MASK,
        ]
        k = [(k[0] + 0x9E3779B97F4A7C15) & MASK, (k[1] + 0xBB67AE8584CAA73B) & MASK]
    return c


def stated_word(seed: int, stream: str, position: int) -> int:
    key = seed, int.from_bytes(hashlib.sha256(f"choices/{stream}".encode()).digest()[:8], "little")
    return philox_block(key, position // 4 + 1)[position % 4]


@given(
    reads=st.lists(
        st.tuples(st.sampled_from([(0, "data/x"), (0, "data/y"), (2**64 - 1, "data/x")]), st.integers(0, 9)),
        max_size=12,
    )
)
def test_streams_read_in_turns_go_on_where_they_were(reads: list[tuple[tuple[int, str], int]]) -> None:
    streams = RandomStreams()
    opened: dict[tuple[int, str], Any] = {}
    told: dict[tuple[int, str], list[int]] = {}
    for stream, count in reads:
        take = opened.setdefault(stream, streams.open(*stream))
        told.setdefault(stream, []).extend(take(count).tolist())
    for stream, numbers in told.items():
        assert numbers == stream_words(*stream, len(numbers)).tolist()


def test_streams_refuse_the_seeds_that_words_refuse() -> None:
    for seed in (-1, 2**64):
        with pytest.raises(UsageError, match=f"seed: {seed}; expected"):
            RandomStreams().open(seed, "data/x")


def decide(choices: Choices) -> list[Any]:
    """A small generator that uses every kind of draw."""
    rank = choices.integer(0, 5)
    return [
        [choices.integer(1, 2**31) for _ in range(rank)],
        choices.pick(["FLOAT", "FLOAT16", "BF16"]),
        choices.chance(1, 3),
        choices.integer(-(2**63), 2**63 - 1),
        choices.integer(7, 7),
    ]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, MASK),
    index=st.integers(0, 2**62),
    low=st.integers(-(2**63), 2**63 - 1),
    span=st.integers(1, 2**64),
)
def test_stream_follows_its_stated_rule(seed: int, index: int, low: int, span: int) -> None:
    choices = StreamChoices(seed, "valid", index)
    for position in range(3):
        word = stated_word(seed, "valid", index * WORDS_PER_CASE + position)
        assert choices.integer(low, low + span - 1) == low + (word * span >> 64)


def test_stream_continues_beyond_its_own_words() -> None:
    choices = StreamChoices(5, "valid", 3)
    drawn = [choices.integer(0, MASK) for _ in range(3 * WORDS_PER_CASE)]
    own = [stated_word(5, "valid", 3 * WORDS_PER_CASE + place) for place in range(WORDS_PER_CASE)]
    base = (2**192 + 3 * 2**64) * 4
    continuation = [stated_word(5, "valid", base + place) for place in range(2 * WORDS_PER_CASE)]
    assert drawn == own + continuation


def test_block_gives_what_single_indices_give() -> None:
    first, count = 37, 150
    block = list(stream_block(9, "boundary", first, count))
    assert len(block) == count
    for index, choices in enumerate(block, start=first):
        single = StreamChoices(9, "boundary", index)
        assert decide(choices) == decide(single)
        assert [choices.integer(0, MASK) for _ in range(200)] == [single.integer(0, MASK) for _ in range(200)]
    assert list(stream_block(9, "boundary", first, 0)) == []


def test_seed_stream_and_index_all_matter() -> None:
    sources = [StreamChoices(1, "a", 1), StreamChoices(2, "a", 1), StreamChoices(1, "b", 1), StreamChoices(1, "a", 2)]
    assert len({source.integer(0, MASK) for source in sources}) == len(sources)


def test_stream_covers_bounds_evenly() -> None:
    counts = Counter(choices.integer(-1, 2) for choices in stream_block(0, "even", 0, 2000))
    assert set(counts) == {-1, 0, 1, 2}
    assert all(400 < count < 600 for count in counts.values())


def test_chance_is_as_likely_as_it_says() -> None:
    hits = sum(choices.chance(1, 4) for choices in stream_block(0, "chance", 0, 2000))
    assert 400 < hits < 600
    assert not StreamChoices(0, "chance", 0).chance(0, 4)
    assert StreamChoices(0, "chance", 0).chance(4, 4)


def test_simplest_draw_is_false_and_first() -> None:
    assert ReplayChoices([0]).chance(3, 4) is False
    assert ReplayChoices([3]).chance(1, 4) is True
    assert ReplayChoices([0]).pick("xyz") == "x"


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_record_of_hypothesis_replays_alike(data: st.DataObject) -> None:
    recorded = RecordedChoices(HypothesisChoices(data.draw))
    made = decide(recorded)
    replay = ReplayChoices(recorded.values)
    assert decide(replay) == made
    assert replay.remaining == []
    assert all(low <= value <= high for low, high, value in recorded.draws)


@settings(max_examples=30, deadline=None)
@given(index=st.integers(0, 10_000))
def test_a_record_of_the_stream_replays_alike(index: int) -> None:
    recorded = RecordedChoices(StreamChoices(1, "valid", index))
    made = decide(recorded)
    assert decide(ReplayChoices(recorded.values)) == made
    assert decide(StreamChoices(1, "valid", index)) == made


def test_every_value_of_a_range_is_reached_by_both_drivers() -> None:
    seen: set[tuple[int, str, bool]] = set()

    @settings(max_examples=400, deadline=None, database=None, derandomize=True)
    @given(data=st.data())
    def drive(data: st.DataObject) -> None:
        choices = HypothesisChoices(data.draw)
        seen.add((choices.integer(-1, 1), choices.pick("ab"), choices.chance(1, 2)))

    drive()
    streamed = {(c.integer(-1, 1), c.pick("ab"), c.chance(1, 2)) for c in stream_block(0, "support", 0, 400)}
    assert seen == streamed
    assert len(seen) == 12


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(UsageError, match=rf"seed: {seed}; expected an integer from 0 to 2\^64 - 1"):
        StreamChoices(seed, "valid", 0)


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_extreme_seeds_work(seed: int) -> None:
    assert stream_words(seed, "choices/x", 1)[0] == stated_word(seed, "x", 0)


def sources() -> list[Choices]:
    return [StreamChoices(0, "a", 0), RecordedChoices(StreamChoices(0, "a", 0))]


@pytest.mark.parametrize("choices", sources(), ids=lambda choices: type(choices).__name__)
def test_empty_bounds_are_refused(choices: Choices) -> None:
    with pytest.raises(ChoiceError, match="no integer from 1 to 0"):
        choices.integer(1, 0)
    with pytest.raises(ChoiceError, match="no integer from 0 to -1"):
        choices.pick([])


def test_too_wide_bounds_are_refused() -> None:
    with pytest.raises(ChoiceError, match=r"more than 2\^64 integers"):
        StreamChoices(0, "a", 0).integer(0, 2**64)
