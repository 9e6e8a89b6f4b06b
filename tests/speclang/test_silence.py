"""Lint of promises that no sentence makes: each kind is found in a small spec, and what states it is accepted."""

from __future__ import annotations

import pytest

from aclnn_cts.speclang.build import build_interface, build_spec
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.silence import unfounded_promises
from aclnn_cts.speclang.yaml_file import parse_yaml, read_yaml

INTERFACE, _ = build_interface(read_yaml(package_folder() / "interface.yaml"))
SPEC = """\
operator: aclnnSmall
document: {title: aclnnSmall, language: en}
products: [atlas-a2]
defaults: {dtypes: [FLOAT], rank: [1, 8], empty: none, same_format_as: open}
parameters:
  - {name: x, type: const aclTensor *, shape: "[*A]", formats: FORMATS_OF_X}
  - {name: y, type: const aclTensor *, shape: "[*A]", same_shape_as: x, FORMATS_OF_Y}
  - {name: out, type: aclTensor *, same_shape_as: x}
  - {name: size, type: int64_t, range: [0, 7]}
draws: [{run: A, length: [1, 8]}, {name: size, in: [0, 7]}]
constraints: [{id: size.few, that: size < 5, strength: open, breaks: [{size: 5}]}]
clauses:
  params.size: [{say: range, en: "size.", zh: "size。"}, {say: few, en: "few.", zh: "few。"}]
  limits: [{say: SAID, en: "Not clear.", zh: "不明确。", certainty: CERTAINTY}]
"""


def found(
    x: str = "[ND, NCL]", y: str = "formats: [ND, NCL], same_format_as: x", said: str = "[size.range, size.few]",
    certainty: str = "ambiguous",
) -> list[str]:  # fmt: skip
    words = {"FORMATS_OF_X": x, "FORMATS_OF_Y": y, "SAID": said, "CERTAINTY": certainty}
    text = SPEC
    for word, value in words.items():
        text = text.replace(word, value)
    spec, problems = build_spec(parse_yaml(text, name="small.yaml"), stem="small", interface=INTERFACE)
    assert not problems.messages
    assert spec is not None
    return unfounded_promises(spec, problems)


def test_open_rules_beside_ambiguous_sentences_and_mixed_formats_are_accepted() -> None:
    assert found() == []


def test_ambiguous_sentence_without_an_open_rule_is_a_mistake() -> None:
    (message,) = found(said="size.range")
    assert message.startswith("small.yaml:14: limits.1 is ambiguous, and calls that keep size.range succeed; ")


@pytest.mark.parametrize("certainty", ["stated", "missing", "contradicted"])
def test_sentence_that_is_not_ambiguous_may_decide(certainty: str) -> None:
    assert found(said="size.range", certainty=certainty) == []


def test_formats_of_two_tensors_without_a_rule_on_both_are_a_mistake() -> None:
    (message,) = found(y="formats: [ND, NCL]")
    assert message.startswith("small.yaml:7: y: whether its format may differ from that of x, no rule says; ")


@pytest.mark.parametrize(
    "y", ["formats: [ND]", "formats: [NCHW]", "formats: [ND, NCL], same_format_as: {is: x, strength: limit}"]
)
def test_one_format_and_a_rule_on_both_are_accepted(y: str) -> None:
    assert found(y=y) == []


def test_formats_that_are_narrowed_to_one_are_accepted() -> None:
    narrowed = "[{is: [ND, NCL]}, {id: narrow, is: [ND], strength: open}]"
    said = "[size.range, size.few, x.narrow, y.narrow]"
    assert found(x=narrowed, y=f"formats: {narrowed}", said=said) == []


@pytest.mark.parametrize(("formats", "count"), [("[ND]", 1), ("[ND, NCL]", 0), ("[NCHW]", 0)])
def test_code_for_other_formats_than_nd_alone_is_a_mistake(formats: str, count: int) -> None:
    messages = found(x=f"{{is: {formats}, status: ACLNN_ERR_PARAM_INVALID}}", y="formats: [ND]")
    assert [message.startswith("small.yaml:6: constraint 'x.format' has a code") for message in messages] == [
        True
    ] * count
