"""Lists of tensors in the spec language: shapes by place, rules on every tensor, and how each rule is broken."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.case import Tensor, TensorList, replace_arguments, tensor_of
from aclnn_cts.core.case_json import case_from_json, case_to_json
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.recover import recover_drawing, recovered_case
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.binding import infer_outputs
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.drawn import drawn

LISTS = (Path(__file__).parents[1] / "fixtures" / "lists" / "fold_grad.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    folder: Path = tmp_path_factory.mktemp("lists")
    (folder / "fold_grad.yaml").write_text(LISTS)
    return load_specs([folder])["aclnnFoldGrad"]


@pytest.fixture(scope="module")
def sampler(spec: Spec) -> Sampler:
    return Sampler(spec, Target(product="atlas-a2"))


def test_valid_lists_hold_every_rule(spec: Spec, sampler: Sampler) -> None:
    lengths: Counter[int] = Counter()
    strided = 0
    for case in drawn(sampler, 60, stream="lists", seed=7):
        assert not evaluate(spec, case).broken
        weights, x = case.arguments["weights"], case.arguments["x"]
        assert isinstance(weights, TensorList)
        assert isinstance(x, Tensor)
        assert weights[0].shape == x.shape
        assert {len(item.shape) for item in weights.items[1::2]} <= ({1} if case.arguments["biased"] else {2})
        lengths[len(weights)] += 1
        strided += not weights.is_contiguous
        seeds = [item.data.seed for item in weights.items if item.data is not None]
        assert len(set(seeds)) == len(seeds)
    assert set(lengths) == {1, 2, 3, 4, 6}
    assert strided


def test_each_tensor_of_a_list_is_an_input_or_output_of_its_own(spec: Spec, sampler: Sampler) -> None:
    case = next(case for case in drawn(sampler, 20, stream="lists", seed=7) if len(case.tensors()) == 7)
    assert spec.given_inputs(case) == ("x", "weights[0]", "weights[1]", "weights[2]")
    assert spec.computed_outputs(case) == ("grads[0]", "grads[1]", "grads[2]")
    assert spec.output_tensors(case) == {"grads[0]", "grads[1]", "grads[2]"}
    assert spec.inputs == ("x", "weights")
    assert spec.outputs == ("grads",)


def test_every_rule_is_broken_alone_and_by_one_tensor(spec: Spec, sampler: Sampler) -> None:
    changes: dict[str, set[str]] = {}
    for constraint in spec.constraints:
        if constraint.id.startswith("interface."):
            continue
        found = list(invalid_cases(sampler, constraint, seed=3, count=6))
        assert found, constraint.id
        for derived in found:
            assert constraint.id in derived.broken
            assert case_from_json(case_to_json(derived.case), where="") == derived.case
        changes[constraint.id] = {derived.change.partition(":")[0] for derived in found}
    assert changes["weights.null"] == {"weights"}
    assert changes["weights.length"] == {"weights"}
    for identifier in ("weights.shape", "weights.dtype", "weights.format", "grads.shape", "grads.contiguous"):
        places = changes[identifier]
        assert all("[" in place for place in places), (identifier, places)
        assert any("[0]" in place for place in places) or len(places) > 1, (identifier, places)


def test_one_tensor_of_another_dtype_breaks_the_equality_of_its_list(spec: Spec, sampler: Sampler) -> None:
    case = next(case for case in drawn(sampler, 20, stream="lists", seed=7) if len(case.tensors()) == 7)
    tensor = tensor_of(case.arguments, "weights[1]")
    assert tensor is not None
    other = msgspec.structs.replace(tensor, dtype="FLOAT16" if tensor.dtype == "FLOAT" else "FLOAT")
    broken = msgspec.structs.replace(case, arguments=replace_arguments(case.arguments, {"weights[1]": other}))
    assert [item.id for item in evaluate(spec, broken).broken] == ["weights.same_dtype"]


def test_drawings_are_recovered_from_cases_with_lists(sampler: Sampler) -> None:
    for case in drawn(sampler, 12, stream="lists", seed=7):
        drawing = recover_drawing(sampler, case)
        assert drawing is not None
        made = recovered_case(sampler, drawing, case)
        assert made is not None
        assert made.arguments == case.arguments


def test_lists_of_outputs_follow_from_the_inputs(spec: Spec, sampler: Sampler) -> None:
    for case in drawn(sampler, 8, stream="lists", seed=7):
        given = {name: value for name, value in case.arguments.items() if name != "grads"}
        found = infer_outputs(spec, given, target=case.target, format="ND")["grads"]
        expected = case.arguments["grads"]
        assert isinstance(found, TensorList)
        assert isinstance(expected, TensorList)
        assert [(item.shape, item.dtype) for item in found.items] == [
            (item.shape, item.dtype) for item in expected.items
        ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('    length: "2 * layers if biased else layers"\n', "", "weights: length missing"),
        ("[B] if biased and index % 2 == 1 else [A if index == 0 else B, B]", "[B", "expected ','"),
        ("[B] if biased and index % 2 == 1 else [A if index == 0 else B, B]", "[B] if biased", "expected 'else'"),
        ("same_shape_as: weights}", 'shape: "[*layers]"}', "layers"),
        ('shape: "[A, B]"', 'shape: "[index, B]"', "index"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, said: str) -> None:
    from aclnn_cts.core.errors import UsageError  # noqa: PLC0415 - what loading raises

    assert LISTS.count(old) == 1
    (tmp_path / "fold_grad.yaml").write_text(LISTS.replace(old, new))
    with pytest.raises(UsageError) as caught:
        load_specs([tmp_path])["aclnnFoldGrad"]
    assert said in str(caught.value)


def test_sizes_keep_the_tensors_of_a_list_within_the_budget() -> None:
    """Of a recurrent operator a weight has a size three times, and another tensor of the list has it not."""
    gru = Sampler(load_specs()["aclnnGRUBackward"], Target(product="atlas-a2"))
    largest = set()
    for budget in (48, 1024):
        for choices in stream_block(8, "lists", 0, 80):
            tensors = dict(gru.case(gru.draw(choices, budget=budget)).tensors())
            least = 3 * 1 * 2  # of a weight of hidden states of size 1 in both directions
            assert max(tensor.numel for tensor in tensors.values()) <= max(budget, least)
            largest.add(tensors["params[1]"].shape[1])
    assert max(largest) > 8
