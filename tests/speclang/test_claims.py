"""The `claims` of a spec: what addresses and words stand for, and what is said of mistakes."""

from __future__ import annotations

import pytest

from aclnn_cts.authoring.model import Section
from aclnn_cts.speclang.build_claims import SECTIONS
from aclnn_cts.speclang.spec_claims import NotTestable, SpecClaim
from tests.speclang.small_spec import changed, messages
from tests.support.spec_text import spec_from_text

CODES = """\
  returns:
    - {en: "No x.", zh: "无 x。", constraints: [x.null]}
    - {en: "pad.", zh: "pad。", constraints: [pad.range]}
"""
TEXT = changed("}, dtype]", '}, {en: "x, read.", zh: "x，读。", check: values}, dtype]') + CODES


def claims(entry: str) -> dict[str, SpecClaim]:
    return dict(spec_from_text(f"{TEXT}claims:\n  {entry}\n", stem="small").claims)


@pytest.mark.parametrize(
    ("key", "addresses"),
    [
        ("function/2", ["function/2"]),
        ("function/2-4,7", ["function/2", "function/3", "function/4", "function/7"]),
        ("params/x,out/usage/1-2", ["params/x/usage", "params/x/usage/2", "params/out/usage", "params/out/usage/2"]),
        ("params/note/1-2", ["params/note/1", "params/note/2"]),
        ("limits/table1/r2-3/c1", ["limits/table1/r2/c1", "limits/table1/r3/c1"]),
        ("products/atlas-a2/2", ["products/atlas-a2/2"]),
    ],
)
def test_addresses_of_an_entry(key: str, addresses: list[str]) -> None:
    found = claims(f"{key}: introduction")
    assert list(found) == addresses
    assert {claim.entry for claim in found.values()} == {key}


@pytest.mark.parametrize(
    ("entry", "clauses"),
    [
        ("params/x/usage: 1", ["params.x.1"]),
        ("params/x/usage: [2, 1]", ["params.x.1", "params.x.2"]),
        ("params/x/usage: 1-2", ["params.x.1", "params.x.2"]),
        ("limits/1: params.x.1-2", ["params.x.1", "params.x.2"]),
        ("errors/ACLNN_ERR_PARAM_INVALID/1: 2", ["returns.2"]),
        ('params/x/usage: "null"', ["params.x.1"]),
        ("params/x/usage: returns.null", ["returns.1"]),
        ("params/x/usage: [pad.range, returns.pad.range]", ["params.pad.1", "returns.2"]),
        ("errors/ACLNN_ERR_PARAM_INVALID/1: pad.range", ["returns.2"]),
        ("errors/ACLNN_ERR_PARAM_INVALID/1: range", ["returns.2"]),
        ("limits/1: [range, shape]", ["params.pad.1", "params.out.1"]),
    ],
)
def test_words_of_an_entry(entry: str, clauses: list[str]) -> None:
    [claim] = claims(entry).values()
    assert list(claim.clauses) == clauses
    assert (claim.is_plain, claim.reason) == (False, None)


def test_reasons_and_plain_clauses() -> None:
    assert claims("limits/1: performance")["limits/1"].reason is NotTestable.PERFORMANCE
    assert claims("limits/1: plain")["limits/1"].is_plain
    both = claims("params/x/usage: [plain, 2]")["params/x/usage"]
    assert (both.is_plain, both.clauses) == (True, ("params.x.2",))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("wishes/1: 1", "'wishes/1' is no address of a statement"),
        ("function: 1", "'function' is no address of a statement"),
        ("params/x,/usage: 1", "'params/x,/usage' is no address of a statement"),
        ("function/1-: 1", "'function/1-' is no address of a statement"),
        ("function/4-2: 1", "'function/4-2' is no address of a statement"),
        ("limits/1-99/1-99: introduction", "names more than 4096 statements"),
        ("params/x/usage: 4", "params/x/usage: '4' is no clause"),
        ("params/x/usage: 1-4", "'1-4' is no clause"),
        ("params/x/usage: rang", "'rang' is no clause, constraint with a clause or reason why nothing is tested"),
        (
            "errors/ACLNN_ERR_PARAM_INVALID/1: shape",
            "'shape' has no sentence in `returns`, which a claim on a code asks for; write one: {say: shape, en: ",
        ),
        ("limits/1: introdution", "did you mean 'introduction'?"),
        ("limits/1: [introduction, 1]", "'introduction' is a reason why nothing is tested; give it alone"),
        ("params/x/usage: null", "None; expected numbers or addresses of clauses"),
        ("params/x/usage: [true]", "quote null, true"),
        ("params/x/usage: []", "[]; expected numbers"),
        ("params/x,out/usage: 1\n  params/out/usage/1: 1", "params/out/usage is claimed twice; keep one"),
    ],
)
def test_mistakes_name_file_and_line(entry: str, message: str) -> None:
    text = f"{TEXT}claims:\n  {entry}\n"
    [found] = messages(text)
    assert message in found
    assert found.startswith(f"small.yaml:{text.count(chr(10))}: ")


@pytest.mark.parametrize("junk", ["", "1.5", "{}", "[[1]]", "true", "[1, null]", "{a: 1}"])
def test_junk_is_a_message(junk: str) -> None:
    [found] = messages(f"{TEXT}claims:\n  params/x/usage: {junk}\n")
    assert "expected numbers or addresses of clauses" in found


def test_sections_are_those_of_documents() -> None:
    assert tuple(section.value for section in Section) == SECTIONS
