"""Trials of laws: what is generated, that it can be replayed from a file, and what is said of one that cannot."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from aclnn_cts.adapters.reference import ReferenceAdapter
from aclnn_cts.checks import laws
from aclnn_cts.checks.plan import PROFILES, plan_parts
from aclnn_cts.checks.registry import CHECKS, check
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.expected import Arithmetic, ExpectedOutput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.law import Law
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial, trial_from_json, trial_to_json
from aclnn_cts.core.verdict import FAILED_CHECKS, Result, Skip
from aclnn_cts.findings.explain import explain
from aclnn_cts.generate.buffers import check_view
from aclnn_cts.oracles import registry, softmax_backward
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.store.summary import Summary, summary_from_json, summary_to_json
from tests.support.emulated_laws import Emulated
from tests.support.laws import bench, pairs, records, specs, trials
from tests.support.targets import first_fast

SOFTMAX = "aclnnSoftmaxBackward"


@pytest.mark.parametrize(("law", "operator"), pairs())
def test_trials_are_small_and_all_their_calls_are_valid(law: str, operator: str) -> None:
    made = bench(ReferenceAdapter())
    spec = specs()[operator]
    stated = laws.law_of(spec, law)
    generated = trials(made, law, operator, 6)
    assert len(generated) == 6
    assert len({trial.id for trial in generated}) == 6
    for trial in generated:
        assert trial.case.origin.kind == laws.LAW_KIND
        calls = CHECKS[law].calls(trial, spec)
        assert calls
        for call in (trial.case, *calls):
            assert not evaluate(spec, call).broken
            for _, tensor in call.tensors():
                assert tensor.numel <= stated.base_elements
                assert check_view(tensor) is None


@pytest.mark.parametrize(("law", "operator"), pairs())
def test_a_trial_file_gives_the_same_calls(law: str, operator: str) -> None:
    made = bench(ReferenceAdapter())
    spec = specs()[operator]
    for trial in trials(made, law, operator, 2):
        again = trial_from_json(json.loads(json.dumps(trial_to_json(trial))), where="file")
        assert isinstance(again, Trial)
        assert again.id == trial.id
        kept, read = CHECKS[law].calls(trial, spec), CHECKS[law].calls(again, spec)
        assert [case_id(call) for call in kept] == [case_id(call) for call in read]


@pytest.mark.parametrize("operator", first_fast(sorted(specs(), reverse=True)))
def test_bases_of_what_wants_long_sums_have_longer_ones(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = bench(ReferenceAdapter())
    spec = specs()[operator]

    def measured() -> list[int]:
        return [laws.orders(spec, trial.case) for trial in trials(made, "law/repeat", operator, 24)]

    chosen = measured()
    monkeypatch.setattr(laws, "_CANDIDATES", 1)
    left_to_chance = measured()
    assert all(one >= other for one, other in zip(chosen, left_to_chance, strict=True))
    assert sum(chosen) > 2 * sum(left_to_chance)
    assert sum(one > 0 for one in chosen) >= 12


def test_orders_counts_roundings_beyond_the_first() -> None:
    """Upsampling from 6 to 2 makes sums of three: two additions each, of which the second can come first."""
    spec = specs()["aclnnUpsampleNearestExact1dBackward"]

    def case(length: int) -> Case:
        return Case(
            spec.operator,
            {
                "gradOutput": Tensor((5, 1, length), "FLOAT", data=Data(recipe="normal")),
                "outputSizeOptional": (length,),
                "inputSize": (5, 1, 2),
                "scalesOptional": 0.0,
                "out": Tensor((5, 1, 2), "FLOAT"),
            },
        )

    assert laws.orders(spec, case(6)) == 10
    assert laws.orders(spec, case(4)) == 0


def test_orders_counts_no_element_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zero without error, nan and what is open: no order of evaluation shows in them."""
    arithmetic = Arithmetic()
    value = np.array([1.0, 1.0, 0.0, 0.0, math.nan, math.inf, 1.0])
    rounded = np.array([3.0, 3.0, 0.0, 0.0, 3.0, 3.0, 1.0]) * arithmetic.roundoff
    undecided = np.array([False, True, False, False, False, False, False])
    output = ExpectedOutput(value=value, error=rounded, open=undecided, arithmetic=arithmetic)
    monkeypatch.setattr(registry, "load", lambda *_, **__: lambda _question: {"gradInput": output})
    made = bench(ReferenceAdapter())
    case = trials(made, "law/repeat", SOFTMAX, 1)[0].case
    assert laws.orders(specs()[SOFTMAX], case) == 2


