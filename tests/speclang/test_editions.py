"""Editions: what a file of differences makes of a spec, and what the same case is promised under either edition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import ANY_ERROR
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.editions import _text, edition_files
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.kinds_dtype import Listed
from aclnn_cts.speclang.load import lint_files, load_specs, specs_from_texts
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.yaml_file import parse_yaml

STEMS = [path.stem for path in edition_files(package_folder(), "public")]
BASE = """\
operator: aclnnTwistBackward
document: {title: aclnnTwistBackward, language: zh}
products: [atlas-a2]
defaults: {"null": ACLNN_ERR_PARAM_NULLPTR}
parameters:
  - {name: gradOutput, type: const aclTensor *, dtypes: [FLOAT], shape: "[*A]", rank: [1, 8]}
  - {name: turns, type: int64_t, range: [0, 8]}
  - {name: gradInput, type: aclTensor *, dtypes: [FLOAT], same_shape_as: gradOutput}
draws:
  - {run: A, length: [1, 8], sizes: [1, 2147483646]}
  - {name: turns, in: [0, 8]}
constraints:
  - {id: turns.even, that: turns % 2 == 0, breaks: [{turns: 3}]}
clauses:
  function:
    - {en: "It is the gradient of the twist.", zh: "求扭转的梯度。", check: values}
    - {say: turns.even, en: "Turns are even.", zh: "圈数为偶数。"}
"""
CHANGE = """\
document: {title: aclnnTwistBackward, language: zh, edition: next}
products: [atlas-a2, atlas-a3]
parameters:
  gradOutput: {rank: [2, 4]}
  turns: {range: {is: [0, 4], status: ACLNN_ERR_PARAM_INVALID}}
draws:
  A: {length: [2, 4]}
  turns: {in: [0, 4]}
constraints:
  turns.even: null
  turns.zero: {that: turns != 1, breaks: [{turns: 1}]}
clauses:
  function:
    - {base: 1, en: "It is the gradient of the new twist."}
    - {say: turns.zero, en: "There is never one turn.", zh: "圈数不为一。"}
"""


def mine(folder: Path, change: str = CHANGE, base: str = BASE) -> Spec:
    """The edition `next` of an operator in a user's folder."""
    (folder / "editions" / "next").mkdir(parents=True)
    (folder / "twist_backward.yaml").write_text(base, encoding="utf-8")
    (folder / "editions" / "next" / "twist_backward.yaml").write_text(change, encoding="utf-8")
    return load_specs([folder], edition="next").find("twist_backward")


def test_an_edition_is_the_spec_with_its_changes(tmp_path: Path) -> None:
    spec = mine(tmp_path)
    assert (spec.edition, spec.products, spec.source) == (
        "next",
        ("atlas-a2", "atlas-a3"),
        "aclnnTwistBackward, edition next",
    )
    assert spec.constraint("gradOutput.rank").rule.describe("atlas-a2").en != ""
    assert spec.constraint("turns.range").statuses == ("ACLNN_ERR_PARAM_INVALID",)
    assert {"turns.zero"} == {item.id for item in spec.constraints if item.kind == "holds"}
    first, second = (clause for clause in spec.clauses if clause.at.startswith("function."))
    assert (first.en, first.zh, first.check) == ("It is the gradient of the new twist.", "求扭转的梯度。", "values")
    assert second.constraints == ("turns.zero",)
    base = load_specs([tmp_path]).find("twist_backward")
    assert (base.edition, base.products, base.source) == ("", ("atlas-a2",), "aclnnTwistBackward")
    assert base.constraint("turns.even").strength == "limit"
    # An operator without a difference keeps its own edition.
    assert load_specs([tmp_path], edition="next").find("softmax_backward").edition == ""


