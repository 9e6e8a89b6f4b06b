"""Predicates over what a call's tensors hold."""

from __future__ import annotations

import pickle

import pytest

from aclnn_cts.core.case import Case, Data, Number, Tensor
from aclnn_cts.generate.predicate import MOST_ELEMENTS, compile_predicate
from aclnn_cts.speclang.expression_parser import ExpressionError, parse


def case_of(*values: Number, dtype: str = "FLOAT16") -> Case:
    tensor = Tensor((len(values),), dtype, data=Data(values=values))
    return Case("aclnnSoftmaxBackward", {"x": tensor, "axis": 3, "null": None, "out": Tensor((2,), "FLOAT")})


@pytest.mark.parametrize(
    ("text", "values", "dtype"),
    [
        ('holds(x, "nan")', (1, "nan"), "FLOAT16"),
        ('not holds(x, "nan")', (1, "inf"), "FLOAT16"),
        ('holds(x, "inf")', (1, "-inf"), "BF16"),
        ('holds(x, "zero") and not holds(x, "negative")', (-0.0, 1), "FLOAT"),
        ('holds(x, "negative")', (-1, 1), "INT8"),
        ('holds(x, "subnormal")', (2.0**-20, 1), "FLOAT16"),
        ('not holds(x, "subnormal")', (2.0**-20, 1), "FLOAT"),
        ("holds(x, axis)", (1, 3), "INT64"),
        ("holds(x, axis - 1) and not holds(x, axis)", (1, 2), "UINT8"),
        ("highest(x) == 200 and lowest(x) == 7", (7, 200, 8), "UINT8"),
        ("highest(x) == 2", ("nan", 2), "FLOAT"),
        ("distinct(x) == 2 < numel(x)", (5, 5, 6), "INT32"),
        ("distinct(x) == 1 and highest(x) == 1", (1, 1), "BOOL"),
    ],
)
def test_what_a_tensor_holds(text: str, values: tuple[Number, ...], dtype: str) -> None:
    predicate = compile_predicate(text)
    assert predicate(case_of(*values, dtype=dtype))
    assert pickle.loads(pickle.dumps(predicate))(case_of(*values, dtype=dtype))  # noqa: S301 - just made


@pytest.mark.parametrize(
    "text", ['holds(out, "zero")', "distinct(null) == 0", "highest(axis) == 3", "highest(x) == 1", "distinct(x) >= 0"]
)
def test_contents_that_are_not_there_meet_nothing(text: str) -> None:
    tensor = Tensor((MOST_ELEMENTS + 1,), "FLOAT", data=Data(recipe="zeros"))
    large = Case("aclnnSoftmaxBackward", {**case_of(1).arguments, "x": tensor})
    assert not compile_predicate(text)(large)


def test_a_recipe_is_made_into_values() -> None:
    tensor = Tensor((4,), "FLOAT", data=Data(recipe="constant", mean=2.0))
    call = Case("aclnnSoftmaxBackward", {"x": tensor})
    assert compile_predicate("distinct(x) == 1 and holds(x, 2)")(call)


@pytest.mark.parametrize(
    ("text", "said"),
    [('holds(x, "nann")', "did you mean 'nan'"), ("highest(rank(x))", "by its name"), ("holds(x)", "takes 2")],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        parse(text)
