"""Shape expressions: sizes, runs, whole shapes and slices."""

from __future__ import annotations

from typing import Any

import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.expression_parser import ExpressionError
from aclnn_cts.speclang.shape import compile_shape, parse_shape

NAMES: dict[str, Any] = {
    "x": Tensor((2, 3, 5), "FLOAT"),
    "gamma": Tensor((5,), "FLOAT"),
    "scalar": Tensor((), "FLOAT"),
    "A": (7, 9),
    "none": (),
    "items": (4, 6),
    "null": None,
    "T": 11,
    "pad": 2,
    "L": 3,
}


def shape(text: str) -> tuple[int, ...]:
    return compile_shape(parse_shape(text))(NAMES, Target())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", ()),
        ("[T]", (11,)),
        ("[T + 2*pad - L + 1, pad, 1]", (13, 2, 1)),
        ("[*x]", (2, 3, 5)),
        ("[*scalar]", ()),
        ("[*A]", (7, 9)),
        ("[*none, T]", (11,)),
        ("[*A, T]", (7, 9, 11)),
        ("[*items, *A]", (4, 6, 7, 9)),
        ("[*x[0:2]]", (2, 3)),
        ("[*x[1:]]", (3, 5)),
        ("[*x[:1]]", (2,)),
        ("[*x[:]]", (2, 3, 5)),
        ("[*x[-1:]]", (5,)),
        ("[*x[0:rank(x) - rank(gamma)]]", (2, 3)),
        ("[*x[rank(x) - rank(gamma):rank(x)]]", (5,)),
        ("[dim(x, 0), *gamma]", (2, 5)),
    ],
)
def test_sizes(text: str, expected: tuple[int, ...]) -> None:
    assert shape(text) == expected


@pytest.mark.parametrize("text", ["[*null]", "[dim(x, 5)]", "[*T]", "[T // (pad - 2)]"])
def test_what_has_no_value_is_undefined(text: str) -> None:
    with pytest.raises(UNDEFINED):
        shape(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("T", "expected '['"),
        ("[T", "expected ','"),
        ("[T] + 1", "'+' is left over"),
        ("[T U]", "expected ',' before 'U'"),
        ("[*]", "* is followed by ']'; expected a run or a tensor"),
        ("[*3]", "* is followed by '3'"),
        ("[*x[0]]", "takes a slice such as *x[0:1]"),
        ("[*x[0:1]", "expected ',' before 'the end'"),
        ("[,]", "',' cannot stand here"),
        ("[[1]]", "'[' cannot stand here"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_shape(text)
    assert message in str(caught.value)


def test_names_and_whole() -> None:
    parsed = parse_shape("[*x[0:rank(x) - rank(gamma)], T + pad]")
    assert parsed.names() == {"x", "gamma", "T", "pad"}
    assert parsed.whole() is None
    assert parse_shape("[*x]").whole() == "x"
    assert parse_shape("[*x[0:1]]").whole() is None
    assert parse_shape("[T]").whole() is None
