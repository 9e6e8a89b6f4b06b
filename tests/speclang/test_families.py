"""Families: what a spec includes, and how it overrides it."""

from __future__ import annotations

from typing import Any

import pytest

from aclnn_cts.speclang.families import family_names
from aclnn_cts.speclang.load import lint_files
from tests.speclang.small_spec import messages
from tests.speclang.test_short_form import full

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


def parameters(text: str) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in full(text)["parameters"]}


def test_a_family_gives_properties_by_role_draws_and_codes() -> None:
    found = parameters(SPEC)
    assert (found["x"]["shape"], found["y"]["shape"], found["out"]["shape"]) == ("[*A]", "[*x]", "[*x]")
    assert found["y"]["dtype"] == found["out"]["dtype"] == "as x"
    assert all(item["strided"] for item in found.values())
    rules = {item["id"]: item for item in full(SPEC)["constraints"]}
    assert rules["y.shape"]["status"] == "ACLNN_ERR_PARAM_INVALID"
    assert rules["x.null"]["status"] == "ACLNN_ERR_PARAM_NULLPTR"
    assert [draw["run"] for draw in full(SPEC)["draws"]] == ["A"]
    assert any(clause["at"] == "example.1" and clause["example"] == "document" for clause in full(SPEC)["clauses"])


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
    found = parameters(text)
    assert found["y"]["shape"] == "[3]"
    assert "strided" not in found["y"]
    assert "dtype" not in found["out"]
    rules = {item["id"]: item for item in full(text)["constraints"]}
    assert "y.shape" not in rules
    assert rules["x.null"]["strength"] == "open"
    assert full(text)["draws"] == [{"run": "A", "length": [2, 2]}, {"run": "B", "length": [0, 1]}]


def test_what_is_listed_directly_before_a_replacement_stays_before_it() -> None:
    draws = (
        "draws: [{run: B, length: [0, 1]}, {name: N, in: [1, 2]}, {run: A, length: [2, 2]}, {run: C, length: [0, 1]}]"
    )
    found = full(SPEC.replace("examples:", f"{draws}\nexamples:"))["draws"]
    assert [draw.get("run", draw.get("name")) for draw in found] == ["B", "N", "A", "C"]


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
    files, _ = lint_files()
    used = {file.file.source.get("family") for file in files if file.file.source}
    assert name == "public" or name in used
