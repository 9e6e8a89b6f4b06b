"""Scalars, texts, bool arrays, and pointers that may be null: from the spec to valid and to broken calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aclnn_cts.core.case import BoolArray, Case, Scalar, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.binding import infer_outputs
from aclnn_cts.speclang.build import build_interface, build_spec
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.yaml_file import parse_yaml, read_yaml

TEXT = """\
operator: aclnnKinds
document: {title: aclnnKinds, language: en}
products: [atlas-a2]
defaults: {null: ACLNN_ERR_PARAM_NULLPTR}
parameters:
  - {name: x, type: const aclTensor *, shape: "[*A]", dtypes: [FLOAT, BF16]}
  - {name: weight, type: const aclTensor *, optional: true, shape: "[*A]", dtypes: [FLOAT, FLOAT16], rank: [1, 3]}
  - {name: alpha, type: const aclScalar *, dtypes: {is: [FLOAT, INT8, BOOL], status: ACLNN_ERR_PARAM_INVALID}}
  - {name: mode, type: char *, words: {is: [none, tanh], status: ACLNN_ERR_PARAM_INVALID}}
  - {name: mask, type: const aclBoolArray *, length: {is: 2, status: ACLNN_ERR_PARAM_INVALID}}
  - {name: first, type: aclTensor *, present: "mask[0]", same_shape_as: x, dtypes: [FLOAT, FLOAT16, BF16],
     same_dtype_as: weight or x}
  - {name: second, type: aclTensor *, present: "mask[1]", same_shape_as: x, dtypes: [FLOAT, BF16], same_dtype_as: x}
draws:
  - {run: A, length: [1, 3], sizes: [1, 9]}
  - {name: alpha, one_of: [0.5, 2, "-1"]}
constraints:
  - {id: alpha.sign, that: 'mode == "none" or value(alpha) >= 0', breaks: [{mode: '"tanh"', alpha: -3}]}
clauses:
  params.alpha: [implied, {say: sign, en: "It is not negative.", zh: "不为负。"}]
  function:
    - {en: "It computes.", zh: "计算。", check: values}
