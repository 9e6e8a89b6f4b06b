"""Raw Philox words: the only randomness of the harness, the same on every machine.

Word `j` of the stream (`seed`, `name`) is output word `j mod 4` of Philox4x64-10 (Salmon, Moraes, Dror and Shaw,
*Parallel random numbers: as easy as 1, 2, 3*, SC11, section 4) with the key (`seed`, the first eight bytes of SHA-256
of the UTF-8 name, little endian) and the 256-bit counter `j div 4 + 1`. Only the bit generator's raw words are used:
NumPy checks those, and not what its distributions make of them.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any

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


class Streams:
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


def words(seed: int, name: str, count: int, *, block: int = 0) -> NDArray[np.uint64]:
    """`count` words of a stream from word `4 * block` on."""
    return philox(seed, name, block=block).random_raw(count)
