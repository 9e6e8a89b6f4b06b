"""The bytes of every recipe in every dtype, held by SHA-256.

Case files name recipes and not values: bytes that change make every recorded trial mean something else. Where a change
is meant, run `pytest --snapshot-update tests/generate/test_golden_recipes.py` and commit the file with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

import aclnn_cts
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.generate.recipes import CHUNK, RECIPES, case_arrays
from tests.generate.made_data import checksum

LONG = 2**18 + 77
"""More elements than any chunk has had; a recipe's bytes do not depend on how many these are."""
SHAPE = (5, 7, 4)
PARAMETERS: dict[str, list[Data]] = {
    "integers": [Data(low=-300, high=4097, exponent=-3), Data(low=-(2**62), high=2**62)],
    "indices": [Data(low=1, high=7)],
    "few_indices": [Data(high=100)],
    "equal_indices": [Data(low=3, high=100)],
    "hot_indices": [Data(high=100)],
    "zipf_indices": [Data(low=3, high=100), Data(high=2**40)],
    "distinct_indices": [Data(low=3, high=100, axis=1), Data(high=5)],
    "end_indices": [Data(low=1, high=2**24 + 9)],
    "dominated": [Data(axis=1)],
    "argmax": [Data(axis=-2, high=28, kernel=(3, 2), stride=(2,), padding=(1, 0), dilation=(1, 2))],
    "seen_indices": [Data(high=3, axis=0), Data(high=9)],
    "ramp": [Data(high=11)],
    "offsets": [Data(low=1, high=100, axis=1), Data(high=2**40)],
    "ends": [Data(low=1, high=100, axis=0), Data(high=3)],
    "lengths": [Data(low=1, high=100, axis=1), Data(high=2**62)],
    "partial_lengths": [Data(low=2, high=100, axis=-1)],
    "permutation": [Data(low=3, axis=1), Data(low=-5, axis=0)],
    "repeated": [Data(low=0, high=8), Data(low=-3, high=3, exponent=-1, axis=0)],
    "boxes": [Data(high=100), Data(high=3, axis=1)],
    "regions": [Data(high=100, kernel=(3, 40)), Data(high=3, kernel=(0, 2), axis=1)],
    "bits": [Data(mean=0.9), Data(mean=0.0)],
    "band": [Data(low=-3, high=0), Data(high=-2, kernel=(1, 3)), Data(mean=0.5, padding=(5, 2))],
    "constant": [Data(mean=0.1)],
    "one_hot": [Data(axis=1)],
    "normal": [Data(mean=3.0, std=0.01)],
    "outliers": [Data(mean=-100.0, std=25.0)],
    "uniform": [Data(low=-5, high=9)],
    "softmax": [Data(axis=0)],
    "rstd": [Data(epsilon=0.5)],
    "mean": [Data(axis=1)],
    "invstd": [Data(axis=-1, epsilon=0.5)],
    "wide": [Data(low=-3, high=12)],
    "cancel": [Data(axis=1)],
}
SHAPES = {
    **{(recipe, 0): SHAPE[:2] for recipe in ("rstd", "mean", "invstd")},
    ("rstd", 1): SHAPE[:2],
    ("mean", 1): SHAPE[1:2],
    ("invstd", 1): SHAPE[2:],
    ("argmax", 0): (5, 7, 1),
    ("argmax", 1): (5, 4, 2),
}
"""Of tensors that are computed from `x`, where they are smaller."""
DTYPE_NAMES = [name for name, dtype in DTYPES.items() if dtype.kind != "other"]


def golden_case(recipe: str, dtype: str) -> Case:
    """Every way to call a recipe, one tensor each; `x` is what others come from."""
    x = Tensor(shape=SHAPE, dtype="FLOAT", data=Data(recipe="normal", seed=1))
    arguments: dict[str, Tensor] = {"x": x}
    plain = Data()
    for index, data in enumerate([plain, *PARAMETERS.get(recipe, [])]):
        fields = {name: getattr(data, name) for name in data.__struct_fields__} | {"recipe": recipe, "seed": 2**64 - 1}
        if "of" in RECIPES[recipe].needs:
            fields["of"] = "x"
        if recipe == "argmax" and data is plain:
            fields["kernel"] = (4,)
        shape = SHAPES.get((recipe, index), SHAPE)
        arguments[f"t{index}"] = Tensor(shape=shape, dtype=dtype, data=Data(**fields))
    return Case(operator="aclnnGolden", arguments=arguments)


