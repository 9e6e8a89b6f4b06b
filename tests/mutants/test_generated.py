"""Generated mutants change what they say and nothing else, and what came of them is computed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from aclnn_cts.checks.plan import Profile
from aclnn_cts.cli.main import main
from aclnn_cts.core.case import CallOptions, Case, Data, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import STATUSES, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.execution.executor import Asked, Performer
from aclnn_cts.formula.emulator import Variant
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.mutants import generated_power, mutated_session
from aclnn_cts.mutants.generated import Asks, Change, Condition, GeneratedDecoy, GeneratedMutant, Layout, draw_mutants
from aclnn_cts.mutants.generated_power import (
    DecoyResult,
    MutantResult,
    OperatorTask,
    Wanted,
    Witnesses,
    measure_operator,
    read_generated,
)
from aclnn_cts.mutants.mutated_session import MutantAdapter, MutatedSession
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import Specs, load_specs

SOFTMAX = "aclnnSoftmaxBackward"
SMALL = Profile("small", random=4, breaks=0, memory=0, laws=0, life_cycle=0)


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


def mutant(change: Change, **more: Any) -> GeneratedMutant:
    more.setdefault("id", f"softmax_backward.{change.value}")
    return GeneratedMutant(operator=SOFTMAX, change=change, output="out", **more)


def made(
    specs: Mapping[str, Any], subject: GeneratedMutant | GeneratedDecoy | None, *cases: Case
) -> tuple[Outcome, NDArray[np.float64]]:
    """The last call's end and output."""
    session = MutatedSession(Target(), specs)
    session.switch(subject)
    done = Performer(host=InProcessHost(session), specs=specs).perform([Asked(case) for case in cases])[-1]
    return done.outcome, done.got["out"].astype(np.float64) if done.got else np.zeros(0)


def test_a_seed_gives_the_same_mutants_whatever_their_number(specs: Specs) -> None:
    for spec in specs.values():
        target = Target(product=spec.usual_product)
        few, many = (list(draw_mutants(spec, target, seed="a", count=count, sums=True)) for count in (5, 30))
        assert few == many[:5]
        assert {item.change for item in many} == set(Change)
        assert few != list(draw_mutants(spec, target, seed="b", count=5, sums=True))
        assert len({item.id for item in many}) == 30


def test_triggers_are_of_every_kind_and_some_are_conjunctions(specs: Specs) -> None:
    """Moduli from 2 to 300, thresholds, dtypes, layouts and last blocks; other seeds, as other commits have, differ."""
    for spec in specs.values():
        drawn = list(draw_mutants(spec, Target(product=spec.usual_product), seed="a", count=400, sums=True))
        conditions = [condition for item in drawn for condition in item.conditions]
        rows = Sampler(spec, Target(product=spec.usual_product)).dtype_rows
        choice = any(len({row[name] for row in rows}) > 1 for name in rows[0])
        strided = any(item.strided for item in spec.parameters)
        lacking = {Asks.DTYPE: not choice, Asks.LAYOUT: not strided}
        assert {item.asks for item in conditions} == {asks for asks in Asks if not lacking.get(asks)}
        moduli = {item.number for item in conditions if item.asks is Asks.MULTIPLE}
        assert min(moduli) >= 2
        assert 250 < max(moduli) <= 300
        assert {len(item.conditions) for item in drawn} == {0, 1, 2}


@pytest.mark.parametrize(
    ("condition", "case", "expected"),
    [
        (Condition(asks=Asks.MULTIPLE, tensor="out", axis=-1, number=5), softmax(), True),
        (Condition(asks=Asks.MULTIPLE, tensor="out", axis=0, number=5), softmax(), False),
        (Condition(asks=Asks.MULTIPLE, tensor="out", number=4, remainder=3), softmax(), True),
        (Condition(asks=Asks.MULTIPLE, tensor="out", axis=-2, number=5), softmax((5,)), False),
        (Condition(asks=Asks.AT_LEAST, tensor="out", number=15), softmax(), True),
        (Condition(asks=Asks.BELOW, tensor="out", number=15), softmax(), False),
        (Condition(asks=Asks.BELOW, tensor="out", number=15), softmax((0, 5)), False),
        (Condition(asks=Asks.TAIL, tensor="out", number=4), softmax(), True),
        (Condition(asks=Asks.TAIL, tensor="out", number=5), softmax(), False),
        (Condition(asks=Asks.TAIL, tensor="out", number=16), softmax(), False),
        (Condition(asks=Asks.DTYPE, tensor="out", dtype="BF16"), softmax(dtype="BF16"), True),
        (Condition(asks=Asks.DTYPE, tensor="out", dtype="BF16"), softmax(out=None), False),
        (Condition(asks=Asks.LAYOUT, tensor="out", layout=Layout.CONTIGUOUS), softmax(), True),
        (
            Condition(asks=Asks.LAYOUT, tensor="out", layout=Layout.STRIDED),
            softmax(out=Tensor((3, 5), "FLOAT", strides=(10, 2))),
            True,
        ),
        (
            Condition(asks=Asks.LAYOUT, tensor="out", layout=Layout.OFFSET),
            softmax(out=Tensor((3, 5), "FLOAT", offset=2, storage_shape=(17,))),
            True,
        ),
    ],
)
def test_a_condition_holds_of_a_call(condition: Condition, case: Case, *, expected: bool) -> None:
    assert condition.holds(case) is expected
    assert mutant(Change.ZERO, conditions=(condition,)).fires(case, frozenset()) is expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change.ZERO, lambda value: 0.0),
        (Change.DOUBLE, lambda value: 2.0 * value),
        (Change.NEGATE, lambda value: -value),
        (Change.ULPS, lambda value: value + np.copysign(2.0 * np.spacing(np.float32(abs(value))), value)),
    ],
)
@pytest.mark.parametrize("place", [0, 40_000, 65_535])
def test_one_element_is_changed(specs: Specs, change: Change, expected: Any, place: int) -> None:
    subject, case = mutant(change, place=place), softmax()
    (_, right), (outcome, got) = made(specs, None, case), made(specs, subject, case)
    at = place * 15 // 65_536
    assert outcome.status == 0
    assert np.flatnonzero(right.ravel() != got.ravel()).tolist() == [at]
    assert got.ravel()[at] == expected(right.ravel()[at])


