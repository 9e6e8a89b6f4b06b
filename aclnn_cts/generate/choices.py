"""What a generator draws its decisions from: Philox words, Hypothesis or a record, behind one class.

Every decision is an integer between two bounds (`pick` and `chance` are drawn as one), so whoever stands behind
it can make exactly the same cases, and a list of integers is a whole case. Order matters to those who shrink: a
draw is simplest at 0, or at the bound nearest to it; the first of a sequence and the False of a chance are simplest.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.random import Philox
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

from aclnn_cts.core.errors import UsageError

SEED_LIMIT = 2**64
"""Seeds are integers from 0 to one less than this."""

WORDS_PER_BLOCK = 4
"""Words of one value of the counter."""


class _Key(ISeedSequence):
    """Hands Philox its key as a seed sequence does: given as `key`, the constructor first gathers entropy in vain."""

    def __init__(self, key: NDArray[np.uint64]) -> None:
        self._key = key

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray[np.uint64]:
        """The key, whatever is asked for: Philox asks for two 64-bit words."""
        return self._key


@functools.lru_cache(maxsize=4096)
def stream_key(name: str) -> int:
    """The second word of the Philox key: 64 bits of the SHA-256 of a stream's name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def philox(seed: int, name: str, *, block: int = 0) -> Philox:
    """A bit generator that stands at word `4 * block` of a stream. Raises UsageError for a seed out of range."""
    # NumPy's stubs know its own seed sequences alone; the constructor takes any ISeedSequence.
    key: Any = _Key(np.array((_checked(seed), stream_key(name)), dtype=np.uint64))
    generator = Philox(key)
    return generator.advance(block) if block else generator


class RandomStreams:
    """Many short streams from one bit generator, set to each in turn: less than half the cost of one for each."""

    __slots__ = ("_counter", "_generator", "_key", "_state")

    def __init__(self) -> None:
        self._generator = philox(0, "")
        self._state: Any = self._generator.state
        self._key, self._counter = self._state["state"]["key"], self._state["state"]["counter"]

    def open(self, seed: int, name: str) -> Callable[[int], NDArray[np.uint64]]:
        """What gives the next so many words of a stream from its start; UsageError for a seed out of range."""
        key, following = stream_key(name), 0
        _checked(seed)

        def take(count: int) -> NDArray[np.uint64]:
            nonlocal following
            start, following = following, following + count
            return self._read(seed, key, start, count)

        return take

    def _read(self, seed: int, key: int, start: int, count: int) -> NDArray[np.uint64]:
        """`count` words of the stream of that key from word `start` on."""
        block, ahead = divmod(start, WORDS_PER_BLOCK)
        self._key[0], self._key[1] = seed, key
        self._counter[0] = block
        self._generator.state = self._state
        raw: NDArray[np.uint64] = self._generator.random_raw(ahead + count)
        return raw[ahead:] if ahead else raw


def _checked(seed: int) -> int:
    if not 0 <= seed < SEED_LIMIT:
        raise UsageError(f"seed: {seed}; expected an integer from 0 to 2^64 - 1 ({SEED_LIMIT - 1})")
    return seed


def stream_words(seed: int, name: str, count: int, *, block: int = 0) -> NDArray[np.uint64]:
    """`count` words of a stream from word `4 * block` on."""
    return philox(seed, name, block=block).random_raw(count)


T = TypeVar("T")

WORDS_PER_CASE = 96
"""Words that each index of a stream owns before its continuation begins."""

_BLOCKS_PER_CASE = WORDS_PER_CASE // WORDS_PER_BLOCK
_CHUNK = 64
"""Indices whose words `stream_block` makes at a time."""
_USED = 40
"""Words of an index that `stream_block` makes Python integers of: hardly a case takes more."""
_SPAN_LIMIT = 2**64


class ChoiceError(ValueError):
    """A draw that cannot be answered: empty or too wide bounds."""


