"""Candidates for the gradient of softmax, as their authors write them."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np


def right(grad_output: Any, output: Any, dim: int) -> Any:
    with np.errstate(all="ignore"):
        grad, value = grad_output.astype(np.float64), output.astype(np.float64)
        total = (grad * value).sum(axis=dim, keepdims=True) if grad.ndim else grad * value
        return value * (grad - total)


def by_name(gradOutput: Any, output: Any, dim: int) -> Any:  # noqa: N803 - the name of the C prototype
    return {"out": right(gradOutput, output, dim)}


def into_given_memory(grad_output: Any, output: Any, dim: int, out: Any) -> None:
    out[...] = right(grad_output, output, dim).astype(out.dtype)


def all_arguments(**arguments: Any) -> Any:
    return right(arguments["gradOutput"], arguments["output"], arguments["dim"])


def wrong(grad_output: Any, output: Any, dim: int) -> Any:
    return right(grad_output, output, dim) * 1.001


def other_shape(grad_output: Any, output: Any, dim: int) -> Any:
    return right(grad_output, output, dim)[..., None]


def two_results(grad_output: Any, output: Any, dim: int) -> Any:
    return right(grad_output, output, dim), output


def raises(grad_output: Any, output: Any, dim: int) -> Any:
    raise ValueError("no such kernel")


def slow(grad_output: Any, output: Any, dim: int) -> Any:
    time.sleep(0.03)
    return right(grad_output, output, dim)


def hangs(grad_output: Any, output: Any, dim: int) -> None:
    time.sleep(600)


def crashes(grad_output: Any, output: Any, dim: int) -> None:
    os.abort()
