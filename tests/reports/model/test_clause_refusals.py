"""An implementation that refuses exactly the calls that a clause speaks of contradicts that clause and no other.

The trials are those of a plan. What they come to follows from the fault alone, so that nothing is called.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.findings.fingerprint import with_whole_fingerprint
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.reports.model.attribution import ConditionedCalls
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.clause_evidence import ClauseEvidence
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict, ClauseVerdicts
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.trials.checks.equal_calls import EQUAL_CALLS
from aclnn_cts.trials.checks.registry import CHECKS
from aclnn_cts.trials.plan import Profile, plan_parts
from tests.reports.runs import small_run
from tests.support.targets import condition_of, products_by_clauses

SPECS = load_specs()
PLAN = Profile("small", corners=100, random=200, breaks=1, memory=0, equal_calls=0, life_cycle=0)
LARGER = Profile("larger", corners=300, random=1200, breaks=1, memory=0, equal_calls=0, life_cycle=0)
"""Of operators whose empty calls are rare: one in fifty."""
HELD_TO_VALUES = ("values", "boundary", "precision")
"""Checks whose valid calls are held to `values`."""
INVALID = 161002


@functools.cache
def planned(operator: str, product: str) -> tuple[tuple[Trial, Case], ...]:
    """Trials, each with its valid call: its own, or that of the broken call's twin."""
    spec = SPECS[operator]
    sampler = Sampler(spec, Target(product=product))
    plan = LARGER if operator == "aclnnBatchNormBackward" else PLAN
    return tuple(
        (trial, valid_call(trial))
        for part in plan_parts([spec], product=product, chosen=plan)
        for trial in CHECKS[part.check].trials(part, sampler, seed=0)
    )


def valid_call(trial: Trial) -> Case:
    twin = trial.parameters.get("twin")
    return trial.case if twin is None else case_from_json(twin, where="twin")


def meets(clause: Clause, case: Case) -> bool:
    if not clause.applies_to(case.product):
        return False
    try:
        return clause.when is None or bool(clause.when(case.arguments, case.target))
    except UNDEFINED:
        return False


def is_conditional(item: Clause) -> bool:
    """Whether a clause has a condition and a check that the plan tries: it has no equal calls."""
    return bool(item.check and (item.when or item.products)) and item.check not in EQUAL_CALLS


def conditional(spec: Spec, product: str) -> list[Clause]:
    """The clauses with a check and a condition that are stated for a product."""
    return [item for item in spec.clauses if is_conditional(item) and item.applies_to(product)]


def held_to_values(operator: str, product: str) -> list[bool]:
    """Of the planned trials, those of a valid call."""
    return [trial.check in HELD_TO_VALUES and "twin" not in trial.parameters for trial, _ in planned(operator, product)]


def record(trial: Trial, *, refused: bool) -> Record:
    named = trial.case.origin.constraint if "twin" in trial.parameters else None
    kind = Fault.REJECTED if refused else ""
    return with_whole_fingerprint(
        Record(
            trial_id=trial.id,
            trial=trial,
            attempts=((Outcome(phase_one=INVALID if refused else 0, phase_two=None if refused else 0),),),
            verdict=Verdict(result=Result.FAILED if refused else Result.PASSED, kind=kind),
            fingerprint=Fingerprint(trial.case.operator, trial.check, kind, named or ""),
        )
    )


def verdicts(spec: Spec, product: str, refused: Sequence[bool]) -> dict[str, str]:
    """The verdict on each clause where these of the planned trials meet a refusal."""
    speakers = ClauseEvidence(spec, SPECS.interface_clauses)
    for (trial, _), bad in zip(planned(spec.operator, product), refused, strict=True):
        item = record(trial, refused=bad)
        speakers.add(item, 0 if bad else None)
    judge = ClauseVerdicts(
        spec=spec,
        interface={item.at: item for item in SPECS.interface_clauses},
        speakers=speakers,
        sides={},
        corners={},
        products=frozenset([product]),
    )
    return {item.at: judge.of(item).verdict for item in spec.clauses}


