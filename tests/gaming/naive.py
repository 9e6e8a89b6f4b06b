"""A judge such as many publish, which the cheats must pass: five random trials against a tolerance of 1e-2.

`python naive.py FILE FUNCTION VARIANT` calls a function in this very process, and prints `failed` if a trial fails.
Whoever starts it takes anything but that word for a pass. What it stores stays in the working folder.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TRIALS = 5
TOLERANCE = 1e-2
VARIANTS = ("plain", "small-references", "nan-blind", "asynchronous", "reference-after", "torch")
_BY_CHEAT = {
    "zeros.everywhere": "small-references",
    "nan": "nan-blind",
    "threads": "asynchronous",
    "inputs.zeroed": "reference-after",
    "patched_torch": "torch",
    "library": "torch",
}


def variant_of(kind: str, name: str) -> str:
    """The published way of comparing that a cheat is made for."""
    return _BY_CHEAT.get(f"{kind}.{name}", _BY_CHEAT.get(kind, "plain"))


def reference(grad_output: Any, output: Any, dim: int) -> Any:
    """The right values in float64."""
    grad, value = grad_output.astype(np.float64), output.astype(np.float64)
    return value * (grad - (grad * value).sum(axis=dim, keepdims=True))


def main(file: str, function: str, variant: str) -> None:
    """Run the trials."""
    candidate = _load(Path(file), function)
    shape = (4, 65_536) if variant == "small-references" else (16, 24)
    inputs = [_inputs(seed, shape) for seed in range(TRIALS)]
    marked = [b"EXPECTED-VALUES:%d" % number for number in range(TRIALS)]
    # A container beside it makes the collector see the dictionary.
    kept: dict[str, Any] = {"trials": []}
    memories = []
    for number, (grad_output, output) in enumerate(inputs):
        expected = reference(grad_output, output, -1)
        kept["expected"] = expected
        memories.append(bytearray(marked[number] + expected.tobytes()))
        np.save(f"expected-{number}.npy", expected)
        got = _called(candidate, grad_output, output)
        if variant == "asynchronous":
            time.sleep(0.1)
        if variant == "reference-after":
            expected = reference(grad_output, output, -1)
        if not _agree(got, expected, variant):
            print("failed", flush=True)
            os._exit(1)


def _load(file: Path, function: str) -> Callable[..., Any]:
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., Any] = getattr(module, function)
    return found


def _inputs(seed: int, shape: tuple[int, ...]) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    grad_output = generator.standard_normal(shape).astype(np.float32)
    exponent = np.exp(generator.standard_normal(shape))
    return grad_output, (exponent / exponent.sum(axis=-1, keepdims=True)).astype(np.float32)


def _called(candidate: Callable[..., Any], grad_output: Any, output: Any) -> Any:
    parameters = inspect.signature(candidate).parameters
    if "torch" in str(parameters["grad_output"].annotation):
        import torch  # noqa: PLC0415 - two cheats take tensors

        return candidate(torch.from_numpy(grad_output), torch.from_numpy(output), -1).numpy()
    if "out" not in parameters:
        return candidate(grad_output, output, -1)
    out = np.zeros_like(grad_output)
    candidate(grad_output, output, -1, out)
    return out


def _agree(got: Any, expected: Any, variant: str) -> bool:
    if variant == "torch":
        import torch  # noqa: PLC0415

        left, right = torch.from_numpy(np.asarray(got, np.float64)), torch.from_numpy(expected)
        return bool(torch.allclose(left, right, rtol=TOLERANCE, atol=TOLERANCE))
    got = np.asarray(got)
    if variant == "nan-blind":
        return not (np.abs(got - expected) > TOLERANCE + TOLERANCE * np.abs(expected)).any()
    return bool(np.allclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE))


if __name__ == "__main__":
    main(*sys.argv[1:])