@pytest.mark.parametrize("place", range(0, 65_536, 9_000))
def test_a_tail_is_changed_in_its_last_block(place: int) -> None:
    tail = Condition(asks=Asks.TAIL, tensor="out", number=4)
    assert mutant(Change.ZERO, conditions=(tail,), place=place).at(15) in range(12, 15)


def test_a_stale_element_is_of_the_call_before(specs: Specs) -> None:
    cases = [softmax(), softmax((2, 5), gradOutput=Tensor((2, 5), "FLOAT", data=Data(recipe="normal", seed=7)))]
    _, before = made(specs, None, cases[0])
    _, right = made(specs, None, cases[1])
    _, got = made(specs, mutant(Change.STALE, place=0), *cases)
    assert got[0, 0] == before[0, 0] != right[0, 0]
    assert (got.ravel()[1:] == right.ravel()[1:]).all()
    assert (made(specs, mutant(Change.STALE, place=0), cases[1])[1] == right).all()


@pytest.mark.parametrize(("change", "axis"), [(Change.ROWS, 0), (Change.COLUMNS, 1)])
def test_two_rows_or_columns_are_swapped(specs: Specs, change: Change, axis: int) -> None:
    (_, right), (_, got) = made(specs, None, softmax()), made(specs, mutant(change, place=0), softmax())
    order = np.arange(right.shape[axis])
    order[:2] = 1, 0
    assert (got == np.take(right, order, axis)).all()


@pytest.mark.parametrize(("change", "times"), [(Change.DROP, 0), (Change.TWICE, 2)])
def test_a_contribution_of_the_sum_is_dropped_or_added_twice(specs: Specs, change: Change, times: int) -> None:
    values = Data(values=(0.5, 0.25, 0.25))
    grad, output = (Tensor((1, 3), "FLOAT", data=data) for data in (Data(values=(1.0, 2.0, 8.0)), values))
    case = softmax((1, 3), gradOutput=grad, output=output)
    _, got = made(specs, mutant(change), case)
    total = 0.5 + 0.5 + times * 2.0
    assert got.tolist() == [[0.5 * (1.0 - total), 0.25 * (2.0 - total), 0.25 * (8.0 - total)]]


def test_operands_are_rounded(specs: Specs) -> None:
    (_, right), (_, got) = made(specs, None, softmax()), made(specs, mutant(Change.ROUND, format="BF16"), softmax())
    assert not (right == got).all()
    assert np.allclose(right, got, rtol=0.1, atol=1e-2)
    half = softmax(dtype="BF16")
    assert (made(specs, None, half)[1] == made(specs, mutant(Change.ROUND, format="BF16"), half)[1]).all()


def test_a_check_is_skipped_and_a_class_of_calls_rejected(specs: Specs) -> None:
    broken = softmax(dim=7)
    [identifier] = [item.id for item in evaluate(specs[SOFTMAX], broken).broken]
    assert made(specs, None, broken)[0].status == STATUSES["ACLNN_ERR_PARAM_INVALID"]
    assert made(specs, mutant(Change.SKIP, constraint=identifier), broken)[0].status == 0
    wide = Condition(asks=Asks.AT_LEAST, tensor="out", axis=-1, number=5)
    rejecting = mutant(Change.REJECT, conditions=(wide,))
    assert made(specs, rejecting, softmax())[0].status == STATUSES["ACLNN_ERR_PARAM_INVALID"]
    assert made(specs, rejecting, softmax((5, 3)))[0].status == 0


@given(number=st.integers(0, 300))
def test_a_decoy_stays_near_the_right_result(number: int) -> None:
    specs = load_specs()
    subject = GeneratedDecoy(id="d", operator=SOFTMAX, variant=Variant(order="random", fused=True, key=number))
    case = softmax((2, 9))
    (_, right), (_, got) = made(specs, None, case), made(specs, subject, case)
    assert np.allclose(right, got, rtol=1e-4, atol=1e-6)


