"""Generated mutants change what they say and nothing else, and what came of them is computed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import CallOptions, Case, Data, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import STATUSES, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.execution.executor import CallPerformer, CallRequest
from aclnn_cts.formula.emulator import Variant
from aclnn_cts.formula.mutants import Mutant, Site
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.selftest import generated_power
from aclnn_cts.selftest.generated_mutants import CHANGES, SUMS, CorrectVariant, draw_mutants
from aclnn_cts.selftest.generated_power import (
    DecoyResult,
    MutantResult,
    OperatorTask,
    Wanted,
    Witnesses,
    measure_operator,
    read_generated,
)
from aclnn_cts.selftest.kinds import (
    REFUSED,
    ROUNDED,
    STALE,
    ULPS,
    UNCHECKED,
    describe_mutant,
    fires,
    meets_trigger,
    place_of,
)
from aclnn_cts.selftest.mutated_session import MutantAdapter, MutatedSession
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.trials.plan import Profile

SOFTMAX = "aclnnSoftmaxBackward"
SMALL = Profile("small", random=4, breaks=0, memory=0, equal_calls=0, life_cycle=0)


@pytest.fixture(scope="module")
def specs() -> Specs:
    return load_specs()


def softmax(shape: tuple[int, ...] = (3, 5), dtype: str = "FLOAT", **changed: Any) -> Case:
    normal = Data(recipe="normal", seed=1)
    arguments: dict[str, Any] = {
        "gradOutput": Tensor(shape, dtype, data=normal),
        "output": Tensor(shape, dtype, data=Data(recipe="softmax", seed=2, axis=-1)),
        "dim": -1,
        "out": Tensor(shape, dtype),
    }
    return Case(SOFTMAX, {**arguments, **changed})


def mutant(kind: str, **more: Any) -> Mutant:
    site = more.pop("site", CHANGES.get(kind, Site.INPUT))
    more.setdefault("of", {Site.OPERATION: SUMS, Site.INPUT: "", Site.STATUS: ""}.get(site, "out"))
    return Mutant(id=f"softmax_backward.{kind}", operator=SOFTMAX, kind=kind, site=site, **more)


def made(
    specs: Mapping[str, Any], subject: Mutant | CorrectVariant | None, *cases: Case
) -> tuple[Outcome, NDArray[np.float64]]:
    """The last call's end and output."""
    session = MutatedSession(Target(), specs)
    session.switch(*(() if subject is None else (subject,)))
    done = CallPerformer(host=InProcessHost(session), specs=specs).perform([CallRequest(case) for case in cases])[-1]
    return done.outcome, done.got["out"].astype(np.float64) if done.got else np.zeros(0)


def test_a_seed_gives_the_same_mutants_whatever_their_number(specs: Specs) -> None:
    for spec in specs.values():
        target = Target(product=spec.usual_product)
        few, many = (list(draw_mutants(spec, target, seed="a", count=count)) for count in (5, 30))
        assert few == many[:5]
        assert {("rounded" if item.kind in ROUNDED else item.kind) for item in many} == set(CHANGES)
        assert few != list(draw_mutants(spec, target, seed="b", count=5))
        assert len({item.id for item in many}) == 30


SHAPES: Mapping[str, str] = {
    "multiple": r"% (\d+) == \d+",
    "at least": r">= \d+",
    "below": r"0 < .* < \d+",
    "dtype": r"dtype\(",
    "layout": r"contiguous\(|offset\(",
    "tail": r"% \d+ != 0",
}
"""What triggers of each kind look like."""


def test_triggers_are_of_every_kind_and_some_are_conjunctions(specs: Specs) -> None:
    """Moduli from 2 to 300, thresholds, dtypes, layouts and last blocks; other seeds, as other commits have, differ."""
    for spec in specs.values():
        drawn = list(draw_mutants(spec, Target(product=spec.usual_product), seed="a", count=400))
        found = [{kind for kind, shape in SHAPES.items() if re.search(shape, item.trigger)} for item in drawn]
        rows = Sampler(spec, Target(product=spec.usual_product)).dtype_rows
        choice = any(len({row[name] for row in rows}) > 1 for name in rows[0])
        strided = any(item.strided for item in spec.parameters)
        lacking = {"dtype": not choice, "layout": not strided}
        assert set().union(*found) == {kind for kind in SHAPES if not lacking.get(kind)}
        moduli = {int(number) for item in drawn for number in re.findall(SHAPES["multiple"], item.trigger)}
        assert min(moduli) >= 2
        assert 250 < max(moduli) <= 300
        assert {len(kinds) for kinds in found} == {0, 1, 2}
        assert all((item.block > 0) is ("tail" in kinds) for item, kinds in zip(drawn, found, strict=True))


