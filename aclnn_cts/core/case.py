"""One call of one operator as plain data: descriptors, recipes and scalars, and its words for people.

The classes are msgspec structs and not dataclasses: they are as frozen and slotted, are made ten times faster (a
case holds up to seven tensors, and cases are made by the ten thousand a second), and carry their JSON with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec
import numpy as np

from aclnn_cts.core.dtypes import COMPONENTS, DTYPES, FLOAT8, itemsize, numpy_dtype
from aclnn_cts.core.printable import quote
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.core.target import Target

Number: TypeAlias = int | float | str
"""An element of explicit data; the strings `inf`, `-inf` and `nan` stand for what JSON has no word for."""


class Data(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The contents of a tensor: `values`, or a `recipe` with its parameters (`docs/recipes.md`)."""

    values: tuple[Number, ...] | None = None
    recipe: str | None = None
    seed: int = 0
    low: int | None = None
    high: int | None = None
    exponent: int | None = None
    """Power of two that scales the recipe's integers or values."""
    mean: float | None = None
    std: float | None = None
    of: str | None = None
    """The parameter that this one is computed from."""
    axis: int | None = None
    epsilon: float | None = None
    kernel: tuple[int, ...] | None = None
    """Windows over the dimensions from `axis` on: an item for each or one for all of them."""
    stride: tuple[int, ...] | None = None
    """Without items that of the kernel."""
    padding: tuple[int, ...] | None = None
    dilation: tuple[int, ...] | None = None


class _Tagged(msgspec.Struct, frozen=True, tag_field="kind"):
    """An argument that is more than a plain value: what travels says which one it is."""


