"""torch tensors over the harness' memory, with the case's strides, so that a layout really reaches the kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from aclnn_cts.adapters.binding_evaluation import BindingScope
from aclnn_cts.adapters.protocol import Buffers, Inexpressible
from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import numpy_dtype

TORCH_DTYPES: Mapping[str, torch.dtype] = MappingProxyType(
    {
        "FLOAT": torch.float32,
        "FLOAT16": torch.float16,
        "BF16": torch.bfloat16,
        "DOUBLE": torch.float64,
        "INT8": torch.int8,
        "INT16": torch.int16,
        "INT32": torch.int32,
        "INT64": torch.int64,
        "UINT8": torch.uint8,
        "UINT16": torch.uint16,
        "UINT32": torch.uint32,
        "UINT64": torch.uint64,
        "BOOL": torch.bool,
        "COMPLEX64": torch.complex64,
        "COMPLEX128": torch.complex128,
    }
)
Results: TypeAlias = tuple[dict[str, Any], dict[str, str]]
"""The results by output parameter (a result that is the harness' own tensor is written already), and facts."""

_Staged: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""A storage in the harness' memory, and on the device."""

_BFLOAT16 = numpy_dtype("BF16")
_ACL_NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}


def acl_name(dtype: torch.dtype) -> str:
    """The aclDataType of a torch dtype; torch's own word where there is none."""
    return _ACL_NAMES.get(dtype, str(dtype))


@dataclass(slots=True, kw_only=True)
class BoundTensors(BindingScope):
    """One call with its tensors as torch takes them."""

    direct: bool
    """Whether kernels may write into the harness' memory themselves."""
    staged: Mapping[str, _Staged]
    """By name, the tensors that are not on the CPU."""

    def output(self, name: str, *, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor | None:
        """The harness' memory for a result of this shape and dtype; None where it is not to be, or cannot be, used.

        torch would resize an output tensor of another shape, which memory of ours cannot do and should not.
        """
        tensor = self.outputs.get(name)
        if tensor is None or not self.direct or tuple(tensor.shape) != shape or tensor.dtype != dtype:
            return None
        return tensor

    def write_back(self, name: str) -> None:
        """Bring an output's storage, gaps included, back from the device."""
        if name in self.staged:
            host, there = self.staged[name]
            host.copy_(there)


def bind(case: Case, buffers: Buffers, *, device: torch.device, direct: bool) -> BoundTensors:
    """Make torch tensors of all buffers: over the same memory on the CPU, over a copy of each storage elsewhere.

    Raises Inexpressible for a dtype or a layout (negative strides) that torch has not.
    """
    staged: dict[str, _Staged] = {}
    found: dict[str, torch.Tensor] = {}
    here = device.type == "cpu"
    descriptors = dict(case.tensors())
    for name, buffer in {**buffers.inputs, **buffers.outputs}.items():
        descriptor = descriptors[name]
        if descriptor.dtype not in TORCH_DTYPES:
            raise Inexpressible(f"torch has no tensor of the dtype of {name}")
        if min(buffer.view.strides, default=0) < 0:
            raise Inexpressible(f"torch has no tensors with negative strides ({name})")
        if here:
            found[name] = alias(buffer.view)
        else:
            found[name], staged[name] = stage(buffer.view, offset=descriptor.offset, device=device)
    return BoundTensors(
        case=case,
        inputs={name: found[name] for name in buffers.inputs},
        outputs={name: found[name] for name in buffers.outputs},
        direct=direct,
        staged=staged,
    )


def alias(view: NDArray[Any]) -> torch.Tensor:
    """A tensor over an array's own memory with its shape and strides."""
    brain = view.dtype == _BFLOAT16
    plain: NDArray[Any] = view.view(np.uint16) if brain else view
    if plain.flags.writeable:
        tensor = torch.from_numpy(plain)
    else:
        with warnings.catch_warnings():
            # Inputs may be read-only; no kernel here writes to one, and the harness looks afterwards.
            warnings.simplefilter("ignore")
            tensor = torch.from_numpy(plain)
    return tensor.view(torch.bfloat16) if brain else tensor


def stage(view: NDArray[Any], *, offset: int, device: torch.device) -> tuple[torch.Tensor, _Staged]:
    """A tensor on a device with an array's shape and strides, `offset` elements into its storage, gaps copied too."""
    strides = tuple(stride // view.itemsize for stride in view.strides)
    last = sum((size - 1) * stride for size, stride in zip(view.shape, strides, strict=True))
    reach = 0 if view.size == 0 else last + 1
    flat: NDArray[Any] = (
        np.lib.stride_tricks.as_strided(view, (reach,), (view.itemsize,)) if reach else view.reshape(-1)
    )
    host = alias(flat)
    storage = torch.empty(offset + reach, dtype=host.dtype, device=device)
    part = storage[offset:]
    part.copy_(host)
    return storage.as_strided(view.shape, strides, offset if reach else 0), (host, part)


class SavedTensor(torch.autograd.Function):  # type: ignore[misc]  # torch comes without types here
    """A saved tensor in the place of a computed one; `slope` takes a gradient back through what computes it.

    None: the gradient is the computed one's as it is. `what` opens the message for a tensor of another shape.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's own
        computed: torch.Tensor,
        saved: torch.Tensor,
        slope: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None,
        what: str,
    ) -> torch.Tensor:
        """The saved one. Raises RuntimeError where its shape is another."""
        ctx.saved, ctx.slope = saved, slope
        if computed.shape != saved.shape:
            raise RuntimeError(f"{what} {tuple(saved.shape)}; torch computes {tuple(computed.shape)}")
        return saved.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: ANN401 - torch's own
        """The gradient of the computed one."""
        [gradient] = gradients
        return (gradient if ctx.slope is None else ctx.slope(gradient, ctx.saved)), None, None, None