@pytest.mark.parametrize(
    ("trigger", "case", "expected"),
    [
        ("dim(out, -1) > 0 and dim(out, -1) % 5 == 0", softmax(), True),
        ("dim(out, 0) > 0 and dim(out, 0) % 5 == 0", softmax(), False),
        ("dim(out, -2) > 0 and dim(out, -2) % 5 == 0", softmax((5,)), False),
        ("0 < numel(out) < 15", softmax((0, 5)), False),
        ("dtype(out) == BF16", softmax(dtype="BF16"), True),
        ("dtype(out) == BF16", softmax(out=None), False),
        ("not contiguous(out)", softmax(out=Tensor((3, 5), "FLOAT", strides=(10, 2))), True),
        ("offset(out) > 0", softmax(out=Tensor((3, 5), "FLOAT", offset=2, storage_shape=(17,))), True),
        ('holds(output, "negative")', softmax(), False),
    ],
)
def test_a_mutant_fires_where_its_trigger_holds(trigger: str, case: Case, *, expected: bool) -> None:
    assert meets_trigger(trigger, case) is expected
    assert fires(mutant("element zeroed", trigger=trigger), case, frozenset()) is expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("element zeroed", lambda value: 0.0),
        ("element doubled", lambda value: 2.0 * value),
        ("element negated", lambda value: -value),
        (ULPS, lambda value: value + np.copysign(2.0 * np.spacing(np.float32(abs(value))), value)),
    ],
)
@pytest.mark.parametrize("place", [0, 40_000, 65_535])
def test_one_element_is_changed(specs: Specs, change: str, expected: Any, place: int) -> None:
    subject, case = mutant(change, place=place), softmax()
    (_, right), (outcome, got) = made(specs, None, case), made(specs, subject, case)
    at = place * 15 // 65_536
    assert outcome.status == 0
    assert np.flatnonzero(right.ravel() != got.ravel()).tolist() == [at]
    assert got.ravel()[at] == expected(right.ravel()[at])


@pytest.mark.parametrize("place", range(0, 65_536, 9_000))
def test_a_tail_is_changed_in_its_last_block(place: int) -> None:
    assert place_of(mutant("element zeroed", block=4, place=place), 15) in range(12, 15)


def test_a_stale_element_is_of_the_call_before(specs: Specs) -> None:
    cases = [softmax(), softmax((2, 5), gradOutput=Tensor((2, 5), "FLOAT", data=Data(recipe="normal", seed=7)))]
    _, before = made(specs, None, cases[0])
    _, right = made(specs, None, cases[1])
    _, got = made(specs, mutant(STALE, place=0), *cases)
    assert got[0, 0] == before[0, 0] != right[0, 0]
    assert (got.ravel()[1:] == right.ravel()[1:]).all()
    assert (made(specs, mutant(STALE, place=0), cases[1])[1] == right).all()


@pytest.mark.parametrize(("change", "axis"), [("rows swapped", 0), ("columns swapped", 1)])
def test_two_rows_or_columns_are_swapped(specs: Specs, change: str, axis: int) -> None:
    (_, right), (_, got) = made(specs, None, softmax()), made(specs, mutant(change, place=0), softmax())
    order = np.arange(right.shape[axis])
    order[:2] = 1, 0
    assert (got == np.take(right, order, axis)).all()


@pytest.mark.parametrize(("change", "times"), [("last term dropped", 0), ("last term twice", 2)])
def test_a_contribution_of_the_sum_is_dropped_or_added_twice(specs: Specs, change: str, times: int) -> None:
    values = Data(values=(0.5, 0.25, 0.25))
    grad, output = (Tensor((1, 3), "FLOAT", data=data) for data in (Data(values=(1.0, 2.0, 8.0)), values))
    case = softmax((1, 3), gradOutput=grad, output=output)
    _, got = made(specs, mutant(change), case)
    total = 0.5 + 0.5 + times * 2.0
    assert got.tolist() == [[0.5 * (1.0 - total), 0.25 * (2.0 - total), 0.25 * (8.0 - total)]]