"""


INTERFACE, _ = build_interface(read_yaml(package_folder() / "interface.yaml"))


def built(text: str) -> tuple[Spec | None, Problems]:
    return build_spec(parse_yaml(text, name="kinds.yaml"), stem="kinds", interface=INTERFACE)


def kinds() -> Spec:
    spec, problems = built(TEXT)
    assert spec is not None
    assert not problems.messages
    return spec


SPEC = kinds()
SAMPLER = Sampler(SPEC, Target(product="atlas-a2"))


def valid(count: int = 80) -> Iterator[Case]:
    for choices in stream_block(1, "tests/kinds", 0, count):
        yield SAMPLER.case(SAMPLER.draw(choices))


def test_valid_calls_take_each_kind_and_leave_out_what_they_may() -> None:
    cases = list(valid())
    assert {type(case.arguments["alpha"]) for case in cases} == {Scalar}
    assert {getattr(case.arguments["alpha"], "dtype", "") for case in cases} == {"FLOAT", "INT8", "BOOL"}
    assert {case.arguments["mode"] for case in cases} == {"none", "tanh"}
    assert {case.arguments["weight"] is None for case in cases} == {True, False}
    given: set[tuple[bool, bool]] = set()
    for case in cases:
        mask, weight, x = case.arguments["mask"], case.arguments["weight"], case.arguments["x"]
        assert isinstance(mask, BoolArray)
        assert isinstance(x, Tensor)
        for place, name in enumerate(("first", "second")):
            given.add((mask.items[place], case.arguments[name] is not None))
        if isinstance(first := case.arguments["first"], Tensor):
            assert first.dtype == (weight if isinstance(weight, Tensor) else x).dtype
    # Memory for an output that the mask excludes shows whether it stays as it was.
    assert given == {(True, True), (False, True), (False, False)}


def test_rules_on_a_null_pointer_are_not_tested() -> None:
    case = next(case for case in valid() if case.arguments["weight"] is None)
    held = {item.id for item in evaluate(SPEC, case).held}
    assert not {item for item in held if item.startswith("weight.")}
    assert "x.dtype" in held
    assert "weight.null" not in {item.id for item in SPEC.constraints}


@pytest.mark.parametrize("case", list(valid(12)))
def test_the_drawing_of_a_case_is_found_again(case: Case) -> None:
    drawing = recover_drawing(SAMPLER, case)
    assert drawing is not None
    assert SAMPLER.case(drawing).arguments.keys() == case.arguments.keys()


BROKEN = {
    "alpha.null", "alpha.dtype", "alpha.sign", "mode.null", "mode.word", "mask.null", "mask.length", "first.null",
    "second.null", "first.same_dtype", "weight.rank",
}  # fmt: skip


@pytest.mark.parametrize("identifier", sorted(BROKEN))
def test_each_rule_is_broken_alone(identifier: str) -> None:
    constraint = SPEC.constraint(identifier)
    found = [derived.case for derived in invalid_cases(SAMPLER, constraint, seed=0, count=6)]
    assert found
    for case in found:
        assert constraint in evaluate(SPEC, case).broken
    if identifier == "mode.word":
        words = {case.arguments["mode"] for case in found}
        assert "" in words
        assert words & {"NONE", "TANH"}
    if identifier.endswith(".null"):
        assert all(case.arguments[identifier.removesuffix(".null")] is None for case in found)


def test_an_output_that_is_not_computed_is_given_where_its_null_pointer_is_a_mistake() -> None:
    always = "null: {status: ACLNN_ERR_PARAM_NULLPTR, when: 'true'}, same_shape_as"
    spec, problems = built(TEXT.replace('present: "mask[0]", same_shape_as', f'present: "mask[0]", {always}'))
    assert spec is not None, problems.messages
    sampler = Sampler(spec, Target(product="atlas-a2"))
    cases = [sampler.case(sampler.draw(choices)) for choices in stream_block(1, "tests/kinds", 0, 40)]
    for case in cases:
        mask = case.arguments["mask"]
        assert isinstance(mask, BoolArray)
        assert isinstance(case.arguments["first"], Tensor)
        assert case.arguments["second"] is not None or not mask.items[1]
        assert ("first" in spec.computed_outputs(case)) is mask.items[0]
        assert not any(item.kind == "present" for item in evaluate(spec, case).broken)
        inputs = {name: value for name, value in case.arguments.items() if name not in ("first", "second")}
        found = infer_outputs(spec, inputs, target=case.target, format="ND")
        assert (found["first"] is not None, found["second"] is not None) == (True, mask.items[1])
    broken = [derived.case for derived in invalid_cases(sampler, spec.constraint("first.null"), seed=0, count=12)]
    assert {case.arguments["mask"].items[0] for case in broken} == {True, False}  # type: ignore[union-attr]
    said = [clause.en for clause in spec.clauses if "does not compute it" in clause.en]
    assert said == ["second is a null pointer where the call does not compute it."]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("words: {is: [none, tanh], status", "words: {is: none, status", "in: 'none'; expected a list of words"),
        ('present: "mask[0]"', 'present: "mast[0]"', "unknown name in the expression 'mast[0]': 'mast'"),
        ("value(alpha) >= 0", "alpha >= 0", "alpha is a scalar; expected a number, such as value(alpha)"),
        ("value(alpha) >= 0", "value(x) >= 0", "value(x): x is a tensor; expected a scalar"),
        ("same_dtype_as: weight or x", "same_dtype_as: weights or x", "unknown parameter 'weights'"),
    ],
)
def test_what_cannot_be_built_is_said(old: str, new: str, message: str) -> None:
    _, problems = built(TEXT.replace(old, new))
    assert any(message in text for text in problems.messages), problems.messages


def test_shapes_read_that_an_optional_tensor_is_left_out() -> None:
    spec, problems = built(
        TEXT.replace(
            'present: "mask[1]", same_shape_as: x, ',
            'present: "mask[1]", shape: "[*A, 2] if given(weight) else [*A]", ',
        )
    )
    assert spec is not None
    assert not problems.messages
    sampler = Sampler(spec, Target(product="atlas-a2"))
    seen = set()
    for choices in stream_block(0, "left out", 0, 100):
        arguments = sampler.case(sampler.draw(choices)).arguments
        x, weight, second = (arguments[name] for name in ("x", "weight", "second"))
        if isinstance(x, Tensor) and isinstance(second, Tensor):
            assert second.shape == (x.shape if weight is None else (*x.shape, 2))
            seen.add(weight is None)
    assert seen == {False, True}
