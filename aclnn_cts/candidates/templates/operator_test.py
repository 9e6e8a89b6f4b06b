"""@OPERATOR@ on @PRODUCT@: @NUMBER@ calls with golden values and the bound of each element.

Made by aclnn-cts @VERSION@ with seed @SEED@ from the document of the operator. It needs @NEEDS@.
IMPLEMENTATION names the function: IMPLEMENTATION=module:function pytest @FILE@
It is called with the arguments of the document by name; tensors are those of @ARRAYS@. It returns the outputs in the
order of ORDER, or a dict by name. Each has the dtype of the call's output: a parameter `dtypes`, where the function has
one, names it by output.
A dtype of BITS that the library lacks has a stand-in. NumPy functions get its values in float32, and return such values
or the bits; values of bfloat16 are rounded here. torch functions get and return the bits.
"""

import importlib
import inspect
import json
import os
from pathlib import Path

import numpy as np
import pytest

ARRAYS = "@ARRAYS@"
if ARRAYS == "torch":
    import torch

with np.load(Path(__file__).with_name("@DATA@"), allow_pickle=False) as file:
    DATA = dict(file)
CASES = json.loads(DATA["cases"].tobytes())
ORDER = json.loads("""@ORDER@""")
BITS = {"bfloat16": "uint16", **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "hifloat8"), "uint8")}


def values_of(bits, dtype):
    """The numbers of bits, in float32."""
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return DATA[f"values/{dtype}"][bits]


def rounded(values, dtype):
    """Numbers in float32 as the dtype holds them; those of 8 bits have to be such numbers."""
    if dtype == "bfloat16":
        bits = values.view(np.uint32)
        nearest = (bits + (np.uint32(0x7FFF) + (bits >> 16 & 1))) >> 16  # the even one of two
        return np.where(np.isnan(values), values, values_of(nearest, dtype))
    other = ~(np.isin(values, DATA[f"values/{dtype}"]) | np.isnan(values))
    assert not other.any(), f"{values[other][0]} is no number of {dtype}"
    return values


def array(key, facts):
    """An input over memory of its own, with the strides of the case."""
    dtype, shape = facts["dtype"], facts["shape"]
    values = DATA[key].view(BITS.get(dtype, dtype)).reshape(shape)
    if ARRAYS == "numpy" and dtype in BITS:
        values = np.asarray(values_of(values, dtype))
    reach = 1 + sum((size - 1) * stride for size, stride in zip(shape, facts["strides"]) if size)
    memory = np.zeros(reach if values.size else 0, values.dtype)
    if not values.size:
        view = memory.reshape(shape)
    else:
        view = np.lib.stride_tricks.as_strided(memory, shape, [stride * memory.itemsize for stride in facts["strides"]])
        view[...] = values
    return view if ARRAYS == "numpy" else to_torch(view, dtype)


def to_torch(view, dtype):
    if dtype not in BITS or not hasattr(torch, dtype):
        return torch.from_numpy(view)
    return torch.from_numpy(view.view(f"int{8 * view.itemsize}")).view(getattr(torch, dtype))


def of_torch(result):
    """The name of its dtype, and an array, of bits where NumPy lacks the dtype."""
    name = str(result.dtype).partition(".")[2]
    result = result.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if name in BITS:
        result = result.view({1: torch.int8, 2: torch.int16}[result.element_size()])
    return name, result.numpy()


def arguments(case):
    found = dict(case["attributes"])
    for name, facts in case["inputs"].items():
        key = f"{case['id']}/{name}"
        if isinstance(facts, list):
            found[name] = [array(f"{key}[{place}]", item) for place, item in enumerate(facts)]
        else:
            found[name] = array(key, facts)
    return found


def by_name(result, case):
    if isinstance(result, dict):
        lacking = [name for name in case["outputs"] if name not in result]
        assert not lacking, f"the result lacks {', '.join(lacking)}; it has {', '.join(map(str, result)) or 'nothing'}"
        return result
    results = result if isinstance(result, (tuple, list)) else [result]
    names = [name for name in ORDER if name in case["outputs"]]
    assert len(results) == len(names), f"{len(results)} results; expected {', '.join(names)}"
    return dict(zip(names, results))


def numbers(result, dtype, name):
    """A result in float64, which has the dtype of the output; of complex numbers re and im."""
    if ARRAYS == "torch":
        found, result = of_torch(result)
        expected = [dtype if hasattr(torch, dtype) else BITS[dtype]]
    else:
        result = np.asarray(result)
        found = result.dtype.name
        expected = [dtype, "float32", BITS[dtype]] if dtype in BITS else [dtype]
    assert found in expected, f"{name} has the dtype {found}, expected {' or '.join(expected)}"
    if dtype in BITS:
        result = rounded(result, dtype) if found == "float32" else values_of(result.view(BITS[dtype]), dtype)
    elif result.dtype.kind == "c":
        result = np.stack([result.real, result.imag], axis=-1)
    return np.asarray(result).astype(np.float64)


@pytest.fixture(scope="module")
def implementation():
    word = os.environ.get("IMPLEMENTATION", "")
    module, colon, function = word.partition(":")
    if not colon:
        pytest.fail("IMPLEMENTATION=module:function names the function that is tested")
    return getattr(importlib.import_module(module), function)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"][:12])
def test_values(case, implementation):
    given = arguments(case)
    if "dtypes" in inspect.signature(implementation).parameters:
        given["dtypes"] = {name: facts["dtype"] for name, facts in case["outputs"].items()}
    results = by_name(implementation(**given), case)
    for name, facts in case["outputs"].items():
        shape = list(np.shape(results[name]))
        assert shape == facts["shape"], f"{name} has the shape {shape}, expected {facts['shape']}"
        with np.errstate(all="ignore"):
            got = numbers(results[name], facts["dtype"], name)
        key = f"{case['id']}/{name}"
        value, lower, upper = (DATA[f"{key}/{part}"].reshape(got.shape) for part in ("value", "lower", "upper"))
        within = (lower <= got) & (got <= upper)
        same = (got == value) | (np.isnan(got) & np.isnan(value))
        determined, overflow = ~DATA[f"{key}/open"].reshape(got.shape), DATA[f"{key}/overflow"].reshape(got.shape)
        # Where an intermediate may overflow, inf and nan conform too.
        wrong = determined & ~(within | same | (overflow & ~np.isfinite(got)))
        if wrong.any():
            at = tuple(int(place) for place in np.argwhere(wrong)[0])
            limits = f"from {lower[at]} to {upper[at]}" if np.isfinite(value[at]) else str(value[at])
            pytest.fail(f"{name}{list(at)} is {got[at]}, expected {limits}; {wrong.sum()} of {wrong.size} are wrong")