def test_operands_are_rounded(specs: Specs) -> None:
    (_, right), (_, got) = made(specs, None, softmax()), made(specs, mutant("in BF16"), softmax())
    assert not (right == got).all()
    assert np.allclose(right, got, rtol=0.1, atol=1e-2)
    half = softmax(dtype="BF16")
    assert (made(specs, None, half)[1] == made(specs, mutant("in BF16"), half)[1]).all()


def test_a_check_is_skipped_and_a_class_of_calls_rejected(specs: Specs) -> None:
    broken = softmax(dim=7)
    [identifier] = [item.id for item in evaluate(specs[SOFTMAX], broken).broken]
    assert made(specs, None, broken)[0].status == STATUSES["ACLNN_ERR_PARAM_INVALID"]
    assert made(specs, mutant(UNCHECKED, of=identifier), broken)[0].status == 0
    rejecting = mutant(REFUSED, trigger="dim(out, -1) >= 5")
    assert made(specs, rejecting, softmax())[0].status == STATUSES["ACLNN_ERR_PARAM_INVALID"]
    assert made(specs, rejecting, softmax((5, 3)))[0].status == 0


@given(number=st.integers(0, 300))
def test_a_decoy_stays_near_the_right_result(number: int) -> None:
    specs = load_specs()
    subject = CorrectVariant(id="d", operator=SOFTMAX, variant=Variant(order="random", fused=True, key=number))
    case = softmax((2, 9))
    (_, right), (_, got) = made(specs, None, case), made(specs, subject, case)
    assert np.allclose(right, got, rtol=1e-4, atol=1e-6)


def test_witness_calls_are_valid_and_each_number_is_one_call(specs: Specs) -> None:
    for spec in specs.values():
        calls = list(Witnesses(spec, Target(product=spec.usual_product)).calls(40))
        assert not any(evaluate(spec, case).broken for case in calls)
        assert calls[:7] == list(Witnesses(spec, Target(product=spec.usual_product)).calls(7))


def measured(specs: Specs, monkeypatch: pytest.MonkeyPatch, *subjects: Mutant) -> list[MutantResult]:
    monkeypatch.setattr(generated_power, "population", lambda *_words, **_options: (list(subjects), []))
    wanted = Wanted(profile=SMALL, seed="s", witness_calls=60, witness_values=20)
    found = list(measure_operator(OperatorTask(operator=SOFTMAX, wanted=wanted), specs))
    assert not any(isinstance(row, DecoyResult) for row in found)
    return [row for row in found if isinstance(row, MutantResult)]


def test_what_comes_of_a_mutant_is_computed(specs: Specs, monkeypatch: pytest.MonkeyPatch) -> None:
    found, same, unreached, rejected = measured(
        specs,
        monkeypatch,
        mutant("element doubled", place=30_000),
        mutant("scaled", site=Site.OUTPUT, of="out", value="1"),
        mutant("element zeroed", trigger=f"numel(out) >= {2**40}"),
        mutant(REFUSED, trigger="dim(out, -2) > 0 and numel(out) % 97 == 0"),
    )
    assert found.found
    assert found.cases >= 1
    assert found.check
    assert not found.rare
    assert (same.found, same.equivalent, same.judged > 0, same.fired > 0) == (False, True, True, True)
    assert (unreached.equivalent, unreached.reached, unreached.fired, unreached.judged) == (True, 0, 0, 0)
    # A call that is rejected shows the mutant, where there is one.
    assert rejected.found or rejected.survives is bool(rejected.fired)


def test_a_call_whose_values_its_trial_does_not_judge_is_named(specs: Specs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated_power, "_first_failure", lambda *_words: None)
    [row] = measured(specs, monkeypatch, mutant("element doubled", place=30_000))
    assert (row.survives, row.unjudged, row.reached > 0, row.judged > 0) == (True, True, True, True)


