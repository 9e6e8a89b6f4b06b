"""Broadcasting in specs: shapes, draws, rules and the cases that break them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.binding import infer_outputs
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.expression import FUNCTIONS, compile_node
from aclnn_cts.speclang.expression_parser import parse
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.shape import compile_shape, parse_shape
from tests.speclang.small_spec import messages, with_constraint

TANH = load_specs().find("tanh_backward")
TARGET = Target(product="atlas-a2")
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(SHAPES, SHAPES)
def test_it_is_what_numpy_does(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    broadcasts, broadcast = FUNCTIONS["broadcasts"][1], FUNCTIONS["broadcast"][1]
    try:
        wanted = np.broadcast_shapes(one, other)
    except ValueError:
        assert not broadcasts(one, other)
        assert len(broadcast(one, other)) == max(len(one), len(other))
        return
    assert broadcasts(one, other)
    assert broadcast(one, other) == wanted


def test_a_shape_takes_what_tensors_broadcast_to() -> None:
    shape = compile_shape(parse_shape("[2, *broadcast(x, y)]"))
    assert shape({"x": Tensor((3, 1), "FLOAT"), "y": Tensor((5,), "FLOAT")}, TARGET) == (2, 3, 5)


def test_some_of_the_sizes_are_compared() -> None:
    leading = compile_node(parse("broadcasts(sizes(x, 0, -2), sizes(y, 0, rank(y) - 2))"))
    tensors = [Tensor(shape, "FLOAT") for shape in [(3, 1, 5, 7), (3, 4, 2, 2), (2, 4, 2, 2), (5, 7)]]
    fit = [leading({"x": tensors[0], "y": other}, TARGET) for other in tensors[1:]]
    assert fit == [True, False, True]
    assert compile_node(parse("sizes(x, 1, 3) == sizes(x, -3, -1)"))({"x": tensors[0]}, TARGET)


def test_valid_cases_broadcast_in_every_way() -> None:
    sampler = Sampler(TANH, TARGET)
    kinds = set()
    for number in range(200):
        case = sampler.case(drawing := sampler.draw(StreamChoices(0, "broadcast", number)))
        one, other, out = (case.arguments[name].shape for name in ("gradOutput", "output", "gradInput"))  # type: ignore[union-attr]
        assert np.broadcast_shapes(one, other) == out
        kinds.add("same" if one == other else "rank" if len(one) != len(other) else "sizes")
        kinds |= {"first"} if out == one != other else set()
        kinds |= {"second"} if out == other != one else set()
        kinds |= {"both"} if out not in (one, other) else set()
        assert recover_drawing(sampler, case) is not None, drawing.names
    assert kinds == {"same", "rank", "sizes", "first", "second", "both"}


def test_shapes_that_do_not_broadcast_break_that_rule_alone() -> None:
    found = list(invalid_cases(Sampler(TANH, TARGET), TANH.constraint("output.broadcast"), seed=0, count=8))
    assert len(found) == 8
    for item in found:
        # One of them is broken in an empty call.
        broken = [broken.id for broken in evaluate(TANH, item.case).broken if not broken.id.endswith(".not_empty")]
        assert broken == ["output.broadcast"]
        shapes = [item.case.arguments[name].shape for name in ("gradOutput", "output")]  # type: ignore[union-attr]
        with pytest.raises(ValueError, match="broadcast"):
            np.broadcast_shapes(*shapes)


def test_outputs_are_inferred() -> None:
    arguments: dict[str, Any] = {"gradOutput": Tensor((4, 1), "DOUBLE"), "output": Tensor((3,), "DOUBLE")}
    found = infer_outputs(TANH, arguments, target=TARGET, format="ND")
    assert found["gradInput"] == Tensor((4, 3), "DOUBLE")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("kind: broadcast, of: out, strength: limit", "as: missing"),
        ('kind: broadcast, of: out, as: "broadcast(x, y)", strength: limit', "unknown name in the expression"),
        ("kind: broadcast, of: out, as: pad, strength: limit", "pad is a number"),
        ('kind: shape, of: out, is: "[*broadcast(x)]", strength: limit', "broadcast takes at least 2 arguments"),
        ('kind: shape, of: out, is: "[*broadcast(x, pad)]", strength: limit', "pad is a number"),
        ('kind: holds, that: "sizes(x, 0, 1) > 2", strength: limit', "sizes(...) is several sizes"),
        ('kind: holds, that: "sizes(pad, 0, 1) == sizes(x, 0, 1)", strength: limit', "pad is a number"),
    ],
)
def test_mistakes_are_told(fields: str, message: str) -> None:
    assert any(message in text for text in messages(with_constraint(fields))), messages(with_constraint(fields))
