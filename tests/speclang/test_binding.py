"""Whether arguments fit the C prototype: every kind of argument and both ends of every C type."""

from __future__ import annotations

from typing import Any

import pytest

from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.binding import bind_case, check_prototype
from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.kinds_number import C_RANGES
from aclnn_cts.speclang.load import load_specs
from tests.speclang.small_spec import SMALL, changed, small_case
from tests.support.spec_text import spec_from_text

SPEC = spec_from_text(SMALL, stem="small")
TENSOR = Tensor((2,), "FLOAT")


def refusal(case: Case) -> str:
    with pytest.raises(UsageError) as caught:
        check_prototype(SPEC, case, where="f.json")
    return str(caught.value)


def test_a_case_that_fits() -> None:
    check_prototype(SPEC, small_case(), where="f.json")
    check_prototype(SPEC, small_case(x=None, sizes=None, out=None), where="f.json")
    check_prototype(SPEC, small_case(sizes=(), scale=float("nan"), flag=True), where="f.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pad": None}, "$.arguments.pad: null; int8_t is no pointer, expected {'int': ...}"),
        ({"flag": None}, "$.arguments.flag: null; bool is no pointer, expected {'bool': ...}"),
        ({"scale": None}, "$.arguments.scale: null; double is no pointer"),
        ({"pad": True}, "$.arguments.pad: bool; expected int for the C type int8_t"),
        ({"pad": 1.0}, "$.arguments.pad: double; expected int for the C type int8_t"),
        ({"pad": (1,)}, "$.arguments.pad: int_array; expected int"),
        ({"pad": TENSOR}, "$.arguments.pad: tensor; expected int"),
        ({"flag": 1}, "$.arguments.flag: int; expected bool for the C type bool"),
        ({"scale": 1}, "$.arguments.scale: int; expected {'double': ...} for the C type double"),
        ({"scale": False}, "$.arguments.scale: bool; expected double"),
        ({"x": 1}, "$.arguments.x: int; expected tensor for the C type const aclTensor *"),
        ({"x": (1, 2)}, "$.arguments.x: int_array; expected tensor"),
        ({"sizes": TENSOR}, "$.arguments.sizes: tensor; expected int_array for the C type const aclIntArray *"),
        ({"sizes": 3}, "$.arguments.sizes: int; expected int_array"),
        ({"sizes": (1, 2**63)}, "$.arguments.sizes: 9223372036854775808; expected int64_t"),
        ({"x": Tensor((2**63,), "FLOAT")}, "$.arguments.x: 9223372036854775808; expected int64_t"),
        ({"x": Tensor((2,), "FLOAT", strides=(-(2**63) - 1,))}, "expected int64_t"),
        ({"x": Tensor((2,), "FLOAT", offset=2**63)}, "expected int64_t"),
        ({"x": Tensor((2,), "FLOAT", storage_shape=(2**64,))}, "expected int64_t"),
        (
            {"out": Tensor((2,), "FLOAT", data=Data(recipe="zeros"))},
            "$.arguments.out: data; out is an output alone, expected none",
        ),
    ],
)
def test_what_does_not_fit(arguments: dict[str, Any], message: str) -> None:
    assert message in refusal(small_case(**arguments))


@pytest.mark.parametrize("c_type", C_RANGES)
def test_both_ends_of_every_integer_type(c_type: str) -> None:
    low, high = C_RANGES[c_type]
    for declared in (c_type, f"const {c_type}"):
        assert kind_of_type(declared) == "int"
        spec = spec_from_text(changed("type: int8_t", f"type: {declared}"), stem="small")
        for value in (low, high):
            check_prototype(spec, small_case(pad=value), where="f.json")
        for value in (low - 1, high + 1):
            with pytest.raises(UsageError) as caught:
                check_prototype(spec, small_case(pad=value), where="f.json")
            assert str(caught.value) == (f"f.json: $.arguments.pad: {value}; expected {declared}, in [{low}, {high}]")


def test_names() -> None:
    case = small_case()
    arguments: dict[str, Argument] = dict(case.arguments)
    del arguments["pad"]
    assert "$.arguments.pad: missing; aclnnSmall takes x, sizes, pad, flag, scale, out" in refusal(
        Case("aclnnSmall", arguments)
    )
    assert "unknown argument 'padd'; aclnnSmall takes x" in refusal(Case("aclnnSmall", {**case.arguments, "padd": 1}))
    assert "did you mean 'pad'?" in refusal(Case("aclnnSmall", {**case.arguments, "padd": 1}))


def test_operators_and_products() -> None:
    specs = load_specs()
    case = Case("aclnnSoftmaxBackwart", {})
    with pytest.raises(UsageError, match=r"\$\.operator: 'aclnnSoftmaxBackwart' is not known.*did you mean"):
        bind_case(specs, case, where="f.json")
    case = Case("aclnnSoftmaxBackward", {}, Target(product="atlas-a4"))
    with pytest.raises(UsageError, match=r"\$\.product: 'atlas-a4' is not known; expected one of .*did you mean"):
        bind_case(specs, case, where="f.json")


def test_every_shipped_example_fits() -> None:
    specs = load_specs()
    for spec in specs.values():
        for example in spec.examples:
            for product in spec.products:
                case = Case(spec.operator, example.arguments, Target(product=product))
                assert bind_case(specs, case, where="example") is spec
