"""JAX behind the adapter: values by hand, what it refuses, and what it says where JAX is missing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.adapters.bindings import BindingForm, check_spec, shipped_bindings
from aclnn_cts.adapters.protocol import Call, Session
from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.core.case import Argument, BoolArray, Case, Data, Scalar, Tensor
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.generate.buffers import prepare
from aclnn_cts.generate.recipes import case_arrays
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

SHIPPED = shipped_bindings("jax")
needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install 'aclnn-cts[jax]'"
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    opened = load(parse_adapter_word("jax")).open(Target(), {})
    yield opened
    opened.close()


def test_bindings_name_the_parameters_of_the_specs() -> None:
    bound = [spec for operator, spec in load_specs().items() if operator in SHIPPED]
    assert len(bound) >= 5
    for spec in bound:
        assert check_spec(SHIPPED[spec.operator], spec) == []
        assert SHIPPED[spec.operator].form is BindingForm.AUTOGRAD


def test_without_jax_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(HarnessError, match=r"aclnn-cts\[jax\]"):
        load(parse_adapter_word("jax")).open(Target(), {})


@needs_jax
@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16"])
@pytest.mark.parametrize("make", EXAMPLES, ids=lambda make: make.__name__)
def test_gradients_by_hand(session: Session, make: Make, dtype: str) -> None:
    outcome, buffers = run(session, make(dtype))
    assert (outcome.ended, outcome.message, outcome.status) == (CallEnd.RETURNED, "", None)
    assert values_of(buffers) == EXAMPLES[make]
    assert_nothing_else_touched(buffers)


def gradients(session: Session, it: Case) -> dict[str, Any]:
    """What a call returns in the tensors that have no data."""
    given = [name for name, item in it.tensors() if item.data is not None]
    outputs = frozenset(name for name, item in it.tensors() if item.data is None)
    buffers = prepare(it, outputs=outputs, arrays=case_arrays(it, given))
    (outcome,) = session.run([Call(it, buffers)])
    assert (outcome.ended, outcome.message) == (CallEnd.RETURNED, "")
    return values_of(buffers)


AVERAGES: dict[str, Argument] = {
    "gradOutput": tensor([[[4, 8]]]),
    "self": tensor([[[0, 0, 0], [0, 0, 0]]]),
    "kernelSize": (2, 2),
    "stride": (2, 2),
    "padding": (0, 0),
    "ceilMode": True,
    "countIncludePad": True,
    "divisorOverride": 0,
    "cubeMathType": 0,
    "gradInput": Tensor((1, 2, 3), "FLOAT"),
}
LABELS: dict[str, Argument] = {
    "gradOutput": tensor(6.0),
    "self": tensor([[0, 0], [0, 0], [0, 0]]),
    "target": tensor([0, 1, 1], "INT64"),
    "weight": tensor([1, 2]),
    "reduction": 1,
    "ignoreIndex": -100,
    "totalWeight": tensor([3]),
    "out": Tensor((3, 2), "FLOAT"),
}
ROWS: dict[str, Argument] = {
    "gradOut": tensor([[1, 0]]),
    "input": tensor([[1, 3]]),
    "normalizedShape": (2,),
    "mean": tensor([[2]]),
    "rstd": tensor([[2]]),
    "weightOptional": None,
    "biasOptional": None,
    "outputMask": BoolArray((True, True, True)),
    "gradInputOut": Tensor((1, 2), "FLOAT"),
    "gradWeightOut": Tensor((2,), "FLOAT"),
    "gradBiasOut": Tensor((2,), "FLOAT"),
}


@needs_jax
@pytest.mark.parametrize(
    ("it", "expected"),
    [
        # The last window is one element wide: its divisor is 2.
        (Case("aclnnAvgPool2dBackward", AVERAGES), {"gradInput": [[[1, 1, 4], [1, 1, 4]]]}),
        (Case("aclnnAvgPool2dBackward", AVERAGES | {"divisorOverride": 8}), {"gradInput": [[[0.5, 0.5, 1]] * 2]}),
        (
            Case(
                "aclnnMaxPool2dWithIndicesBackward",
                {
                    "gradOutput": tensor([[[1, 2]]]),
                    "self": tensor([[[0, 0], [0, 9]]]),
                    "indices": tensor([[[3, 3]]], "INT32"),
                    "kernelSize": (2, 1),
                    "stride": (1, 1),
                    "padding": (0, 0),
                    "dilation": (1, 1),
                    "ceilMode": False,
                    "gradInput": Tensor((1, 2, 2), "FLOAT"),
                },
            ),
            {"gradInput": [[[0, 0], [0, 3]]]},
        ),
        (
            Case(
                "aclnnMseLossBackward",
                {
                    "gradOutput": tensor([1, 2]),
                    "self": tensor([3, 5]),
                    "target": tensor([[1, 1]]),
                    "reduction": 1,
                    "out": Tensor((1, 2), "FLOAT"),
                },
            ),
            {"out": [[2, 8]]},
        ),
        (Case("aclnnNLLLossBackward", LABELS), {"out": [[-2, 0], [0, -4], [0, -4]]}),
        (Case("aclnnNLLLossBackward", LABELS | {"ignoreIndex": 1, "reduction": 2}), {"out": [[-6, 0], [0, 0], [0, 0]]}),
        # h = [-2, 2], w = [1, 0]: rstd (w - 1/2 - h (-1)).
        (
            Case("aclnnLayerNormBackward", ROWS),
            {"gradInputOut": [[-3, 3]], "gradWeightOut": [-2, 0], "gradBiasOut": [1, 0]},
        ),
    ],
    ids=lambda item: item.operator if isinstance(item, Case) else "",
)
def test_gradients_of_losses_pools_and_norms_by_hand(session: Session, it: Case, expected: object) -> None:
    assert gradients(session, it) == expected


@needs_jax
@pytest.mark.parametrize(
    ("it", "expected"),
    [
        (
            Case(
                "aclnnLeakyReluBackward",
                {
                    "gradOutput": tensor([[1], [2]]),
                    "self": tensor([3, -3]),
                    "negativeSlope": Scalar("FLOAT", 0.5),
                    "selfIsResult": False,
                    "out": Tensor((2, 2), "FLOAT"),
                },
            ),
            {"out": [[1, 0.5], [2, 1]]},
        ),
        (
            Case(
                "aclnnGeluBackwardV2",
                {
                    "gradOutput": tensor([[4], [8]]),
                    "self": tensor([0, 0]),
                    "approximate": "none",
                    "gradInput": Tensor((2, 2), "FLOAT"),
                },
            ),
            {"gradInput": [[2, 2], [4, 4]]},
        ),
        *(
            (
                Case(
                    operator,
                    {
                        "gradOutput": tensor([[4], [8]]),
                        "output": tensor([0.5, 1]),
                        "gradInput": Tensor((2, 2), "FLOAT"),
                    },
                ),
                {"gradInput": expected},
            )
            for operator, expected in (
                ("aclnnSigmoidBackward", [[1, 0], [2, 0]]),
                ("aclnnTanhBackward", [[3, 0], [6, 0]]),
            )
        ),
    ],
    ids=lambda item: item.operator if isinstance(item, Case) else "",
)
def test_shapes_broadcast(session: Session, it: Case, expected: object) -> None:
    assert gradients(session, it) == expected


@needs_jax
@pytest.mark.parametrize("dtype", ["FLOAT16", "BF16"])
def test_a_mean_over_more_elements_than_a_half_can_count(session: Session, dtype: str) -> None:
    count = 2**17
    given: dict[str, Argument] = {
        "gradOutput": tensor([count // 4], dtype),
        "self": Tensor((count,), dtype, data=Data(recipe="constant", mean=3.0)),
        "target": tensor([1], dtype),
        "reduction": 1,
        "out": Tensor((count,), dtype),
    }
    assert gradients(session, Case("aclnnMseLossBackward", given)) == {"out": [1] * count}


@needs_jax
def test_a_complex_gradient_has_the_conjugate_of_the_derivative(session: Session) -> None:
    given: dict[str, Argument] = {
        "gradOutput": Tensor((1,), "COMPLEX64", data=Data(values=(1.0, 0.0))),
        "output": Tensor((1,), "COMPLEX64", data=Data(values=(0.0, 1.0))),
        "gradInput": Tensor((1,), "COMPLEX64"),
    }
    it = Case("aclnnSigmoidBackward", given)
    buffers = prepare(it, outputs=frozenset({"gradInput"}), arrays=case_arrays(it, ["gradOutput", "output"]))
    session.run([Call(it, buffers)])
    # i (1 - i) = 1 + i.
    assert buffers.outputs["gradInput"].view.tolist() == [1 - 1j]


@needs_jax
def test_a_reflection_pad_adds_up_the_mirror_images(session: Session) -> None:
    given: dict[str, Argument] = {
        "gradOutput": tensor([[1, 2, 4, 8, 16]]),
        "self": tensor([[0, 0, 0]]),
        "padding": (1, 1),
        "gradInput": Tensor((1, 3), "FLOAT"),
    }
    assert gradients(session, Case("aclnnReflectionPad1dBackward", given)) == {"gradInput": [[2, 1 + 4 + 16, 8]]}


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
    assert (outcome.ended, outcome.rejected) == (CallEnd.RAISED, True)


@needs_jax
def test_what_jax_has_no_words_for_is_inexpressible(session: Session) -> None:
    alone, unknown = session.run([Call(softmax()), Call(Case("aclnnAbs", {}), prepared(softmax()))])
    assert (alone.ended, unknown.ended) == (CallEnd.INEXPRESSIBLE, CallEnd.INEXPRESSIBLE)
    outcome, _ = run(session, softmax(out=None))
    assert outcome.ended == CallEnd.INEXPRESSIBLE


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
        load(parse_adapter_word(f"jax:bindings={path}")).open(Target(), {})
    assert words in str(caught.value)
    assert f"{path}:3: bindings.aclnnMineBackward" in str(caught.value)