EVERY = products_by_clauses(conditional)


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "product"), EVERY)
def test_refusing_what_a_clause_speaks_of_contradicts_that_clause_alone(operator: str, product: str) -> None:
    spec = SPECS[operator]
    calls = planned(operator, product)
    plain = held_to_values(operator, product)
    kept = verdicts(spec, product, [False] * len(calls))
    every = {item: tuple(meets(item, case) for _, case in calls) for item in conditional(spec, product)}
    # What open calls alone meet is untested; the snapshot below names it.
    mine = [item for item, rows in every.items() if any(itertools.compress(rows, plain))]
    met = {item.at: every[item] for item in mine}
    for item in every:
        assert kept[item.at] == (ClauseVerdict.MET if item.at in met else ClauseVerdict.UNTESTED), item.at
    elsewhere = [item for item in spec.clauses if not item.applies_to(product)]
    assert {kept[item.at] for item in elsewhere} <= {ClauseVerdict.UNTESTED}
    assert ClauseVerdict.CONTRADICTED not in kept.values()
    for item in mine:
        refused = met[item.at]
        found = verdicts(spec, product, refused)
        contradicted = {at for at, verdict in found.items() if verdict == ClauseVerdict.CONTRADICTED}
        # Clauses that the same calls speak for cannot be told apart.
        alike = {
            at for at, other in met.items() if all(a == b for a, b, c in zip(other, refused, plain, strict=True) if c)
        }
        assert contradicted & met.keys() == alike, item.at
        others = {other.at: other for other in spec.clauses if other.at in contradicted and other.at not in met}
        assert all(other.check or other.interface or other.example for other in others.values()), item.at
        assert all(other.example is None or refused[0] for other in others.values()), item.at
        for at, others_met in met.items():
            if not any(a and b and c for a, b, c in zip(refused, others_met, plain, strict=True)):
                assert found[at] == kept[at], (item.at, at)


def test_every_clause_with_a_check_and_a_condition_is_put_to_the_test() -> None:
    tested = {
        (operator, condition_of(item)) for operator, product in EVERY for item in conditional(SPECS[operator], product)
    }
    assert tested == {
        (operator, condition_of(item))
        for operator, spec in SPECS.items()
        for item in spec.clauses
        if is_conditional(item)
    }
    assert len(tested) > 130


@pytest.mark.slow
@pytest.mark.parametrize("operator", SPECS)
def test_clauses_that_no_call_tells_apart_are_those_of_the_snapshot(operator: str, snapshot: SnapshotAssertion) -> None:
    """A row is a set of clauses that are contradicted together: of one dtype, one shape, one branch, or one meaning."""
    spec = SPECS[operator]
    found = set()
    for product in spec.products:
        plain = held_to_values(operator, product)
        calls = [case for (_, case), counts in zip(planned(operator, product), plain, strict=True) if counts]
        alike: dict[tuple[bool, ...], list[str]] = {}
        for item in conditional(spec, product):
            alike.setdefault(tuple(meets(item, case) for case in calls), []).append(item.at)
        for met, addresses in alike.items():
            if not any(met):
                found.add(f"met by no call on {product}: {' '.join(addresses)}")
            elif len(addresses) > 1:
                found.add(" ".join(addresses))
    assert "".join(f"{row}\n" for row in sorted(found)) == snapshot


REFUSED = (Fault.REJECTED, "")


def counted(*rows: tuple[int, int, int]) -> ConditionedCalls:
    """Calls by the conditions that they meet: how many pass, and how many are refused."""
    calls = ConditionedCalls()
    for met, passed, failed in rows:
        calls.judged[met] += passed + failed
        calls.failed.setdefault(REFUSED, Counter())[met] += failed
    return calls


