"""What `make bench-formula` compares: the same calls, judged by a formula and by the oracle written by hand."""

from __future__ import annotations

from aclnn_cts.core.target import Target
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import load_specs
from benchmarks.bench_formula import BY_HAND, FORMULA, GOAL, benches, both_ways, judged, shown


def test_each_of_both_judges_all_calls_by_its_own_oracle() -> None:
    specs, target = load_specs(), Target()
    chosen = both_ways(specs)
    assert len(chosen) == 5
    with open_host("reference", target=target, specs=specs) as host:
        formula, by_hand = benches(specs, chosen[-1], host, target=target)
        assert isinstance(formula.judge(chosen[-1]).oracle, FormulaOracle)
        assert not isinstance(by_hand.judge(chosen[-1]).oracle, FormulaOracle)
        assert judged(formula, chosen[-1])(1) == judged(by_hand, chosen[-1])(1) > 0


def test_a_share_below_the_goal_is_missed() -> None:
    rates = {"aclnnXBackward": (GOAL - 0.1) * 1_000, "aclnnYBackward": (GOAL + 0.1) * 1_000}
    rounds = {f"{FORMULA}, {operator}": (rate,) for operator, rate in rates.items()}
    rounds |= {f"{BY_HAND}, {operator}": (1_000.0,) for operator in rates}
    assert [(row.what, row.figure, row.missed) for row in shown(rounds)] == [("X", "0.60", True), ("Y", "0.80", False)]
