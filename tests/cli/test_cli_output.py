"""What each command prints for one operator, held exactly."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import named

Call = Callable[..., Any]

OPERATOR = "aclnnSoftmaxBackward"
FIXTURES = Path(__file__).parents[1] / "fixtures"


@named(
    "arguments",
    [
        ("spec_show", ("spec", "show", OPERATOR)),
        ("spec_show_inference", ("spec", "show", "softmax_backward", "--product", "atlas-inference")),
        ("spec_show_json", ("spec", "show", OPERATOR, "--json")),
        ("clauses_en", ("clauses", OPERATOR)),
        ("clauses_zh", ("clauses", OPERATOR, "--lang", "zh")),
        ("cases", ("cases", OPERATOR, "-n", "3")),
        (
            "cases_invalid",
            ("cases", OPERATOR, "--kind", "invalid", "--product", "atlas-training", "-n", "2", "--seed", "7"),
        ),
    ],
)
def test_snapshot(call: Call, snapshot: SnapshotAssertion, arguments: tuple[str, ...]) -> None:
    called = call(*arguments)
    assert called.code == 0
    assert called == snapshot


def test_ops_shows_the_operator(call: Call, snapshot: SnapshotAssertion) -> None:
    called = call("ops")
    assert called.code == 0
    block = next(text for text in called.out.split("\n\n") if text.startswith(OPERATOR))
    assert block + "\n" == snapshot


def test_ops_json_counts_what_the_files_hold(call: Call) -> None:
    listed = {entry["operator"]: entry for entry in call("ops", "--json").lines}
    assert OPERATOR in listed
    clauses = Counter(item["operator"] for item in call("clauses", "--json").lines)
    for operator, entry in listed.items():
        assert entry["clauses"] == clauses[operator] > 0
        assert entry["constraints"] > 0
        assert set(entry["dtypes"]) == set(entry["products"])
        assert all(entry["dtypes"].values())


def test_clauses_json_names_only_constraints_that_exist(call: Call) -> None:
    shown = json.loads(call("spec", "show", OPERATOR, "--json").out)
    known = {item["id"] for item in shown["constraints"]}
    named = {
        identifier
        for clause in call("clauses", OPERATOR, "--json").lines
        for identifier in clause.get("constraints", ())
        if clause["operator"] == OPERATOR
    }
    assert named
    assert named <= known


def test_every_clause_is_encoded_or_says_why_not(call: Call) -> None:
    for clause in call("clauses", "--json").lines:
        how = clause["encoded"]
        assert clause[how], clause
        assert clause["en"]
        assert clause["zh"]


def test_validate(call: Call, snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    write_cases(call, tmp_path)
    assert call("validate", "valid.json", "broken.json", "trial.json", "other_product.json") == snapshot


def test_validate_json(call: Call, snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    write_cases(call, tmp_path)
    called = call("validate", "valid.json", "broken.json", "trial.json", "other_product.json", "--json")
    assert called == snapshot
    for entry in called.lines:
        assert {"file", "operator", "product", "status", "strength", "violates"} <= set(entry)


def test_validate_says_what_is_undecided_and_which_values_break_a_rule(call: Call, tmp_path: Path) -> None:
    opened = json.loads((FIXTURES / "cases" / "chamfer_index_through_batches.json").read_bytes())
    drawn = call("cases", "dropout_backward", "-n", "20", "--kind", "valid").lines
    sized = next(
        case for case in drawn if not any("strides" in item.get("tensor", {}) for item in case["arguments"].values())
    )
    for name in ("gradOutput", "mask", "out"):
        sized["arguments"][name]["tensor"]["shape"] = [512]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in (opened, sized)))
    answers = call("validate", "cases.jsonl", "--json").lines
    assert (answers[0]["strength"], answers[0]["elements"], answers[0]["open"]) == ("valid", 8, 8)
    assert answers[1]["mismatches"]["mask.bits"] == "512; must be 64"
    lines = call("validate", "cases.jsonl").out
    assert "8 elements, all of them open" in " ".join(lines.split())
    assert "512; must be 64" in lines


def test_validate_answers_what_it_can_read(call: Call, tmp_path: Path) -> None:
    write_cases(call, tmp_path)
    (tmp_path / "bad.json").write_text("{}")
    called = call("validate", "bad.json", "valid.json", "--json")
    assert called.code == 2
    assert [entry["file"] for entry in called.lines] == ["valid.json"]


def test_generated_cases_are_what_they_say(call: Call, tmp_path: Path) -> None:
    assert call("cases", OPERATOR, "-n", "25", "-o", "cases.jsonl").code == 0
    cases = [json.loads(line) for line in (tmp_path / "cases.jsonl").read_text().splitlines()]
    answers = call("validate", "cases.jsonl", "--json").lines
    assert len(cases) == len(answers)
    kinds = {"valid": 0, "invalid": 0, "boundary": 0}
    for case, answer in zip(cases, answers, strict=True):
        origin = case["origin"]
        kinds[origin["kind"]] += 1
        if origin["kind"] == "valid":
            assert answer["violates"] == []
            assert answer["status"] == ["ACLNN_SUCCESS"]
        if origin["kind"] == "invalid":
            assert origin["constraint"] in answer["violates"]
    assert kinds["invalid"] == 25
    assert kinds["valid"] == 2 * 25 + 24  # random ones, those at corners, all that are recorded
    assert kinds["boundary"] > 10


def test_cases_are_the_same_bytes_on_paper_and_in_a_file(call: Call, tmp_path: Path) -> None:
    shown = call("cases", OPERATOR, "-n", "5", "--seed", "11")
    assert call("cases", OPERATOR, "-n", "5", "--seed", "11", "-o", "cases.jsonl").code == 0
    assert (tmp_path / "cases.jsonl").read_text() == shown.out
    assert call("cases", OPERATOR, "-n", "5", "--seed", "12").out != shown.out


@pytest.mark.slow
def test_doctor_says_what_is_usable(call: Call) -> None:
    called = call("doctor", "--json")
    report = json.loads(called.out)
    assert called.code == 0
    assert report["store"]["writable"] is True
    usable = {item["name"]: item["usable"] for item in report["adapters"]}
    assert usable["reference"] is True
    assert report["libraries"]["numpy"]
    assert OPERATOR in report["specs"]["operators"]
    text = call("doctor")
    assert text.code == 0
    assert "reference" in text.out


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_nothing_is_wider_than_the_terminal(call: Call, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for arguments in (["ops"], ["spec", "show", OPERATOR], ["clauses", OPERATOR, "--lang", "zh"], ["doctor"]):
        for line in call(*arguments).out.splitlines():
            assert cell_len(line) <= int(columns), line
            assert line == line.rstrip()
            assert "\x1b" not in line


def write_cases(call: Call, folder: Path) -> None:
    """A valid case, one that breaks two rules, a trial, and one of a product that the document does not name."""
    case = json.loads(call("cases", OPERATOR, "--kind", "valid", "-n", "1").out)
    (folder / "valid.json").write_text(json.dumps(case))
    broken = json.loads(json.dumps(case))
    broken["arguments"]["dim"] = {"int": 12}
    broken["arguments"]["out"] = None
    (folder / "broken.json").write_text(json.dumps(broken))
    trial = {"format": "aclnn-cts/trial/2", "check": "values", "case": case, "parameters": {}}
    (folder / "trial.json").write_text(json.dumps(trial))
    conv = json.loads(call("cases", "conv_tbc_backward", "--kind", "valid", "-n", "1").out)
    conv["product"] = "atlas-inference"
    (folder / "other_product.json").write_text(json.dumps(conv))


def test_validate_runs_no_oracle_of_a_users_own_and_says_so(call: Call, tmp_path: Path) -> None:
    spec = (FIXTURES / "specs" / "logistic_backward.yaml").read_text(encoding="utf-8")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "logistic_backward.yaml").write_text(spec, encoding="utf-8")
    (tmp_path / "cases.jsonl").write_text(call("cases", "logistic_backward", "--specs", "mine", "-n", "2").out)
    called = call("validate", "cases.jsonl", "--specs", "mine", "--json")
    assert called.code == 0
    assert called.lines[0]["status"] == ["ACLNN_SUCCESS"]
    assert called.lines[0]["values"].startswith("not looked at: no oracle")
    assert "its values were not looked at" in " ".join(call("validate", "cases.jsonl", "--specs", "mine").out.split())
