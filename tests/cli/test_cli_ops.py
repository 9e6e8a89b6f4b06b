"""`ops`: how far each operator is encoded, and every public document by `--all`."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.authoring.catalogue import catalogue, catalogue_path, family_of
from aclnn_cts.cli import ops
from aclnn_cts.generate.corner_list import CORNERS_FORMAT, CornerList, corner_list_text, corners_path
from aclnn_cts.selftest.checked_oracles import CALLS, Checked, checked_path
from aclnn_cts.selftest.oracle_code import oracle_digest
from aclnn_cts.speclang.load import load_specs
from tests.cli.conftest import Called
from tools.catalogue import catalogue_of

Call = Callable[..., Called]
ROOT = Path(__file__).parents[2]
PUBLIC = ROOT.parent / "shared" / "docs" / "public"
FIXTURES = ROOT / "tests" / "fixtures"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def mine(*, claims: str | None = None, digest: str | None = None, calls: int = CALLS, listed: bool = True) -> None:
    """The operator of the fixtures in the folder `mine`; `listed`: with its corners."""
    for suffix in ("yaml", "py"):
        Path("mine").mkdir(exist_ok=True)
        shutil.copy(FIXTURES / "specs" / f"logistic_backward.{suffix}", "mine")
    if claims is not None:
        Path("mine/claims").mkdir(exist_ok=True)
        head = "format: aclnn-cts/claims/1\noperator: aclnnLogisticBackward\n"
        document = "document: {title: aclnnLogisticBackward, language: zh}\n"
        Path("mine/claims/logistic_backward.yaml").write_text(head + document + claims, encoding="utf-8")
    if digest is not None:
        checked = Checked(sha256=digest or oracle_digest("logistic_backward", [Path("mine")]), calls=calls, seed=0)
        path = checked_path(Path("mine"), "logistic_backward")
        path.parent.mkdir(exist_ok=True)
        path.write_text(checked.text(), encoding="utf-8")
    if listed:
        sha256 = hashlib.sha256(Path("mine/logistic_backward.yaml").read_bytes()).hexdigest()
        path = corners_path(Path("mine"), "logistic_backward")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(corner_list_text(CornerList(CORNERS_FORMAT, sha256, ())))


def completeness() -> ops.Completeness:
    """How far the operator in the folder `mine` is: `ops` computes it of every operator."""
    folders = (Path("mine"),)
    return ops.completeness_of(load_specs(folders).find("logistic_backward"), folders)


def entry(call: Call) -> dict[str, object]:
    found = call("ops", "--json", "--specs", "mine")
    assert found.code == 0
    [one] = [line for line in found.lines if line["operator"] == "aclnnLogisticBackward"]
    return dict(one)


CLAIMED = (
    "claims: {function/1#00000000: [function.1], limits/1#00000000: [function.1], limits/2#00000000: [function.1]}\n"
)
REASON = "untestable: {advice: [limits/3#00000000]}\n"
UNREAD = "untestable: {unread: [limits/3#00000000]}\n"
TWO = "untestable: {advice: [limits/3#00000000, limits/4#00000000]}\n"
LEFT = "open: [limits/3#00000000]\n"


def test_an_operator_without_a_list_of_its_corners_is_partial() -> None:
    mine(claims=CLAIMED + REASON, digest="", listed=False)
    assert ops.Demand.CORNERS in completeness().missing


def test_an_oracle_is_checked_with_all_its_calls() -> None:
    mine(claims=CLAIMED + REASON, digest="", calls=CALLS - 1)
    assert ops.Demand.CHECKED in completeness().missing


@pytest.mark.parametrize(
    ("claims", "digest", "missing", "audited"),
    [
        (None, None, ["audited", "testable", "oracle check"], None),
        (CLAIMED + LEFT, "", ["audited"], 0.75),
        (CLAIMED + UNREAD, "", ["audited"], 0.75),
        (CLAIMED + TWO, "", ["testable"], 1.0),
        (CLAIMED + REASON, None, ["oracle check"], 1.0),
        # Another file than the one that was checked.
        (CLAIMED + REASON, "0" * 64, ["oracle check"], 1.0),
        (CLAIMED + REASON, "", [], 1.0),
    ],
)
def test_an_operator_is_complete_where_nothing_is_missing(
    claims: str | None, digest: str | None, missing: list[str], audited: float | None
) -> None:
    mine(claims=claims, digest=digest)
    found = completeness()
    assert [item.value for item in found.missing] == missing
    assert found.audited == audited
    assert found.is_complete == (not missing)


def test_sentences_that_the_document_lacks_are_listed(call: Call) -> None:
    mine(claims=CLAIMED + REASON, digest="")
    complete = entry(call)
    assert (complete["status"], complete["missing"], complete["lacks"]) == ("complete", [], [])
    path = Path("mine/logistic_backward.yaml")
    sentence = "Where the slope of the origin lies."
    clause = f"{{en: {sentence}, untestable: missing, zh: 未作说明。}}"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("  function:\n", f"  function:\n    - {clause}\n"), encoding="utf-8")
    found = entry(call)
    assert found["status"] == "partial"
    assert found["audited"] == completeness().audited
    assert "sentences of the document" in str(found["missing"])
    assert found["lacks"] == [{"at": "function.1", "en": sentence, "zh": "未作说明。"}]
    # A spec without a document of the catalogue is listed too.
    assert sentence in call("ops", "--all", "--specs", "mine").out


def test_all_documents_are_listed_once(call: Call) -> None:
    found = call("ops", "--all", "--json")
    assert found.code == 0
    listed = {line["operator"]: line for line in found.lines}
    assert len(found.lines) == len(listed) == len(catalogue()) == 139
    assert listed["aclnnSoftmaxBackward"]["status"] in ("complete", "partial")
    assert listed["aclnnSoftmaxBackward"]["audited"] == 1.0
    assert listed["aclnnSoftmaxBackward"]["family"] == "activation"
    table = call("ops", "--all")
    assert (table.code, "aclnnAvgPool2dBackward" in table.out) == (0, True)


def test_a_wheel_has_no_catalogue_and_says_so(
    call: Call, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    monkeypatch.setattr("aclnn_cts.authoring.catalogue.catalogue_path", lambda: tmp_path / "absent.json")
    catalogue.cache_clear()
    request.addfinalizer(catalogue.cache_clear)
    found = call("ops", "--all", "--json")
    assert found.code == 0
    assert {line["operator"] for line in found.lines} == set(load_specs())
    assert "a clone of the repository has the catalogue" in found.err


def test_a_document_without_a_spec_is_a_draft(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    known = catalogue()
    document = msgspec.structs.replace(known["aclnnSoftmaxBackward"], operator="aclnnSharpmaxBackward", open=7)
    monkeypatch.setattr(ops, "catalogue", lambda: {**known, document.operator: document})
    found = call("ops", "--all", "--json")
    assert len(found.lines) == len(known) + 1
    listed = {line["operator"]: line for line in found.lines}
    assert listed["aclnnSharpmaxBackward"]["status"] == "draft"
    assert listed["aclnnSharpmaxBackward"]["document"]["open"] == 7
    assert "draft" in found.err


def test_a_broken_record_is_named(call: Call) -> None:
    mine()
    Path("mine/checked").mkdir()
    Path("mine/checked/logistic_backward.json").write_text(
        json.dumps({"format": "other", "sha256": "", "calls": 1, "seed": 0}), encoding="utf-8"
    )
    found = call("ops", "--json", "--specs", "mine")
    assert (found.code, "mine/checked/logistic_backward.json: " in found.err, "$.format" in found.err) == (
        2,
        True,
        True,
    )


def test_families_are_known_for_most_documents() -> None:
    assert {family_of(name) for name in catalogue()} >= {"activation", "loss", "pooling", "resize", "normalisation"}
    assert family_of("aclnnNothingKnown") == "other"


@pytest.mark.skipif(
    not PUBLIC.is_dir(), reason="the 139 public documents lie beside the checkout, in ../shared/docs/public"
)
def test_the_catalogue_is_that_of_the_documents() -> None:
    """After a change of reader or drafter: python -m tools.catalogue ../shared/docs/public"""
    assert catalogue_path().read_text(encoding="utf-8") == catalogue_of(PUBLIC)
