"""Raw Philox words: the only randomness of the harness, the same on every machine.

Word `j` of the stream (`seed`, `name`) is output word `j mod 4` of Philox4x64-10 (Salmon, Moraes, Dror and Shaw,
*Parallel random numbers: as easy as 1, 2, 3*, SC11, section 4) with the key (`seed`, the first eight bytes of SHA-256
of the UTF-8 name, little endian) and the 256-bit counter `j div 4 + 1`. Only the bit generator's raw words are used:
NumPy promises those, and not what its distributions make of them.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np
from numpy.random import Philox
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

from aclnn_cts.core.errors import UsageError

__all__ = ["SEED_LIMIT", "WORDS_PER_BLOCK", "philox", "stream_key", "words"]

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
    if not 0 <= seed < SEED_LIMIT:
        raise UsageError(f"seed: {seed}; expected an integer from 0 to 2^64 - 1 ({SEED_LIMIT - 1})")
    # NumPy's stubs know its own seed sequences alone; the constructor takes any ISeedSequence.
    key: Any = _Key(np.array((seed, stream_key(name)), dtype=np.uint64))
    generator = Philox(key)
    return generator.advance(block) if block else generator


def words(seed: int, name: str, count: int, *, block: int = 0) -> NDArray[np.uint64]:
    """`count` words of a stream from word `4 * block` on."""
    raw: NDArray[np.uint64] = philox(seed, name, block=block).random_raw(count)
    return raw
