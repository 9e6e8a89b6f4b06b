"""Rotations of pairs in the last dimension: the first and the second elements of all pairs, apart and together.

The last dimension is cut into blocks of 2 `half` elements, and the first half of a block has the first elements of its
pairs: with a `half` of 1 neighbours are pairs, with half of the dimension the two halves of it.
"""

from aclnn_cts.formula.array import Array, F


def parted(array: Array, half: int) -> tuple[Array, Array]:
    """The first and the second elements of all pairs, each half as many."""
    *leading, width = array.shape
    blocks = width // 2 // max(half, 1)
    split = array.reshape(-1, blocks, 2, half)
    first, second = (split[:, :, place].reshape(*leading, width // 2) for place in (0, 1))
    return first, second


def joined(f: F, first: Array, second: Array, half: int) -> Array:
    """One array of both: what `parted` takes apart."""
    *leading, pairs = first.shape
    halves = [array.reshape(-1, pairs // max(half, 1), half) for array in (first, second)]
    found: Array = f.stack(halves, 2).reshape(*leading, 2 * pairs)
    return found
