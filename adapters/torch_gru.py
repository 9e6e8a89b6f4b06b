"""aclnnGRUBackward on torch, which no binding expresses: autograd of torch's forward pass, with the case's saved gates.

The operator is given what the forward pass saved. Each of these tensors is put in the place of what torch computes
there, and the gradient goes through it as through torch's own: by the kernels sigmoid_backward and tanh_backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from aclnn_cts.adapters.binding_evaluation import items_of
from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.adapters.torch_settings import ask
from aclnn_cts.adapters.torch_tensors import Bound, Given, Results, acl_name

_Tensors: TypeAlias = Sequence[torch.Tensor]

_aten: Any = torch.ops.aten
_SHAPE = "a saved tensor of shape"
_SAVED = ("r", "z", "n", "h_n", "h")


def gru_backward(call: Bound) -> Results:
    """Autograd in FLOAT of a forward pass of torch's operators, layer by layer, direction by direction, step by step.

    The rows of weights and biases are those of z, r and n, as the document has them; torch's own GRU has r first.
    """
    names = ("input", "dy", "dh")
    given = {name: call.inputs.get(name) for name in names}
    lists = {name: items_of(call.inputs, name) for name in ("params", "hx", *_SAVED)}
    if any(value is None for value in given.values()) or not all(lists.values()):
        raise Inexpressible("torch computes from tensors: none of them can be a null pointer or an empty list")
    attributes = call.case.arguments
    flags = [bool(attributes[name]) for name in ("hasBias", "bidirectional", "batchFirst")]
    layers = attributes["numLayers"]
    dtypes = {tensor.dtype for tensor in (*given.values(), *(item for items in lists.values() for item in items))}
    if len(dtypes) > 1:
        raise Inexpressible("torch promotes dtypes, which is no mistake there")
    [dtype] = dtypes

    def wide(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(torch.float32)

    x, dy, dh = (wide(given[name]) for name in names)
    saved = {name: [wide(item) for item in lists[name]] for name in _SAVED}
    leaves = [wide(item).requires_grad_() for item in (*lists["params"], *lists["hx"])]
    x.requires_grad_()
    count = len(lists["params"])
    with torch.enable_grad():
        y, ends = ask(_forward, x, leaves[:count], leaves[count], saved, layers, *flags)
    found = ask(torch.autograd.grad, (y, ends), (x, *leaves), (dy, dh.reshape(ends.shape)), materialize_grads=True)
    dx, *rest = (item.to(dtype) for item in found)
    facts = {"precision": f"computed in FLOAT by torch and cast to {acl_name(dtype)}", "gates": "given to torch"}
    return {"dxOut": dx, "dhPrevOut": rest[count].reshape(dh.shape), "dparamsOut": rest[:count]}, facts


def _forward(
    x: torch.Tensor,
    params: _Tensors,
    first: torch.Tensor,
    saved: dict[str, list[torch.Tensor]],
    layers: int,
    has_bias: bool,  # noqa: FBT001 - the operator's
    bidirectional: bool,  # noqa: FBT001 - the operator's
    batch_first: bool,  # noqa: FBT001 - the operator's
) -> tuple[torch.Tensor, torch.Tensor]:
    """The hidden states of the last layer, and the last ones of all."""
    each, directions = (4 if has_bias else 2), 1 + bidirectional
    x = x.transpose(0, 1) if batch_first else x
    steps, batch = x.shape[:2]
    start = first.reshape(layers * directions, batch, -1)
    ends = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            cell = layer * directions + direction
            weight_ih, weight_hh, *biases = params[cell * each : (cell + 1) * each]
            bias_ih, bias_hh = biases or (None, None)
            inner = torch.nn.functional.linear(x, weight_ih, bias_ih)
            state = start[cell]
            states: list[torch.Tensor] = [state] * steps
            for t in range(steps) if direction == 0 else range(steps - 1, -1, -1):
                iz, ir, i_n = inner[t].chunk(3, 1)
                hz, hr, hn = torch.nn.functional.linear(state, weight_hh, bias_hh).chunk(3, 1)
                r, z, n, h_n, h = (saved[name][cell][t] for name in _SAVED)
                reset = Given.apply(ir + hr, r, _aten.sigmoid_backward, _SHAPE)
                update = Given.apply(iz + hz, z, _aten.sigmoid_backward, _SHAPE)
                linear = Given.apply(hn, h_n, None, _SHAPE)
                candidate = Given.apply(i_n + reset * linear, n, _aten.tanh_backward, _SHAPE)
                state = states[t] = Given.apply(
                    (1.0 - update) * candidate + update * state, h, None, "a saved tensor of shape"
                )
            outputs.append(torch.stack(states))
            ends.append(state)
        x = torch.cat(outputs, 2)
    return (x.transpose(0, 1) if batch_first else x), torch.stack(ends)
