"""Editions: which spec file an edition reads, and what the same case is promised under either edition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import ANY_ERROR
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.editions import edition_files
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.kinds_dtype import ListedRule
from aclnn_cts.speclang.load import lint_files, load_specs
from aclnn_cts.speclang.package import package_folder

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


def write_edition(folder: Path, text: str) -> Path:
    """A user's operator, and its spec in the edition `next`."""
    path = folder / "editions" / "next" / "twist_backward.yaml"
    path.parent.mkdir(parents=True)
    (folder / path.name).write_text(BASE, encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    return path


NEXT = BASE.replace("language: zh}", "language: zh, edition: next}").replace("range: [0, 8]", "range: [0, 4]")


def test_an_edition_reads_its_own_file(tmp_path: Path) -> None:
    write_edition(tmp_path, NEXT)
    specs = load_specs([tmp_path], edition="next")
    spec, base = specs.find("twist_backward"), load_specs([tmp_path]).find("twist_backward")
    assert (spec.edition, spec.source, spec.text) == ("next", "aclnnTwistBackward, edition next", NEXT)
    assert (base.edition, base.source, base.text) == ("", "aclnnTwistBackward", BASE)
    ranges = [item.constraint("turns.range").rule.describe("atlas-a2").en for item in (spec, base)]
    assert ranges == ["turns lies in [0, 4]", "turns lies in [0, 8]"]
    assert specs.find("softmax_backward").edition == "", "an operator that the edition lacks keeps its own"


def test_a_mistake_in_an_edition_names_its_file(tmp_path: Path) -> None:
    path = write_edition(tmp_path, NEXT.replace("range: [0, 4]", "rnage: [0, 4]"))
    with pytest.raises(UsageError) as raised:
        load_specs([tmp_path], edition="next")
    assert f"{path}:7: unknown key 'rnage'" in str(raised.value)


def test_lint_reads_an_edition_by_its_path_and_by_its_name(tmp_path: Path) -> None:
    path = write_edition(tmp_path, NEXT)
    [found], messages = lint_files([path])
    [again], _ = lint_files([tmp_path / path.name], edition="next")
    assert (found.spec.edition, messages, again.spec.sha256) == ("next", [], found.spec.sha256)


@pytest.mark.parametrize("path", edition_files(package_folder()), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_file_of_an_edition_is_another_document_of_a_spec(path: Path) -> None:
    own, other = load_specs().find(path.stem), load_specs(edition=path.parent.name).find(path.stem)
    assert (other.edition, other.operator) == (path.parent.name, own.operator)
    assert other.document_sha256 != own.document_sha256


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
        (upsample(51, 1, 51.0), EITHER, EITHER),
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
    assert isinstance(rule, ListedRule)
    assert {"gradWeight": dtype} in [change.dtypes for change in rule.changes(spec, conv("ascend-950"))]
