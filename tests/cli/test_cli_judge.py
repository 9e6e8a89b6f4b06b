from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from aclnn_cts.candidates.schemas import schemas
from tests.candidates import kernels
from tests.cli.conftest import Called
from tests.reports.junit_rules import problems
from tests.reports.test_formats import SARIF

FILE = Path(kernels.__file__)


def test_judge_prints_one_object_a_line(call: Callable[..., Called]) -> None:
    words = [f"{FILE}:{name}" for name in ("raises", "crashes")]
    called = call("judge", *words, "--op", "softmax_backward", "--json", "--seed", "3", "--workers", "2")
    assert called.code == 1
    assert {line["candidate"] for line in called.lines} == set(words)
    for line in called.lines:
        jsonschema.validate(line, schemas()["judgement"])
        assert (line["verdict"], line["seed"]) == ("fails", 3)


def test_judge_says_verdict_finding_and_isolation(call: Callable[..., Called]) -> None:
    called = call("judge", f"{FILE}:raises", "--op", "softmax_backward")
    assert called.code == 1
    assert called.out.startswith(f"fails: {FILE}")
    assert "no such kernel" in called.out
    assert "seed" in called.out
    assert "ran confined" in " ".join(called.out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((f"{FILE}:right", "--op", "no_operator"), "no_operator"),
        ((f"{FILE}:right", "--op", "softmax_backward", "--budget", "soon"), "budget"),
        ((f"{FILE}:right", "--op", "softmax_backward", "--profile", "huge"), "huge"),
        (("--op", "softmax_backward"), "CANDIDATE"),
    ],
)
def test_judge_refuses_wrong_words(call: Callable[..., Called], words: tuple[str, ...], message: str) -> None:
    called = call("judge", *words)
    assert called.code == 2
    assert message in called.err


_UNOPENED = {
    "nothing.py:f": "no file nothing.py",
    f"{FILE}:absent": f"{FILE} has no absent; expected right",
    "nothing.so": "no such file",
    "no_adapter": "no adapter is called 'no_adapter'",
    "no_module:Adapter": "no module 'no_module'",
    "own_adapter:Adapter": "SyntaxError",
    "text.so": "linked with all that it calls",
}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_candidate_that_cannot_be_opened_keeps_no_other_from_its_verdict(
    call: Callable[..., Called], tmp_path: Path, workers: str
) -> None:
    (tmp_path / "own_adapter.py").write_text("class Adapter(:", encoding="utf-8")
    (tmp_path / "text.so").write_text("no library", encoding="utf-8")
    words = [*_UNOPENED, f"{FILE}:raises"]
    called = call("judge", *words, "--op", "softmax_backward", "--json", "--seed", "3", "--workers", workers)
    assert called.code == 1
    lines = {line["candidate"]: line for line in called.lines}
    assert lines.keys() == set(words)
    for word, line in lines.items():
        jsonschema.validate(line, schemas()["judgement"])
        assert (line["verdict"], line["seed"], line["findings"][0]["fault"]) == ("fails", 3, "rejected")
        assert (line["isolation"] == "unopened") == (word in _UNOPENED)
        assert _UNOPENED.get(word, "no such kernel") in line["reason"]


def test_a_candidate_that_cannot_be_opened_is_told_in_its_line(call: Callable[..., Called]) -> None:
    called = call("judge", "nothing.py:f", "--op", "softmax_backward")
    assert called.code == 1
    assert called.out.startswith("fails: nothing.py:f\n")
    assert "no file nothing.py; expected FILE.py:FUNCTION" in " ".join(called.out.split())
    assert "was not run" in called.out


def test_what_is_missing_on_this_machine_decides_nothing(call: Callable[..., Called]) -> None:
    called = call("judge", "torch:device=cuda", "--op", "softmax_backward", "--json")
    assert called.code == 3
    assert (called.lines[0]["verdict"], called.lines[0]["findings"]) == ("inconclusive", [])
    assert called.lines[0]["reason"].startswith("candidate torch: device=cuda cannot be used here")


def test_judgements_are_written_as_junit_and_sarif(call: Callable[..., Called], tmp_path: Path) -> None:
    words = [f"{FILE}:{name}" for name in ("right", "wrong", "raises")]
    options = ["--op", "softmax_backward", "--seed", "3", "--junit", "out.xml", "--sarif", "out.sarif"]
    assert call("judge", *words, *options).code == 1
    assert problems(ET.parse(tmp_path / "out.xml").getroot()) == []
    [suite] = ET.parse(tmp_path / "out.xml").getroot()
    assert (suite.attrib["name"], suite.attrib["tests"], suite.attrib["failures"]) == ("aclnnSoftmaxBackward", "3", "2")
    assert {test.attrib["name"] for test in suite if test.find("failure") is not None} == {*words[1:]}
    log = json.loads((tmp_path / "out.sarif").read_text(encoding="utf-8"))
    jsonschema.validate(log, SARIF)
    [run] = log["runs"]
    assert {result["properties"]["seed"] for result in run["results"]} == {3}
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [item["ruleId"] for item in run["results"]]
    assert any(result["properties"]["clause"] for result in run["results"])


def test_a_file_of_another_program_is_not_replaced(call: Callable[..., Called], tmp_path: Path) -> None:
    (tmp_path / "out.xml").write_text("mine", encoding="utf-8")
    assert call("judge", f"{FILE}:right", "--op", "softmax_backward", "--junit", "out.xml").code == 2
    assert (tmp_path / "out.xml").read_text(encoding="utf-8") == "mine"
