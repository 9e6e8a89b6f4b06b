"""aclnnDeformableConv2dBackward on torch, which no binding expresses: autograd of a forward pass of torch's operators.

torch has no deformable convolution of its own. Samples are gathered and interpolated, and their convolution with a
stride of the kernel's size is torch's. The operator is given what the forward pass sampled; that is put in the place
of what is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.adapters.torch_settings import ask
from aclnn_cts.adapters.torch_tensors import Bound, Given, Results, acl_name

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