class Choices:
    """A source of decisions. All are made by the one draw that each source answers itself."""

    __slots__ = ()

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included. Raises ChoiceError where there is none or more than 2^64."""
        raise NotImplementedError

    def pick(self, sequence: Sequence[T]) -> T:
        """An element of a sequence: the draw of its index. Raises ChoiceError where it is empty."""
        return sequence[self.integer(0, len(sequence) - 1)]

    def chance(self, numerator: int, denominator: int) -> bool:
        """True `numerator` times in `denominator`: the draw from 0 to denominator - 1 lies among the last."""
        return self.integer(0, denominator - 1) >= denominator - numerator


class StreamChoices(Choices):
    """Decisions of one index of a counter-based stream: fast, and index i alike wherever and whenever it is made.

    Word `w` answers a draw with `low + (w * span >> 64)`, span = high - low + 1. Index i owns the words from
    96 i to 96 i + 95 of the Philox stream `choices/<stream>`; word 96 + k is word k from counter
    2^192 + i 2^64 on, which no index owns.
    """

    __slots__ = ("_index", "_made", "_seed", "_stream", "_words")

    def __init__(self, seed: int, stream: str, index: int, *, own_words: list[int] | None = None) -> None:
        """`own_words` are the first of the index's 96 words, last first, where the caller has made them in bulk."""
        self._seed, self._stream, self._index = seed, stream, index
        self._words: list[int] = [] if own_words is None else own_words
        """The next ones, last first."""
        self._made = len(self._words)
        """How many words of the index, own and beyond, have been made."""
        if own_words is None:
            self._continue()

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high by the next word."""
        span = high - low + 1
        if not 0 < span <= _SPAN_LIMIT:
            raise _bad_bounds(low, high)
        if not self._words:
            self._continue()
        return low + (self._words.pop() * span >> 64)

    def pick(self, sequence: Sequence[T]) -> T:
        """An element of a sequence by the next word, as the draw of its index takes it."""
        if self._words and sequence:
            return sequence[self._words.pop() * len(sequence) >> 64]
        return super().pick(sequence)

    def _continue(self) -> None:
        """Make the rest of the index's own words; when these are used up, more of its continuation."""
        left = WORDS_PER_CASE - self._made
        block = self._index * _BLOCKS_PER_CASE
        if left <= 0:
            block = 2**192 + self._index * 2**64 - left // WORDS_PER_BLOCK
        made = stream_words(self._seed, f"choices/{self._stream}", WORDS_PER_CASE, block=block)
        self._words = made[-max(left, 0) :][::-1].tolist()
        self._made += len(self._words)


def stream_block(seed: int, stream: str, first: int, count: int) -> Iterator[StreamChoices]:
    """The choices of `count` indices from `first` on: what StreamChoices gives one by one, for a fifth of the cost."""
    name = f"choices/{stream}"
    for start in range(first, first + count, _CHUNK):
        size = min(_CHUNK, first + count - start)
        raw = stream_words(seed, name, size * WORDS_PER_CASE, block=start * _BLOCKS_PER_CASE)
        for offset, own_words in enumerate(raw.reshape(size, WORDS_PER_CASE)[:, _USED - 1 :: -1].tolist()):
            yield StreamChoices(seed, stream, start + offset, own_words=own_words)


class RecordedChoices(Choices):
    """Passes another source's decisions on and keeps them in `draws`, as (low, high, value)."""

    __slots__ = ("_source", "draws")

    def __init__(self, source: Choices) -> None:
        self._source = source
        self.draws: list[tuple[int, int, int]] = []

    def integer(self, low: int, high: int) -> int:
        """The source's integer, written down."""
        value = self._source.integer(low, high)
        self.draws.append((low, high, value))
        return value

    @property
    def values(self) -> tuple[int, ...]:
        """What was decided, in order."""
        return tuple(value for _, _, value in self.draws)


class HypothesisChoices(Choices):
    """Lets Hypothesis decide, so that it can shrink a case: `draw` is the function that `st.composite` hands over."""

    __slots__ = ("_draw", "_integers")

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        from hypothesis import strategies  # noqa: PLC0415 - a campaign on the stream does without it

        self._draw = draw
        self._integers = strategies.integers

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high as Hypothesis likes it."""
        if not 0 < high - low + 1 <= _SPAN_LIMIT:
            raise _bad_bounds(low, high)
        value: int = self._draw(self._integers(low, high))
        return value


def _bad_bounds(low: int, high: int) -> ChoiceError:
    if low > high:
        return ChoiceError(f"no integer from {low} to {high}; the bounds of a draw must include one")
    return ChoiceError(f"more than 2^64 integers from {low} to {high}; one word cannot choose among them")
