"""Documents in the forms that the public ones have, and what is made of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.authoring.model import CParameter, Document, Section, Statement
from aclnn_cts.authoring.read import parse_document, read_document
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outside import MARKDOWN_BYTES

DOCUMENTS = Path(__file__).parents[1] / "fixtures" / "documents"


def document(operator: str) -> Document:
    return read_document(DOCUMENTS / f"{operator}.md")


def texts(read: Document) -> dict[str, str]:
    return {item.address: item.text for item in read.statements}


def products(read: Document) -> dict[str, tuple[str, ...] | None]:
    return {item.address: item.products for item in read.statements}


@pytest.mark.parametrize("path", sorted(DOCUMENTS.glob("*.md")), ids=lambda path: path.stem)
def test_addresses_are_unique_and_in_a_known_section(path: Path) -> None:
    statements = read_document(path).statements
    assert len({item.address for item in statements}) == len(statements)
    assert {item.section for item in statements} <= set(Section)


def test_modern_form() -> None:
    read = document("aclnnTwistBackward")
    assert read.remarks == ()
    assert read.header == "aclnnop/aclnn_twist_backward.h"
    assert read.products == {
        "ascend-950": True,
        "atlas-a2": True,
        "atlas-200i-500-a2": False,
        "atlas-training": True,
    }
    assert read.parameters == (
        CParameter("gradOutput", "const aclTensor *"),
        CParameter("self", "const aclTensor *"),
        CParameter("turns", "int64_t"),
        CParameter("reverse", "bool"),
        CParameter("gradInput", "aclTensor *"),
    )
    found = texts(read)
    assert found["params/self/usage/2"] == "数据类型与gradOutput一致。"
    assert found["params/turns/description"] == "圈数 k，最多2^3圈，每圈长n_k。"
    assert found["function/3"].split() == ["gradInput_i", "=", "gradOutput_i", "*", "2", "^", "{self_i}", "+", "bias"]
    assert "params/turns/format" not in found
    assert products(read)["params/note/1"] == ("atlas-training",)
    assert [(row.status, row.code, row.statement.address) for row in read.errors] == [
        ("ACLNN_ERR_PARAM_NULLPTR", 161001, "errors/ACLNN_ERR_PARAM_NULLPTR/1"),
        ("ACLNN_ERR_PARAM_INVALID", 161002, "errors/ACLNN_ERR_PARAM_INVALID/1"),
        ("ACLNN_ERR_PARAM_INVALID", 161002, "errors/ACLNN_ERR_PARAM_INVALID/2"),
        ("ACLNN_ERR_PARAM_INVALID", 161002, "errors/ACLNN_ERR_PARAM_INVALID/3"),
    ]
    assert found["example/code/1"].startswith("#include <vector>")


def test_products_of_rows_parts_of_cells_and_columns() -> None:
    read = document("aclnnSievePool2dBackward")
    found = products(read)
    assert found["params/kernelSize/usage"] == ("atlas-a3",)
    assert (found["params/indices/dtype"], found["params/indices/dtype/2"]) == (None, ("atlas-a3",))
    assert found["limits/table1/r2/c2"] == ("atlas-a3", "atlas-training")
    assert found["limits/table1/r3/c2/2"] == ("atlas-a3",)
    assert found["limits/table1/r3/c3"] == ("atlas-training",)
    assert texts(read)["params/indices/usage/3"] == "2. 不超过窗口。"


def test_oldest_form_with_lists_instead_of_tables() -> None:
    read = document("aclnnSpoolBackward")
    found = texts(read)
    assert [item.name for item in read.parameters] == ["grad", "index", "rows", "out"]
    assert found["prototype/phase1/executor"] == "aclOpExecutor ** executor"
    assert found["params/index/description"] == "行号。"
    assert found["phase2/workspace/description"] == "在Device侧申请的内存。"
    assert found["phase2/stream/description"] == "执行任务的流。"
    assert found["phase2/1"] == "其余参数同第一段接口。"
    assert products(read)["params/grad/description/2"] == ("atlas-a2",)
    assert [(row.status, row.statement.text) for row in read.errors] == [
        ("ACLNN_ERR_PARAM_NULLPTR", "grad、index、out为空指针。"),
        ("ACLNN_ERR_PARAM_INVALID", "grad、index、out的数据类型不在支持的范围之内。"),
        ("ACLNN_ERR_PARAM_INVALID", "grad的维度超过8维。"),
    ]


def test_form_without_marks() -> None:
    read = document("aclnnLoomGrad")
    assert read.products == {"atlas-a3": True, "atlas-a2": True}
    assert products(read)["products/atlas-a2/2"] == ("atlas-a2",)
    assert [item.type for item in read.parameters] == [
        "const aclTensor *",
        "const aclTensorList *",
        "const aclTensor *",
        "const aclScalar *",
        "const aclBoolArray *",
        "char *",
        "const aclTensor *",
    ]
    assert read.remarks == (
        "the parameter table describes 'gradThreadz', which the prototype lacks",
        "the parameter table lacks 'weight' of the prototype",
        "the parameter table lacks 'outputMask' of the prototype",
    )


def test_broken_markup_is_read_and_remarked() -> None:
    read = document("aclnnKnotBackward")
    assert [item.name for item in read.parameters] == ["grad", "out"]
    assert texts(read)["params/out/rank"] == "1-8"
    assert set(read.remarks) == {
        "product mark '950x' is not known",
        "product mark 'id9' ends and never began",
        "product mark 'id1' never ends",
        "a second prototype of aclnnKnotBackwardGetWorkspaceSize",
        "prototype of another function, 'aclnnUntie'",
    }


def test_digest_is_of_words_and_products() -> None:
    one = Statement("limits/1", "大小 不超过8；默认：1")
    assert one.digest == Statement("limits/7", "大小不超过8;默认:1").digest
    assert one.digest != Statement("limits/1", "大小不超过9；默认：1").digest
    assert one.digest != Statement("limits/1", one.text, ("atlas-a2",)).digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "its first heading is ''; expected the C name of an operator"),
        (b"# Tanh\n", "its first heading is 'Tanh'; expected the C name of an operator"),
        (b"# aclnnTanh\xff", "byte 11 is not UTF-8"),
        (b"# aclnnTanhBackward\n" + b"a" * MARKDOWN_BYTES, f"longer than {MARKDOWN_BYTES} bytes"),
        (b"# aclnnTanhBackward\n" + b"<div>" * 200, "nested deeper than 100 levels"),
        (b"# aclnnTanhBackward\n" + b"<br>" * 21_000, "more than 20000 HTML tags"),
    ],
    ids=["empty", "title", "encoding", "size", "depth", "tags"],
)
def test_what_is_no_document(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "document.md"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as raised:
        read_document(path)
    assert str(raised.value).startswith(str(path))


FRAGMENTS = (
    "## 函数原型\n",
    "## aclnnXGetWorkspaceSize\n",
    "## 约束说明\n",
    "- **参数说明：**\n",
    "- **返回值：**\n",
    "```Cpp\n",
    "aclnnStatus aclnnXGetWorkspaceSize(const aclTensor *a, int8_t)\n",
    "$$\n",
    "<table><thead><tr><th>参数名</th><th>数据类型</th></tr></thead>",
    "<tr><td rowspan='99'>a</td><td colspan='x'>FLOAT",
    "<th>错误码</th></tr></table>\n",
    '<!-- npu="910b" id1 -->',
    "<!-- end id1 -->\n",
    "| a | b |\n",
    "  - a(b)：c\n",
    "返回161001(ACLNN_ERR_PARAM_NULLPTR)：1. a 2. b\n",
    "\x1b[31m\n\n",
)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40))
def test_no_arrangement_of_its_pieces_breaks_the_reader(pieces: list[str]) -> None:
    read = parse_document("# aclnnX\n" + "".join(pieces), name="document.md")
    assert len({item.address for item in read.statements}) == len(read.statements)


def test_a_comma_that_a_prototype_lacks_is_named() -> None:
    text = (DOCUMENTS / "aclnnTwistBackward.md").read_text(encoding="utf-8")
    whole = parse_document(text, name="whole")
    lines = [line for line in text.splitlines() if "self," in line]
    assert lines
    read = parse_document(text.replace(lines[0], lines[0].replace("self,", "self")), name="torn")
    assert read.parameters == whole.parameters
    assert read.remarks == ("a comma is missing in the prototype, behind parameter 2",)
