"""Case files hold every number, and equal cases alone share an id."""

from __future__ import annotations

import itertools
import math

import msgspec
import pytest

from aclnn_cts.core.case import (
    Argument,
    BoolArray,
    Case,
    Data,
    FloatArray,
    Scalar,
    Tensor,
    TensorList,
    argument_kind,
    host_bytes,
    number,
    scalar_of,
)
from aclnn_cts.core.case_json import canonical_json, case_from_json, case_id, case_to_json
from aclnn_cts.core.errors import UsageError

NON_FINITE = (math.inf, -math.inf, math.nan)


def with_data(data: Data) -> Case:
    return Case("aclnnAny", {"x": Tensor((2,), "FLOAT", data=data)})


def read_again(case: Case) -> Data:
    document = msgspec.json.decode(canonical_json(case_to_json(case)))
    tensor = case_from_json(document, where="here").arguments["x"]
    assert isinstance(tensor, Tensor)
    assert tensor.data is not None
    return tensor.data


@pytest.mark.parametrize("name", ["mean", "std", "epsilon"])
def test_the_numbers_of_a_recipe_need_not_be_finite(name: str) -> None:
    cases = {}
    for value in (*NON_FINITE, None, 0.0, 1e308, 5e-324):
        case = with_data(Data(recipe="normal", **{name: value}))  # type: ignore[arg-type]  # what no field takes
        found = getattr(read_again(case), name)
        assert found == value or (value is not None and math.isnan(value) and math.isnan(found))
        cases[case_id(case)] = value
        assert b"null" not in canonical_json(case_to_json(case))
    assert len(cases) == 7


def test_explicit_values_need_not_be_finite() -> None:
    identifiers = set()
    for pair in itertools.product((*NON_FINITE, 1.5), repeat=2):
        case = with_data(Data(values=pair))
        values = read_again(case).values
        assert values is not None
        assert [float(value) for value in values] == pytest.approx(pair, nan_ok=True)
        identifiers.add(case_id(case))
    assert len(identifiers) == 16
    assert case_id(with_data(Data(values=(math.inf, 1)))) == case_id(with_data(Data(values=("inf", 1))))


@pytest.mark.parametrize("value", ["infinity", "1", [1], {}, True])
def test_other_words_are_refused(value: object) -> None:
    document = case_to_json(with_data(Data(recipe="normal")))
    document["arguments"]["x"]["tensor"]["data"]["mean"] = value
    with pytest.raises(UsageError, match=r"here: \$\.arguments\.x\.tensor\.data\.mean: Expected `float \| null`"):
        case_from_json(document, where="here")


ARGUMENTS: dict[str, Argument] = {
    "tensor": Tensor((2,), "FLOAT", data=Data(recipe="zeros")),
    "scalar": Scalar("FLOAT16", 0.01),
    "string": "tanh",
    "int_array": (1, 2),
    "bool_array": BoolArray((True, False)),
    "float_array": FloatArray((0.5, math.inf)),
    "tensor_list": TensorList((Tensor((2,), "FLOAT", data=Data(recipe="zeros")), Tensor((), "INT8"))),
    "int": 3,
    "bool": False,
    "double": 2.0,
}


def test_every_kind_of_argument_comes_back() -> None:
    case = Case("aclnnAny", {**ARGUMENTS, "empty": BoolArray(()), "none": None})
    document = msgspec.json.decode(canonical_json(case_to_json(case)))
    assert case_id(case_from_json(document, where="here")) == case_id(case)
    decoded = msgspec.msgpack.Decoder(Case).decode(msgspec.msgpack.encode(case))
    assert decoded == case
    assert {name: argument_kind(value) for name, value in decoded.arguments.items() if name in ARGUMENTS} == {
        kind: kind for kind in ARGUMENTS
    }
    assert [name for name, _ in case.tensors()] == ["tensor", "tensor_list[0]", "tensor_list[1]"]
    assert case.nbytes == 8 + 8 + 1


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"scalar": {"dtype": "FLOAT32", "value": 1.0}}, r"\.scalar\.dtype: 'FLOAT32'; expected one of FLOAT, "),
        ({"scalar": {"dtype": "UINT8", "value": -1}}, r"\.scalar\.value: -1; expected UINT8, in \[0, 255\]"),
        ({"scalar": {"dtype": "BOOL", "value": 1}}, r"\.scalar\.value: Expected `bool`, got `int`"),
        ({"scalar": {"dtype": "FLOAT", "value": 1.0, "unit": 1}}, r"\.scalar: unknown key 'unit'"),
        ({"string": "a\0b"}, r"\.string: 'a.x00b'; expected at most 200 characters"),
        ({"string": "a" * 201}, r"\.string: .*; expected at most 200 characters"),
        ({"bool_array": [True] * 5000}, r"\.bool_array: 5000 items; expected at most"),
        ({"float_array": ["half"]}, r"\.float_array\[0\]: Expected `float`, got `str`"),
        ({"tensor_list": [{"shape": [1]}]}, r"\.tensor_list\[0\]: .*`dtype`"),
        ({"tensor_list": {"shape": [1]}}, r"\.tensor_list: Expected `array`, got `object`"),
    ],
)
def test_arguments_that_are_refused(argument: object, message: str) -> None:
    document = {**case_to_json(Case("aclnnAny", {})), "arguments": {"x": argument}}
    with pytest.raises(UsageError, match=r"here: \$\.arguments\.x" + message):
        case_from_json(document, where="here")


@pytest.mark.parametrize(
    ("dtype", "value", "held"),
    [
        ("FLOAT", 0.1, 0.10000000149011612),
        ("BF16", 0.1, 0.10009765625),
        ("FLOAT16", 1e6, math.inf),
        ("DOUBLE", 0.1, 0.1),
        ("INT8", 300.7, 127),
        ("UINT8", -2.5, 0),
        ("INT32", -2.5, -2),
        ("BOOL", 0.01, True),
    ],
)
def test_a_scalar_holds_what_its_dtype_can(dtype: str, value: float, held: float) -> None:
    scalar = scalar_of(dtype, value)
    assert number(scalar) == held
    assert type(number(scalar)) is type(held)
    assert len(host_bytes(scalar)) == {"FLOAT": 4, "BF16": 2, "FLOAT16": 2, "DOUBLE": 8, "INT32": 4}.get(dtype, 1)
