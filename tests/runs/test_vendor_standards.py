"""Runs by a vendor's acceptance standard: what is planned, how it is judged, what the signing edition says of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from selectolax.lexbor import LexborHTMLParser

from aclnn_cts.cli.main import main
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.standard import CASCADE, STANDARDS, source_details
from aclnn_cts.core.verdict import Record, Result, ToleranceVerdict
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.store.run_verdict import SUFFICIENT
from aclnn_cts.trials.plan import CHUNK, STANDARD_PROFILES, CaseSource, Part, plan_parts, profile
from tests.runs.test_run_faults import wrong
from tests.support.ran import Ran
from tests.support.trial_runs import specs

Run = Callable[..., Ran]
RULES: dict[str, tuple[str, ...]] = {
    "cann-standard": (
        "Cases of an operator",
        "Dtypes, formats, ranks, attributes",
        "Sizes of dimensions",
        "Values",
        "Empty tensors",
        "Shape [1]",
        "All dimensions 1",
        "Special values inf, -inf, nan",
        "One dimension at its maximum",
        "Precision",
        "Memory before a call",
    ),
}
RULES["cann-l0"] = (
    "Cases of an operator",
    "Cases of each dtype",
    *RULES["cann-standard"][1:9],
    "Calls outside documented bounds",
    "Cascade of forward and backward",
    "Repeats",
    "Elements of all outputs",
    "Precision",
    "Benchmark",
    "Memory before a call",
    "Failed cases examined again",
)
RULES["cann-l1"] = (*RULES["cann-l0"][:5], "Outliers", "Cases from models", *RULES["cann-l0"][5:])
RULES["cann-l2"] = RULES["cann-l1"]
FAST = [
    pytest.param(name, marks=pytest.mark.slow) if STANDARDS[name].repeats > 50 else name for name in STANDARD_PROFILES
]


def table(run: Ran, language: str = "en") -> dict[str, list[str]]:
    """The signing edition's rows by rule: asked, done, missing."""
    page = run.path.with_suffix(f".{language}.html")
    assert main(["report", str(run.path), "--format", "signing", "--lang", language, "-o", str(page)]) == 0
    rows = LexborHTMLParser(page.read_text(encoding="utf-8")).css("table.standard tbody tr")
    cells = [[cell.text(separator=" ").replace("\u202f", ",").strip() for cell in row.css("th,td")] for row in rows]
    return {name: rest for name, *rest in cells}


def limited(run: Run, name: str, most: int, *words: str, operator: str = "tanh_backward") -> Ran:
    """A run with fewer cases than are asked for."""
    adapter = () if "--adapter" in words else ("--adapter", "reference")
    product = ("--product", "atlas-a2")
    return run("run", operator, *adapter, *product, "--profile", name, "--max-cases", str(most), *words)


def cases(run: Ran, what: str) -> Iterator[Record]:
    return (record for record in run.records if source_details(record.trial.case.origin.source or "")[1] == what)


def parts(name: str, operator: str = "aclnnTanhBackward", *, most: int = 0) -> list[Part]:
    chosen = profile(name, standards=True)
    chosen = chosen.limited(most) if most else chosen
    return plan_parts([specs()[operator]], product="atlas-a2", chosen=chosen)


def test_the_profiles_are_the_standards() -> None:
    assert tuple(STANDARDS) == STANDARD_PROFILES
    assert set(STANDARDS) < SUFFICIENT


@pytest.mark.parametrize(
    ("name", "number", "repeats"),
    [("cann-standard", 5_000, 0), ("cann-l0", 5_000, 50), ("cann-l1", 10_000, 50), ("cann-l2", 30_000, 1_000)],
)
def test_a_plan_has_the_cases_and_repeats_of_its_standard(name: str, number: int, repeats: int) -> None:
    generated = [part for part in parts(name) if part.source is CaseSource.STANDARD]
    assert sum(part.count for part in generated) == number
    assert max(part.count for part in generated) <= CHUNK
    assert {part.repeats for part in generated} == {repeats}
    assert {part.check for part in generated} == {"determinism" if repeats else "values"}
    assert {part.check for part in parts(name)} >= {"status", "boundary", "example"}
    assert any(part.source is CaseSource.SPECIAL for part in parts(name))


def test_a_limit_counts_for_each_kind() -> None:
    planned = parts("cann-l1", most=7)
    assert sum(part.count for part in planned if part.source is CaseSource.STANDARD) == 7
    assert all(part.count <= 7 for part in planned)