def test_the_command_measures_lists_and_repeats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "generated.json"
    words = ["mutants", "--op", "softmax_backward", "--seed", "x", "--mutant", "softmax_backward.0", "--mutant"]
    words += ["softmax_backward.decoy-forward", "--witness-calls", "20", "--workers", "1"]
    assert main([*words, "--min-kill-rate", "0", "-o", str(file)]) == 0
    matrix = read_generated(file)
    assert [row.id for row in matrix.mutants] == ["softmax_backward.0"]
    [decoy] = matrix.decoys
    assert (decoy.accused, decoy.errors, decoy.cases > 100) == (0, 0, True)
    assert matrix.seed == "x"
    out = capsys.readouterr()
    assert "--seed x" in out.err
    assert main([*words, "--list", "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["text"] for row in listed] == [matrix.mutants[0].text, decoy.text]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seed", "x", "--mutant", "softmax_backward.99"), "--mutant 'softmax_backward.99': no operator here has it"),
        (("--seed", "x", "--op", "nothing"), "--op"),
        (("--number", "0"), "--number"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutants", *words, "--list"]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_measurement_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    with pytest.raises(UsageError, match="expected a measurement"):
        read_generated(file)


def test_the_adapter_of_a_seeded_or_generated_mutant_is_for_any_command(specs: Specs) -> None:
    session = MutantAdapter(mutant="softmax_backward.3", seed="x").open(Target(), specs)
    [*_, drawn] = draw_mutants(specs[SOFTMAX], Target(), seed="x", count=4)
    assert session.environment["mutant"] == describe_mutant(drawn)
    seeded = MutantAdapter(mutant="softmax.sign").open(Target(), specs)
    assert seeded.environment["mutant"] == "all tensors, negated"
    with pytest.raises(UsageError, match=r"mutant=softmax.leak: it is in the software device"):
        MutantAdapter(mutant="softmax.leak").open(Target(), specs)
    with pytest.raises(UsageError, match=r"mutant='softmax.sing': not in the catalogue; did you mean 'softmax.sign'"):
        MutantAdapter(mutant="softmax.sing").open(Target(), specs)
    for wrong in ("softmax_backward", "nothing.1", "softmax_backward.123456"):
        with pytest.raises(UsageError, match="expected an id"):
            MutantAdapter(mutant=wrong, seed="x").open(Target(), specs)


@pytest.mark.parametrize(
    ("subject", "case", "expected"),
    [
        (mutant("rows swapped"), softmax((5,)), False),
        (mutant("rows swapped"), softmax((1, 5)), False),
        (mutant("rows swapped"), softmax((2, 5)), True),
        (mutant("columns swapped"), softmax((5, 1)), False),
        (mutant("columns swapped"), softmax((5,)), True),
        (mutant("in BF16"), softmax(dtype="BF16"), False),
        (mutant("in FLOAT16"), softmax(dtype="BF16"), True),
        (mutant("in HFLOAT32"), softmax(dtype="FLOAT16"), False),
        (mutant("in HFLOAT32"), softmax(), True),
        (mutant("in HFLOAT32", of="dim"), softmax(), False),
    ],
)
def test_a_mutant_fires_only_where_it_has_what_it_changes(subject: Mutant, case: Case, *, expected: bool) -> None:
    assert fires(subject, case, frozenset()) is expected


def test_a_trigger_that_nothing_shows_is_tried_on_more_calls(specs: Specs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated_power, "FREQUENCY_CALLS", 20)
    same = mutant("scaled", site=Site.OUTPUT, of="out", value="1", trigger="numel(out) % 3 == 0")
    seen, unseen = measured(specs, monkeypatch, mutant("element doubled", place=9), same)
    assert (seen.witness_calls, unseen.witness_calls) == (20, 60)
    assert 0 < unseen.fired < 60
    assert unseen.equivalent
    assert not unseen.unmet


def test_a_contribution_of_a_scattered_sum_is_added_twice(specs: Specs) -> None:
    spec = specs["aclnnEmbeddingDenseBackward"]
    twice = Mutant(operator=spec.operator, kind="last term twice", of=SUMS)
    changed = 0
    for case in Witnesses(spec, Target()).calls(30):
        (_, right), (_, got) = made(specs, None, case), made(specs, twice, case)
        changed += not np.array_equal(right, got, equal_nan=True)
    assert changed > 5


def test_first_phases_alone_have_no_values_to_change() -> None:
    case = softmax()
    alone = Case(case.operator, case.arguments, case.target, CallOptions(phases=1))
    assert not fires(mutant("element zeroed"), alone, frozenset())
    assert fires(mutant(REFUSED), alone, frozenset())
