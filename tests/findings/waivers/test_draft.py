from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml

from aclnn_cts.cli.main import main
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Result
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_writer import create_run
from aclnn_cts.store.summary import Summary
from tests.support.build_records import make_manifest, make_record
from tests.support.ran import Ran

CASE = {
    "format": "aclnn-cts/case/1",
    "operator": "aclnnSoftmaxBackward",
    "product": "atlas-a2",
    "arguments": {
        "gradOutput": {"tensor": {"shape": [2, 3], "dtype": "FLOAT", "data": {"recipe": "normal"}}},
        "output": {"tensor": {"shape": [2, 3], "dtype": "FLOAT", "data": {"recipe": "normal", "seed": 1}}},
        "dim": {"int": 0},
        "out": {"tensor": {"shape": [2, 3], "dtype": "FLOAT"}},
    },
}
WRONG = "wrong_adapters:Wrong,fault=value"
PINNED = Path(__file__).parents[3] / "waivers" / "cases"


@pytest.fixture(name="finding")
def find(ran: Callable[..., Ran], tmp_path: Path) -> Path:
    """The trial file of a failure."""
    (tmp_path / "case.json").write_text(json.dumps(CASE), encoding="utf-8")
    found = ran("run", "--cases", "case.json", "--adapter", WRONG)
    assert found.code == 1
    [file] = found.directory.failures()
    return file


def filled(text: str) -> str:
    for key, value in (("reason", "it computes in half"), ("owner", "numerics"), ("expiry", "2999-12-31")):
        head, found, rest = text.partition(f"    {key}:")
        assert found
        text = f"{head}{found} {value}  {rest}"
    return text


