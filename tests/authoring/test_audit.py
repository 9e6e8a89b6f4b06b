"""Claims held against a document in their own edition and in a newer one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from aclnn_cts.authoring.agreement import find_differences
from aclnn_cts.authoring.claims import AuditState, Claim, Claims, audit_claims, claims_text, read_claims
from aclnn_cts.authoring.model import Document
from aclnn_cts.authoring.proposals import propose_claims
from aclnn_cts.authoring.read import parse_document
from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.load import specs_from_texts
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.schema import DocumentModel
from aclnn_cts.speclang.spec_claims import NotTestable

TEXT = (Path(__file__).parents[1] / "fixtures" / "documents" / "aclnnTwistBackward.md").read_text(encoding="utf-8")
SPEC = """\
operator: aclnnTwistBackward
document: {title: aclnnTwistBackward, language: zh}
products: [ascend-950, atlas-a2, atlas-training]
tables:
  floats: {ascend-950: [FLOAT, FLOAT16, BF16], atlas-a2: [FLOAT, FLOAT16, BF16], atlas-training: [FLOAT, FLOAT16]}
defaults:
  null: ACLNN_ERR_PARAM_NULLPTR
  dtypes: {status: ACLNN_ERR_PARAM_INVALID, group: dtype}
parameters:
  - {name: gradOutput, type: const aclTensor *, dtypes: floats, shape: "[*A]", rank: [0, 8], strided: true, empty: true}
  - {name: self, type: const aclTensor *, dtypes: floats, same_dtype_as: gradOutput,
     same_shape_as: {is: gradOutput, status: ACLNN_ERR_PARAM_INVALID}, strided: true, empty: true}
  - {name: turns, type: int64_t, range: {is: [0, 8], status: ACLNN_ERR_PARAM_INVALID}}
  - {name: reverse, type: bool}
  - {name: gradInput, type: aclTensor *, dtypes: floats, same_dtype_as: gradOutput,
     same_shape_as: {is: gradOutput, status: ACLNN_ERR_PARAM_INVALID}, strided: false}
draws:
  - {run: A, length: [0, 8], sizes: [1, 2147483646]}
  - {name: turns, in: [0, 8]}
  - {name: reverse, one_of: [false, true]}
clauses:
  function:
    - {en: "It is the gradient of the twist.", zh: "求扭转的梯度。", check: values}
"""


@pytest.fixture(name="spec", scope="module")
def the_spec() -> Spec:
    return specs_from_texts({"twist_backward": SPEC}).find("twist_backward")


def document(*changes: tuple[str, str]) -> Document:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_document(text, name="document.md")


def claimed(read: Document, spec: Spec) -> Claims:
    """Claims for every statement: the proposed ones, and one clause for all others."""
    found = propose_claims(read, spec)
    claims = tuple(found.get(item.address, Claim(item.reference, ("function.1",))) for item in read.statements)
    return Claims(read.operator, DocumentModel(title=read.operator, language="zh", sha256=read.sha256), claims)


def test_without_claims_everything_is_open(spec: Spec) -> None:
    result = audit_claims(document(), None, spec)
    assert {entry.state for entry in result.entries} == {AuditState.OPEN}
    assert result.share == 0.0


def test_every_statement_claimed(spec: Spec) -> None:
    result = audit_claims(document(), claimed(document(), spec), spec)
    assert result.missing == ()
    assert result.share == 1.0
    assert result.is_same_edition


def test_plain_cells_are_proposed(spec: Spec) -> None:
    found = propose_claims(document(), spec)
    by_id = {identifier: clause.at for clause in spec.clauses for identifier in clause.constraints}
    assert by_id["gradOutput.rank"] in found["params/gradOutput/rank"].clauses
    assert set(found["errors/ACLNN_ERR_PARAM_NULLPTR/1"].clauses) == {
        clause.at
        for clause in spec.clauses
        if clause.at.startswith("returns")
        and "ends" not in clause.at
        and any(name.endswith(".null") for name in clause.constraints)
    }
    assert found["products/atlas-200i-500-a2"].reason is NotTestable.UNLISTED_PRODUCT
    assert found["limits/1"].reason is NotTestable.INTRODUCTION
    assert "limits/3" not in found
    assert "params/turns/description" not in found or found["params/turns/description"].clauses


def test_a_cell_whose_fact_differs_is_not_proposed(spec: Spec) -> None:
    read = document(("<td>0-8</td>", "<td>1-8</td>"))
    assert [item.address for item in find_differences(read, spec)] == ["params/gradOutput/rank"]
    assert "params/gradOutput/rank" not in propose_claims(read, spec)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("圈数越多越慢。", "圈数越多越快。"), {"limits/3": AuditState.CHANGED}),
        (("- 圈数越多越慢。\n", ""), {"limits/3": AuditState.GONE}),
        (("- 圈数越多越慢。\n", "- 圈数越多越慢。\n- 圈数不宜过多。\n"), {"limits/4": AuditState.NEW}),
        (
            ("- 圈数越多越慢。\n", '<!-- npu="910" id9 -->\n- 圈数越多越慢。\n<!-- end id9 -->\n'),
            {"limits/3": AuditState.CHANGED},
        ),
        (("- 圈数越多越慢。", "-  圈数越多，越慢。"), {"limits/3": AuditState.CHANGED}),
        (
            ("shape与gradOutput一致。</li></ul></td>\n      <td>FLOAT32", "</li></ul></td>\n      <td>FLOAT32"),
            {"params/self/usage/3": AuditState.GONE, "params/gradInput/usage/2": AuditState.GONE},
        ),
    ],
    ids=["changed", "gone", "new", "products", "punctuation", "items"],
)
def test_newer_edition(spec: Spec, change: tuple[str, str], expected: dict[str, AuditState]) -> None:
    result = audit_claims(document(change), claimed(document(), spec), spec)
    assert not result.is_same_edition
    assert {entry.address: entry.state for entry in result.missing} == expected


DOUBTS = """\
  params.gradOutput:
    - implied
    - {say: rank, en: "Its rank.", zh: "其维数。"}
    - {say: rest, en: "Its rank otherwise.", zh: "其余维数。"}