def test_repeating_without_the_law_s_choice_of_data_takes_the_base_s_own() -> None:
    """Trials that were recorded before there was a choice can be replayed."""
    (trial,) = trials(bench(ReferenceAdapter()), "law/repeat", SOFTMAX, 1)
    tensor = trial.case.arguments["gradOutput"]
    assert isinstance(tensor, Tensor)
    rounds = msgspec.structs.replace(tensor, data=Data(recipe="uniform", seed=3))
    case = msgspec.structs.replace(trial.case, arguments={**trial.case.arguments, "gradOutput": rounds})
    calls = CHECKS["law/repeat"].calls(Trial(trial.check, case), specs()[SOFTMAX])
    assert {case_id(call) for call in calls} == {case_id(case)}


def test_the_same_seed_gives_the_same_trials() -> None:
    made = bench(ReferenceAdapter())
    one, two, other = (trials(made, "law/linear", SOFTMAX, 5, seed=seed) for seed in (3, 3, 4))
    assert [trial.id for trial in one] == [trial.id for trial in two]
    assert [trial.id for trial in one] != [trial.id for trial in other]


def test_a_plan_has_each_law_of_each_operator_of_the_product() -> None:
    for name, count in (("quick", 8), ("standard", 100), ("thorough", 1_000)):
        parts = plan_parts(list(specs().values()), product="atlas-a2", chosen=PROFILES[name], laws=laws.law_ids)
        planned: dict[tuple[str, str], int] = {}
        for part in parts:
            if part.kind == laws.LAW_KIND:
                key = (part.check, part.operator)
                planned[key] = planned.get(key, 0) + part.count
        assert planned == dict.fromkeys(pairs(), count)


def test_what_a_batch_tried_and_what_was_withheld_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = bench(ReferenceAdapter())
    monkeypatch.setattr(laws, "ATTEMPTS", 1)
    summary = Summary()
    for judged in made.run(trials(made, "law/split", SOFTMAX, 40)):
        summary.include(judged.coverage)
    count = summary.operator(SOFTMAX).law("law/split")
    tried, withheld = count.tried, count.withheld
    assert tried > 0
    assert withheld > 0
    assert tried + withheld == 40
    [note] = summary.untried({SOFTMAX: ["law/split", "law/zero"]})
    assert note.text == f"{SOFTMAX}: law/zero never tried"
    twice = summary_from_json(summary_to_json(summary), where="summary.json")
    twice.include(summary)
    assert twice.operator(SOFTMAX).law("law/split").withheld == 2 * withheld
    assert twice.operator(SOFTMAX).law("law/split").tried == 2 * tried


def test_laws_are_checks_with_sentences() -> None:
    assert {identifier for identifier, _ in pairs()} == {name for name in CHECKS if name.startswith(laws.PREFIX)}
    assert all(CHECKS[identifier].sentence for identifier, _ in pairs())
    with pytest.raises(UsageError, match="expected one of"):
        check("laws/linear", where="file")
    with pytest.raises(UsageError, match=r"has no such law; .*did you mean 'law/linear'"):
        laws.law_of(specs()[SOFTMAX], "law/linea")
    with pytest.raises(UsageError, match="law/total"):
        laws.law_of(specs()[SOFTMAX], "law/total")


def linear_trial() -> Trial:
    return trials(bench(ReferenceAdapter()), "law/linear", SOFTMAX, 1)[0]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "KeyError"),
        ({"way": 2, "a": 99, "b": 0, "key": 1}, "IndexError"),
        ({"way": "x", "a": 0, "b": 0, "key": 1}, r"\$\.parameters\.way: 'x'; expected an integer"),
        ({"way": True, "a": 0, "b": 0, "key": 1}, "expected an integer"),
    ],
)
def test_parameters_that_do_not_fit_are_told(parameters: dict[str, object], said: str) -> None:
    trial = msgspec.structs.replace(linear_trial(), parameters=parameters)
    with pytest.raises(UsageError, match=said):
        CHECKS["law/linear"].calls(trial, specs()[SOFTMAX])


def test_a_base_that_the_law_cannot_use_is_told() -> None:
    trial = linear_trial()
    tensor = trial.case.arguments["gradOutput"]
    assert isinstance(tensor, Tensor)
    special = msgspec.structs.replace(
        tensor, data=msgspec.convert({"recipe": "constant", "mean": 1e39}, type(tensor.data))
    )
    case = msgspec.structs.replace(trial.case, arguments={**trial.case.arguments, "gradOutput": special})
    with pytest.raises(UsageError, match="applies to"):
        CHECKS["law/linear"].calls(msgspec.structs.replace(trial, case=case), specs()[SOFTMAX])


