"""The expression language: what it means, what it refuses, and that nothing written in it can do harm."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclnn_cts.core.case import BoolArray, Scalar, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import FUNCTIONS, UNDEFINED, compile_node
from aclnn_cts.speclang.expression_parser import MAX_DEPTH, MAX_LENGTH, ExpressionError, parse

NAMES: dict[str, Any] = {
    "x": Tensor((2, 3, 5), "FLOAT16", "NCL"),
    "empty_one": Tensor((0, 4), "INT64"),
    "view": Tensor((2, 3), "FLOAT", strides=(1, 2)),
    "scalar": Tensor((), "BF16"),
    "array": (7, 8),
    "nothing": None,
    "alpha": Scalar("FLOAT16", 0.1),
    "mask": BoolArray((True, False)),
    "mode": "tanh",
    "n": 10,
    "zero": 0,
    "flag": True,
    "real": 2.5,
    "half": Fraction(1, 2),
}
TARGET = Target(product="atlas-a2", core_count=24)


def value(text: str | float, target: Target = TARGET) -> Any:
    return compile_node(parse(text))(NAMES, target)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 - 2 - 1", 4),
        ("24 / 4 / 2", 3),
        ("7 // 2 * 2", 6),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("-2 ** 2", -4),
        ("2 * 3 ** 2", 18),
        ("2 ** 64", 2**64),
        ("- - 3", 3),
        ("2 - -3", 5),
        ("1 / 3", Fraction(1, 3)),
        ("1 / 3 * 3 == 1", True),
        ("1 / 2.0", 0.5),
        ("1.5", 1.5),
        ("1.0e-3", 1e-3),
        ("1 < 2 < 3", True),
        ("1 < 3 < 2", False),
        ("3 > 2 >= 2 != 1", True),
        ("0 <= n <= 10", True),
        ("value(alpha)", 0.0999755859375),
        ("dtype(alpha) == FLOAT16", True),
        ("mask[1] or not mask[0]", False),
        ("array[0] + array[-1]", 15),
        ("len(mask)", 2),
        ('mode == "tanh"', True),
        ("given(x) and not given(nothing)", True),
        ("1 + 1 == 2", True),
        ("not 1 == 2", True),
        ("not not 1", True),
        ("not not not 1", False),
        ("true or false and false", True),
        ("(true or false) and false", False),
        ("not false and false", False),
        ("false or not false", True),
        ("1 if flag else 2", 1),
        ("1 if not flag else 2", 2),
        ("1 if n < 5 else 2 if n < 20 else 3", 2),
        ("1 + (2 if flag else 3)", 3),
        ("dim(x, 9) if zero else 4", 4),
        ("1 / zero if zero else n", 10),
        ("max(1 if zero else 2, 1)", 2),
        ("max(1, n, 3)", 10),
        ("min(2, 1.5)", 1.5),
        ("abs(-3)", 3),
        ("rank(x)", 3),
        ("rank(array)", 2),
        ("rank(scalar)", 0),
        ("numel(x)", 30),
        ("numel(scalar)", 1),
        ("numel(empty_one)", 0),
        ("dim(x, 0)", 2),
        ("dim(x, -1)", 5),
        ("len(array)", 2),
        ("item(array, -1)", 8),
        ("dtype(x) == FLOAT16", True),
        ("dtype(x) != FLOAT", True),
        ("format(x) == NCL", True),
        ("itemsize(x)", 2),
        ("contiguous(x)", True),
        ("contiguous(view)", False),
        ("empty(empty_one)", True),
        ("empty(scalar)", False),
        ("target.core_count * 2", 48),
        ('target.product == "atlas-a2"', True),
        ("1 + 15 * (n == 10)", 16),
        ("real * 2", 5.0),
        ("half + half == 1", True),
    ],
)
def test_value(text: str, expected: object) -> None:
    found = value(text)
    assert found == expected
    assert isinstance(found, bool) is isinstance(expected, bool)


def test_a_number_stands_for_itself() -> None:
    assert value(3) == 3
    assert value(2.5) == 2.5


@pytest.mark.parametrize(
    "text",
    [
        "1 / zero",
        "1 // zero",
        "1 % zero",
        "1.5 / zero",
        "dim(x, 3)",
        "dim(x, -4)",
        "dim(scalar, 0)",
        "item(array, 2)",
        "rank(nothing)",
        "dim(nothing, 0)",
        "dtype(nothing) == FLOAT",
        "len(nothing)",
        "nothing + 1",
        "nothing < 1",
        "-nothing",
        "target.soc == 1",
        "target.deterministic",
        "dtype(n)",
        "len(n)",
        "x * 2",
        "dim(x, half)",
        '"a" < 1',
    ],
)
def test_what_has_no_value_is_undefined(text: str) -> None:
    with pytest.raises(UNDEFINED):
        value(text)


@pytest.mark.parametrize(
    "text",
    [
        '"a" * 10000000000',
        '10000000000 * "a"',
        "array * 10000000000",
        "dtype(x) * 10000000000",
        "target.product * 10000000000",
        '"%10000000000d" % 1',
        "array % 2",
    ],
)
def test_words_and_runs_are_never_repeated_or_formatted(text: str) -> None:
    with pytest.raises(TypeError):
        value(text)


def test_and_and_or_leave_what_need_not_be_known_alone() -> None:
    assert value("zero == 0 or 1 / zero > 1") is True
    assert value("zero != 0 and 1 / zero > 1") is False
    with pytest.raises(ZeroDivisionError):
        value("1 / zero > 1 or zero == 0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends too early; expected a value"),
        ("1 +", "ends too early; expected a value"),
        ("(1", "expected ')' before 'the end'"),
        ("1)", "')' is left over; expected the end"),
        ("1 2", "'2' is left over; expected the end"),
        ("1 if 2", "expected 'else' before 'the end'"),
        ("x[0", "expected ']' before 'the end'"),
        ("rank(x)[0]", "'[' is left over"),
        ("and 1", "'and' cannot stand here"),
        ("1 + or", "'or' cannot stand here"),
        ("* 2", "'*' cannot stand here"),
        ("1 ; 2", "'; 2' cannot be read"),
        ("x = 1", "cannot be read"),
        ("'a'", "cannot be read"),
        ("x.shape", "'x.shape' is not known; expected one of target.core_count"),
        ("target.cores", "did you mean 'target.core_count'?"),
        ("ranks(x)", "no function 'ranks'; expected one of rank, numel"),
        ("ranks(x)", "did you mean 'rank'?"),
        ("__import__(x)", "no function '__import__'"),
        ("rank()", "rank takes 1 argument, not 0"),
        ("dim(x)", "dim takes 2 arguments, not 1"),
        ("max(1)", "max takes at least 2 arguments, not 1"),
        ("dim(x, 0", "expected ',' before 'the end'"),
        ("2 ** 65", "a literal base and exponent of at most 64 each"),
        ("65 ** 2", "a literal base and exponent of at most 64 each"),
        ("n ** 2", "a literal base and exponent of at most 64 each"),
        ("2 ** n", "a literal base and exponent of at most 64 each"),
        ("2 ** -1", "a literal base and exponent of at most 64 each"),
        ("2 ** 3 ** 2", "'**' is left over"),
        ("1" * 41, "cannot be read"),
        ("lambda: 1", "left over"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_length_and_depth_are_bounded() -> None:
    assert value("1" + " + 1" * 99) == 100
    with pytest.raises(ExpressionError, match=f"at most {MAX_LENGTH}"):
        parse("1 +" * MAX_LENGTH + "1")
    assert value("(" * (MAX_DEPTH - 1) + "1" + ")" * (MAX_DEPTH - 1)) == 1
    with pytest.raises(ExpressionError, match=f"deeper than {MAX_DEPTH}"):
        parse("(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH)
    with pytest.raises(ExpressionError, match=f"deeper than {MAX_DEPTH}"):
        parse("abs(" * 60 + "1" + ")" * 60)
    assert value("not " * 90 + "true") is True
    assert value("-" * 390 + "1") == 1


def test_names_are_those_that_are_read() -> None:
    assert parse("rank(x) + n * (dtype(view) == FLOAT) + target.core_count").names() == {"x", "n", "view"}
    assert parse("true and 1").names() == set()


OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "(", ")", ",", "<", "<=", "==", "!=", ">", ">=", "and", "or", "not")
LEAVES = ("0", "1", "2", "3", "64", "1.5", "40000000000", "true", "FLOAT", "ND", "target.product", "target.soc", '"a"')
WORDS = st.sampled_from((*NAMES, *FUNCTIONS, *OPERATORS, *LEAVES))


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=14).map(" ".join))
def test_anything_is_an_error_a_value_or_undefined(text: str) -> None:
    try:
        node = parse(text)
    except ExpressionError:
        return
    try:
        found = compile_node(node)(NAMES, TARGET)
    except UNDEFINED:
        return
    assert isinstance(found, (bool, int, float, str, tuple, Fraction, Tensor, Scalar, BoolArray, type(None)))


def _tree(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        leaf,
        lambda inner: st.builds(
            "({} {} {})".format, inner, st.sampled_from(("+", "-", "*", "//", "%", "<", "<=", "==")), inner
        ),
        max_leaves=8,
    )


@settings(max_examples=200, deadline=None)
@given(_tree(st.integers(-9, 9).map(str)))
def test_integer_arithmetic_is_pythons(text: str) -> None:
    try:
        expected = eval(text)  # noqa: S307 - the test's own digits and operators
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            value(text)
        return
    assert value(text) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("+", "-", "*", "//", "%")), st.integers(1, 9)), min_size=1, max_size=8))
def test_precedence_and_association_are_pythons(steps: list[tuple[str, int]]) -> None:
    text = "5 " + " ".join(f"{word} {number}" for word, number in steps)
    assert value(text) == eval(text)  # noqa: S307 - as above
