"""What the gate is opened with, and how a search goes on where an implementation is fickle, deadly or right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import reject
from hypothesis import strategies as st

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.runs.changed import changed_files
from aclnn_cts.runs.gate import gate_options, open_gate
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.triage.search import DEATH_COST, EXAMPLES, SHRINKS, search, trial_strategy
from aclnn_cts.trials.confirm import FailureConfirmer

SIZES = st.integers(1, 1000).map(lambda size: Trial("values", Case("aclnnX", {"x": Tensor((size,), "FLOAT")})))

Judge = Callable[[Trial], Record]


def size_of(trial: Trial) -> int:
    tensor = trial.case.arguments["x"]
    assert isinstance(tensor, Tensor)
    return tensor.shape[0]


def judging(fails: Callable[[int], str]) -> tuple[Judge, list[int]]:
    """A judge by size: the kind of fault, or nothing. And the sizes that it was asked about."""
    asked: list[int] = []

    def judge(trial: Trial) -> Record:
        asked.append(size_of(trial))
        kind = fails(asked[-1])
        verdict = Verdict(result=Result.FAILED if kind else Result.PASSED, kind=kind)
        fingerprint = Fingerprint(operator="aclnnX", check="values", fault=kind)
        return Record(trial_id=trial.id, trial=trial, attempts=(), verdict=verdict, fingerprint=fingerprint)

    return judge, asked


def test_the_words_of_a_command_line() -> None:
    options = gate_options(adapter="torch:device=cpu", product="atlas-training", operators=["aclnnConvTbcBackward"])
    assert (options.settings.target.product, [spec.stem for spec in options.operators]) == (
        "atlas-training",
        ["conv_tbc_backward"],
    )
    assert [spec.operator for spec in gate_options(adapter="reference").operators] == list(load_specs())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"adapter": "torhc"}, "no adapter is called 'torhc'; expected one of reference, .*did you mean 'torch'"),
        ({"adapter": "torch:device"}, "expected options as key=value"),
        ({"operators": ["softmax_backwards"]}, "--op: 'softmax_backwards' is not known.*did you mean"),
        ({"operators": [""]}, "--op: '' is not known"),
        ({"product": "atlas-a4"}, "--product: 'atlas-a4' is not known; expected one of .*atlas-a3"),
        ({"profile_name": "quik"}, "--profile 'quik': expected one of quick, standard, thorough"),
        ({"waivers": [Path("none.yaml")]}, "none.yaml"),
        ({"spec_folders": [Path("none")]}, "none: is no folder"),
        ({"seed": -1}, "--seed -1: expected an integer from 0 to 18446744073709551615"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_word_is_an_error_that_says_what_was_expected(words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gate_options(**{"adapter": "reference", **words})


def test_changes_outside_of_a_repository_are_refused_without_the_usage_of_git(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a commit that git knows here; git says 'fatal: not a git repo"):
        changed_files("HEAD", tmp_path)


def test_a_search_without_a_failure_tells_every_trial() -> None:
    judge, asked = judging(lambda _size: "")
    found = search(SIZES, judge, seed=0)
    assert found.smallest is None
    assert [size_of(record.trial) for record in found.records] == asked
    assert len(set(asked)) == len(asked) <= EXAMPLES


def test_the_same_seed_searches_the_same_trials_and_another_seed_others() -> None:
    asked = []
    for seed in (7, 7, 8):
        judge, sizes = judging(lambda _size: "")
        search(SIZES, judge, seed=seed)
        asked.append(sizes)
    assert asked[0] == asked[1] != asked[2]


def test_a_failure_is_shrunk_to_the_smallest_that_fails_the_same_way() -> None:
    judge, asked = judging(lambda size: Fault.VALUE if size > 100 else Fault.STATUS if size > 5 else "")
    found = search(SIZES, judge, seed=0)
    first = next(size for size in asked if size > 5)
    assert found.smallest is not None
    assert size_of(found.smallest.trial) == (101 if first > 100 else 6)
    assert found.records == (found.smallest,)


def test_an_implementation_that_fails_now_and_then_ends_no_search() -> None:
    turns = iter(range(10_000))
    judge, asked = judging(lambda _size: Fault.VALUE if next(turns) % 3 == 0 else "")
    found = search(SIZES, judge, seed=0)
    assert found.smallest is not None
    assert len(asked) == len(set(asked))


def test_a_failure_that_kills_is_shrunk_by_few_trials() -> None:
    judge, asked = judging(lambda size: Fault.HANG if size > 1 else "")
    found = search(SIZES, judge, seed=0)
    assert found.smallest is not None
    hangs = sum(size > 1 for size in asked)
    assert 1 < hangs <= 1 + SHRINKS // DEATH_COST


def test_a_waived_failure_is_not_searched_further() -> None:
    judge, asked = judging(lambda _size: Fault.VALUE)

    def waiving(trial: Trial) -> Record:
        record = judge(trial)
        return Record(**{name: getattr(record, name) for name in record.__struct_fields__} | {"waiver": "known"})

    found = search(SIZES, waiving, seed=0)
    assert found.smallest is None
    assert len(found.records) == len(asked)


def test_nothing_to_draw_is_nothing_found() -> None:
    judge, asked = judging(lambda _size: Fault.VALUE)
    assert search(SIZES.map(lambda _trial: reject()), judge, seed=0).records == ()
    assert asked == []


@pytest.mark.parametrize("check", ["values", "status"])
def test_searched_trials_are_what_their_check_takes(check: str) -> None:
    specs = load_specs()
    spec = specs["aclnnEmbeddingDenseBackward"]
    seen: list[Trial] = []

    def judge(trial: Trial) -> Record:
        seen.append(trial)
        verdict, fingerprint = Verdict(result=Result.PASSED), Fingerprint(operator="", check="", fault="")
        return Record(trial_id=trial.id, trial=trial, attempts=(), verdict=verdict, fingerprint=fingerprint)

    search(trial_strategy(spec, Target(), check), judge, seed=0)
    assert seen
    for trial in seen:
        broken = evaluate(spec, trial.case).broken
        assert bool(broken) == (check == "status")
        assert ("twin" in trial.parameters) == (check == "status")
        assert all(not constraint.unsafe for constraint in broken)


TAIL = """\
subject: an implementation that is wrong in few cases
waivers:
  - id: rare.tail
    scope:
      adapter: "tests.support.rare_adapter:Rare"
      operator: aclnnSoftmaxBackward
      kind: [value, beyond-model, special-value]
    reason: its last element is wrong
    owner: nobody
    expiry: 2999-12-31
"""


@pytest.mark.parametrize("waived", [False, True])
def test_a_failure_is_run_again_alone_unless_it_is_waived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, waived: bool
) -> None:
    (tmp_path / "own.yaml").write_text(TAIL, encoding="utf-8")
    again: list[Record] = []
    confirmed = FailureConfirmer.confirm

    def counted(self: FailureConfirmer, record: Record, before: Sequence[PerformedCall]) -> Record:
        again.append(record)
        return confirmed(self, record, before)

    monkeypatch.setattr(FailureConfirmer, "confirm", counted)
    options = gate_options(
        adapter="tests.support.rare_adapter:Rare,fault=tail",
        operators=["softmax_backward"],
        waivers=[tmp_path / "own.yaml"] if waived else [],
    )
    gate = open_gate(options, failures=tmp_path / "found")
    try:
        result = gate.check(options.operators[0], "memory")
    finally:
        gate.close()
    assert result.counts.failed > 0
    assert bool(result.summary.waivers) == waived == (not result.findings) == (not again)
