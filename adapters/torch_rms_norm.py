"""aclnnRmsNormGrad on torch, which no binding expresses: torch's forward pass is to take the rstd of the case."""
# ruff: noqa: SLF001 - ATen itself begins the names of these kernels with an underscore

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.adapters.torch_settings import DISPATCH_KEYS, ask
from aclnn_cts.adapters.torch_tensors import Bound, Results, acl_name

_aten: Any = torch.ops.aten
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
