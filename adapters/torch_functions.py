"""What no binding on torch expresses: unpadded attention, deformable convolution, GRU, RmsNorm with a given rstd.

The statistics of the softmax and the attention are those of the case; all else is torch's forward pass and autograd.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aclnn_cts.adapters.binding_evaluation import items_of
from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.adapters.torch_settings import DISPATCH_KEYS, ask
from aclnn_cts.adapters.torch_tensors import Bound, Given, Results, acl_name

_READ = ("query", "keyIn", "value", "dy", "softmaxMaxOptional", "softmaxSumOptional", "attentionInOptional")
_NOT_SAID = ("paddingMaskOptional", "softmaxInOptional")


class _GivenSoftmax(torch.autograd.Function):  # type: ignore[misc]  # torch comes without types here
    """A softmax by its saved largest elements and sums; `lost` is the sum of the probabilities' gradients."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's own
        scores: torch.Tensor,
        peak: torch.Tensor,
        total: torch.Tensor,
        lost: torch.Tensor,
        masked: torch.Tensor | None,
    ) -> torch.Tensor:
        share = torch.exp(scores - peak) / total
        ctx.share, ctx.lost = (share if masked is None else share.masked_fill(masked, 0.0)), lost
        return ctx.share

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: ANN401 - torch's own
        [gradient] = gradients
        return ctx.share * (gradient - ctx.lost), None, None, None, None


def unpadded_attention_grad(call: Bound) -> Results:
    """Autograd in FLOAT of attention, one sequence after the other."""
    given = {name: tensor for name in _READ if (tensor := call.inputs.get(name)) is not None}
    if len(given) < len(_READ):
        raise Inexpressible("torch computes from tensors: none of them can be a null pointer")
    case: Any = call.case.arguments
    queries, keys = case["actualSeqQLenOptional"], case["actualSeqKvLenOptional"]
    pse, mask, drop = (call.inputs.get(name) for name in ("pseShiftOptional", "attenMaskOptional", "dropMaskOptional"))
    unclear = queries is None or keys is None or case["sparseMode"] > 1
    if unclear or any(call.inputs.get(name) is not None for name in _NOT_SAID):
        raise Inexpressible("the document does not say what this call computes")
    if case["keepProb"] != 1 or (drop is not None and bool((drop != 255).any())):
        raise Inexpressible("how the bits of a drop mask lie is not said")
    if len(queries) > 1 and (pse is not None or mask is not None):
        raise Inexpressible("how pse and masks of several sequences lie is not said")
    dtype = given["query"].dtype
    wide = {name: tensor.detach().to(torch.float32) for name, tensor in given.items()}
    leaves = [wide[name].requires_grad_() for name in ("query", "keyIn", "value")]
    with torch.enable_grad():
        y = ask(_attention, wide, (queries, keys), pse, mask, case["scaleValue"])
    found = ask(torch.autograd.grad, y, leaves, wide["dy"])
    facts = {"precision": f"computed in FLOAT by torch and cast to {acl_name(dtype)}", "statistics": "given to torch"}
    return {name: item.to(dtype) for name, item in zip(("dqOut", "dkOut", "dvOut"), found, strict=True)}, facts


def _attention(
    wide: dict[str, torch.Tensor],
    ends: tuple[tuple[int, ...], tuple[int, ...]],
    pse: torch.Tensor | None,
    mask: torch.Tensor | None,
    scale: float,
) -> torch.Tensor:
    """The attention of all sequences, [T, N, D]."""
    group = wide["query"].shape[1] // wide["keyIn"].shape[1]
    q, g, y, peak, total = (wide[name].transpose(0, 1) for name in ("query", "dy", *_READ[6:], *_READ[4:6]))
    k, v = (wide[name].repeat_interleave(group, 1).transpose(0, 1) for name in ("keyIn", "value"))
    parts, row, column = [], 0, 0
    for row_end, column_end in zip(*ends, strict=True):
        rows, columns = slice(row, row_end), slice(column, column_end)
        scores = q[:, rows] @ k[:, columns].transpose(1, 2)
        scores = (scores if pse is None else scores + pse[0].to(torch.float32)) * scale
        lost = (g[:, rows] * y[:, rows]).sum(2, keepdim=True)
        masked = None if mask is None else (mask if mask.dim() == 2 else mask[0]).to(torch.bool)
        share = _GivenSoftmax.apply(scores, peak[:, rows, :1], total[:, rows, :1], lost, masked)
        parts.append(share @ v[:, columns])
        row, column = row_end, column_end
    return torch.cat(parts, 1).transpose(0, 1)


_INPUTS = ("input", "gradOutput", "offsetOut", "weight", "offset")
_ARRAYS = ("kernelSize", "stride", "padding", "dilation")


def deformable_conv2d_backward(call: Bound) -> Results:
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
        columns = ask(
            Given.apply, ask(_sampled, x, offset, arrays, deformable), sampled, None, "offsetOut has the shape"
        )
        y = ask(_convolved, columns, weight, leaves[3], arrays["kernelSize"], groups)
    found = [item.to(dtype) for item in ask(torch.autograd.grad, y, leaves, g)]
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


# ruff: noqa: SLF001 - ATen itself begins the names of these kernels with an underscore


_FUSED_FORWARD: Any = getattr(getattr(_aten, "_fused_rms_norm", None), "default", None)


def rms_norm_grad(call: Bound) -> Results:
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
    leaf = None if x is None else ask(x.detach().requires_grad_)
    with torch.enable_grad(), warnings.catch_warnings():
        # That half precision with a FLOAT weight is slower is no news here.
        warnings.simplefilter("ignore")
        normal = ask(torch.rms_norm, leaf, gamma.shape, weight)
        _demand_one_for_each_row(rstd, normal, gamma)
        if not replace_rstd(normal, rstd):
            with _GivenRstd(rstd) as given:
                normal = ask(torch.rms_norm, leaf, gamma.shape, weight)
            if not given.taken:
                raise Inexpressible(
                    "torch computes rstd in a way that is not known here, so that none can be given to it"
                )
    gradients = ask(torch.autograd.grad, normal, (leaf, weight), dy)
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
    dx, dgamma = ask(
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