def test_a_failure_is_told_with_the_law_its_calls_and_both_sides() -> None:
    made = bench(Emulated(fault="wavers"), Target(product="atlas-a2", deterministic=True))
    record = next(record for record in records(made, "law/repeat", SOFTMAX, 24) if record.verdict.kind == Fault.LAW)
    assert record.verdict.facts[FAILED_CHECKS] == ["relation"]
    text = "\n".join(explain(record, specs()[SOFTMAX]))
    assert f"law repeat: {laws.law_of(specs()[SOFTMAX], 'law/repeat').en}" in text
    assert "chosen: " in text
    assert "call 1: " in text
    assert "worst out[" in text
    assert ": left " in text
    assert ", right " in text
    chinese = "\n".join(explain(record, specs()[SOFTMAX], language="zh"))
    assert laws.law_of(specs()[SOFTMAX], "law/repeat").zh in chinese


def test_a_failure_of_values_and_relation_says_both() -> None:
    """The values of one call decide; the relation that they break is named beside them."""
    made = bench(Emulated(fault="clipped"))
    failed = [item for item in records(made, "law/linear", SOFTMAX, 24) if item.verdict.result == Result.FAILED]
    record = next(item for item in failed if item.verdict.facts[FAILED_CHECKS] == ["values", "relation"])
    assert (record.verdict.kind, record.fingerprint.check) == (Fault.VALUE, "values")
    assert re.match(r"call \d of \d: out\[", record.verdict.message)
    assert "f(g1)" in record.verdict.message
    text = "\n".join(explain(record, specs()[SOFTMAX]))
    assert "law linear: the result is linear in the gradient" in text
    assert ": left " not in text


def test_first_phases_alone_compare_nothing() -> None:
    made = bench(ReferenceAdapter())
    made.settings = dataclasses.replace(made.settings, phases=1)
    (record, *_) = records(made, "law/zero", SOFTMAX, 1)
    assert (record.verdict.result, record.verdict.kind) == (Result.SKIPPED, Skip.NOT_JUDGED)
    assert "--phases one" in record.verdict.message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sixth operator: softmax under another name, with a law of its own."""
    source = Path(softmax_backward.__file__).resolve().parents[1] / "specs" / "softmax_backward.yaml"
    text = source.read_text(encoding="utf-8").replace("aclnnSoftmaxBackward", "aclnnSoftmaxTwo")
    (tmp_path / "softmax_two.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "softmax_two.py").write_text(
        "import dataclasses\n"
        "from aclnn_cts.oracles.softmax_backward import LAWS as OTHERS, expected\n"
        "LAWS = (dataclasses.replace(OTHERS[2], id='nothing', en='nothing comes of nothing'),)\n",
        encoding="utf-8",
    )
    return tmp_path


def test_a_law_of_a_users_own_oracle_is_run(folder: Path) -> None:
    made = bench(ReferenceAdapter(), folders=(folder,))
    spec = made.specs["aclnnSoftmaxTwo"]
    assert laws.law_ids(spec) == ("law/nothing",)
    verdicts = [record.verdict for record in records(made, "law/nothing", "aclnnSoftmaxTwo", 5)]
    assert len(verdicts) == 5
    assert all(verdict.result == Result.PASSED for verdict in verdicts)


def test_an_oracle_without_laws_has_none_and_one_twice_is_a_mistake(folder: Path) -> None:
    oracle = folder / "softmax_two.py"
    for number, (tail, expected) in enumerate((("LAWS = LAWS * 2\n", None), ("del LAWS\n", ()))):
        other = folder.parent / f"{folder.name}-{number}"
        shutil.copytree(folder, other)
        (other / "softmax_two.py").write_text(oracle.read_text(encoding="utf-8") + tail, encoding="utf-8")
        spec = bench(ReferenceAdapter(), folders=(other,)).specs["aclnnSoftmaxTwo"]
        if expected is None:
            with pytest.raises(HarnessError, match="'nothing' twice"):
                laws.law_ids(spec)
        else:
            assert laws.law_ids(spec) == expected


def test_laws_say_something_in_both_languages() -> None:
    for law in laws.shipped_laws().values():
        assert isinstance(law, Law)
        assert law.en.isascii()
        assert not law.zh.isascii()
        assert dataclasses.is_dataclass(law)


def test_a_deterministic_target_makes_repeating_a_check() -> None:
    made = bench(Emulated(fault="wavers"), Target(product="atlas-a2", deterministic=True))
    kinds = {record.verdict.kind for record in records(made, "law/repeat", "aclnnConvTbcBackward", 8)}
    assert Fault.LAW in kinds