@pytest.mark.parametrize(
    ("rows", "blamed"),
    [
        pytest.param([(0b01, 0, 9), (0b10, 9, 0)], 0b01, id="one of two"),
        pytest.param([(0b11, 0, 9), (0b00, 9, 0)], 0b11, id="the same calls meet both"),
        pytest.param([(0b01, 0, 5), (0b11, 0, 5), (0b10, 5, 0), (0b00, 5, 0)], 0b01, id="another overlaps by chance"),
        pytest.param([(0b11, 0, 9), (0b01, 9, 0), (0b00, 9, 0)], 0b10, id="a part of what another speaks of"),
        pytest.param([(0b11, 0, 9), (0b01, 0, 9), (0b00, 9, 0)], 0b01, id="more than another speaks of"),
        pytest.param([(0b01, 0, 9), (0b10, 0, 9), (0b00, 9, 0)], 0b11, id="two faults"),
        pytest.param([(0b01, 0, 9), (0b00, 0, 9)], 0, id="others are refused too"),
        pytest.param([(0b01, 0, 9)], 0b01, id="all calls meet it, and all are refused"),
        pytest.param([(0b01, 9, 1)], 0, id="all calls meet it, and one is refused"),
        pytest.param([(0b11, 0, 9), (0b01, 5, 0)], 0b10, id="all calls meet one, the other explains"),
        pytest.param([(0b01, 9, 0), (0b00, 9, 0)], 0, id="nothing is refused"),
    ],
)
def test_failures_are_put_down_to_the_condition_that_explains_them_best(
    rows: list[tuple[int, int, int]], blamed: int
) -> None:
    assert counted(*rows).at_fault(REFUSED, 0b11) == blamed


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_a_condition_is_blamed_only_where_a_call_that_meets_it_fails(rows: list[tuple[int, int, int]]) -> None:
    calls = counted(*rows)
    blamed = calls.at_fault(REFUSED, 0b111)
    assert all(any(met & 1 << bit and failed for met, _, failed in rows) for bit in range(3) if blamed >> bit & 1)
    assert calls.at_fault(REFUSED, 0b011) & 0b100 == 0


RUNS: dict[str, tuple[str, set[str], tuple[str, ...], str]] = {
    "conv_tbc_backward": (
        "dtype(self) == BF16",
        {f"params.{name}.3" for name in ("self", "input", "weight", "bias")}
        | {f"params.grad{name}.8" for name in ("Input", "Weight", "Bias")},
        ("params.self.2", "params.self.8", "params.self.9", "params.gradInput.6"),
        "BF16",
    ),
    "embedding_dense_backward": (
        "dtype(indices) == BOOL",
        {"params.indices.16"},
        ("params.indices.15", "params.indices.17", "params.grad.11", "params.scaleGradByFreq.2"),
        "indices BOOL",
    ),
}
"""By operator: calls that are refused, clauses that speak of them, neighbours of these, and a card's deciding dtype."""


@pytest.mark.slow
@pytest.mark.parametrize("operator", RUNS)
def test_a_run_on_an_implementation_that_refuses_exactly_these_calls(operator: str, tmp_path: Path) -> None:
    """That a list is enforced beyond what it holds keeps the clauses on rejection, and no other."""
    condition, contradicted, neighbours, dtype = RUNS[operator]
    run = small_run(tmp_path / "run", operator, adapter=f"wrong_adapters:Refusing,when={condition}")
    report = acceptance([run])
    rows = {row.clause.at: row for row in report.clauses if row.operator == SPECS.find(operator, where="").operator}
    assert {
        at for at, row in rows.items() if row.clause.when_text and row.verdict == ClauseVerdict.CONTRADICTED
    } == contradicted
    assert {rows[at].verdict for at in neighbours} == {ClauseVerdict.MET}
    assert not [at for at, row in rows.items() if row.clause.constraints and row.verdict == ClauseVerdict.CONTRADICTED]
    cards = [card for card in report.findings if (card.kind, card.check) == (Fault.REJECTED, "values")]
    # Valid twins of broken calls that are rejected for one cause are one card, whatever their dtypes.
    of_valid_calls = [card for card in cards if any(item.check != "status" for item in card.members)]
    assert of_valid_calls
    assert all(card.dtype.endswith(dtype) for card in of_valid_calls)
