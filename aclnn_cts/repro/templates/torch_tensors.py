"""Tensors as those of torch."""

import sys

from opening import decoded, unable

try:
    import torch
except ImportError as error:
    print(f"{error}; it needs torch: pip install torch", file=sys.stderr)
    sys.exit(2)

DTYPES = {
    0: torch.float32,
    1: torch.float16,
    2: torch.int8,
    3: torch.int32,
    4: torch.uint8,
    6: torch.int16,
    9: torch.int64,
    11: torch.float64,
    12: torch.bool,
    16: torch.complex64,
    17: torch.complex128,
    27: torch.bfloat16,
}


def dtype_of(code):
    if code not in DTYPES:
        unable(f"torch has no dtype for the aclDataType {code}")
    return DTYPES[code]


def tensor_of(value):
    """The tensor over its storage, with its strides and offset."""
    dtype = dtype_of(value["dtype"])
    data = bytearray(decoded(value["data"]))
    if not all(value["shape"]):
        return torch.empty(value["shape"], dtype=dtype)
    if min(value["strides"], default=0) < 0:
        unable("torch has no tensors with negative strides")
    storage = torch.frombuffer(data, dtype=dtype)
    return torch.as_strided(storage, value["shape"], value["strides"], value["offset"])


def described(result, dtype, _value):
    """Shape and dtype of what the function returned, and its elements in a dtype, as float64."""
    if not isinstance(result, torch.Tensor):
        raise TypeError(f"the function returned {type(result).__name__}, expected a torch.Tensor for each output")
    elements = result.detach().cpu().to(dtype).resolve_conj()
    if dtype.is_complex:
        elements = torch.view_as_real(elements)
    return list(result.shape), result.dtype, elements.to(torch.float64).reshape(-1).numpy()
