"""The formulas of the five operators say what their hand-written oracles say, over planned calls, hostile ones too."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.execution.executor import Performed
from aclnn_cts.execution.judging import Judge, Limits
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.bound import bound
from aclnn_cts.judgement.model import load_precision
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.drawn import drawn

CALLS = 512
SPECS = load_specs()


def planned(spec: Spec) -> Iterator[Case]:
    """The first calls that a run plans for values."""
    sampler = Sampler(spec, Target(spec.usual_product))
    cases = drawn(sampler, 2 * CALLS, stream=f"{spec.operator}/{sampler.target.product}/valid", seed=0)
    chosen = [case for case in cases if case.call.phases == 2]
    assert len(chosen) >= CALLS
    yield from chosen[:CALLS]


def without_lattices(judge: Judge, performed: Performed, limits: Limits, name: str) -> tuple[Float64, Float64, Float64]:
    """The exact values, what a correct result may be away from them, and how much of that underflow may add."""
    shape = performed.case.arguments[name].shape  # type: ignore[union-attr]
    model = limits.model
    kept = dataclasses.replace(model, flushes_compute=False, flushes_result=False)
    made = bound(limits.expected, model, operands=limits.operands)
    whole = np.broadcast_to(np.asarray(made.error, np.float64), shape)
    if limits.expected.error is None:
        allowance = whole - np.asarray(bound(limits.expected, kept, operands=limits.operands).error)
    else:
        question = judge.question(performed)
        arithmetics = {name: msgspec.structs.replace(model.arithmetic, flushes=False)}
        calm = judge.oracle(msgspec.structs.replace(question, arithmetics=arithmetics, lattices={}))[name]
        floor = model.output.smallest_normal if model.flushes_result else 0.0
        allowance = np.maximum(np.asarray(limits.expected.error) - np.asarray(calm.error), 0.0) + floor
    open_ = limits.expected.open
    value = np.broadcast_to(limits.expected.value, shape)
    judged = np.isfinite(value) & ~np.broadcast_to(np.asarray(made.overflow), shape)
    if open_ is not None:
        judged = judged & ~open_
    return np.where(judged, value, np.nan), whole, np.broadcast_to(allowance, shape)


HAND_WRITTEN = [spec for spec in SPECS.values() if hasattr(registry.load_module(spec.stem), "expected")]
"""Operators whose oracle is not their formula: the first five."""


def test_the_first_five_have_both() -> None:
    assert len(HAND_WRITTEN) == 5
    assert all(registry.load_formula(spec.stem) is not None for spec in HAND_WRITTEN)


@pytest.mark.slow
@pytest.mark.parametrize("spec", HAND_WRITTEN, ids=lambda spec: spec.stem)
def test_formula_and_oracle_agree(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    formula = registry.load_formula(spec.stem)
    assert formula is not None
    own = registry.load(spec.stem)
    # A formula knows of every operation whether exact data keep it exact; a count knows it of all together.
    monkeypatch.setattr("aclnn_cts.execution.judging.lattice", lambda tensor: None)
    by_hand = Judge(spec=spec, oracle=own, precision=load_precision(), has_statuses=False)
    by_formula = dataclasses.replace(by_hand, oracle=FormulaOracle(formula))
    compared = 0
    ratios: list[Float64] = []
    for case in planned(spec):
        performed = Performed(case=case, outcome=Outcome(), arrays=case_arrays(case, spec.inputs))
        with np.errstate(all="ignore"):
            limits = by_hand.limits(performed), by_formula.limits(performed)
            for name in limits[0]:
                value, error, allowance = without_lattices(by_hand, performed, limits[0][name], name)
                other, bounded, added = without_lattices(by_formula, performed, limits[1][name], name)
                both = np.isfinite(value) & np.isfinite(other)
                roundoff = limits[0][name].model.roundoff
                assert (np.abs(value - other)[both] <= (error * (2.0**-50 / roundoff) + 1e-300)[both]).all(), name
                chosen = both & (error > 2.0 * np.maximum(allowance, added))
                ratio = (bounded / error)[chosen]
                slack = ((allowance + added) / error)[chosen]
                assert (np.abs(ratio - 1.0) <= 0.1 + slack).all(), (name, case.arguments)
                ratios.append(ratio)
                compared += ratio.size
    assert compared > 5_000
    assert np.median(np.concatenate(ratios)) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("spec", HAND_WRITTEN, ids=lambda spec: spec.stem)
def test_exact_data_are_as_exact_by_the_formula(spec: Spec) -> None:
    formula = registry.load_formula(spec.stem)
    assert formula is not None
    own = registry.load(spec.stem)
    by_hand = Judge(spec=spec, oracle=own, precision=load_precision(), has_statuses=False)
    by_formula = dataclasses.replace(by_hand, oracle=FormulaOracle(formula))
    exact = 0
    for case in list(planned(spec))[:128]:
        performed = Performed(case=case, outcome=Outcome(), arrays=case_arrays(case, spec.inputs))
        if not by_hand.question(performed).lattices:
            continue
        with np.errstate(all="ignore"):
            first, second = by_hand.limits(performed), by_formula.limits(performed)
            for name, limits in first.items():
                made = bound(limits.expected, limits.model, operands=limits.operands)
                other = bound(second[name].expected, second[name].model, operands=second[name].operands)
                # Beside an input that is inf or nan, the formula leaves results a flush of the smallest normal number.
                finite = limits.expected.open is None and second[name].expected.open is None
                if isinstance(made.error, float) and made.error == 0.0 and finite:
                    exact += 1
                    # Its error may hold what underflows, as long as the same outputs conform.
                    for end, same in ((made.ends.lower, other.ends.lower), (made.ends.upper, other.ends.upper)):
                        assert np.array_equal(np.asarray(end), np.asarray(same)), (name, case.arguments)
    assert exact


OWN_VALUES = [spec for spec in SPECS.values() if hasattr(registry.load_module(spec.stem), "values")]


@pytest.mark.parametrize("spec", OWN_VALUES, ids=lambda spec: spec.stem)
def test_values_of_an_oracle_are_those_of_its_formula(spec: Spec) -> None:
    formula = registry.load_formula(spec.stem)
    assert formula is not None
    own = registry.load_values(spec.stem)
    judge = Judge(spec=spec, oracle=registry.load(spec.stem), precision=load_precision(), has_statuses=False)
    special = 0
    for case in list(planned(spec))[:256]:
        question = judge.question(Performed(case=case, outcome=Outcome(), arrays=case_arrays(case, spec.inputs)))
        magnitudes = {name: np.abs(array) for name, array in question.tensors.items()}
        found, sizes = own(question), own(msgspec.structs.replace(question, tensors=magnitudes))
        for name, value in FormulaOracle(formula).values(question).items():
            finite = np.isfinite(value)
            special += int(np.sum(~finite))
            assert np.array_equal(found[name][~finite], value[~finite], equal_nan=True), (name, case.arguments)
            differences = np.abs(found[name][finite] - value[finite])
            assert (differences <= 1e-12 * sizes[name][finite]).all(), (name, case.arguments)
    assert special
