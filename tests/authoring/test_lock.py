"""The claims file made of a spec's claims and of what is plain."""

from __future__ import annotations

import pytest

from aclnn_cts.authoring.claims import Claim, Claims, audit_claims
from aclnn_cts.authoring.lock import lock_claims, outdated_claims, unmatched_claims
from aclnn_cts.authoring.model import Document
from aclnn_cts.authoring.proposals import propose_claims
from aclnn_cts.speclang.load import specs_from_texts
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.schema import DocumentModel
from aclnn_cts.speclang.spec_claims import NotTestable
from tests.authoring.test_audit import SPEC, document

SAID = """\
claims:
  limits/3: performance
  params/gradOutput/rank: [plain, function.1]
"""


def spec(claims: str = SAID) -> Spec:
    return specs_from_texts({"twist_backward": SPEC + claims}).find("twist_backward")


def lock(read: Document, of: Spec, former: Claims | None = None) -> dict[str, Claim]:
    return {claim.address: claim for claim in lock_claims(read, of, former, audit_claims(read, former, of))}


def as_file(read: Document, claims: dict[str, Claim], *, is_made: bool = True) -> Claims:
    about = DocumentModel(title=read.operator, language="zh", sha256=read.sha256)
    return Claims(read.operator, about, tuple(claims.values()), is_made=is_made)


def test_the_spec_comes_before_what_is_plain() -> None:
    read = document()
    found, plain = lock(read, spec()), propose_claims(read, spec())
    assert found["limits/3"].reason is NotTestable.PERFORMANCE
    assert set(found["params/gradOutput/rank"].clauses) == {*plain["params/gradOutput/rank"].clauses, "function.1"}
    assert found["params/self/rank"] == plain["params/self/rank"]
    assert list(found) == [statement.address for statement in read.statements]
    assert found["params/turns/usage"].is_open


def test_a_made_file_does_not_matter_and_a_written_one_keeps_what_nothing_else_settles() -> None:
    read = document()
    made = lock(read, spec())
    mine = Claim(made["params/turns/usage"].reference, ("function.1",))
    changed = {**made, mine.address: mine, "limits/3": Claim(made["limits/3"].reference, ("function.1",))}
    assert lock(read, spec(), as_file(read, changed)) == made
    assert lock(read, spec(), as_file(read, changed, is_made=False)) == {**made, mine.address: mine}


def test_in_another_edition_claims_are_carried_by_their_digests() -> None:
    old = document()
    newer = document(("## 约束说明\n", "## 约束说明\n\n- 内存须对齐。\n"), ("<td>0-8</td>", "<td>0~8</td>"))
    found = lock(newer, spec(), as_file(old, lock(old, spec())))
    assert found["limits/4"].reason is NotTestable.PERFORMANCE
    assert found["limits/1"].is_open
    assert found["params/gradOutput/rank"].is_open


@pytest.mark.parametrize("claims", ["claims: {limits/3: advice}\n", "claims: {params/turns/usage: 1}\n"])
def test_claims_of_the_spec_that_the_file_lacks_are_outdated(claims: str) -> None:
    read = document()
    file = as_file(read, lock(read, spec()))
    assert not list(outdated_claims(read, spec(), file))
    [claim] = outdated_claims(read, spec(claims), file)
    assert claim.address in claims


def test_entries_that_name_no_statement() -> None:
    claims = "claims: {limits/90: advice, limits/3-9: performance, params/turn/usage: function.1}\n"
    assert unmatched_claims(document(), spec(claims)) == ("limits/90", "params/turn/usage")


RANK = ("<td>0-8</td>", "<td>1-8</td>")
DOUBT = """\
  params.gradOutput:
    - implied
    - {say: rank, certainty: contradicted, en: "The table says 1, the example 0.", zh: "表中为 1，示例为 0。"}
"""


@pytest.mark.parametrize("is_named", [True, False])
def test_statement_whose_fact_differs_is_left_open_unless_a_clause_says_so(*, is_named: bool) -> None:
    read = document(RANK)
    text = (SPEC + DOUBT if is_named else SPEC) + "claims: {params/gradOutput/rank: rank}\n"
    found = lock(read, specs_from_texts({"twist_backward": text}).find("twist_backward"))
    assert found["params/gradOutput/rank"].is_open is not is_named
