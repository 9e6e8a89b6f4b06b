"""Every command that judges says in one line which waivers it ignores because of the implementation's version."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.findings.waivers.file import read_waivers
from tests.runs.campaign.test_campaign_waivers import softmax
from tests.support.ran import Ran

ENTRY = """\
  - id: ours.{name}
    scope: {{adapter: "versioned_adapter:Versioned", operator: {operator}, kind: value, version: ">=2.13,<2.14"}}
    reason: known
    owner: nobody
    expiry: 2999-12-31
"""
OPERATORS = {"one": "aclnnSoftmaxBackward", "two": "aclnnSoftmaxBackward", "three": "aclnnRmsNormGrad"}
CASES = ("--cases", "case.json")
FUZZ = ("softmax_backward", "--chunks", "1", "--chunk-trials", "16")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("run", *CASES), "2 waivers"),
        (("run", "softmax_backward", *CASES), "2 waivers"),
        (("replay", "case.json"), "2 waivers"),
        (("fuzz", *FUZZ), "2 waivers"),
    ],
    ids=["run", "run of one operator", "replay", "fuzz"],
)
@pytest.mark.parametrize("version", ["2.13.1", "2.15.0+cpu"])
def test_ignored_waivers_are_one_line(
    ran: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    number: str,
    version: str,
) -> None:
    entries = (ENTRY.format(name=name, operator=operator) for name, operator in OPERATORS.items())
    (tmp_path / "w.yaml").write_text("subject: s\nwaivers:\n" + "".join(entries), encoding="utf-8")
    assert len(read_waivers([tmp_path / "w.yaml"])) == 3
    (tmp_path / "case.json").write_text(json.dumps(case_to_json(softmax(4))), encoding="utf-8")
    monkeypatch.setenv("VERSIONED", version)
    done = ran(*words, "--adapter", "versioned_adapter:Versioned", "--waivers", "w.yaml")
    line = f"{number} ignored: versioned_adapter:Versioned 2.15.0 is outside >=2.13,<2.14"
    expected = [] if version == "2.13.1" else [line]
    assert [text for text in done.directory.summary().notices if " ignored: " in text] == expected
    assert [text for text in done.err.splitlines() if " ignored: " in text] == [f"note: {text}" for text in expected]
