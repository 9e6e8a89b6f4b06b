"""What no binding on torch expresses: attention, convolutions, GRU, RmsNorm with a given rstd.

The statistics of the softmax and the attention are those of the case; all else is torch's forward pass and autograd.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aclnn_cts.adapters.binding_evaluation import items_of
from aclnn_cts.adapters.protocol import Inexpressible, Rejected
from aclnn_cts.adapters.torch_settings import DISPATCH_KEYS, call_torch
from aclnn_cts.adapters.torch_tensors import BoundTensors, Results, SavedTensor, acl_name
from aclnn_cts.core.attention import (
    ADDS_FIRST,
    AS_INPUT,
    Sparsity,
    kept_bits,
    of_sequences,
    sequences,
    under_usual_names,
)

_READ = ("query", "keyIn", "value", "dy", "softmaxMaxOptional", "softmaxSumOptional", "attentionInOptional")
_READ_TOO = ("queryRope", "keyInRope", "sinkInOptional")
_NOT_SAID = ("paddingMaskOptional", "softmaxInOptional")
_GRADIENTS = {
    "dqOut": "query",
    "dqRopeOut": "queryRope",
    "dkOut": "keyIn",
    "dkRopeOut": "keyInRope",
    "dvOut": "value",
    "dsinkOut": "sinkInOptional",
}
"""By output: the input whose gradient it is."""


class _GivenSoftmax(torch.autograd.Function):  # type: ignore[misc]  # torch comes without types here
    """A softmax by its saved largest elements and sums; `lost` is the sum of the probabilities' gradients.

    `sink` is one more score of each row. What it takes is in the sums, and no part of the result.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's own
        scores: torch.Tensor,
        peak: torch.Tensor,
        total: torch.Tensor,
        lost: torch.Tensor,
        masked: torch.Tensor,
        sink: torch.Tensor | None,
    ) -> torch.Tensor:
        share = torch.exp(scores - peak) / total
        ctx.share, ctx.lost = share.masked_fill(masked, 0.0), lost
        ctx.taken = None if sink is None else torch.exp(sink - peak) / total
        return ctx.share

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: ANN401 - torch's own
        [gradient] = gradients
        taken = None if ctx.taken is None else -ctx.taken * (ctx.share * gradient).sum(-1, keepdim=True)
        return ctx.share * (gradient - ctx.lost), None, None, None, None, taken


def unpadded_attention_grad(call: BoundTensors) -> Results:
    """Autograd in FLOAT of attention, one sequence after the other."""
    return _of_sequences(call.inputs, call.case.arguments)


def selected_attention_grad(call: BoundTensors) -> Results:
    """The same where queries name the blocks of keys that they see."""
    chosen = call.inputs.get("topkIndices")
    if chosen is None:
        raise Inexpressible("torch computes from tensors: none of them can be a null pointer")
    numbers = np.sort(chosen.numpy(), axis=-1)
    repeats = (numbers[..., 1:] == numbers[..., :-1]).any()
    if call.inputs.get("attenMaskOptional") is not None or call.case.arguments["sparseMode"] != 0 or repeats:
        raise Inexpressible("the document does not say what this call computes")
    case = {**under_usual_names(call.case.arguments), "topkIndices": chosen.numpy()}
    return _of_sequences(under_usual_names(call.inputs), case)


def _of_sequences(inputs: Mapping[str, Any], case: Any) -> Results:  # noqa: ANN401 - the arguments of any call
    given = {name: tensor for name in _READ if (tensor := inputs.get(name)) is not None}
    if len(given) < len(_READ):
        raise Inexpressible("torch computes from tensors: none of them can be a null pointer")
    given |= {name: tensor for name in _READ_TOO if (tensor := inputs.get(name)) is not None}
    if given["attentionInOptional"].shape != given["dy"].shape:
        raise Rejected("the attention and its gradient have one shape")
    queries, keys = case["actualSeqQLenOptional"], case["actualSeqKvLenOptional"]
    pse, mask, drop = (inputs.get(name) for name in ("pseShiftOptional", "attenMaskOptional", "dropMaskOptional"))
    unclear = queries is None or keys is None or case.get("pseType", ADDS_FIRST) > ADDS_FIRST
    if unclear or any(inputs.get(name) is not None for name in _NOT_SAID):
        raise Inexpressible("the document does not say what this call computes")
    if case["keepProb"] != 1 and (drop is None or len(queries) > 1):
        raise Inexpressible("which places a dropout keeps is not said")
    sparsity = Sparsity.of(case | {"attenMaskOptional": None if mask is None else mask.numpy()})
    dtype = given["query"].dtype
    wide = {name: tensor.detach().to(torch.float32) for name, tensor in given.items()}
    with torch.enable_grad():
        leaves = _leaves(wide)
        y = call_torch(_attention, _in_one_part(wide), (queries, keys), pse, sparsity, drop, case)
    facts = {"precision": f"computed in FLOAT by torch and cast to {acl_name(dtype)}", "statistics": "given to torch"}
    return _results(given, leaves, call_torch(torch.autograd.grad, y, list(leaves.values()), wide["dy"])), facts


