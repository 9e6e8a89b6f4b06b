"""`replay` on a directory of findings: an answer for each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from aclnn_cts.core.verdict import Signature
from aclnn_cts.engine.answers import Answer, answer, recorded_signatures
from aclnn_cts.engine.case_files import write_case_file
from tests.engine.campaign.test_shrink import softmax
from tests.engine.conftest import Ran

Run = Callable[..., Ran]
FAULT = "rare_adapter:Rare,fault=tail"


def test_answers_of_a_run(ran: Run, tmp_path: Path) -> None:
    cases = tmp_path / "cases.json"
    write_case_file(cases, [softmax((11,))])
    first = ran("run", "softmax_backward", "--adapter", FAULT, "--cases", str(cases))
    assert first.code == 1
    [file] = first.directory.failures()
    assert list(recorded_signatures(first.path)) == [file.name]
    still = ran("replay", str(first.path), "--adapter", FAULT)
    assert still.code == 1
    assert "1 still fails the same way" in still.out
    fixed = ran("replay", str(first.path / "failures"), "--adapter", "reference")
    assert fixed.code == 0
    assert "1 fixed" in fixed.out
    other = ran("replay", str(first.path), "--adapter", "rare_adapter:Rare,fault=die")
    assert other.code == 1
    assert "1 fails another way" in other.out
    # Without the run that it came from, nobody knows how a finding failed.
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "one.json").write_text(file.read_text())
    alone = ran("replay", str(folder), "--adapter", FAULT)
    assert alone.code == 1
    assert "1 fails" in alone.out
    trial = json.loads(file.read_text())
    for name in ("gradOutput", "output", "out"):
        trial["case"]["arguments"][name]["tensor"]["format"] = "NCL"
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = ran("replay", str(empty), "--adapter", FAULT)
    assert nothing.code == 2
    assert "holds no findings to replay" in nothing.err


def test_what_was_not_run_is_no_mending() -> None:
    trial = softmax((3,))
    before = Signature(operator="aclnnSoftmaxBackward", promise="values", kind="value")
    [missing] = answer([(Path("a.json"), trial)], {"a.json": before}, {})
    assert missing.answer == Answer.CANNOT
