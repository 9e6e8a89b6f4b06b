"""From a case's arguments to C: every integer is in the range of its type before ctypes can cut it."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.adapters.cann.bindings import META, phase_one_prototype
from aclnn_cts.adapters.cann.descriptors import Descriptors, cache_key, effective_strides, storage_shape
from aclnn_cts.adapters.protocol import Inexpressible
from aclnn_cts.core.case import (
    Argument,
    BoolArray,
    Case,
    Data,
    FloatArray,
    Scalar,
    Tensor,
    TensorList,
    contiguous_strides,
)
from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.kinds_number import C_RANGES
from aclnn_cts.speclang.model import Parameter, Spec
from tests.adapters.recording_device import SPECS, RecordingDevice, open_session

NUMBERS = [
    (spec.operator, parameter.name, parameter.c_type)
    for spec in SPECS.values()
    for parameter in spec.parameters
    if parameter.c_type in C_RANGES and parameter.kind not in ("tensor", "int_array")
]


def case(operator: str, **changes: Argument) -> Case:
    """A call with something for every parameter."""
    arguments: dict[str, Argument] = {}
    for parameter in SPECS[operator].parameters:
        tensor = Tensor((2, 3), "FLOAT", data=Data(recipe="zeros"))
        kinds: dict[str, Argument] = {
            "tensor": tensor,
            "tensor_list": TensorList((tensor, tensor)),
            "int_array": (1, 2),
            "bool_array": BoolArray((True,)),
            "bool": True,
            "double": 0.5,
            "string": "none",
        }
        arguments[parameter.name] = kinds.get(parameter.kind, 1)
    return Case(operator, arguments | changes)


def made(device: RecordingDevice, it: Case, **addresses: int) -> Descriptors:
    return Descriptors(open_session(device).api.meta, SPECS[it.operator], it, addresses=addresses)


@pytest.mark.parametrize(("operator", "name", "c_type"), NUMBERS)
def test_the_ends_of_a_range_arrive_and_what_is_beyond_does_not(operator: str, name: str, c_type: str) -> None:
    low, high = C_RANGES[c_type]
    place = [parameter.name for parameter in SPECS[operator].parameters].index(name)
    c = phase_one_prototype(SPECS[operator]).arguments[place]
    for value in (low, high):
        arguments = made(RecordingDevice(), case(operator, **{name: value})).arguments
        assert c(arguments[place]).value == value
    for value in (low - 1, high + 1, 2**64 + 1, -(2**200)):
        device = RecordingDevice()
        with pytest.raises(Inexpressible, match=rf"{name}: {value} does not fit in {c_type}, which holds {low}"):
            made(device, case(operator, **{name: value}))
        assert not device.alive.get("tensor"), "what was made before is given back"


WRONG: list[tuple[str, str, Argument, str]] = [
    ("aclnnSoftmaxBackward", "dim", 1.5, "1.5 cannot be passed as int64_t"),
    ("aclnnSoftmaxBackward", "dim", True, "True cannot be passed as int64_t"),
    ("aclnnSoftmaxBackward", "dim", None, "None cannot be passed as int64_t"),
    ("aclnnSoftmaxBackward", "output", 3, "3 is no tensor"),
    ("aclnnEmbeddingDenseBackward", "scaleGradByFreq", 1, "1 cannot be passed as bool"),
    ("aclnnUpsampleNearestExact1dBackward", "scalesOptional", True, "True cannot be passed as double"),
    ("aclnnUpsampleNearestExact1dBackward", "inputSize", 3, "3 is no array"),
    ("aclnnUpsampleNearestExact1dBackward", "inputSize", (1, 2**63), "9223372036854775808 does not fit in int64_t"),
]


@pytest.mark.parametrize(("operator", "name", "value", "words"), WRONG)
def test_what_its_c_type_does_not_take_is_inexpressible(operator: str, name: str, value: Argument, words: str) -> None:
    with pytest.raises(Inexpressible, match=f"{name}: {words}"):
        made(RecordingDevice(), case(operator, **{name: value}))


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor((2**63,), "FLOAT"),
        Tensor((2, -(2**63) - 1), "FLOAT"),
        Tensor((2, 2), "FLOAT", strides=(2**63, 1), storage_shape=(4,)),
        Tensor((2, 2), "FLOAT", strides=(1,), storage_shape=(4,)),
        Tensor((2, 2), "FLOAT", offset=2**63, storage_shape=(4,)),
        Tensor((2, 2), "FLOAT", storage_shape=(2**64,)),
    ],
)
def test_a_descriptor_that_no_int64_holds_is_inexpressible(tensor: Tensor) -> None:
    device = RecordingDevice()
    with pytest.raises(Inexpressible, match="output: "):
        made(device, case("aclnnSoftmaxBackward", output=tensor))
    assert not device.alive.get("tensor")


def values(pointer: Any, count: int) -> list[int]:
    return list(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_int64))[:count])


def test_a_tensor_arrives_as_it_is() -> None:
    device = RecordingDevice()
    # The worked example of the public documents: a storage of 10 columns, a view of 4 x 3 at offset 22.
    tensor = Tensor((4, 3), "BF16", format="NCL", strides=(20, 2), offset=22, storage_shape=(10, 10))
    held = made(device, case("aclnnSoftmaxBackward", output=tensor), output=0x1234)
    (handle,) = (number for number, made_of in device.tensors.items() if made_of[2] == DTYPES["BF16"].value)
    dims, rank, dtype, strides, offset, layout, storage, storage_rank, address = device.tensors[handle]
    assert (values(dims, rank), values(strides, rank), offset) == ([4, 3], [20, 2], 22)
    assert (dtype, layout, values(storage, storage_rank)) == (27, FORMATS["NCL"], [10, 10])
    assert address == 0x1234
    held.release()
    held.release()
    assert (device.mistakes, device.alive["tensor"]) == ([], set())


def test_null_and_empty_arguments_arrive_as_such() -> None:
    device = RecordingDevice()
    scalar = Tensor((), "FLOAT")
    held = made(device, case("aclnnSoftmaxBackward", gradOutput=None, output=scalar))
    assert held.arguments[0] is None
    dims, rank, *_ = device.tensors[held.arguments[1]]
    # A rank of 0 with a null pointer would be a mistake of the harness.
    assert (rank, dims is None) == (0, False)
    name = "aclnnUpsampleNearestExact1dBackward"
    assert made(device, case(name, outputSizeOptional=None, inputSize=())).arguments[1] is None


def test_a_library_that_makes_no_tensor_leaves_nothing_behind() -> None:
    device = RecordingDevice(fails={"aclCreateTensor": (2, 0)})
    with pytest.raises(Inexpressible, match=r"output: aclCreateTensor makes no tensor of shape \[2, 3\]"):
        made(device, case("aclnnSoftmaxBackward"))
    assert (device.mistakes, device.alive["tensor"]) == ([], set())
    assert "aclCreateTensor" in META


def test_strides_beyond_64_bits_are_left_to_the_library() -> None:
    huge = Tensor((2**40, 2**40, 2**40), "FLOAT")
    assert effective_strides(huge) is None
    device = RecordingDevice()
    held = made(device, case("aclnnSoftmaxBackward", output=huge))
    assert device.tensors[held.arguments[1]][3] is None


OTHERS: dict[str, tuple[str, Argument]] = {
    "alpha": ("const aclScalar *", Scalar("BF16", 1.0)),
    "mode": ("char *", "tanh"),
    "mask": ("const aclBoolArray *", BoolArray((True, False, True))),
    "factors": ("const aclFloatArray *", FloatArray((0.5, 0.1))),
    "parameters": ("const aclTensorList *", TensorList((Tensor((2,), "FLOAT"), Tensor((), "INT8")))),
}
"""An argument of each kind that no other operator has, and its C type."""


def of_other_kinds(**changes: Argument) -> tuple[Spec, Case]:
    parameters = tuple(
        Parameter(name=name, type=c_type, kind=str(kind_of_type(c_type)), role="attribute")
        for name, (c_type, _) in OTHERS.items()
    )
    spec = replace(SPECS["aclnnSoftmaxBackward"], parameters=parameters)
    return spec, Case(spec.operator, {name: value for name, (_, value) in OTHERS.items()} | changes)


def test_scalars_texts_arrays_and_lists_arrive_as_they_are() -> None:
    device = RecordingDevice()
    spec, it = of_other_kinds()
    meta = open_session(device).api.meta
    held = Descriptors(meta, spec, it, addresses={"parameters[1]": 0x1234})
    alpha, mode, mask, factors, parameters = held.arguments
    assert phase_one_prototype(spec).arguments[1] is ctypes.c_char_p
    assert device.held[alpha] == (DTYPES["BF16"].value, bytes.fromhex("803f"))
    assert (mode, device.held[mask]) == (b"tanh", [True, False, True])
    assert device.held[factors] == [0.5, ctypes.c_float(0.1).value]
    assert [device.tensors[tensor][8] for tensor in device.held[parameters]] == [None, 0x1234]
    held.release()
    assert not device.mistakes
    assert not any(device.alive.values())
    none = dict.fromkeys(OTHERS)
    assert Descriptors(meta, *of_other_kinds(**none)).arguments == [None] * len(OTHERS)


def test_a_list_that_is_not_made_leaves_no_tensor_behind() -> None:
    device = RecordingDevice(fails={"aclCreateTensorList": (1, 0)})
    with pytest.raises(Inexpressible, match="parameters: aclCreateTensorList makes no list of 2 tensors"):
        Descriptors(open_session(device).api.meta, *of_other_kinds())
    assert (device.mistakes, device.alive["tensor"]) == ([], set())


@pytest.mark.parametrize("name", list(OTHERS))
def test_an_argument_of_another_kind_is_inexpressible(name: str) -> None:
    with pytest.raises(Inexpressible, match=f"{name}: 7 "):
        Descriptors(open_session(RecordingDevice()).api.meta, *of_other_kinds(**{name: 7}))


SIZES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@given(SIZES)
def test_strides_that_say_the_same_are_one_call_for_the_cache(shape: tuple[int, ...]) -> None:
    plain = case("aclnnSoftmaxBackward", output=Tensor(shape, "FLOAT", data=Data(recipe="normal")))
    strided = Tensor(shape, "FLOAT", strides=contiguous_strides(shape), storage_shape=shape)
    assert cache_key(plain) == cache_key(case("aclnnSoftmaxBackward", output=strided))
    assert storage_shape(strided) == shape


CHANGES: list[dict[str, Argument]] = [
    {"dim": -1},
    {"dim": -2},
    {"dim": 0},
    {"output": None},
    {"output": Tensor((2, 3), "FLOAT16")},
    {"output": Tensor((3, 2), "FLOAT")},
    {"output": Tensor((2, 3), "FLOAT", format="NCL")},
    {"output": Tensor((2, 3), "FLOAT", offset=1)},
    {"output": Tensor((2, 3), "FLOAT", strides=(1, 2))},
    {"output": Tensor((2, 3), "FLOAT", storage_shape=(3, 3))},
    {},
]


def test_whatever_reaches_the_library_tells_calls_apart() -> None:
    keys = [cache_key(case("aclnnSoftmaxBackward", **changes)) for changes in CHANGES]
    assert len(set(keys)) == len(CHANGES)
    assert cache_key(case("aclnnUpsampleNearestExact1dBackward", scalesOptional=0.0)) != cache_key(
        case("aclnnUpsampleNearestExact1dBackward", scalesOptional=-0.0)
    )