@pytest.mark.parametrize("stem", STEMS)
def test_the_text_of_an_edition_is_a_whole_spec(stem: str) -> None:
    """What a run keeps gives the same spec again, without the file that was changed."""
    spec = load_specs(edition="public").find(stem)
    again = specs_from_texts({stem: spec.text}).find(stem)
    assert again.sha256 == spec.sha256
    for name in ("operator", "document", "edition", "products", "precision", "rows", "header"):
        assert getattr(again, name) == getattr(spec, name)
    assert [item.id for item in again.constraints] == [item.id for item in spec.constraints]
    plain = [field.name for field in fields(spec.clauses[0]) if field.name != "when"]
    for first, second in zip(again.clauses, spec.clauses, strict=True):
        assert [getattr(first, name) for name in plain] == [getattr(second, name) for name in plain]


WORDS = (
    "no",
    "null",
    "~",
    "1e5",
    "0x1F",
    "1_000",
    ".inf",
    "12:30",
    "2026-01-01",
    "- a",
    "a: b",
    "#",
    "",
    " a ",
    "1.",
    "+1",
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["C"]))
    | st.sampled_from(WORDS)
)


@given(st.dictionaries(st.text("abc", min_size=1), st.lists(SCALARS, max_size=3) | SCALARS, max_size=3) | SCALARS)
def test_what_is_written_is_read_again(value: object) -> None:
    content = {"a": value}
    assert parse_yaml(_text("f", content), name="f").content == content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("gradOutput: {rank", "gradInptu: {rank"), "twist_backward.yaml:4: 'gradInptu' is not among parameters"),
        (("{base: 1,", "{base: 3,"), "twist_backward.yaml:14: 3: the section has 2 written entries"),
        (("turns.even: null", "turns.even: 3"), "twist_backward.yaml:10: 3; expected keys of turns.even, or null"),
        (
            ("[2, 4]}\n  turns: {range", "[2, 4], rnak: 1}\n  turns: {range"),
            "twist_backward.yaml:4: unknown key 'rnak'",
        ),
        (("atlas-a3]", "atlas-a4]"), "twist_backward.yaml:2: unknown product 'atlas-a4'"),
        (("document: {", "documents: {"), "twist_backward.yaml:1: expected changes by key, with `document`"),
        (("that: turns != 1", "that: turn != 1"), "twist_backward.yaml:11: unknown name in the expression"),
    ],
)
def test_a_mistake_names_the_line_of_the_difference(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in CHANGE
    with pytest.raises(UsageError) as raised:
        mine(tmp_path, CHANGE.replace(*change))
    assert message in str(raised.value)
    assert f"{Path('editions', 'next', 'twist_backward.yaml')}:" in str(raised.value)


def test_a_mistake_of_the_base_names_the_base(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        mine(tmp_path, base=BASE.replace("same_shape_as: gradOutput", "same_shape_as: gradOutptu"))
    assert f"{tmp_path / 'twist_backward.yaml'}:8:" in str(raised.value)


def test_lint_of_an_edition_reads_both_files(tmp_path: Path) -> None:
    mine(tmp_path)
    path = tmp_path / "editions" / "next" / "twist_backward.yaml"
    [found], messages = lint_files([path])
    assert (found.spec.edition, messages) == ("next", [])
    [again], _ = lint_files([tmp_path / "twist_backward.yaml"], edition="next")
    assert again.spec.sha256 == found.spec.sha256


def test_an_unknown_edition_is_refused() -> None:
    with pytest.raises(UsageError, match="--edition: 'publci' is not known; expected one of public"):
        load_specs(edition="publci")


def tensor(*shape: int, dtype: str = "FLOAT") -> Tensor:
    return Tensor(dtype=dtype, shape=shape)


def upsample(length: int, width: int, scale: float) -> Case:
    arguments: Mapping[str, Any] = {
        "gradOutput": tensor(1, 1, length),
        "outputSizeOptional": (length,),
        "inputSize": (1, 1, width),
        "scalesOptional": scale,
        "out": tensor(1, 1, width),
    }
    return Case(operator="aclnnUpsampleNearestExact1dBackward", arguments=arguments)


def softmax(shape: tuple[int, ...], output: tuple[int, ...]) -> Case:
    arguments: Mapping[str, Any] = {
        "gradOutput": tensor(*shape),
        "output": tensor(*output),
        "dim": 0,
        "out": tensor(*shape),
    }
    return Case(operator="aclnnSoftmaxBackward", arguments=arguments)


SUCCESS = ("ACLNN_SUCCESS",)
INVALID = ("ACLNN_ERR_PARAM_INVALID",)
EITHER = (ANY_ERROR, "ACLNN_SUCCESS")


@pytest.mark.parametrize(
    ("case", "own", "public"),
    [
        # The limit on the ratio was turned round.
        (upsample(1, 50, 1 / 50), EITHER, SUCCESS),
        (upsample(51, 1, 51.0), SUCCESS, EITHER),
        (upsample(4, 8, 0.0), SUCCESS, EITHER),
        (upsample(4, 8, -1.0), EITHER, INVALID),
        (softmax((4, 2), (4, 3)), EITHER, INVALID),
        (softmax((0, 2), (0, 2)), EITHER, SUCCESS),
        (softmax((), ()), EITHER, SUCCESS),
    ],
)
def test_the_same_case_under_both_editions(case: Case, own: tuple[str, ...], public: tuple[str, ...]) -> None:
    assert evaluate(load_specs()[case.operator], case).statuses == own
    assert evaluate(load_specs(edition="public")[case.operator], case).statuses == public


def conv(product: str, **dtypes: str) -> Case:
    shapes = {"self": (5, 1, 2), "input": (5, 1, 2), "weight": (1, 2, 2), "bias": (2,)}
    shapes |= {"gradInput": shapes["input"], "gradWeight": shapes["weight"], "gradBias": shapes["bias"]}
    tensors = {name: tensor(*shape, dtype=dtypes.get(name, "FLOAT")) for name, shape in shapes.items()}
    arguments: Mapping[str, Any] = {**tensors, "pad": 0, "cubeMathType": 1}
    return Case(operator="aclnnConvTbcBackward", arguments=arguments, target=Target(product=product))


@pytest.mark.parametrize(
    ("product", "dtypes", "strength"),
    [
        ("atlas-a2", {}, "valid"),
        ("atlas-a2", {"input": "FLOAT16", "gradInput": "FLOAT16"}, "open"),
        ("ascend-950", {"weight": "BF16", "gradWeight": "BF16"}, "open"),
        ("atlas-a2", {"bias": "FLOAT16", "gradBias": "FLOAT16"}, "listed"),
        ("ascend-950", {"gradWeight": "HIFLOAT8"}, "limit"),
        ("ascend-950", {"gradWeight": "FLOAT8_E4M3FN"}, "limit"),
        ("ascend-950", {"gradWeight": "FLOAT8_E5M2"}, "listed"),
        ("ascend-950", {"gradInput": "HIFLOAT8"}, "listed"),
        ("atlas-a3", {"gradWeight": "HIFLOAT8"}, "listed"),
    ],
)
def test_dtypes_that_the_published_document_contradicts_itself_about(
    product: str, dtypes: Mapping[str, str], strength: str
) -> None:
    spec = load_specs(edition="public")["aclnnConvTbcBackward"]
    assert evaluate(spec, conv(product, **dtypes)).strength == strength


@pytest.mark.parametrize("dtype", ["HIFLOAT8", "FLOAT8_E4M3FN"])
def test_a_call_is_made_in_what_only_a_wider_list_holds(dtype: str) -> None:
    spec = load_specs(edition="public")["aclnnConvTbcBackward"]
    rule = next(item.rule for item in spec.constraints if item.id == "gradWeight.eight_bits")
    assert isinstance(rule, Listed)
    assert {"gradWeight": dtype} in [way.dtypes for way in rule.ways(spec, conv("ascend-950"))]