def test_witness_calls_are_valid_and_each_number_is_one_call(specs: Specs) -> None:
    for spec in specs.values():
        calls = list(Witnesses(spec, Target(product=spec.usual_product)).calls(40))
        assert not any(evaluate(spec, case).broken for case in calls)
        assert calls[:7] == list(Witnesses(spec, Target(product=spec.usual_product)).calls(7))


def measured(specs: Specs, monkeypatch: pytest.MonkeyPatch, *subjects: GeneratedMutant) -> list[MutantResult]:
    monkeypatch.setattr(generated_power, "population", lambda *_words, **_options: (list(subjects), []))
    wanted = Wanted(profile=SMALL, seed="s", witness_calls=60, witness_values=20)
    found = list(measure_operator(OperatorTask(operator=SOFTMAX, wanted=wanted), specs))
    assert not any(isinstance(row, DecoyResult) for row in found)
    return [row for row in found if isinstance(row, MutantResult)]


def test_what_comes_of_a_mutant_is_computed(specs: Specs, monkeypatch: pytest.MonkeyPatch) -> None:
    never = Condition(asks=Asks.AT_LEAST, tensor="out", number=2**40)
    rank = Condition(asks=Asks.MULTIPLE, tensor="out", axis=-2, number=1)
    # A change that changes nothing: no such kind of wrong sum.
    monkeypatch.setattr(mutated_session, "_OF_A_SUM", {Change.TWICE: "none"})
    found, same, unreached, rejected = measured(
        specs,
        monkeypatch,
        mutant(Change.DOUBLE, place=30_000),
        mutant(Change.TWICE),
        mutant(Change.ZERO, conditions=(never,)),
        mutant(Change.REJECT, conditions=(rank, Condition(asks=Asks.MULTIPLE, tensor="out", number=97))),
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
    [row] = measured(specs, monkeypatch, mutant(Change.DOUBLE, place=30_000))
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


def test_the_adapter_of_one_mutant_is_for_any_command(specs: Specs) -> None:
    session = MutantAdapter(mutant="softmax_backward.3", seed="x").open(Target(), specs)
    [*_, drawn] = draw_mutants(specs[SOFTMAX], Target(), seed="x", count=4, sums=True)
    assert session.environment["mutant"] == drawn.text()
    for wrong in ("softmax_backward", "nothing.1", "softmax_backward.123456"):
        with pytest.raises(UsageError, match="expected an id"):
            MutantAdapter(mutant=wrong, seed="x").open(Target(), specs)


@pytest.mark.parametrize(
    ("subject", "case", "expected"),
    [
        (mutant(Change.ROWS), softmax((5,)), False),
        (mutant(Change.ROWS), softmax((1, 5)), False),
        (mutant(Change.ROWS), softmax((2, 5)), True),
        (mutant(Change.COLUMNS), softmax((5, 1)), False),
        (mutant(Change.COLUMNS), softmax((5,)), True),
        (mutant(Change.ROUND, format="BF16"), softmax(dtype="BF16"), False),
        (mutant(Change.ROUND, format="FLOAT16"), softmax(dtype="BF16"), True),
        (mutant(Change.ROUND, format="HFLOAT32"), softmax(dtype="FLOAT16"), False),
        (mutant(Change.ROUND, format="HFLOAT32"), softmax(), True),
        (mutant(Change.ROUND, format="HFLOAT32", operand="dim"), softmax(), False),
    ],
)
def test_a_mutant_fires_only_where_it_has_what_it_changes(
    subject: GeneratedMutant, case: Case, *, expected: bool
) -> None:
    assert subject.fires(case, frozenset()) is expected


def test_a_trigger_that_nothing_shows_is_tried_on_more_calls(specs: Specs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated_power, "FREQUENCY_CALLS", 20)
    monkeypatch.setattr(mutated_session, "_OF_A_SUM", {Change.TWICE: "none"})
    few = Condition(asks=Asks.MULTIPLE, tensor="out", number=3)
    seen, unseen = measured(specs, monkeypatch, mutant(Change.DOUBLE, place=9), mutant(Change.TWICE, conditions=(few,)))
    assert (seen.witness_calls, unseen.witness_calls) == (20, 60)
    assert 0 < unseen.fired < 60
    assert unseen.equivalent
    assert not unseen.unmet


def test_a_contribution_of_a_scattered_sum_is_added_twice(specs: Specs) -> None:
    spec = specs["aclnnEmbeddingDenseBackward"]
    twice = GeneratedMutant(id="x", operator=spec.operator, change=Change.TWICE, output=spec.outputs[0])
    changed = 0
    for case in Witnesses(spec, Target()).calls(30):
        (_, right), (_, got) = made(specs, None, case), made(specs, twice, case)
        changed += not np.array_equal(right, got, equal_nan=True)
    assert changed > 5


def test_first_phases_alone_have_no_values_to_change() -> None:
    case = softmax()
    alone = Case(case.operator, case.arguments, case.target, CallOptions(phases=1))
    assert not mutant(Change.ZERO).fires(alone, frozenset())
    assert mutant(Change.REJECT).fires(alone, frozenset())