def measured() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for recipe in RECIPES:
        found[recipe] = {}
        for dtype in DTYPE_NAMES:
            case = golden_case(recipe, dtype)
            found[recipe][dtype] = checksum(case_arrays(case, [name for name in case.arguments if name != "x"]))
    assert LONG > CHUNK
    long = {
        name: Tensor(shape=(LONG,), dtype="FLOAT16", data=Data(recipe=name, seed=5))
        for name in ("integers", "normal", "special", "ramp")
    }
    found["beyond one chunk"] = {"FLOAT16": checksum(case_arrays(Case(operator="aclnnGolden", arguments=long), long))}
    found["attention of a call"] = {"FLOAT16": checksum(case_arrays(attention_case(), ["y", "top", "total"]))}
    return found


def attention_case() -> Case:
    """A call that attention is computed of, causal, with a dropout and with heads that share keys."""

    def tensor(shape: tuple[int, ...], dtype: str, **data: Any) -> Tensor:
        return Tensor(shape=shape, dtype=dtype, data=Data(**data))

    arguments: dict[str, Any] = {
        "query": tensor((2, 5, 12), "FLOAT16", recipe="normal", seed=1),
        "keyIn": tensor((2, 7, 6), "FLOAT16", recipe="normal", seed=2),
        "value": tensor((2, 7, 4), "FLOAT16", recipe="normal", seed=3),
        "pseShiftOptional": tensor((2, 4, 1, 7), "FLOAT16", recipe="normal", seed=4),
        "dropMaskOptional": tensor((48,), "UINT8", recipe="bits", mean=0.75, seed=5),
        "attenMaskOptional": tensor((5, 7), "BOOL", recipe="band", high=1),
        "y": tensor((2, 5, 8), "FLOAT16", recipe="attention"),
        "top": tensor((2, 4, 5, 8), "FLOAT", recipe="softmax_max"),
        "total": tensor((2, 4, 5, 8), "FLOAT", recipe="softmax_sum"),
    }
    attributes = {"headNum": 4, "inputLayout": "BSH", "keepProb": 0.75, "scaleValue": 0.7, "sparseMode": 0}
    return Case(operator="aclnnGolden", arguments=arguments | attributes | {"preTokens": 9, "nextTokens": 1})


@pytest.fixture(scope="module")
def held() -> dict[str, dict[str, str]]:
    return measured()


def test_bytes_are_golden(held: dict[str, dict[str, str]], snapshot: SnapshotAssertion) -> None:
    assert json.dumps(held, indent=1) + "\n" == snapshot


def test_bytes_tell_recipes_and_dtypes_apart(held: dict[str, dict[str, str]]) -> None:
    assert set(held) == {*RECIPES, "beyond one chunk", "attention of a call"}
    for recipe in RECIPES:
        assert set(held[recipe]) == set(DTYPE_NAMES)
        assert len(set(held[recipe].values())) == len(DTYPE_NAMES)


def test_bytes_do_not_depend_on_processor_features(held: dict[str, dict[str, str]]) -> None:
    reason = "NumPy before 2.0 keeps its features elsewhere"
    features = pytest.importorskip("numpy._core._multiarray_umath", reason=reason)
    enabled = [name for name in features.__cpu_dispatch__ if features.__cpu_features__[name]]
    if not enabled:
        pytest.skip("this processor has no features beyond NumPy's baseline")
    program = (
        "import json, sys; sys.path[:0] = sys.argv[1:];"
        "from test_golden_recipes import measured; print(json.dumps(measured()))"
    )
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(enabled)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent), str(Path(aclnn_cts.__file__).parents[1])],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(done.stdout) == held