def test_a_draft_is_refused_until_a_person_has_filled_it_in(
    finding: Path, ran: Callable[..., Ran], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "waivers" / "mine.yaml"
    assert main(["waive", "add", str(finding), "-o", str(file)]) == 0
    assert capsys.readouterr().out == ""
    run = ("run", "--cases", "case.json", "--adapter", WRONG, "--waivers", str(file))
    refused = ran(*run)
    assert refused.code == 2
    for key in ("reason", "owner", "expiry"):
        assert f"waivers.0.{key}: not filled in; expected a" in refused.err
    text = filled(file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")
    waived = ran(*run)
    assert waived.code == 0, waived.err
    # The case, and the same one as the waiver pins it.
    assert (waived.result["failed"], waived.result["waived"]) == (2, 2)
    assert waived.result["verdict"] == "conforms-with-waivers"
    identifier = waived.directory.summary().waivers
    assert list(identifier.values()) == [2]
    [kept] = [path for path in waived.directory.waivers() if path.name == "mine.yaml"]
    assert kept.read_text(encoding="utf-8") == text
    # Mended: the pinned case passes, which the owner is told, and the run directory says.
    file.write_text(text.replace(WRONG, "reference"), encoding="utf-8")
    mended = ran("run", "--cases", "case.json", "--adapter", "reference", "--waivers", str(file))
    [notice] = mended.directory.summary().notices
    assert "its pinned cases pass now; remove it" in notice
    file.write_text(text.replace("2999-12-31", "2020-01-01"), encoding="utf-8")
    expired = ran(*run)
    assert expired.code == 1
    assert expired.result["waived"] == 0
    assert "expired on 2020-01-01" in expired.out + expired.err


def test_waived_failures_of_pinned_cases_alone_are_counted_everywhere(
    ran: Callable[..., Ran], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adapter = "wrong_adapters:Refusing,when=rank(gradOutput) == 2"
    (tmp_path / "case.json").write_text(json.dumps(CASE), encoding="utf-8")
    (tmp_path / "fine.json").write_text(json.dumps(CASE).replace("[2, 3]", "[6]"), encoding="utf-8")
    [finding] = ran("run", "--cases", "case.json", "--adapter", adapter).directory.failures()
    file = tmp_path / "mine.yaml"
    assert main(["waive", "add", str(finding), "-o", str(file)]) == 0
    file.write_text(filled(file.read_text(encoding="utf-8")), encoding="utf-8")
    run = ran("run", "--cases", "fine.json", "--adapter", adapter, "--waivers", str(file))
    assert (run.code, run.kinds) == (0, ["failed rejected", "passed"])
    assert {key: run.result[key] for key in ("verdict", "cases", "passed", "failed", "waived")} == {
        "verdict": "conforms-with-waivers", "cases": 2, "passed": 1, "failed": 1, "waived": 1,
    }  # fmt: skip
    assert "1 failed with a waiver" in run.out
    assert "1 waived finding," in run.out
    summary = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    assert (summary["waived"], list(summary["waivers"].values())) == (1, [1])
    report = acceptance([run.path])
    assert (report.ends.waived, sum(card.waived for card in report.findings)) == (1, 1)
    assert [check.ends.waived for check in report.checks if check.ends.cases] == [1]


def test_a_draft_on_standard_output_says_what_the_records_tell(
    finding: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["waive", "add", str(finding)]) == 0
    out = capsys.readouterr().out
    scope = out.partition("    scope:\n")[2].partition("      # when")[0]
    assert dict(line.strip().split(": ", 1) for line in scope.splitlines()) == {
        "adapter": WRONG,
        "operator": "aclnnSoftmaxBackward",
        "check": "values",
        "product": "atlas-a2",
        "dtype": "FLOAT",
        "output": "out",
        "kind": "value",
    }
    assert f"cases: [{finding}]" in out
    assert "1 trial fails like this" in " ".join(out.replace("\n# ", "\n").split())


def test_what_is_no_finding(finding: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [
        (str(tmp_path / "case.json"), "no finding; expected one of the trial files in the folder `failures`"),
        (str(finding.parent), "no finding; expected one of the trial files"),
        (str(finding.with_name("other.json")), "the run has no such finding"),
    ]
    for argument, message in wrong:
        assert main(["waive", "add", argument]) == 2
        assert message in capsys.readouterr().err
    assert main(["waive", "add", str(finding), "-o", str(tmp_path / "mine.json")]) == 2
    assert "expected a name that ends in .yaml" in capsys.readouterr().err


def test_a_draft_for_a_campaign_s_finding_names_all_that_it_takes_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = make_record(1, result=Result.FAILED, kind=Fault.VALUE, output="out")
    others = (
        make_record(2, result=Result.FAILED, kind=Fault.SPECIAL, output="out", check="boundary"),
        make_record(3, result=Result.FAILED, kind=Fault.MODEL, output="out", check="memory"),
    )
    records = [first, *(msgspec.structs.replace(item, fingerprint=first.fingerprint) for item in others)]
    with create_run(tmp_path / "run", manifest=make_manifest(command="fuzz"), specs={}) as writer:
        writer.append_part(Summary(), records)
        writer.finish()
    [file] = RunDirectory(tmp_path / "run").failures()
    assert main(["waive", "add", str(file)]) == 0
    out = capsys.readouterr().out
    scope = yaml.safe_load(out.partition("    scope:\n")[2].partition("      # when")[0])
    assert scope["check"] == ["boundary", "memory", "values"]
    assert sorted(scope["kind"]) == sorted([Fault.VALUE, Fault.SPECIAL, Fault.MODEL])


SOFTMAX_BINDING = """\
# The one that ships, in other words.
bindings:
  aclnnSoftmaxBackward:
    outputs: [out]
    call: _softmax_backward_data
    arguments: {input_dtype: {dtype: gradOutput}, grad_output: gradOutput, output: output, dim: dim}
    cast: true
    result: {like: gradOutput}
"""


def test_shipped_waivers_excuse_no_binding_of_the_user(
    ran: Callable[..., Ran], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same failures of torch's strided outputs are waived where the binding is the shipped one, however written."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    pinned = PINNED / "softmax-backward-strided-output.jsonl"
    lines = [line for line in pinned.read_text(encoding="utf-8").splitlines() if '"atlas-a2"' in line]
    (tmp_path / "cases.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "same.yaml").write_text(SOFTMAX_BINDING, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(SOFTMAX_BINDING.replace("dim: dim", "dim: {signed: dim}"), encoding="utf-8")
    run = ("run", "--cases", "cases.jsonl", "--adapter", "torch", "--bindings")
    same = ran(*run, "same.yaml")
    assert (same.code, same.result["verdict"]) == (0, "conforms-with-waivers")
    mine = ran(*run, "mine.yaml", "--fail-fast")
    assert (mine.code, mine.result["waived"]) == (1, 0)
    assert "1 waiver ignored: made for another binding of aclnnSoftmaxBackward" in mine.directory.summary().notices
    # A waiver of a failure of this binding names it.
    assert main(["waive", "add", str(mine.directory.failures()[0])]) == 0
    fact = mine.directory.manifest.environment["adapter.binding.aclnnSoftmaxBackward"].value
    assert f"      binding: {fact}" in capsys.readouterr().out.replace("'", "")
