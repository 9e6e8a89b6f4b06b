"""Families: what a spec includes, and how it overrides it."""

from __future__ import annotations

import pytest

from aclnn_cts.core.target import Target
from aclnn_cts.speclang.families import family_names
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.yaml_file import read_yaml
from tests.speclang.small_spec import built, changed, messages

SPEC = """\
operator: aclnnFew
header: aclnnop/aclnn_few.h
document: {title: aclnnFew, language: en}
family: elementwise
products: [atlas-a2]
parameters:
  - {name: x, type: const aclTensor *, dtypes: [FLOAT, BF16]}
  - {name: y, type: const aclTensor *, dtypes: [FLOAT, BF16]}
  - {name: out, type: aclTensor *, dtypes: [FLOAT, BF16]}
examples:
  - arguments: {x: "FLOAT [2] = 1", y: "FLOAT [2] = 1", out: "FLOAT [2]"}
clauses:
  function:
    - {en: "It computes.", zh: "计算。", check: values}
"""


def test_a_family_gives_properties_by_role_draws_and_codes() -> None:
    spec = built(SPEC)
    assert [item.shape and item.shape.text for item in spec.parameters] == ["[*A]", "[*x]", "[*x]"]
    assert [item.dtype_as for item in spec.parameters] == [None, "x", "x"]
    assert all(item.strided for item in spec.parameters)
    assert spec.constraint("y.shape").statuses == ("ACLNN_ERR_PARAM_INVALID",)
    assert spec.constraint("x.null").statuses == ("ACLNN_ERR_PARAM_NULLPTR",)
    assert [draw.name for draw in spec.draws] == ["A"]
    assert any((clause.at, clause.example) == ("example.1", "document") for clause in spec.clauses)


def test_an_attribute_that_is_called_input_and_output_is_named_by_its_role() -> None:
    text = SPEC.replace("  - {name: out,", "  - {name: steps, type: int64_t, role: inout}\n  - {name: out,")
    assert any("steps: 'inout'; only a tensor is input and output" in message for message in messages(text))


def test_the_spec_wins() -> None:
    text = SPEC.replace(
        "name: y, type: const aclTensor *", 'name: y, type: const aclTensor *, shape: "[3]", strided: false'
    )
    text = text.replace("name: out, type: aclTensor *", "name: out, type: aclTensor *, same_dtype_as: none")
    text = text.replace(
        "examples:", "defaults: {null: open}\ndraws: [{run: A, length: [2, 2]}, {run: B, length: [0, 1]}]\nexamples:"
    )
    spec = built(text)
    y = spec.parameter("y")
    assert (y.shape and y.shape.text, y.strided) == ("[3]", False)
    assert spec.parameter("out").dtype_as is None
    assert "y.shape" not in [item.id for item in spec.constraints]
    assert spec.constraint("x.null").strength == "open"
    assert [(draw.name, draw.bounds({}, Target())) for draw in spec.draws] == [("A", (2, 2)), ("B", (0, 1))]


def test_a_constraint_of_the_kind_none_takes_that_of_the_family_away() -> None:
    specs = load_specs()
    ids = [
        {item.id for item in specs.find(f"flash_attention_unpadding_score_grad{edition}").constraints}
        for edition in ("", "_v4")
    ]
    assert ["dy.narrow" in found for found in ids] == [True, False]
    assert all("dy.shape" in found for found in ids)


def test_what_is_listed_directly_before_a_replacement_stays_before_it() -> None:
    draws = (
        "draws: [{run: B, length: [0, 1]}, {name: N, in: [1, 2]}, {run: A, length: [2, 2]}, {run: C, length: [0, 1]}]"
    )
    spec = built(SPEC.replace("examples:", f"{draws}\nexamples:"))
    assert [draw.name for draw in spec.draws] == ["B", "N", "A", "C"]


def test_an_unknown_family_is_told_with_its_line() -> None:
    [message] = messages(SPEC.replace("family: elementwise", "family: elementvise"))
    assert message.startswith("small.yaml:4: unknown family 'elementvise'")
    assert "did you mean" in message


def test_a_mistake_of_what_the_family_adds_names_the_line_of_the_family() -> None:
    text = SPEC.replace("family: elementwise", "family: elementwise_broadcast").replace(
        ", dtypes: [FLOAT, BF16]}\nex", "}\nex"
    )
    assert all(message.startswith("small.yaml:") for message in messages(text))
    assert any("out" in message and "shape" in message for message in messages(text))


@pytest.mark.parametrize("name", family_names())
def test_every_family_is_used_by_a_spec(name: str) -> None:
    used = {read_yaml(path).content.get("family") for path in package_folder().glob("*_*.yaml")}
    assert name == "public" or name in used


def test_a_family_may_name_the_first_input_and_the_output() -> None:
    """Whatever a spec calls its gradient and its output."""
    specs = load_specs()
    for stem, gradient, output in (
        ("upsample_bilinear2d_backward", "gradOut", "out"),
        ("upsample_bicubic2d_backward", "gradOut", "gradInput"),
    ):
        spec = specs.find(stem)
        assert spec.constraint(f"{gradient}.batch").statuses == ("ACLNN_ERR_PARAM_INVALID",)
        assert spec.parameter(output).dtype_as == gradient


def test_a_property_that_gives_way_to_a_rule_of_the_family_is_a_mistake() -> None:
    path = package_folder() / "flash_attention_unpadding_score_grad_v2.yaml"
    line = next(
        line for line in path.read_text(encoding="utf-8").splitlines() if "name: keepProb, type: double" in line
    )
    text = changed(line, line.replace("type: double", "type: double, range: [1, 1]"), text=path.read_text("utf-8"))
    assert any(
        "keepProb.range is a rule of the family, which holds in place of this range" in m for m in messages(text)
    )
