"""What a drafted spec says, and what it leaves to a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from aclnn_cts.authoring.draft import Draft, draft_spec, stem_of
from aclnn_cts.authoring.facts import related_dtypes
from aclnn_cts.authoring.model import ParameterColumn, Row, Statement
from aclnn_cts.authoring.read import parse_document, read_document
from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.proof import lint_specs
from aclnn_cts.speclang.load import load_specs, specs_from_texts

DOCUMENTS = Path(__file__).parents[1] / "fixtures" / "documents"
ALL = sorted(path.stem for path in DOCUMENTS.glob("*.md"))


def drafted(operator: str) -> Draft:
    return draft_spec(read_document(DOCUMENTS / f"{operator}.md"))


def parameters(draft: Draft) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in yaml.safe_load(draft.text)["parameters"]}


@pytest.mark.parametrize("operator", ALL)
def test_drafts_lint_clean_with_their_open_places(operator: str, tmp_path: Path) -> None:
    draft = drafted(operator)
    path = tmp_path / f"{draft.stem}.yaml"
    path.write_text(draft.text, encoding="utf-8")
    report = lint_specs([path])
    assert report.mistakes == ()
    assert report.stems == (draft.stem,)
    assert [line.split("; read ")[0].split(": open: ")[1] for line in report.open] == [item.at for item in draft.open]
    assert max(len(line) for line in draft.text.splitlines() if not line.startswith("document:")) <= 130


@pytest.mark.parametrize("operator", ALL)
def test_open_places_name_statements_of_the_document(operator: str) -> None:
    references = {item.reference for item in read_document(DOCUMENTS / f"{operator}.md").statements}
    assert {name for place in drafted(operator).open for name in place.read} <= references


def test_what_the_tables_settle() -> None:
    spec = specs_from_texts({"twist_backward": drafted("aclnnTwistBackward").text}).find("twist_backward")
    assert spec.open == ("clauses.function", "clauses.example")
    assert spec.parameter("self").dtype_as == "gradOutput"
    assert spec.parameter("gradOutput").dtypes["atlas-training"] == ("FLOAT", "FLOAT16")
    listed = {item.id: item.statuses for item in spec.constraints if item.strength == "listed"}
    assert listed["self.null"] == ("ACLNN_ERR_PARAM_NULLPTR",)
    assert listed["turns.range"] == listed["self.shape"] == listed["self.dtype"] == ("ACLNN_ERR_PARAM_INVALID",)
    assert spec.constraint("gradOutput.rank").strength == "limit"


def test_an_output_that_is_an_input_too() -> None:
    text = (DOCUMENTS / "aclnnTwistBackward.md").read_text(encoding="utf-8")
    head, row, rest = text.partition("<td>gradInput（aclTensor*）</td>")
    assert row
    changed = head + row + rest.replace("<td>输出</td>", "<td>输入/输出</td>", 1)
    assert parameters(draft_spec(parse_document(changed, name="changed")))["gradInput"]["role"] == "inout"
    assert "role" not in parameters(drafted("aclnnTwistBackward"))["gradInput"]


def test_shapes_formats_and_ranks() -> None:
    found = parameters(drafted("aclnnSievePool2dBackward"))
    assert found["indices"]["same_shape_as"] == {"is": "gradOutput", "strength": "limit"}
    assert found["indices"]["same_format_as"] == "gradOutput"
    assert (found["gradInput"]["shape"], found["gradInput"]["rank"]) == ("[N, C, H, W]", 4)
    assert found["gradOutput"]["rank"] == {"is": [3, 4], "status": "ACLNN_ERR_PARAM_INVALID"}
    assert (found["gradOutput"]["empty"], found["gradInput"]["strided"]) == (False, False)
    assert found["cubeMathType"]["range"] == {"is": [0, 3], "strength": "limit"}


def test_what_is_in_no_usual_form_is_left_open() -> None:
    assert {place.at for place in drafted("aclnnSievePool2dBackward").open} == {
        "parameters.gradOutput.formats",
        "parameters.kernelSize.items",
        "parameters.stride.items",
        "parameters.scale.range",
        "tables",
        "clauses.function",
        "clauses.example",
    }
    assert {place.at for place in drafted("aclnnLoomGrad").open} >= {
        "parameters.threads",
        "parameters.maskOptional.null",
        "parameters.weight",
        "parameters.layout",
    }


def test_a_length_with_an_alternative_is_not_guessed() -> None:
    assert "length" not in parameters(drafted("aclnnSievePool2dBackward"))["stride"]


def test_a_draft_is_not_run(tmp_path: Path) -> None:
    draft = drafted("aclnnTwistBackward")
    (tmp_path / "twist_backward.yaml").write_text(draft.text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"a draft, open at clauses\.function, clauses\.example; settle these places"):
        load_specs([tmp_path])


def test_a_mistake_elsewhere_in_a_draft_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "loom_grad.yaml"
    text = drafted("aclnnLoomGrad").text
    path.write_text(text.replace("dtypes: [FLOAT16, BF16]", "dtypes: [FLOAT17]"), encoding="utf-8")
    assert [line.split(": ")[1] for line in lint_specs([path]).mistakes] != []
    path.write_text(text.replace("parameters.weight}", "parameters.height}"), encoding="utf-8")
    assert any("unknown parameter 'height'" in line for line in lint_specs([path]).mistakes)


@pytest.mark.parametrize(
    ("operator", "stem"),
    [
        ("aclnnSoftmaxBackward", "softmax_backward"),
        ("aclnnGRUBackward", "gru_backward"),
        ("aclnnUpsampleNearestExact1dBackward", "upsample_nearest_exact1d_backward"),
        ("aclnnNLLLossBackward", "nll_loss_backward"),
        ("aclnnGeluBackwardV2", "gelu_backward_v2"),
        ("aclnnMaxPool2dWithIndicesBackward", "max_pool2d_with_indices_backward"),
    ],
)
def test_stems(operator: str, stem: str) -> None:
    assert stem_of(operator) == stem


@pytest.mark.parametrize(
    ("remark", "expected"),
    [
        ("数据类型与y的数据类型需满足数据类型推导规则（参见互推导关系）。", ("promotes", ("y",))),
        ("dtype与x、y的dtype满足数据类型推导规则。", ("promotes", ("x", "y"))),
        ("数据类型需要是x与y推导之后可转换的数据类型（参见互转换关系）。", ("cast", ("x", "y"))),
        ("数据类型需要满足是x可转换的数据类型。", ("cast", ("x",))),
        ("dtype与x和y进行数据类型推导后的结果一致。", ("promoted", ("x", "y"))),
        ("数据类型需要是可转换为FLOAT的数据类型。", None),
        ("shape要求和x、y满足卷积输入输出shape的推导关系。", None),
        ("数据类型与x一致。", None),
    ],
)
def test_remarks_on_promotion_and_conversion_are_read(
    remark: str, expected: tuple[str, tuple[str, ...]] | None
) -> None:
    row = Row("z", {ParameterColumn.USAGE: (Statement("params/z/usage", remark),)})
    assert related_dtypes(row, ["x", "y", "z"]) == expected


def test_a_draft_says_which_dtypes_promote(tmp_path: Path) -> None:
    text = (DOCUMENTS / "aclnnTwistBackward.md").read_text(encoding="utf-8")
    first, second = "<li>数据类型与gradOutput一致。</li>", "gradInput的shape不一致。</td>"
    promotes = text.replace(first, "<li>数据类型与gradOutput满足数据类型推导规则。</li>", 1)
    cast = promotes.replace(first, "<li>数据类型需要是gradOutput与self推导之后可转换的数据类型。</li>", 1)
    listed = cast.replace(
        second, f"{second}\n    </tr>\n    <tr>\n      <td>gradOutput、self的数据类型不满足数据类型推导规则。</td>"
    )
    path = tmp_path / "aclnnTwistBackward.md"
    path.write_text(listed.replace('rowspan="3"', 'rowspan="4"'), encoding="utf-8")
    draft = draft_spec(read_document(path))
    found = parameters(draft)
    assert found["self"]["promotes_with"] == {"is": "gradOutput", "status": "ACLNN_ERR_PARAM_INVALID", "group": "dtype"}
    assert found["gradInput"]["casts_from"] == "promote(gradOutput, self)"
    assert "same_dtype_as" not in found["self"]
    (tmp_path / "twist_backward.yaml").write_text(draft.text, encoding="utf-8")
    assert lint_specs([tmp_path / "twist_backward.yaml"]).mistakes == ()


def changed_twist(*changes: tuple[str, str]) -> Draft:
    """The draft of a document with some cells changed, each in the first place from the one before on."""
    text = (DOCUMENTS / "aclnnTwistBackward.md").read_text(encoding="utf-8")
    done = ""
    for old, new in changes:
        head, found, text = text.partition(old)
        assert found, old
        done += head + new
    return draft_spec(parse_document(done + text, name="changed"))


RANKS = "<td>0-8</td>"


def test_tensors_with_as_many_dimensions_are_not_said_to_have_one_shape() -> None:
    draft = changed_twist(
        ("<td>支持空Tensor。</td>", "<td>维度需要与self和gradInput一致，shape需要与正向的output一致。</td>"),
        (RANKS, "<td>维度与self保持一致</td>"),
        ("<li>shape与gradOutput一致。</li>", "<li>维度需要与gradOutput和gradInput一致，shape与gradInput一致。</li>"),
        (RANKS, "<td>3-4</td>"),
        ("<li>shape与gradOutput一致。</li>", ""),
        (RANKS, "<td>与self保持一致</td>"),
    )
    found = parameters(draft)
    assert found["gradOutput"]["rank"] == found["self"]["rank"] == [3, 4]
    assert "same_shape_as" not in found["self"]
    assert found["gradInput"]["same_shape_as"] == "self"
    assert {"parameters.gradOutput.shape", "parameters.self.shape"} <= {place.at for place in draft.open}


def test_numbers_of_dimensions_with_gaps_are_left_open() -> None:
    assert "parameters.gradOutput.rank" in {place.at for place in changed_twist((RANKS, "<td>1、3</td>")).open}


@pytest.mark.parametrize(
    ("row", "rank"),
    [
        ("gradOutput的维度大于8。", [{"is": [0, 8], "status": "ACLNN_ERR_PARAM_INVALID"}, {"id": "few", "is": [2, 8]}]),
        ("gradOutput的维度小于2或大于8。", {"is": [2, 8], "status": "ACLNN_ERR_PARAM_INVALID"}),
        ("gradOutput的维度不在2到8之间。", {"is": [2, 8], "status": "ACLNN_ERR_PARAM_INVALID"}),
    ],
)
def test_too_few_dimensions_have_a_code_only_where_a_row_says_so(row: str, rank: object) -> None:
    draft = changed_twist((RANKS, "<td>2-8</td>"), ("gradOutput、self、gradInput的shape不一致。", row))
    assert parameters(draft)["gradOutput"]["rank"] == rank


def test_formats_of_several_tensors_are_open_and_nd_alone_has_no_code() -> None:
    draft = changed_twist(
        ("<td>ND</td>", "<td>ND、NCHW</td>"),
        ("<td>ND</td>", "<td>ND、NCHW</td>"),
        ("gradOutput、self、gradInput的shape不一致。", "gradOutput、self、gradInput的数据格式不在支持的范围之内。"),
    )
    found = parameters(draft)
    assert found["self"]["formats"] == {"is": ["ND", "NCHW"], "status": "ACLNN_ERR_PARAM_INVALID"}
    assert found["self"]["same_format_as"] == {"is": "gradOutput", "strength": "open"}
    assert not {"formats", "same_format_as"} & found["gradInput"].keys()
    assert "formats" not in yaml.safe_load(draft.text).get("defaults", {})
