"""Candidates for the gradient of softmax, as their authors write them."""

from __future__ import annotations

import itertools
import math
import os
import time
from pathlib import Path
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


def slower(grad_output: Any, output: Any, dim: int) -> Any:
    time.sleep(1.2)
    return right(grad_output, output, dim)


def complex_result(grad_output: Any, output: Any, dim: int) -> Any:
    return right(grad_output, output, dim) + 1e6j


def tuple_of_all(**arguments: Any) -> Any:
    names = ("gradOut", "input", "mean", "rstd")
    grad, x, mean, rstd = (np.asarray(arguments[name], np.float64) for name in names)
    normalized, weight = arguments["normalizedShape"], arguments["weightOptional"]
    rows = tuple(range(x.ndim - len(normalized)))
    columns = tuple(range(len(rows), x.ndim))
    with np.errstate(all="ignore"):
        hat = (x - mean) * rstd
        weighted = grad if weight is None else grad * weight.astype(np.float64)
        means = [item.sum(axis=columns, keepdims=True) / math.prod(normalized) for item in (weighted, weighted * hat)]
        found = [rstd * (weighted - means[0] - hat * means[1]), (grad * hat).sum(axis=rows), grad.sum(axis=rows)]
    return tuple(item if is_asked else None for item, is_asked in zip(found, arguments["outputMask"], strict=True))


_TURNS = itertools.count()


def tuple_of_all_or_asked(**arguments: Any) -> Any:
    """Both forms of a result in turn."""
    every = tuple_of_all(**arguments)
    return every if next(_TURNS) % 2 else tuple(item for item in every if item is not None)


def generator(grad_output: Any, output: Any, dim: int) -> Any:
    yield right(grad_output, output, dim)


def text(grad_output: Any, output: Any, dim: int) -> str:
    return "softmax"


def object_(grad_output: Any, output: Any, dim: int) -> object:
    return object()


async def later(grad_output: Any, output: Any, dim: int) -> Any:
    return right(grad_output, output, dim)


def own_text(grad_output: Any, output: Any, dim: int) -> Any:
    raise ValueError(f"own text: {'own_text' in Path(__file__).read_text(encoding='utf-8')}")


def zeros(grad_output: Any, output: Any, dim: int) -> Any:
    return np.zeros_like(grad_output)


def nearly_right(grad_output: Any, output: Any, dim: int) -> Any:
    return (right(grad_output, output, dim).astype(np.float64) * 1.01).astype(grad_output.dtype)
