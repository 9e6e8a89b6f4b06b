"""@OPERATOR@ on @PRODUCT@: @NUMBER@ calls with golden values and the bound of each element.

Made by aclnn-cts @VERSION@ with seed @SEED@ from the document of the operator. It needs numpy, pytest and, for BF16,
ml_dtypes. IMPLEMENTATION names the function: IMPLEMENTATION=module:function pytest @FILE@
It is called with the arguments of the document by name. It returns the outputs in the order of ORDER, or a dict by
name. Each has the dtype of the call's output: a parameter `dtypes`, where the function has one, names it by output.
"""

import importlib
import inspect
import json
import os
from pathlib import Path

import numpy as np
import pytest

DATA = np.load(Path(__file__).with_name("@DATA@"), allow_pickle=False)
CASES = json.loads(DATA["cases"].tobytes())
ORDER = json.loads("""@ORDER@""")


def dtype_of(name):
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))


def array(key, facts):
    """An input over memory of its own, with the strides of the case."""
    dtype, shape = dtype_of(facts["dtype"]), facts["shape"]
    values = DATA[key].view(dtype).reshape(shape)
    reach = 1 + sum((size - 1) * stride for size, stride in zip(shape, facts["strides"]) if size)
    memory = np.zeros(reach if values.size else 0, dtype)
    if not values.size:
        return memory.reshape(shape)
    view = np.lib.stride_tricks.as_strided(memory, shape, [stride * dtype.itemsize for stride in facts["strides"]])
    view[...] = values
    return view


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


def elements(values):
    """In float64; of complex numbers re and im."""
    if values.dtype.kind == "c":
        values = np.stack([values.real, values.imag], axis=-1)
    return values.astype(np.float64)


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
        result = np.asarray(results[name])
        assert list(result.shape) == facts["shape"], f"{name} has the shape {result.shape}"
        dtype = dtype_of(facts["dtype"])
        assert result.dtype == dtype, f"{name} has the dtype {result.dtype}, expected {dtype}"
        with np.errstate(all="ignore"):
            got = elements(result)
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