class Tensor(_Tagged, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag="tensor"):
    """A tensor descriptor as aclCreateTensor takes it. Sizes are exact integers; strides and offset count elements."""

    shape: tuple[int, ...]
    dtype: str
    format: str = "ND"
    strides: tuple[int, ...] | None = None
    """None: contiguous, row major."""
    offset: int = 0
    storage_shape: tuple[int, ...] | None = None
    """None: the view's shape, or as many elements as the strides reach."""
    data: Data | None = None

    @property
    def numel(self) -> int:
        """Elements of the view."""
        return math.prod(self.shape)

    @property
    def storage_numel(self) -> int:
        """Elements of the memory behind the view (0 for an empty view without a storage shape)."""
        if self.storage_shape is not None:
            return math.prod(self.storage_shape)
        return self.reach

    @property
    def reach(self) -> int:
        """Elements from the start of the storage to the end of the view."""
        if self.strides is None:
            return self.offset + math.prod(self.shape)
        if 0 in self.shape:
            return self.offset
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return self.offset + last + 1

    @property
    def expanded_axes(self) -> tuple[int, ...]:
        """Axes along which all elements share one place in memory: their stride is 0."""
        if self.strides is None:
            return ()
        sized = enumerate(zip(self.shape, self.strides, strict=False))
        return tuple(axis for axis, (size, stride) in sized if stride == 0 and size > 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the storage."""
        return self.storage_numel * itemsize(self.dtype)

    @property
    def is_contiguous(self) -> bool:
        """Whether the view is row major without gaps; strides of dimensions of size 1 do not count."""
        if self.strides is None or 0 in self.shape:
            return True
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1:
                if stride != expected:
                    return False
                expected *= size
        return True


def real_view(tensor: Tensor) -> Tensor:
    """A complex tensor as a contiguous real one: a last dimension holds re and im of each element; others themselves.

    That is the shape in which complex numbers are drawn, computed and judged (`core.dtypes.components`).
    """
    if tensor.dtype not in COMPONENTS:
        return tensor
    return Tensor((*tensor.shape, 2), COMPONENTS[tensor.dtype], tensor.format, data=tensor.data)


class Scalar(_Tagged, frozen=True, forbid_unknown_fields=True, tag="scalar"):
    """An aclScalar: one number in host memory, and its dtype.

    `value` is a bool for BOOL, an integer for the integer dtypes, else a float that the dtype may still round
    (`number`). Of a complex dtype it is the real part.
    """

    dtype: str
    value: bool | int | float


_Item = TypeVar("_Item")


class _Items(_Tagged, Generic[_Item], frozen=True):
    """Several values behind one pointer."""

    items: tuple[_Item, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> _Item:
        return self.items[place]


class BoolArray(_Items[bool], frozen=True, tag="bool_array"):
    """An aclBoolArray."""


class FloatArray(_Items[float], frozen=True, tag="float_array"):
    """An aclFloatArray; its elements are single precision."""


class TensorList(_Items[Tensor], frozen=True, tag="tensor_list"):
    """An aclTensorList. Its tensors go by `name[0]`, `name[1]`, ... where tensors have names.

    Where an expression asks a list for what a tensor has, the first tensor answers, or all of them.
    """

    @property
    def dtype(self) -> str:
        """That of the first tensor; IndexError for a list without one."""
        return self.items[0].dtype

    @property
    def format(self) -> str:
        """That of the first tensor; IndexError for a list without one."""
        return self.items[0].format

    @property
    def is_contiguous(self) -> bool:
        """Whether every tensor is."""
        return all(tensor.is_contiguous for tensor in self.items)


Argument: TypeAlias = (
    Tensor | Scalar | BoolArray | FloatArray | TensorList | tuple[int, ...] | str | int | bool | float | None
)
"""What stands for one parameter. An aclIntArray is a tuple, a `char *` a string, a null pointer None."""

POINTERS = ("tensor", "scalar", "string", "int_array", "bool_array", "float_array", "tensor_list")
"""The kinds of argument that are passed by pointer, which may be null."""

_PLAIN = {tuple: "int_array", str: "string", bool: "bool", int: "int", float: "double"}


def argument_kind(value: Argument) -> str | None:
    """What an argument is called in case files and specs; None for a null pointer, which fits every pointer."""
    if isinstance(value, _Tagged):
        return str(value.__struct_config__.tag)
    return None if value is None else _PLAIN[type(value)]


class CallOptions(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How the two phases are called where it is not the ordinary way."""

    phases: int = 2
    """1: the first phase alone."""
    null: tuple[str, ...] = ()
    """Which of `workspaceSize`, `executor` and `workspace` are passed as null pointers."""


NOTE_LIMIT = 10_000
"""Characters of a text of a case or trial that means nothing to the call; records repeat it."""

MOST_CORNERS = 256
"""Of one call: two of each factor, of which operators have some thirty."""

_Note: TypeAlias = Annotated[str, msgspec.Meta(max_length=NOTE_LIMIT)]


class Origin(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a case came from; identity ignores it."""

    kind: _Note = ""
    """`example`, `valid`, `invalid`, `boundary`, or a word of whoever wrote the file."""
    constraint: _Note | None = None
    """The constraint that an invalid case breaks, or whose limit a boundary case sits on."""
    change: _Note | None = None
    """What was changed against the twin, for a person."""
    twin: _Note | None = None
    """Id of the valid case that an invalid one came from."""
    source: _Note | None = None
    corners: Annotated[tuple[_Note, ...], msgspec.Meta(max_length=MOST_CORNERS)] = ()
    """The corners of what the document allows that the call is at, as `factor: label` (`generate.corners`)."""


class Case(msgspec.Struct, frozen=True):
    """One call: operator, target, arguments by the names of the C prototype (outputs included)."""

    operator: str
    arguments: Mapping[str, Argument]
    target: Target = Target()
    call: CallOptions = CallOptions()
    origin: Origin = Origin()

    @property
    def product(self) -> str:
        return self.target.product

    def tensors(self) -> list[tuple[str, Tensor]]:
        """The tensors that are not null, those of lists among them, in the order of the prototype."""
        return list(_tensors(self.arguments))

    def tensor(self, name: str) -> Tensor | None:
        """A tensor by its name, `name[2]` for one of a list; None where the call has none of that name."""
        return tensor_of(self.arguments, name)

    @property
    def nbytes(self) -> int:
        """Bytes of all storages together: what running the case asks of memory for its arguments."""
        total = 0
        for _, value in _tensors(self.arguments):
            shape = value.storage_shape
            total += (value.reach if shape is None else math.prod(shape)) * itemsize(value.dtype)
        return total


def _tensors(arguments: Mapping[str, Argument]) -> Iterator[tuple[str, Tensor]]:
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            yield name, value
        elif isinstance(value, TensorList):
            yield from ((f"{name}[{place}]", tensor) for place, tensor in enumerate(value.items))


def tensor_of(arguments: Mapping[str, Argument], name: str) -> Tensor | None:
    """A tensor by its name, `name[2]` for one of a list; None where the arguments have none of that name."""
    value = arguments.get(name)
    if isinstance(value, Tensor):
        return value
    held = arguments.get(owner(name))
    if value is not None or not isinstance(held, TensorList):
        return None
    place = name[len(owner(name)) + 1 : -1]
    known = place.isdecimal() and int(place) < len(held.items) and name == f"{owner(name)}[{int(place)}]"
    return held.items[int(place)] if known else None


def replace_arguments(arguments: Mapping[str, Argument], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with others in place of those named; `name[2]` is one tensor of a list."""
    made: dict[str, Any] = dict(arguments)
    for name, value in changes.items():
        held = made.get(owner(name))
        if name in made or not isinstance(held, TensorList):
            made[name] = value
        else:
            place = int(name[len(owner(name)) + 1 : -1])
            made[owner(name)] = TensorList((*held.items[:place], value, *held.items[place + 1 :]))
    return made


def tensors_in(value: object) -> tuple[Tensor, ...]:
    """The tensors of an argument: itself, those of a list, or none."""
    if isinstance(value, TensorList):
        return value.items
    return (value,) if isinstance(value, Tensor) else ()


def owner(name: str) -> str:
    """The parameter that a tensor belongs to: `params` of `params[2]`, and any other name itself."""
    return name.partition("[")[0]


def both_phases(case: Case) -> Case:
    """The case in the ordinary way of calling."""
    return msgspec.structs.replace(case, call=CallOptions())


def with_arguments(case: Case, changes: Mapping[str, Any]) -> Case:
    """The case with other arguments in place of those named; `name[2]` is one tensor of a list."""
    return msgspec.structs.replace(case, arguments=replace_arguments(case.arguments, changes))


def first_phase(case: Case) -> Case:
    """The case with the first phase alone."""
    if case.call.phases == 1:
        return case
    return msgspec.structs.replace(case, call=msgspec.structs.replace(case.call, phases=1))


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements, as the framework generates them for a null stride pointer."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


SCALAR_DTYPES = frozenset(name for name, dtype in DTYPES.items() if dtype.kind != "other") - FLOAT8
"""Dtypes that a number can be passed in."""


def scalar_of(dtype: str, value: Fraction | float) -> Scalar:
    """A scalar of a value: truncated and clipped for an integer dtype, whether it is not 0 for BOOL."""
    kind = DTYPES[dtype].kind
    if kind == "bool":
        return Scalar(dtype, bool(value))
    if kind not in ("signed", "unsigned"):
        return Scalar(dtype, float(value))
    low, high = integer_bounds(dtype)
    if isinstance(value, float) and not math.isfinite(value):
        value = 0 if math.isnan(value) else high if value > 0 else low
    return Scalar(dtype, min(max(int(value), low), high))


def integer_bounds(dtype: str) -> tuple[int, int]:
    """Least and most of an integer dtype."""
    limits = np.iinfo(numpy_dtype(dtype))
    return int(limits.min), int(limits.max)


def number(scalar: Scalar) -> bool | int | float:
    """The number that the callee reads: a floating value rounded to the dtype."""
    if DTYPES[scalar.dtype].kind != "float":
        return scalar.value
    return float(to_dtype(np.array([scalar.value], np.float64), scalar.dtype)[0])


def host_bytes(scalar: Scalar) -> bytes:
    """What aclCreateScalar is given a pointer to."""
    if DTYPES[scalar.dtype].kind == "float":
        return to_dtype(np.array([scalar.value], np.float64), scalar.dtype).tobytes()
    with np.errstate(over="ignore"):
        return np.array([scalar.value]).astype(numpy_dtype(scalar.dtype)).tobytes()


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
        return quote(value)
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
