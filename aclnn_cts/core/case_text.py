"""A case in words: its arguments, each on a line, or all of it on one."""

from __future__ import annotations

from aclnn_cts.core.case import Argument, BoolArray, Case, Data, FloatArray, Scalar, Tensor, TensorList
from aclnn_cts.core.printable import shown

VALUES_SHOWN = 12


def argument_text(value: Argument, *, contents: bool = True) -> str:
    """An argument on one line; with the contents of its tensors, or without."""
    if value is None:
        return "null pointer"
    if isinstance(value, TensorList):
        return f"[{'; '.join(argument_text(tensor, contents=contents) for tensor in value.items)}]"
    if isinstance(value, (BoolArray, FloatArray)):
        return f"{list(value.items)}"
    if isinstance(value, tuple):
        return f"{list(value)}"
    if isinstance(value, Scalar):
        return f"{value.dtype} {value.value}"
    if isinstance(value, str):
        return shown(value)
    if not isinstance(value, Tensor):
        return str(value)
    data = f", {_data_text(value.data)}" if contents and value.data is not None else ""
    return f"{_tensor_text(value)}{data}"


def case_text(case: Case) -> str:
    """A case on one line, without the contents of its tensors."""
    arguments = ", ".join(f"{name} {argument_text(value, contents=False)}" for name, value in case.arguments.items())
    return f"{case.operator}({arguments})"


def _tensor_text(value: Tensor) -> str:
    text = f"{value.dtype} {list(value.shape)}"
    if value.format != "ND":
        text += f" {value.format}"
    if value.strides is not None:
        text += f" strides {list(value.strides)}"
    if value.offset:
        text += f" offset {value.offset}"
    if value.storage_shape is not None:
        text += f" in a storage {list(value.storage_shape)}"
    return text


def _data_text(data: Data) -> str:
    if data.values is not None:
        shown = ", ".join(str(value) for value in data.values[:VALUES_SHOWN])
        return f"values {shown}" + (", ..." if len(data.values) > VALUES_SHOWN else "")
    parameters = ", ".join(
        f"{name} {getattr(data, name)}"
        for name in data.__struct_fields__
        if name not in ("values", "recipe", "seed") and getattr(data, name) is not None
    )
    return f"recipe {data.recipe}" + (f" ({parameters})" if parameters else "") + f", seed {data.seed}"
