"""What is executed behind `candidate_program` for a file with modules: one backward pass of `ModelNew` a call.

A file has `ModelNew`, `get_inputs()` and, where that takes arguments, `get_init_inputs()`, as KernelBench has them. A
call has a seed and room in the memory; the answer says where each array lies: `input0`, the parameters by name,
`output`, `grad`, and as `d.input0` the gradients that autograd gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aclnn_cts.sandbox.candidate_program import SharedArrays, from_torch, load, serve

_ALIGNED = 64
"""Bytes at a multiple of which each array begins."""


def module(opening: Mapping[str, Any], memory: SharedArrays) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Answers calls for the backward pass of the file's module."""
    loaded: list[Any] = []

    def answers_call(call: Mapping[str, Any]) -> dict[str, Any]:
        if not loaded:
            loaded.append(load({**opening, "function": ""}))
        arrays, values = backward_pass(loaded[0], call["seed"])
        size = sum(-(-array.nbytes // _ALIGNED) * _ALIGNED for array in arrays.values())
        if (room := call["memory"] - call["base"]) < size:
            message = (
                f"the arrays of a backward pass have {size} bytes; at most {room} can be judged: make inputs smaller"
            )
            return {"ended": "inexpressible", "message": message}
        return {"ended": "returned", "arrays": put(memory, arrays, call["base"], call["memory"]), "values": values}

    return answers_call


def backward_pass(file: Any, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: ANN401 - a module of Python
    """The arrays of a backward pass, and inputs that are no tensors."""
    import torch  # noqa: PLC0415 - an extra, in the candidate's process alone

    torch.manual_seed(seed)
    init = file.get_init_inputs() if hasattr(file, "get_init_inputs") else []
    model = file.ModelNew(*init)
    given = list(file.get_inputs())
    floating = [item for item in given if isinstance(item, torch.Tensor) and item.is_floating_point()]
    for item in floating:
        item.requires_grad_(True)  # noqa: FBT003 - torch's own
    parameters = dict(model.named_parameters())
    output = model(*given)
    grad = torch.randn_like(output)
    leaves = [*floating, *parameters.values()]
    found = torch.autograd.grad(output, leaves, grad, allow_unused=True)
    gradients = dict(zip(map(id, leaves), found, strict=True))
    arrays: dict[str, Any] = {"output": output, "grad": grad}
    values: dict[str, Any] = {}
    named = {f"input{place}": item for place, item in enumerate(given)} | parameters
    for name, item in named.items():
        if not isinstance(item, torch.Tensor):
            values[name] = item
            continue
        arrays[name] = item
        if gradients.get(id(item)) is not None:
            arrays[f"d.{name}"] = gradients[id(item)]
    return {name: from_torch(item) for name, item in arrays.items()}, values


def put(memory: SharedArrays, arrays: Mapping[str, Any], base: int, size: int) -> dict[str, Any]:
    """Copy arrays into the memory from `base` on, one behind the other; where each lies behind it."""
    import numpy as np  # noqa: PLC0415 - after the path is set

    places: dict[str, Any] = {}
    offset = base
    for name, array in arrays.items():
        made = np.ascontiguousarray(array)
        place = {"offset": offset, "shape": made.shape, "strides": made.strides, "dtype": made.dtype.name}
        offset += -(-made.nbytes // _ALIGNED) * _ALIGNED
        memory.array(place, size)[...] = made
        places[name] = {
            **place,
            "offset": place["offset"] - base,
            "shape": list(made.shape),
            "strides": list(made.strides),
        }
    return places


if __name__ == "__main__":
    serve(module)
