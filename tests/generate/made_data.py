"""How the tests of data make them: arrays of a recipe, and what Hypothesis varies."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import DTYPES, FLOATING
from aclnn_cts.core.rounding import widen
from aclnn_cts.generate.recipes import RECIPES, array

FLOATS = sorted(FLOATING)
HELD = [name for name, dtype in DTYPES.items() if dtype.kind != "other"]
few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**64 - 1)
shapes = st.lists(st.integers(1, 7), max_size=4).map(tuple)


def make(shape: tuple[int, ...], dtype: str, recipe: str, **parameters: float | tuple[int, ...]) -> NDArray[Any]:
    data = msgspec.convert(parameters | {"recipe": recipe}, Data)
    tensor = Tensor(shape=shape, dtype=dtype, data=data)
    return array(tensor, arrays={}, name="x")


def needed(recipe: str) -> dict[str, Any]:
    """What a recipe cannot do without, computed from a parameter `x`."""
    given = {"of": "x", "kernel": (2,)}
    return {name: given[name] for name in RECIPES[recipe].needs}


def wide(values: NDArray[Any]) -> NDArray[np.float64]:
    return widen(values)


def checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256, in hexadecimal, of names, dtypes, shapes and bytes, in the order of the names.

    Two processes that made the same data from a case's recipes agree on it.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        content = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}\0{content.dtype.name}\0{content.shape}\0".encode())
        digest.update(content.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
