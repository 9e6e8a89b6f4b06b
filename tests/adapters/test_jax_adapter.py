"""JAX behind the adapter: values by hand, what it refuses, and what it says where JAX is missing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclnn_cts.adapters.bindings import Form, check_spec, read_bindings
from aclnn_cts.adapters.protocol import Call, Session
from aclnn_cts.adapters.registry import choose, load
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import Ended
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.load import load_specs
from tests.adapters.torch_calls import (
    EXAMPLES,
    Make,
    assert_nothing_else_touched,
    conv,
    embedding,
    prepared,
    rms_norm,
    run,
    softmax,
    tensor,
    upsample,
    values_of,
)

SHIPPED = read_bindings(Path(__file__).parents[2] / "adapters" / "jax_bindings.yaml")
needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install 'aclnn-cts[jax]'"
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    opened = load(choose("jax")).open(Target(), {})
    yield opened
    opened.close()


def test_bindings_name_the_parameters_of_the_specs() -> None:
    bound = [spec for operator, spec in load_specs().items() if operator in SHIPPED]
    assert len(bound) >= 5
    for spec in bound:
        assert check_spec(SHIPPED[spec.operator], spec) == []
        assert SHIPPED[spec.operator].form is Form.AUTOGRAD


def test_without_jax_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(HarnessError, match=r"aclnn-cts\[jax\]"):
        load(choose("jax")).open(Target(), {})


@needs_jax
@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16"])
@pytest.mark.parametrize("make", EXAMPLES, ids=lambda make: make.__name__)
def test_gradients_by_hand(session: Session, make: Make, dtype: str) -> None:
    outcome, buffers = run(session, make(dtype))
    assert (outcome.ended, outcome.message, outcome.status) == (Ended.RETURNED, "", None)
    assert values_of(buffers) == EXAMPLES[make]
    assert_nothing_else_touched(buffers)


@needs_jax
def test_attributes_reach_jax(session: Session) -> None:
    _, buffers = run(session, embedding(scaleGradByFreq=True))
    assert values_of(buffers)["out"] == [[3, 4], [0, 0], [3, 4], [0, 0]]
    _, buffers = run(session, upsample(scalesOptional=2.0))
    assert values_of(buffers)["out"] == [[[1 + 2, 3 + 4, 5 + 6, 7]]]
    given = rms_norm(rstd=tensor((0.5, 3)))
    _, buffers = run(session, given)
    assert values_of(buffers)["dgammaOut"] == [0.5, -3]


@needs_jax
@pytest.mark.parametrize(
    "it",
    [
        softmax(dim=2),
        softmax(output=tensor([1, 2, 3])),
        conv(weight=tensor([[1, 2]])),
        conv(bias=None),
    ],
)
def test_what_jax_refuses_is_a_rejection(session: Session, it: Case) -> None:
    outcome, _ = run(session, it)
    assert (outcome.ended, outcome.rejected) == (Ended.RAISED, True)


@needs_jax
def test_what_jax_has_no_words_for_is_inexpressible(session: Session) -> None:
    alone, unknown = session.run([Call(softmax()), Call(Case("aclnnAbs", {}), prepared(softmax()))])
    assert (alone.ended, unknown.ended) == (Ended.INEXPRESSIBLE, Ended.INEXPRESSIBLE)
    outcome, _ = run(session, softmax(out=None))
    assert outcome.ended == Ended.INEXPRESSIBLE


@needs_jax
def test_an_output_of_another_shape_is_a_fact(session: Session) -> None:
    outcome, _ = run(session, softmax(out=Tensor((2, 3), "FLOAT")))
    assert outcome.facts == {"out.shape": "[2, 2]"}


@needs_jax
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "let: {y: {call: save, arguments: {x: g}}}\n    gradients: {y: g}\n    outputs: {out: g}",
            "'save' is not offered",
        ),
        (
            "let: {y: {call: nn.silu, arguments: {input: g}}}\n    gradients: {y: g}\n    outputs: {out: g}",
            "nn.silu is given input; expected x",
        ),
        ("call: nn.silu\n    arguments: {x: g}\n    outputs: [out]", "has no `gradients`"),
    ],
)
def test_what_is_not_offered_is_said_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"bindings:\n  aclnnMineBackward:\n    {text}\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load(choose(f"jax:bindings={path}")).open(Target(), {})
    assert words in str(caught.value)
    assert f"{path}:3: bindings.aclnnMineBackward" in str(caught.value)