@pytest.mark.parametrize("name", FAST)
def test_the_signing_edition_states_every_rule(ran: Run, name: str) -> None:
    run = limited(ran, name, 3)
    assert run.code == 0, run.out
    standard = STANDARDS[name]
    assert standard.tolerance in run.directory.manifest.tolerances
    rules = table(run)
    assert tuple(rules) == RULES[name]
    assert [len(row) for row in rules.values()] == [3] * len(rules)
    chinese = table(run, "zh")
    assert len(chinese) == len(rules)
    assert not any(re.search("[a-z]{4,} [a-z]{4,}", text) for row in chinese.values() for text in row)
    judged = [item for item in cases(run, "generated") if item.verdict.result == Result.PASSED]
    assert 0 < len(judged) <= 3
    assert all(standard.tolerance in item.verdict.tolerances for item in judged)
    assert all(item.trial.parameters.get("repeats", 1) == standard.repeats for item in judged)
    if standard.cases:
        asked, done, missing = rules["Cases of an operator"]
        assert asked == f"At least {standard.cases:,}"
        assert done.startswith("In part")
        assert "limited to 3 cases of each kind (--max-cases)" in missing


def test_a_limited_run_does_not_suffice_for_acceptance(ran: Run) -> None:
    run = limited(ran, "cann-standard", 3)
    assert "Verdict: conforms; fewer cases than its profile has" in run.out
    page = run.path.with_suffix(".html")
    assert main(["report", str(run.path), "--format", "signing", "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "not enough for acceptance" in text
    assert "limited to fewer cases than its profile asks for" in text


def test_a_whole_table_is_counted_from_records(ran: Run) -> None:
    """Enough cases for each special one, and for each distribution."""
    rules = table(limited(ran, "cann-standard", 90))
    assert rules["Cases of an operator"][1] == "Done : 115 different cases judged, seeds not counted"
    assert "90 of 324 combinations" in rules["Dtypes, formats, ranks, attributes"][1]
    assert rules["Values"] == [
        "50% uniform in [-5, 5]; 50% normal, mean in [-5, 5], deviation in [0.1, 2]",
        "In part : 51% uniform; 49% normal",
        (
            "Contents as documented, in place of the standard's values: output; "
            "the run was limited to 90 cases of each kind (--max-cases)"
        ),
    ]
    assert rules["Shape [1]"][1] == rules["All dimensions 1"][1] == "Done : 4 cases, 4 of 4 dtypes"
    assert rules["Special values inf, -inf, nan"][1].startswith("Done : 16 of 16 pairs of dtype and value")
    assert "2,147,483,646 in the first phase alone" in rules["One dimension at its maximum"][1]
    assert rules["Empty tensors"][1:] == [
        "Not done : 0 cases, 0 of 4 dtypes",
        "No valid call is such a one, as the document has it",
    ]
    assert rules["Precision"][1].endswith("outputs passed, 0 failed")


def test_sizes_off_the_steps_are_counted(ran: Run) -> None:
    asked, done, missing = table(limited(ran, "cann-l0", 20))["Sizes of dimensions"]
    assert asked == "Steps of 15 and 16"
    found = re.match(r"In part : (\d+) of (\d+) sizes are multiples of 15 or 16", done)
    assert found
    assert 0 < int(found[1]) < int(found[2])
    assert missing


def test_what_max_bytes_cuts_off_is_told(ran: Run) -> None:
    run = limited(ran, "cann-standard", 60, "--max-bytes", "40000")
    assert max(record.trial.case.nbytes for record in cases(run, "generated")) <= 40_000
    assert "--max-bytes (39.1 KiB)" in table(run)["Sizes of dimensions"][2]
    assert "--max-bytes (39.1 KiB)" in table(run)["One dimension at its maximum"][2]


def test_a_limit_is_named_only_where_it_left_something_out(ran: Run) -> None:
    rows = table(limited(ran, "cann-standard", 100, operator="softmax_backward"))
    # All special cases are fewer, and the document has no empty one.
    assert rows["Empty tensors"][1:] == [
        "Not done : 0 cases, 0 of 3 dtypes",
        "No valid call is such a one, as the document has it",
    ]
    assert "--max-cases" not in rows["One dimension at its maximum"][2]
    assert "--max-cases" in rows["Sizes of dimensions"][2]


def test_repeats_find_a_call_that_changes_seldom(ran: Run) -> None:
    """Softmax promises equal bits; the values of all calls are right."""
    run = limited(ran, "cann-l0", 4, "--adapter", wrong("seldom"), operator="softmax_backward")
    found = [item for item in run.records if item.verdict.kind == Fault.NONDETERMINISTIC]
    assert any("generated" in (item.trial.case.origin.source or "") for item in found)
    assert all("one of at most 50 repetitions differs" in item.verdict.message for item in found)
    assert all(len(item.attempts[0]) == 2 for item in found)
    assert f"; {len(found)} of them with unequal bits" in table(run)["Repeats"][1]


def test_repeats_of_what_looks_like_the_fill_are_not_unwritten(ran: Run) -> None:
    run = limited(ran, "cann-l0", 3, "--adapter", wrong("first-fill"))
    assert Fault.UNWRITTEN not in {item.verdict.kind for item in run.records}
    assert {item.verdict.result for item in cases(run, "generated")} == {Result.FAILED}


def test_repeats_without_a_promise_may_change_within_the_bound(ran: Run) -> None:
    run = limited(ran, "cann-l0", 4, "--adapter", wrong("seldom"), operator="rms_norm_grad")
    kept = [
        item for item in cases(run, "generated") if any("differ" in str(fact) for fact in item.verdict.facts.values())
    ]
    assert any(item.verdict.result == Result.PASSED for item in kept)


def test_a_benchmark_takes_the_place_of_the_formula(ran: Run) -> None:
    run = limited(ran, "cann-l0", 3, "--benchmark", wrong("value"))
    assert run.code == 0, run.out
    assert run.directory.manifest.settings["benchmark"] == wrong("value")
    results = [
        result
        for record in cases(run, "generated")
        for result in record.verdict.tolerances["dual-l0"].values()
        if result.verdict == ToleranceVerdict.PASS
    ]
    assert results
    [name] = {result.benchmark for result in results}
    assert not name.startswith("NumPy in FLOAT")
    assert table(run)["Benchmark"][1] == f"Done : the adapter {wrong('value')}: {name}"
    formula = limited(ran, "cann-l0", 1)
    assert "same precision on the CPU" in table(formula)["Benchmark"][1]


@pytest.mark.slow
def test_a_finding_against_a_benchmark_is_replayed_and_shrunk_against_it(
    ran: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The formula's own error is far below torch's, which keeps the bound."""
    words = ("--adapter", "torch", "--benchmark", "reference")
    run = limited(ran, "cann-l0", 8, *words, operator="sigmoid_backward")
    [file] = [item for item in run.directory.failures() if "tolerance" in item.name]
    for source in (file, run.path):
        assert "failed tolerance" in ran("replay", str(source), "--adapter", "torch").kinds
    small = str(tmp_path / "small.json")
    assert main(["shrink", str(file), "--adapter", "torch", "-o", small]) == 1
    assert main(["shrink", str(run.path), "--executions", "5"]) == 1
    assert main(["replay", str(file), "--adapter", "torch", "--benchmark", "loopback"]) == 2
    assert f"{run.path} was made with 'reference'" in capsys.readouterr().err


def test_a_benchmark_of_the_users_own_is_not_called_before_it_is_named_again(
    ran: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--adapter", wrong("value"), "--benchmark", wrong("none"))
    run = limited(ran, "cann-l0", 1, *words)
    [file, *_] = run.directory.failures()
    assert f"--benchmark {wrong('none')}" in run.out.replace("\n", "")
    assert main(["replay", str(file), *words[:2]]) == 2
    assert main(["shrink", str(run.path), *words[:2]]) == 2
    assert capsys.readouterr().err.count("give it with --benchmark") == 2
    assert ran("replay", str(file), *words).kinds == ["failed value"]


def test_a_benchmark_that_refuses_leaves_its_outputs_without_a_result(ran: Run) -> None:
    run = limited(ran, "cann-l0", 5, "--benchmark", wrong("raise"))
    assert (run.code, run.result["verdict"]) == (3, "inconclusive")
    assert f"aclnnTanhBackward: --benchmark {wrong('raise')} answered no call" in " ".join(run.out.split())
    assert table(run)["Benchmark"][1] == "Not done : none"
    row = table(run)["Precision"]
    assert row[1].startswith("Not done : 0 outputs pass")
    assert "outputs without a benchmark" in row[2]


def test_a_benchmark_without_the_operator_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = "aclnn_cts.adapters.example:OneBlockSoftmax"
    words = ["run", "tanh_backward", "--adapter", "reference", "--profile", "cann-l0", "--output", str(tmp_path / "r")]
    assert main([*words, "--benchmark", benchmark]) == 2
    assert f"--benchmark {benchmark}: does not offer aclnnTanhBackward; expected" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_benchmark_needs_a_rule_that_compares(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "tanh_backward", "--adapter", "reference", "--benchmark", "torch"]
    assert main(words) == 2
    assert "nothing compares with it; name one of dual-l0, dual-l1, dual-l2" in capsys.readouterr().err


def test_a_benchmark_that_cannot_be_opened_is_named_by_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "tanh_backward", "--adapter", "reference", "--profile", "cann-l0", "--benchmark", "nosuch:X"]
    assert main(words) == 2
    assert "error: --benchmark nosuch:X: " in capsys.readouterr().err


def test_a_bundle_is_verified_without_the_benchmark(ran: Run, tmp_path: Path) -> None:
    run = limited(ran, "cann-l0", 4, "--benchmark", wrong("value"))
    bundle = str(tmp_path / "run.zip")
    assert main(["bundle", str(run.path), "-o", bundle]) == 0
    assert main(["verify", bundle, "--recompute", "50", "--seed", "1"]) == 0


def test_saved_tensors_come_from_the_forward_pass(ran: Run) -> None:
    """Of softmax: rows of positive numbers with the sum 1, as the formula makes them of the standard's values."""
    run = limited(ran, "cann-l0", 12, operator="softmax_backward")
    found = [item for item in cases(run, "generated") if CASCADE in (item.trial.case.origin.source or "")]
    assert found
    for item in found:
        assert item.verdict.result == Result.PASSED
        case = item.trial.case
        output, axis = case_arrays(case, ["output"])["output"].astype(np.float64), case.arguments["dim"]
        assert isinstance(axis, int)
        np.testing.assert_allclose(output.sum(axis), 1.0, atol=output.shape[axis] * 2.0**-8)
    row = table(run)["Cascade of forward and backward"]
    assert row[1].endswith(f"{len(found)} of 12 generated cases: output, computed by the operator's formula")
    assert "own forward operator was not called" in row[2]


def test_an_operator_that_saves_nothing_has_no_cascade(ran: Run) -> None:
    row = table(limited(ran, "cann-l0", 2, operator="leaky_relu_backward"))["Cascade of forward and backward"]
    assert row[1:] == ["Not applicable : no input comes from a forward pass", "—"]


def test_the_table_says_what_was_not_judged_and_that_no_failed_case_was_examined_again(ran: Run) -> None:
    rows = table(
        limited(
            ran, "cann-l0", 1, "--adapter", "aclnn_cts.adapters.example:OneBlockSoftmax", operator="softmax_backward"
        )
    )
    outside = rows["Calls outside documented bounds"]
    assert outside[1].startswith("Not done : 0 calls judged")
    assert "calls that the implementation does not offer, or returns no status for" in outside[2]
    failing = table(limited(ran, "cann-l0", 1, "--adapter", wrong("value")))
    assert re.match(r"Not done : none of [1-9]\d* failed cases?$", failing["Failed cases examined again"][1])
    passing = table(limited(ran, "cann-l0", 1))
    assert passing["Failed cases examined again"][1].startswith("Not applicable")
    assert not re.search(r"\b1 (cases|options|shapes)", str(passing))


@pytest.mark.slow
def test_records_do_not_depend_on_workers(ran: Run) -> None:
    one, two = (limited(ran, "cann-l0", 12, "--workers", workers) for workers in ("1", "2"))
    assert [item.trial_id for item in one.records] == [item.trial_id for item in two.records]
    assert table(one) == table(two)


def test_a_run_of_several_operators_names_the_furthest(ran: Run) -> None:
    words = ("--adapter", "reference", "--product", "atlas-a2", "--profile", "cann-standard", "--max-cases", "25")
    run = ran("run", "tanh_backward", "silu_backward", *words)
    row = table(run)["Empty tensors"]
    assert row[1].startswith("Done for 1 of 2 operators : aclnn Tanh Backward: 0 cases")