def _leaves(wide: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """By output: the input whose gradient it is, of which torch keeps track."""
    return {output: wide[name].requires_grad_() for output, name in _GRADIENTS.items() if name in wide}


def _results(
    given: dict[str, torch.Tensor], leaves: dict[str, torch.Tensor], found: tuple[torch.Tensor, ...]
) -> dict[str, torch.Tensor]:
    """Each gradient in the dtype of its input."""
    return {output: item.to(given[_GRADIENTS[output]].dtype) for output, item in zip(leaves, found, strict=True)}


def _in_one_part(wide: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same with queries and keys in one part each."""
    joined = {name: torch.cat((wide[name], wide[name + "Rope"]), -1) for name in _READ[:2] if name + "Rope" in wide}
    return wide | joined


def _attention(
    wide: dict[str, torch.Tensor],
    ends: tuple[tuple[int, ...], tuple[int, ...]],
    pse: torch.Tensor | None,
    sparsity: Sparsity,
    drop: torch.Tensor | None,
    case: Any,  # noqa: ANN401 - the arguments of any call
) -> torch.Tensor:
    """The attention of all sequences, [T, N, D]."""
    group = wide["query"].shape[1] // wide["keyIn"].shape[1]
    q, g, y = (wide[name].transpose(0, 1) for name in ("query", "dy", _READ[6]))
    by_heads = case.get("softmaxInLayout", AS_INPUT) != AS_INPUT
    saved = (wide[name] for name in _READ[4:6])
    peak, total = (item.reshape(q.shape[0], -1, item.shape[2]) if by_heads else item.transpose(0, 1) for item in saved)
    sink = wide.get("sinkInOptional")
    k, v = (wide[name].repeat_interleave(group, 1).transpose(0, 1) for name in ("keyIn", "value"))
    parts = []
    for place in sequences("TND", q.shape[0], tuple(wide["query"].shape), tuple(wide["keyIn"].shape), ends):
        rows, columns = place.rows, place.columns
        scores = q[:, rows] @ k[:, columns].transpose(1, 2)
        added = 0.0 if pse is None else of_sequences(pse, place)[0].to(torch.float32)
        scores = _with_pse(scores, added, case)
        lost = (g[:, rows] * y[:, rows]).sum(2, keepdim=True)
        queries, seen = scores.shape[1:]
        if sparsity.is_contradicted(queries, seen, place):
            raise Inexpressible("mask and sparse mode say different things")
        masked = torch.from_numpy(~sparsity.seen(queries, seen, place))[0].expand(scores.shape)
        ahead = None if sink is None else sink[:, None, None].expand(lost.shape)
        share = _GivenSoftmax.apply(scores, peak[:, rows, :1], total[:, rows, :1], lost, masked, ahead)
        if drop is not None and case["keepProb"] != 1:
            kept = torch.from_numpy(kept_bits(drop.numpy(), tuple(scores.shape)))
            share = torch.where(kept, share / case["keepProb"], 0.0)
        parts.append(share @ v[:, columns])
    return torch.cat(parts, 1).transpose(0, 1)


def _with_pse(scores: torch.Tensor, added: torch.Tensor | float, case: Any) -> torch.Tensor:  # noqa: ANN401 - as above
    """The scaled scores with what is added to them, before the scaling or behind it."""
    adds_first = case.get("pseType", ADDS_FIRST) == ADDS_FIRST
    return (scores + added) * case["scaleValue"] if adds_first else scores * case["scaleValue"] + added


def attention_grad(call: BoundTensors) -> Results:
    """Autograd in FLOAT, or DOUBLE, of attention in the layouts of batches, with masks, pse and dropout."""
    given = {name: tensor for name in _READ if (tensor := call.inputs.get(name)) is not None}
    if len(given) < len(_READ):
        raise Inexpressible("torch computes from tensors: none of them can be a null pointer")
    case: Any = call.case.arguments
    if any(call.inputs.get(name) is not None for name in _NOT_SAID) or case.get("pseType", ADDS_FIRST) > ADDS_FIRST:
        raise Inexpressible("the document does not say what this call computes")
    dtype = given["query"].dtype
    computed = torch.promote_types(dtype, torch.float32)
    given |= {name: tensor for name in _READ_TOO if (tensor := call.inputs.get(name)) is not None}
    wide = {name: tensor.detach().to(computed) for name, tensor in given.items()}
    with torch.enable_grad():
        leaves = _leaves(wide)
        y = call_torch(_batched_attention, wide, call)
    precision = f"computed in {acl_name(computed)} by torch and cast to {acl_name(dtype)}"
    facts = {"precision": precision, "statistics": "given to torch"}
    return _results(given, leaves, call_torch(torch.autograd.grad, y, list(leaves.values()), wide["dy"])), facts


def _batched_attention(wide: dict[str, torch.Tensor], call: BoundTensors) -> torch.Tensor:
    """The attention in the layout of the call."""
    case: Any = call.case.arguments
    layout, heads = case["inputLayout"], case["headNum"]
    [place] = sequences(layout, heads, tuple(wide["query"].shape), tuple(wide["keyIn"].shape), ((), ()))
    q, g, y = (_heads_first(wide[name], layout, heads) for name in ("query", "dy", _READ[6]))
    k, v = (_heads_first(wide[name], layout, place.shared) for name in ("keyIn", "value"))
    k, v = (array.repeat_interleave(heads // place.shared, 1) for array in (k, v))
    pse, mask, drop = (call.inputs.get(name) for name in ("pseShiftOptional", "attenMaskOptional", "dropMaskOptional"))
    scores = q @ k.transpose(2, 3)
    added = 0.0 if pse is None else pse.to(q.dtype)
    scores = _with_pse(scores, added, case)
    sparsity = Sparsity.of(case | {"attenMaskOptional": None if mask is None else mask.numpy()})
    if sparsity.is_contradicted(q.shape[2], k.shape[2], place):
        raise Inexpressible("mask and sparse mode say different things")
    masked = torch.from_numpy(~sparsity.seen(q.shape[2], k.shape[2], place))
    peak, total = (wide[name][..., :1] for name in _READ[4:6])
    lost, sink = (g * y).sum(3, keepdim=True), wide.get("sinkInOptional")
    ahead = None if sink is None else sink[:, None, None].expand(lost.shape)
    share = _GivenSoftmax.apply(scores, peak, total, lost, masked.expand(scores.shape), ahead)
    if case["keepProb"] != 1:
        if drop is None:
            raise Inexpressible("which places a dropout keeps is not said")
        kept = torch.from_numpy(kept_bits(drop.numpy(), tuple(scores.shape)))
        share = torch.where(kept, share / case["keepProb"], 0.0)
    result = share @ v
    if layout in ("BNSD", "BSND"):
        return result if layout == "BNSD" else result.transpose(1, 2)
    return result.permute((2, 0, 1, 3) if layout == "SBH" else (0, 2, 1, 3)).flatten(2)


def _heads_first(array: torch.Tensor, layout: str, heads: int) -> torch.Tensor:
    """[B, N, S, D] of an array in a layout."""
    if layout in ("BNSD", "BSND"):
        return array if layout == "BNSD" else array.transpose(1, 2)
    return array.unflatten(2, (heads, -1)).permute((1, 2, 0, 3) if layout == "SBH" else (0, 2, 1, 3))


_WINDOW = ("stride", "padding", "dilation", "outputPadding", "biasSizes", "outputMask")
_FAR = 1 << 24
"""Windows at the end of int64 made torch run for minutes or end its process; those of networks are far below this."""


def _has_amx() -> bool:
    """Whether the CPU has tiles of AMX, as far as this torch can tell."""
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", bool)())


def _lacks_kernels(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether oneDNN has no convolution of a half dtype for this CPU: torch's own adds image to image in that dtype."""
    halves = {torch.float16: "_is_mkldnn_fp16_supported", torch.bfloat16: "_is_mkldnn_bf16_supported"}
    if device.type != "cpu" or dtype not in halves:
        return False
    is_on = getattr(torch.backends.mkldnn, "enabled", True)
    return not (is_on and getattr(torch.ops.mkldnn, halves[dtype], bool)())


def convolution_backward(call: BoundTensors) -> Results:
    """ATen's own, in the dtype that the inputs promote to; in FLOAT where that has eight bits or oneDNN no kernel.

    Otherwise what a run says of torch would depend on the CPU. Where four paddings differ, zeros are added beforehand.
    """
    case: Any = call.case.arguments
    tensors = [tensor for name in ("gradOutput", "input", "weight") if (tensor := call.inputs.get(name)) is not None]
    if len(tensors) < 3 or None in [case[name] for name in _WINDOW]:
        raise Inexpressible("torch computes from tensors and arrays: none of them can be a null pointer")
    gradient, x, weight = tensors
    stride, padding, dilation, extra, sizes, mask = (case[name] for name in _WINDOW)
    if max((*stride, *padding, *dilation), default=0) > _FAR:
        raise Inexpressible("torch takes minutes, or ends the process, where windows lie so far apart")
    both = len(padding) == 4 and len(stride) == 2
    least = [min(padding[:2]), min(padding[2:])] if both else padding
    around = [padding[place] - least[place // 2] for place in (2, 3, 0, 1)] if both else []
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
    if dtype.itemsize == 1 or _lacks_kernels(dtype, x.device):
        dtype = torch.float32
    narrow = x if case["transposed"] else gradient
    if dtype == torch.bfloat16 and narrow.shape[-1] == 1 and stride[-1:] > (1,) and _has_amx():
        raise Inexpressible("oneDNN's BF16 kernels for AMX read memory here that nothing wrote")
    g, xs, w = (tensor.to(dtype) for tensor in tensors)
    if any(around):
        wide = call_torch(torch.nn.functional.pad, g if case["transposed"] else xs, around)
        g, xs = (wide, xs) if case["transposed"] else (g, wide)
    rest = stride, least, dilation, case["transposed"], extra, case["groups"], list(mask.items)
    found = call_torch(torch.ops.aten.convolution_backward, g, xs, w, sizes, *rest)
    of_input = found[0]
    if of_input is not None and of_input.shape != x.shape:
        left, _, top, _ = around
        of_input = of_input[:, :, top : top + x.shape[2], left : left + x.shape[3]]
    results = {"gradInput": (of_input, x), "gradWeight": (found[1], weight), "gradBias": (found[2], gradient)}
    facts = {"precision": f"computed in {acl_name(dtype)} by torch"}
    return {name: item.to(like.dtype) for name, (item, like) in results.items() if item is not None}, facts


_INPUTS = ("input", "gradOutput", "offsetOut", "weight", "offset")
_ARRAYS = ("kernelSize", "stride", "padding", "dilation")


def deformable_conv2d_backward(call: BoundTensors) -> Results:
    """Autograd in FLOAT, cast to the dtype of the inputs."""
    given = {name: call.inputs.get(name) for name in _INPUTS}
    tensors = [tensor for tensor in given.values() if tensor is not None]
    attributes: dict[str, Any] = dict(call.case.arguments)
    arrays = {name: attributes[name] for name in _ARRAYS}
    if len(tensors) < len(given) or None in arrays.values():
        raise Inexpressible("torch computes from tensors and arrays: none of them can be a null pointer")
    if len({tensor.dtype for tensor in tensors}) > 1:
        raise Inexpressible("torch promotes dtypes, which is no mistake there")
    if not attributes["modulated"]:
        raise Inexpressible("without masks there is no such tensor of offsets")
    dtype = tensors[0].dtype
    x, g, sampled, weight, offset = (tensor.detach().to(torch.float32) for tensor in tensors)
    leaves = [leaf.requires_grad_() for leaf in (x, weight, offset, torch.zeros(weight.shape[:1], device=x.device))]
    groups, deformable = attributes["groups"], attributes["deformableGroups"]
    with torch.enable_grad():
        columns = call_torch(
            SavedTensor.apply,
            call_torch(_sampled, x, offset, arrays, deformable),
            sampled,
            None,
            "offsetOut has the shape",
        )
        y = call_torch(_convolved, columns, weight, leaves[3], arrays["kernelSize"], groups)
    found = [item.to(dtype) for item in call_torch(torch.autograd.grad, y, leaves, g)]
    facts = {"precision": f"computed in FLOAT by torch and cast to {acl_name(dtype)}", "offsetOut": "given to torch"}
    return dict(zip(("gradInput", "gradWeight", "gradOffset", "gradBias"), found, strict=True)), facts


def _sampled(x: torch.Tensor, offset: torch.Tensor, arrays: dict[str, Sequence[int]], deformable: int) -> torch.Tensor:
    """What the taps of each place of the output meet, times masks: [N, C, outH * K_H, outW * K_W]."""
    batch, channels, *sizes = x.shape
    kernel, stride, padding, dilation = (arrays[name] for name in _ARRAYS)
    taps = (*kernel, *offset.shape[2:])
    moves = offset.reshape(batch, 3, deformable, *taps)
    corners, fractions = [], []
    for axis, plane in ((0, 1), (1, 0)):
        reach = torch.arange(kernel[axis], device=x.device) * dilation[2 + axis]
        steps = torch.arange(taps[2 + axis], device=x.device) * stride[2 + axis] - padding[2 * axis]
        places = reach[:, None] + steps
        position = moves[:, plane] + (places[:, None, :, None] if axis == 0 else places[None, :, None, :])
        corners.append(position.detach().floor())
        fractions.append(position - corners[-1])
    planes = x.reshape(batch, deformable, channels // deformable, sizes[0] * sizes[1])
    total = torch.zeros((), device=x.device)
    for down in (0, 1):
        # Columns first: the gradient of a share meets no product that exceeds what the slope itself is made of.
        row = torch.zeros((), device=x.device)
        for right in (0, 1):
            there, cells = torch.tensor(True), torch.zeros(())  # noqa: FBT003 - torch's own
            for corner, beyond, size in zip(corners, (down, right), sizes, strict=True):
                place = corner + beyond
                there = there & (place >= 0) & (place < size)
                cells = cells * size + place.clamp(0, size - 1)
            flat = cells.long().reshape(batch, deformable, 1, -1).expand(-1, -1, channels // deformable, -1)
            values = planes.gather(3, flat).reshape(batch, deformable, -1, *taps)
            row = row + torch.where(there[:, :, None], values, 0.0) * _share(fractions[1], right)
        total = total + row * _share(fractions[0], down)
    columns = (total * moves[:, 2][:, :, None]).reshape(batch, channels, *taps).permute(0, 1, 4, 2, 5, 3)
    return columns.reshape(batch, channels, taps[2] * taps[0], taps[3] * taps[1])


def _share(fraction: torch.Tensor, beyond: int) -> torch.Tensor:
    """What of a sample the first element or the one beyond it has, for all channels of a group."""
    return (fraction if beyond else 1.0 - fraction)[:, :, None]


def _convolved(
    columns: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, kernel: Sequence[int], groups: int
) -> torch.Tensor:
    """A convolution of torch's, each window of which is one place of the output."""
    if tuple(weight.shape[2:]) != tuple(kernel):
        raise RuntimeError(f"weight has the shape {tuple(weight.shape)}, and kernelSize is {tuple(kernel)}")
    return torch.conv2d(columns, weight, bias, stride=tuple(kernel), groups=groups)


_Tensors: TypeAlias = Sequence[torch.Tensor]
_Step: TypeAlias = Callable[[torch.Tensor, torch.Tensor, _Tensors, Mapping[str, torch.Tensor]], _Tensors]
"""From what weight_ih and weight_hh give, the states before a step and the saved tensors: the states after it."""

_aten: Any = torch.ops.aten
_SHAPE = "a saved tensor of shape"


def gru_backward(call: BoundTensors) -> Results:
    """Autograd in FLOAT of a forward pass of torch's operators, layer by layer, direction by direction, step by step.

    The rows of weights and biases are those of z, r and n, as the document has them; torch's own GRU has r first.
    """
    return _recurrent(call, ("dh",), ("r", "z", "n", "h_n", "h"), _gru_step)


def lstm_backward(call: BoundTensors) -> Results:
    """The same of an LSTM, whose rows are read as those of i, f, g and o."""
    if call.case.arguments["dropout"] != 0:
        raise Inexpressible("torch draws the mask of a dropout itself")
    return _recurrent(call, ("dh", "dc"), ("i", "g", "f", "o", "h", "c", "tanhc"), _lstm_step)


def _recurrent(call: BoundTensors, ends: Sequence[str], saved_names: Sequence[str], step: _Step) -> Results:
    """The gradients of a recurrent unit; `ends` names the gradients of its last states."""
    names = ("input", "dy", *ends)
    given = {name: call.inputs.get(name) for name in names}
    lists = {name: items_of(call.inputs, name) for name in ("params", "hx", *saved_names)}
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

    x, dy, *last = (wide(given[name]) for name in names)
    saved = {name: [wide(item) for item in lists[name]] for name in saved_names}
    leaves = [wide(item).requires_grad_() for item in (*lists["params"], *lists["hx"])]
    x.requires_grad_()
    count = len(lists["params"])
    first = leaves[count : count + len(ends)]

    def stepped(cell: int, t: int, inner: torch.Tensor, outer: torch.Tensor, state: _Tensors) -> _Tensors:
        return step(inner, outer, state, {name: items[cell][t] for name, items in saved.items()})

    rows = call.inputs.get("batchSizesOptional") if "dc" in ends else None
    with torch.enable_grad():
        laid = x if rows is None else call_torch(x.reshape, rows.shape[0], -1, x.shape[-1])
        y, after = call_torch(_forward, stepped, laid, leaves[:count], first, layers, *flags)
    gradients = [call_torch(dy.reshape, y.shape), *(it.reshape(end.shape) for it, end in zip(last, after, strict=True))]
    found = call_torch(torch.autograd.grad, (y, *after), (x, *leaves), gradients, materialize_grads=True)
    dx, *rest = (item.to(dtype) for item in found)
    facts = {"precision": f"computed in FLOAT by torch and cast to {acl_name(dtype)}", "gates": "given to torch"}
    before = zip(ends, last, rest[count:], strict=False)
    states = {f"{name}PrevOut": gradient.reshape(it.shape) for name, it, gradient in before}
    return {"dxOut": dx, **states, "dparamsOut": rest[:count]}, facts


def _forward(
    step: Callable[[int, int, torch.Tensor, torch.Tensor, _Tensors], _Tensors],
    x: torch.Tensor,
    params: _Tensors,
    first: _Tensors,
    layers: int,
    has_bias: bool,  # noqa: FBT001 - the operator's
    bidirectional: bool,  # noqa: FBT001 - the operator's
    batch_first: bool,  # noqa: FBT001 - the operator's
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The hidden states of the last layer, and the last states of all."""
    each, directions = (4 if has_bias else 2), 1 + bidirectional
    x = x.transpose(0, 1) if batch_first else x
    steps, batch = x.shape[:2]
    start = [states.reshape(layers * directions, batch, -1) for states in first]
    ends = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            cell = layer * directions + direction
            weight_ih, weight_hh, *biases = params[cell * each : (cell + 1) * each]
            bias_ih, bias_hh = biases or (None, None)
            inner = torch.nn.functional.linear(x, weight_ih, bias_ih)
            state: _Tensors = [states[cell] for states in start]
            hidden = [state[0]] * steps
            for t in range(steps) if direction == 0 else range(steps - 1, -1, -1):
                outer = torch.nn.functional.linear(state[0], weight_hh, bias_hh)
                state = step(cell, t, inner[t], outer, state)
                hidden[t] = state[0]
            outputs.append(torch.stack(hidden))
            ends.append(state)
        x = torch.cat(outputs, 2)
    return (x.transpose(0, 1) if batch_first else x), [torch.stack(parts) for parts in zip(*ends, strict=True)]


def _gru_step(inner: torch.Tensor, outer: torch.Tensor, state: _Tensors, saved: Mapping[str, torch.Tensor]) -> _Tensors:
    iz, ir, i_n = inner.chunk(3, 1)
    hz, hr, hn = outer.chunk(3, 1)
    reset = SavedTensor.apply(ir + hr, saved["r"], _aten.sigmoid_backward, _SHAPE)
    update = SavedTensor.apply(iz + hz, saved["z"], _aten.sigmoid_backward, _SHAPE)
    linear = SavedTensor.apply(hn, saved["h_n"], None, _SHAPE)
    candidate = SavedTensor.apply(i_n + reset * linear, saved["n"], _aten.tanh_backward, _SHAPE)
    return [SavedTensor.apply((1.0 - update) * candidate + update * state[0], saved["h"], None, _SHAPE)]


def _lstm_step(
    inner: torch.Tensor, outer: torch.Tensor, state: _Tensors, saved: Mapping[str, torch.Tensor]
) -> _Tensors:
    i, f, g, o = (
        SavedTensor.apply(linear, saved[name], _aten.tanh_backward if name == "g" else _aten.sigmoid_backward, _SHAPE)
        for name, linear in zip("ifgo", (inner + outer).chunk(4, 1), strict=True)
    )
    cell = SavedTensor.apply(f * state[1] + i * g, saved["c"], None, _SHAPE)
    active = SavedTensor.apply(cell, saved["tanhc"], _aten.tanh_backward, _SHAPE)
    return [SavedTensor.apply(o * active, saved["h"], None, _SHAPE), cell]


# ruff: noqa: SLF001 - ATen itself begins the names of these kernels with an underscore


_FUSED_FORWARD: Any = getattr(getattr(_aten, "_fused_rms_norm", None), "default", None)


def rms_norm_grad(call: BoundTensors) -> Results:
    """The fused backward kernel where the device has one, else autograd of rms_norm.

    The operator is given rstd; rms_norm has no such argument and computes its own. So the case's own is put in its
    place, whatever it holds, and the gradients are those of the same question: autograd takes the derivative of rstd
    from rstd itself, -rstd^3 x / n, and epsilon has no part in it.
    """
    dy, x, rstd, gamma = (call.inputs.get(name) for name in ("dy", "x", "rstd", "gamma"))
    if rstd is None or gamma is None:
        missing = "rstd" if rstd is None else "gamma"
        raise Inexpressible(f"torch's rms_norm can do without {missing}, so that none is no mistake there")
    if x is not None and dy is not None and _has_fused(x.device.type) and x.dtype == gamma.dtype:
        return _rms_norm_fused(dy, x, rstd, gamma)
    # dgamma is FLOAT whatever gamma is; torch gives it in gamma's dtype, and computes in FLOAT in any case.
    weight = gamma.detach().to(torch.promote_types(gamma.dtype, torch.float32)).requires_grad_()
    leaf = None if x is None else call_torch(x.detach().requires_grad_)
    with torch.enable_grad(), warnings.catch_warnings():
        # That half precision with a FLOAT weight is slower is no news here.
        warnings.simplefilter("ignore")
        normal = call_torch(torch.rms_norm, leaf, gamma.shape, weight)
        _demand_one_for_each_row(rstd, normal, gamma)
        if not replace_rstd(normal, rstd):
            with _GivenRstd(rstd) as given:
                normal = call_torch(torch.rms_norm, leaf, gamma.shape, weight)
            if not given.taken:
                raise Inexpressible(
                    "torch computes rstd in a way that is not known here, so that none can be given to it"
                )
    gradients = call_torch(torch.autograd.grad, normal, (leaf, weight), dy)
    return dict(zip(("dxOut", "dgammaOut"), gradients, strict=True)), {"rstd": "given to torch in place of its own"}


def replace_rstd(normal: torch.Tensor, rstd: torch.Tensor) -> bool:
    """Put rstd in the place of its own in what autograd keeps of rms_norm's forward pass, x rstd gamma.

    That is the result of rsqrt, which is a factor of the product with x too, and that product, made anew by the same
    kernel. Whether it was done: not where the forward pass is made in another way, and then nothing was changed.
    """
    graph: Any = normal.grad_fn
    if _made_by(graph) == "ToCopyBackward0":
        graph = graph.next_functions[0][0]
    product: Any = graph.next_functions[0][0] if _made_by(graph) == "MulBackward0" else None
    root: Any = product.next_functions[1][0] if _made_by(product) == "MulBackward0" else None
    if _made_by(root) != "RsqrtBackward0":
        return False
    # `data`, since autograd refuses what is seen to have changed.
    own = product._saved_other.data
    if own.data_ptr() != root._saved_result.data_ptr():
        return False
    own.copy_(rstd.reshape(own.shape))
    torch.mul(product._saved_self.data, own, out=graph._saved_self.data)
    return True


def _made_by(node: Any) -> str:  # noqa: ANN401 - autograd's own
    return "" if node is None else str(node.name())


class _GivenRstd(TorchDispatchMode):  # type: ignore[misc]  # mypy does without torch
    """Replaces the rstd that rms_norm's forward pass computes, in whatever way, before autograd keeps it.

    Every operation of the pass comes by here, which takes longer than the pass itself.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; what keeps torch's compiler away from every operation takes longer than they do."""
        return False

    def __init__(self, rstd: torch.Tensor) -> None:
        super().__init__()
        self.rstd = rstd
        self.taken = False

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch's signature
        types: Any,  # noqa: ANN401 - torch's signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - torch's signature
        """Run an operation; where its result is rstd, put the given one there."""
        result = func(*args, **(kwargs or {}))
        own = result if func is _aten.rsqrt.default else result[1] if func is _FUSED_FORWARD else None
        if own is not None:
            own.copy_(self.rstd.reshape(own.shape))
            self.taken = True
        return result


def _rms_norm_fused(dy: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, gamma: torch.Tensor) -> Results:
    _demand_one_for_each_row(rstd, x, gamma)
    rows = (*x.shape[: x.dim() - gamma.dim()], *(1,) * gamma.dim())
    dx, dgamma = call_torch(
        _aten._fused_rms_norm_backward.default, dy, x, list(gamma.shape), rstd.reshape(rows), gamma, [True, True]
    )
    facts = {}
    if dgamma.dtype != torch.float32:
        facts["dgammaOut"] = f"rounded to {acl_name(dgamma.dtype)} by torch, then widened to FLOAT"
        dgamma = dgamma.to(torch.float32)
    return {"dxOut": dx, "dgammaOut": dgamma}, facts


def _demand_one_for_each_row(rstd: torch.Tensor, x: torch.Tensor, gamma: torch.Tensor) -> None:
    rows = math.prod(x.shape[: max(0, x.dim() - gamma.dim())])
    if rstd.numel() != rows:
        raise Inexpressible(
            f"torch's rms_norm has one rstd for each row of x; {rstd.numel()} values for {rows} rows do not fit"
        )


@functools.cache
def _has_fused(device_type: str) -> bool:
    key = DISPATCH_KEYS.get(device_type)
    probe = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)
    if key is None or probe is None or not hasattr(_aten, "_fused_rms_norm_backward"):
        return False
    return bool(probe("aten::_fused_rms_norm_backward", key))


def rms_norm_way(device: torch.device) -> tuple[str, str]:
    """How RmsNormGrad is computed on a device, for the manifest, in English and Chinese."""
    if _has_fused(device.type):
        return (
            "aten::_fused_rms_norm_backward (autograd of rms_norm where gamma's dtype is not x's)",
            "aten::_fused_rms_norm_backward（gamma 与 x 的数据类型不同时为 rms_norm 的自动求导）",
        )
    return (
        "autograd of rms_norm with the case's rstd: torch has no fused backward kernel for this device",
        "以用例的 rstd 对 rms_norm 自动求导：torch 在该设备上没有融合的反向算子",
    )


def grouped_bias_add_grad(call: BoundTensors) -> Results:
    """The sums of the rows of each group in FLOAT, cast to the dtype of the rows."""
    rows, groups = call.inputs.get("gradY"), call.inputs.get("groupIdxOptional")
    if rows is None:
        raise Inexpressible("torch computes from tensors: gradY cannot be a null pointer")
    wide = rows.to(torch.float32)
    if groups is None:
        found = call_torch(torch.sum, wide, 1)
    else:
        ends = groups if call.case.arguments.get("groupIdxType", 0) == 0 else call_torch(torch.cumsum, groups, 0)
        numbers = call_torch(
            torch.searchsorted, ends.to(torch.int64), torch.arange(rows.shape[0], device=rows.device), right=True
        )
        found = call_torch(
            torch.zeros(groups.shape[0], *rows.shape[1:], device=rows.device).index_add, 0, numbers, wide
        )
    return {"out": found.to(rows.dtype)}, {
        "precision": f"computed in FLOAT by torch and cast to {acl_name(rows.dtype)}"
    }