"""


def of_rank(text: str, *, certainty: str = "stated") -> Spec:
    """The spec with another rank of gradOutput, and a clause on it."""
    clause = f"  params.gradOutput: [implied, {{say: rank, certainty: {certainty}, en: A rank., zh: 维数。}}]\n"
    made = SPEC.replace("rank: [0, 8], strided: true", f"rank: {text}, strided: true") + clause
    return specs_from_texts({"twist_backward": made}).find("twist_backward")


def states(read: Document, of: Spec) -> dict[str, AuditState]:
    """What is missing where each statement is claimed, that on the rank by the clause on the rank."""
    claims = {claim.address: claim for claim in claimed(read, of).claims}
    [clause] = [item.at for item in of.clauses if item.constraints == ("gradOutput.rank",) and item.en == "A rank."]
    rank = claims["params/gradOutput/rank"]
    claims[rank.address] = Claim(rank.reference, (clause,))
    about = DocumentModel(title=read.operator, language="zh", sha256=read.sha256)
    result = audit_claims(read, Claims(read.operator, about, tuple(claims.values())), of)
    missing = {entry.address: entry.state for entry in result.missing}
    assert (result.share == 1.0) == (not missing)
    return missing


@pytest.mark.parametrize("rank", ["[1, 8]", "[0, 7]", "[0, 9]", "[2, 3]"])
def test_claimed_statement_whose_fact_differs_is_missing(rank: str) -> None:
    assert states(document(), of_rank(rank)) == {"params/gradOutput/rank": AuditState.DIFFERS}


@pytest.mark.parametrize("certainty", ["contradicted", "ambiguous", "missing"])
def test_difference_that_a_clause_of_the_claim_names_is_settled(certainty: str) -> None:
    assert states(document(), of_rank("[1, 8]", certainty=certainty)) == {}


@pytest.mark.parametrize(
    ("rank", "is_equal"),
    [
        ("[{is: [0, 8]}, {is: [1, 8], id: rest, strength: open}]", True),
        ("[{is: [0, 9]}, {is: [0, 8], id: rest, strength: open}]", True),
        ("[{is: [0, 9]}, {is: [0, 8], id: rest, strength: limit}]", True),
        ("[{is: [0, 8]}, {is: [1, 8], id: rest, strength: limit}]", False),
        ("[{is: [0, 9]}, {is: [1, 9], id: rest, strength: open}]", False),
    ],
    ids=["lists open", "leaves more open", "limit", "refuses what is listed", "promises what is not listed"],
)
def test_ranks_differ_where_the_spec_refuses_or_promises_what_the_document_does_not(
    rank: str, *, is_equal: bool
) -> None:
    made = SPEC.replace("rank: [0, 8], strided: true", f"rank: {rank}, strided: true")
    of = specs_from_texts({"twist_backward": made + DOUBTS}).find("twist_backward")
    assert ([item.address for item in find_differences(document(), of)] != ["params/gradOutput/rank"]) is is_equal


@pytest.mark.parametrize(
    ("condition", "rank", "is_stated"),
    [
        ("gradOutput的维度超过8维。", "{is: [1, 8], status: ACLNN_ERR_PARAM_INVALID}", False),
        ("gradOutput的维度超过8维。", "{is: [0, 8], status: ACLNN_ERR_PARAM_INVALID}", True),
        ("gradOutput的维度超过8维。", "{is: [1, 8], strength: limit}", True),
        ("gradOutput的维度不在1-8维之间。", "{is: [1, 8], status: ACLNN_ERR_PARAM_INVALID}", True),
        ("gradOutput的维度等于0或大于8。", "{is: [1, 8], status: ACLNN_ERR_PARAM_INVALID}", True),
        # The shapes of both are listed to be equal.
        ("self的维度小于1维，gradOutput的维度大于8维。", "{is: [1, 8], status: ACLNN_ERR_PARAM_INVALID}", True),
    ],
)
def test_a_code_for_few_dimensions_differs_from_rows_on_many(condition: str, rank: str, *, is_stated: bool) -> None:
    made = SPEC.replace("rank: [0, 8], strided: true", f"rank: {rank}, strided: true")
    of = specs_from_texts({"twist_backward": made}).find("twist_backward")
    read = document(("turns不在取值范围内。", condition))
    found = [item.address for item in find_differences(read, of) if item.address.startswith("errors/")]
    assert found == ([] if is_stated else ["errors/ACLNN_ERR_PARAM_INVALID/3"])


def test_unread_statements_are_missing(spec: Spec) -> None:
    read = document()
    claims = claimed(read, spec)
    last = Claim(claims.claims[-1].reference, reason=NotTestable.UNREAD)
    result = audit_claims(read, Claims(claims.operator, claims.document, (*claims.claims[:-1], last)), spec)
    assert [entry.state for entry in result.missing] == [AuditState.UNREAD]
    assert result.share < 1.0


def test_statement_claimed_by_an_unread_clause_is_missing() -> None:
    text = SPEC + '  limits: [{en: "Modes 6 to 8 are not drawn.", zh: "未生成模式 6 至 8。", untestable: unread}]\n'
    of = specs_from_texts({"twist_backward": text + "claims: {limits/3: 1}\n"}).find("twist_backward")
    read = document()
    claims = tuple(
        Claim(claim.reference, ("limits.1",)) if claim.address == "limits/3" else claim
        for claim in claimed(read, of).claims
    )
    about = DocumentModel(title=read.operator, language="zh", sha256=read.sha256)
    result = audit_claims(read, Claims(of.operator, about, claims), of)
    assert {entry.address: entry.state for entry in result.missing} == {"limits/3": AuditState.UNREAD}


def test_what_the_spec_alone_states_lowers_the_share(spec: Spec) -> None:
    read = document(("  aclTensor       *gradInput,\n", ""))
    result = audit_claims(read, claimed(read, spec), spec)
    alone = [(entry.address, entry.state) for entry in result.missing if entry.statement is None]
    assert alone == [("prototype/phase1/gradInput", AuditState.DIFFERS)]
    assert result.share < 1.0


def test_a_statement_that_moves_keeps_its_claim(spec: Spec) -> None:
    read = document(("## 约束说明\n", "## 约束说明\n\n- 内存须对齐。\n"))
    result = audit_claims(read, claimed(document(), spec), spec)
    assert {entry.address: entry.state for entry in result.missing} == {"limits/1": AuditState.NEW}
    moved = {entry.address: entry.moved_from for entry in result.entries if entry.moved_from is not None}
    assert moved == {"limits/2": "limits/1", "limits/3": "limits/2", "limits/4": "limits/3"}


def test_blanks_and_width_of_punctuation_change_nothing(spec: Spec) -> None:
    read = document(("确定性计算：", "确定性 计算:"))
    assert audit_claims(read, claimed(document(), spec), spec).missing == ()


def write(folder: Path, text: str) -> Path:
    path = folder / "twist_backward.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_claims_file_round_trip(tmp_path: Path, spec: Spec) -> None:
    claims = (
        Claim("limits/1#0123abcd", reason=NotTestable.INTRODUCTION),
        Claim("function/1#0123abcd", ("function.1",)),
        Claim("limits/2#0123abcd"),
    )
    about = {"title": spec.operator, "language": "zh", "sha256": "0e" * 32}
    path = write(tmp_path, claims_text(spec.operator, about, claims))
    assert set(read_claims(path, spec).claims) == set(claims)
    assert read_claims(path, spec).document.sha256 == "0e" * 32


HEAD = "format: aclnn-cts/claims/1\noperator: aclnnTwistBackward\ndocument: {title: t, language: zh}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("Twist", "Tanh"), "'aclnnTanhBackward'; expected aclnnTwistBackward"),
        (HEAD + "claims: {function/1#0123abcd: [function.7]}", "unknown clause 'function.7'"),
        (HEAD + "claims: {function/1#0123abcd: []}", "expected a list of at least 1"),
        (HEAD + "claims: {function/1: [function.1]}", "expected a text of the form"),
        (HEAD + "untestable: {bored: [function/1#0123abcd]}", "'bored'; expected advice"),
        (
            HEAD + "claims: {function/1#0123abcd: [function.1]}\nopen: [function/1#89abcdef]",
            "function/1 is named twice",
        ),
        (HEAD + "text: {}", "unknown key 'text'"),
        ("- 1", "expected a mapping"),
    ],
    ids=["operator", "clause", "nothing", "reference", "reason", "twice", "key", "form"],
)
def test_mistakes_in_claims_files(tmp_path: Path, spec: Spec, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        read_claims(write(tmp_path, text), spec)
    assert str(raised.value).startswith(str(tmp_path))


def test_every_stock_reason_of_specs_is_a_reason_of_claims() -> None:
    words = yaml.safe_load((package_folder() / "wording.yaml").read_text(encoding="utf-8"))
    assert set(words["reasons"]) <= {reason.value for reason in NotTestable}
