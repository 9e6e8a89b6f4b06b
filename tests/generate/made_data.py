"""How the tests of data make them: arrays of a recipe, and what Hypothesis varies."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import DTYPES, FLOATING
from aclnn_cts.generate.recipes import RECIPES, array

FLOATS = sorted(FLOATING)
HELD = [name for name, dtype in DTYPES.items() if dtype.kind != "other"]
few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**64 - 1)
shapes = st.lists(st.integers(1, 7), max_size=4).map(tuple)


def make(shape: tuple[int, ...], dtype: str, recipe: str, **parameters: float) -> NDArray[Any]:
    data = msgspec.convert(parameters | {"recipe": recipe}, Data)
    tensor = Tensor(shape=shape, dtype=dtype, data=data)
    return array(tensor, arrays={}, name="x")


def needed(recipe: str) -> dict[str, Any]:
    """What a recipe cannot do without, computed from a parameter `x`."""
    given = {"of": "x", "kernel": (2,)}
    return {name: given[name] for name in RECIPES[recipe].needs}


def wide(values: NDArray[Any]) -> NDArray[np.float64]:
    return values.astype(np.float64)
