"""`spec draft` and `spec audit` on the command line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.speclang.load import load_specs
from tests.cli.conftest import Called

DOCUMENTS = Path(__file__).parents[1] / "fixtures" / "documents"
TWIST = str(DOCUMENTS / "aclnnTwistBackward.md")
Call = Callable[..., Called]

FUNCTION = "  function: [{en: 'Its gradient.', zh: '其梯度。', check: values}]\n"


def settled(call: Call) -> None:
    """Draft a spec into the folder `mine`, and settle its open places."""
    assert call("spec", "draft", TWIST, "-o", "mine/twist_backward.yaml").code == 0
    path = Path("mine/twist_backward.yaml")
    text, _, _ = path.read_text(encoding="utf-8").partition("open:\n")
    path.write_text(text + FUNCTION, encoding="utf-8")


def test_draft_lint_and_refusal(call: Call) -> None:
    drafted = call("spec", "draft", TWIST, "-o", "mine/twist_backward.yaml")
    assert (drafted.code, drafted.out) == (0, "")
    linted = call("spec", "lint", "mine/twist_backward.yaml")
    assert linted.code == 0
    assert "open: clauses.function; read function/1#" in linted.out
    lines = call("spec", "lint", "mine/twist_backward.yaml", "--json").lines
    assert [(line["open"], line["line"] > 1) for line in lines] == [(True, True)] * 2
    shown = call("spec", "show", "twist_backward", "--specs", "mine")
    assert (shown.code, "a draft, open at clauses.function, clauses.example" in shown.err) == (2, True)


def test_draft_to_standard_output_replaces_only_drafts(call: Call) -> None:
    text = call("spec", "draft", TWIST).out
    assert text.startswith("# Drafted from the document of aclnnTwistBackward; open places: 2.")
    Path("x.yaml").write_text(text, encoding="utf-8")
    assert call("spec", "draft", TWIST, "-o", "x.yaml").code == 0
    Path("x.yaml").write_text("mine: true\n", encoding="utf-8")
    assert call("spec", "draft", TWIST, "-o", "x.yaml").code == 2


def claimed(entry: Callable[[str], str]) -> None:
    """Append claims to the spec: an entry for each open statement of the claims file."""
    _, _, opened = Path("mine/claims/twist_backward.yaml").read_text(encoding="utf-8").partition("open:\n")
    addresses = [line.strip("- ").partition("#")[0] for line in opened.splitlines()]
    with Path("mine/twist_backward.yaml").open("a", encoding="utf-8") as file:
        file.write("claims:\n" + "".join(f"  {address}: {entry(address)}\n" for address in addresses))


def test_audit_from_nothing_to_claims_to_a_newer_edition(call: Call) -> None:
    settled(call)
    words = ("spec", "audit", "twist_backward", "--specs", "mine", "--document")
    first = call(*words, TWIST, "--json")
    assert first.code == 1
    assert {line["state"] for line in first.lines} == {"open"}
    claims = "mine/claims/twist_backward.yaml"
    written = call(*words, TWIST, "-o", claims, "--json")
    assert written.code == 1
    left = [line for line in written.lines if line["state"] == "open"]
    assert 0 < len(left) < len(first.lines) / 2
    claimed(lambda address: "introduction" if address.startswith("example") else "function.1")
    assert call("spec", "lint", "mine/twist_backward.yaml").code == 0
    stale = call(*words, TWIST, "--json")
    assert stale.code == 1
    assert sum(line["state"] == "stale" for line in stale.lines) == len(left)
    assert "the spec claims function.1; write the claims file again with -o" in call(*words, TWIST).out
    assert call(*words, TWIST, "-o", claims).code == 0
    assert call(*words, TWIST).code == 0
    Path("newer.md").write_text(
        Path(TWIST).read_text(encoding="utf-8").replace("圈数越多越慢。", "圈数越多越快。"), encoding="utf-8"
    )
    newer = call(*words, "newer.md")
    assert newer.code == 1
    assert newer.out.startswith("changed  limits/3#")
    assert "claimed by function.1" in newer.out
    carried = call(*words, "newer.md", "-o", claims)
    assert carried.code == 1
    assert "correct `claims` of mine/twist_backward.yaml, then write it again" in carried.err
    assert "limits/3#" in Path(claims).read_text(encoding="utf-8").partition("open:\n")[2]
    assert call(*words, "newer.md", "-o", claims).code == 0


def test_audit_says_which_claims_name_no_statement(call: Call) -> None:
    settled(call)
    with Path("mine/twist_backward.yaml").open("a", encoding="utf-8") as file:
        file.write("claims: {params/turn/usage: function.1}\n")
    words = ("spec", "audit", "twist_backward", "--specs", "mine", "--document", TWIST)
    assert call(*words, "-o", "mine/claims/twist_backward.yaml").code == 1
    assert "unknown  params/turn/usage\n" in call(*words).out
    assert {"state": "unknown", "address": "params/turn/usage", "operator": "aclnnTwistBackward"} in call(
        *words, "--json"
    ).lines


def test_audit_says_where_facts_differ(call: Call) -> None:
    settled(call)
    path = Path("mine/twist_backward.yaml")
    path.write_text(
        path.read_text(encoding="utf-8").replace("range: {is: [0, 8]", "range: {is: [0, 9]"), encoding="utf-8"
    )
    shutil.copy(TWIST, "other.md")
    text = Path("other.md").read_text(encoding="utf-8").replace("<td>0-8</td>", "<td>0-7</td>")
    Path("other.md").write_text(text, encoding="utf-8")
    lines = call("spec", "audit", "twist_backward", "--specs", "mine", "--document", "other.md", "--json").lines
    differ = {line["address"]: line["differences"] for line in lines if line["differences"]}
    assert differ == {"params/gradOutput/rank": [{"product": None, "document": "0 to 7", "spec": "0 to 8"}]}


def test_audit_of_claimed_fact_that_differs_exits_1_below_100_percent(call: Call) -> None:
    settled(call)
    words = ("spec", "audit", "twist_backward", "--specs", "mine", "--document", TWIST)
    claims = "mine/claims/twist_backward.yaml"
    assert call(*words, "-o", claims).code == 1
    claimed(lambda address: "introduction" if address.startswith("example") else "function.1")
    assert call(*words, "-o", claims).code == 0
    assert "; 100.0% done" in call(*words).err
    path = Path("mine/twist_backward.yaml")
    path.write_text(path.read_text(encoding="utf-8").replace("rank: [0, 8]", "rank: [0, 7]"), encoding="utf-8")
    found = call(*words)
    assert found.code == 1
    assert "differs  params/gradOutput/rank#" in found.out
    assert "; 100.0% done" not in found.err
    assert "% done" in found.err


def test_audit_marks_an_unread_statement_below_100_percent(call: Call) -> None:
    settled(call)
    words = ("spec", "audit", "twist_backward", "--specs", "mine", "--document", TWIST)
    claims = "mine/claims/twist_backward.yaml"
    assert call(*words, "-o", claims).code == 1
    claimed(lambda address: "unread" if address.startswith("limits/3") else "function.1")
    assert call(*words, "-o", claims).code == 1
    found = call(*words)
    assert (found.code, found.out.startswith("unread   limits/3#")) == (1, True)
    assert "; 100.0% done" not in found.err


def test_audit_without_claims_file_says_which_file_to_write(call: Call) -> None:
    settled(call)
    words = ("spec", "audit", "twist_backward", "--specs", "mine", "--document", TWIST)
    found = call(*words)
    assert found.code == 1
    assert "done" not in found.err
    assert f"`aclnn-cts spec audit twist_backward --document {TWIST} -o mine/claims/twist_backward.yaml`" in found.err


def test_audit_writes_a_made_claims_file_anew_that_names_clauses_of_an_older_spec(call: Call) -> None:
    settled(call)
    words = ("spec", "audit", "twist_backward", "--specs", "mine", "--document", TWIST)
    claims = Path("mine/claims/twist_backward.yaml")
    assert call(*words, "-o", str(claims)).code == 1
    made = claims.read_text(encoding="utf-8")
    claims.write_text(made.replace("[function.1]", "[function.1, function.9]"), encoding="utf-8")
    assert call(*words).code == 2
    assert call(*words, "-o", str(claims)).code == 1
    assert claims.read_text(encoding="utf-8") == made


def test_audit_of_another_operators_document(call: Call) -> None:
    called = call("spec", "audit", "softmax_backward", "--document", TWIST)
    assert called.code == 2
    assert "describes aclnnTwistBackward; expected a document of aclnnSoftmaxBackward" in called.err


def test_documents_of_a_folder_are_audited_together(call: Call) -> None:
    settled(call)
    Path("documents").mkdir()
    shutil.copy(TWIST, "documents/aclnnTwistBackward.md")
    words = ("spec", "audit", "--specs", "mine", "--documents", "documents")
    one = call("spec", "audit", "twist_backward", "--specs", "mine", "--document", TWIST, "--json")
    named = call(*words, "twist_backward", "--json")
    assert (named.code, named.lines) == (one.code, one.lines)
    assert call(*words, "twist_backward").out.startswith("aclnnTwistBackward\n")
    missing = call(*words)
    assert missing.code == 2
    assert f"documents/{next(iter(load_specs()))}.md" in missing.err


@pytest.mark.parametrize(
    "words", [(), ("twist_backward",), ("--documents", "x", "--document", "y"), ("--documents", "x", "-o", "y")]
)
def test_audit_asks_for_one_document_or_a_folder(call: Call, words: tuple[str, ...]) -> None:
    called = call("spec", "audit", *words)
    assert called.code == 2
    assert "--documents FOLDER" in called.err


def test_what_a_document_holds_is_printable(call: Call) -> None:
    settled(call)
    text = Path(TWIST).read_text(encoding="utf-8").replace("圈数越多越慢。", "a\x1b[31mb\u202ec")
    Path("other.md").write_text(text, encoding="utf-8")
    for option in ((), ("--json",)):
        called = call("spec", "audit", "twist_backward", "--specs", "mine", "--document", "other.md", *option)
        assert "limits/3" in called.out
        assert not {"\x1b", "\u202e"} & set(called.out + called.err)
