"""`--edition` on the command line: the same case under two editions, in a run, its directory and its report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.speclang.package import package_folder
from tests.cli.conftest import Called

Call = Callable[..., Called]
SCALAR = {"shape": [], "dtype": "FLOAT", "format": "ND"}
INPUT = {"tensor": {**SCALAR, "data": {"recipe": "integers", "seed": 1, "low": -9, "high": 9}}}
CASE = {
    "format": "aclnn-cts/case/1",
    "operator": "aclnnSoftmaxBackward",
    "product": "atlas-a2",
    "arguments": {"gradOutput": INPUT, "output": INPUT, "dim": {"int": 0}, "out": {"tensor": SCALAR}},
}
"""Tensors without dimensions, of which one document says nothing; the other supports them."""


def test_a_run_is_held_to_the_edition_that_is_named(call: Call, tmp_path: Path) -> None:
    Path("case.json").write_text(json.dumps(CASE), encoding="utf-8")
    assert call("validate", "case.json", "--json").lines[0]["strength"] == "open"
    assert call("validate", "case.json", "--json", "--edition", "public").lines[0]["status"] == ["ACLNN_SUCCESS"]
    words = ("run", "softmax_backward", "--adapter", "reference", "--cases", "case.json")
    own = call(*words, "-o", "own")
    public = call(*words, "-o", "public", "--edition", "public")
    assert ("judged=0%" in own.out, "judged=100%" in public.out) == (True, True)
    manifest = json.loads(Path("public/manifest.json").read_bytes())
    assert manifest["settings"]["edition"] == "public"
    spec = call("spec", "show", "softmax_backward", "--edition", "public", "--json").lines[0]
    assert (spec["edition"], spec["sha256"]) == ("public", manifest["specs"]["softmax_backward.yaml"])
    assert "edition: public" in Path("public/specs/softmax_backward.yaml").read_text(encoding="utf-8")
    assert call("report", "public", "-o", "public.html").code == 0
    page = Path("public.html").read_text(encoding="utf-8")
    assert "Run public is held to the edition public of the documents." in page
    assert "edition = public" in page
    mixed = call("report", "own", "public", "-o", "both.html")
    assert (mixed.code, "another edition of the spec of aclnnSoftmaxBackward" in mixed.err) == (2, True)


def test_cases_of_an_edition_are_its_own(call: Call) -> None:
    made = call(
        "cases", "softmax_backward", "--edition", "public", "--product", "ascend-950", "--kind", "valid", "-n", "1"
    )
    assert (made.code, made.lines[0]["product"]) == (0, "ascend-950")
    refused = call("cases", "softmax_backward", "--product", "ascend-950", "--kind", "valid", "-n", "1")
    assert (refused.code, "'ascend-950' is not supported by aclnnSoftmaxBackward" in refused.err) == (2, True)


def test_a_wrong_edition_is_refused(call: Call) -> None:
    for words in (
        ("spec", "show", "softmax_backward"),
        ("spec", "lint"),
        ("run", "--adapter", "reference"),
        ("fuzz", "--adapter", "reference", "--chunks", "1"),
    ):
        found = call(*words, "--edition", "publci")
        assert found.code == 2
        assert "--edition: 'publci' is not known; expected one of public" in found.err


@pytest.mark.parametrize("place", ["editions/public", "editions/mine/deep", "plain"])
def test_spec_without_the_edition_is_itself_in_any_folder(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    text = (package_folder() / "sigmoid_backward.yaml").read_text(encoding="utf-8")
    (folder / "own_backward.yaml").write_text(
        text.replace("aclnnSigmoidBackward", "aclnnOwnBackward"), encoding="utf-8"
    )
    monkeypatch.chdir(folder)
    for words in ((), ("--edition", "public")):
        assert call("spec", "lint", "own_backward.yaml", *words).code == 0
