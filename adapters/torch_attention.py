"""aclnnFlashAttentionUnpaddingScoreGrad on torch, which no binding expresses: autograd, with the case's saved tensors.

The statistics of the softmax and the attention are those of the case; all else is torch's forward pass and autograd.
"""

from __future__ import annotations

from typing import Any

import torch

from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.adapters.torch_settings import ask
from aclnn_cts.adapters.torch_tensors import Bound, Results, acl_name

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
