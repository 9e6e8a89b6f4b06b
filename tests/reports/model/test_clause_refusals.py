"""An implementation that refuses exactly the calls that a clause speaks of contradicts that clause and no other.

The trials are those of a plan. What they come to follows from the fault alone, so that nothing is called.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import ClauseVerdict, Record, Result, Verdict
from aclnn_cts.findings.fingerprint import fingerprinted
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.reports.model.attribution import ConditionedCalls
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.clause_evidence import Speakers
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdicts
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.trials.checks.equal_calls import EQUAL_CALLS
from aclnn_cts.trials.checks.registry import CHECKS
from aclnn_cts.trials.plan import Profile, plan_parts
from tests.reports.runs import small_run
from tests.support.targets import products_by_clauses

SPECS = load_specs()
PLAN = Profile("small", random=300, breaks=1, memory=0, equal_calls=0, life_cycle=0)
LARGER = Profile("larger", random=1500, breaks=1, memory=0, equal_calls=0, life_cycle=0)
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
    return fingerprinted(
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
    speakers = Speakers(spec, SPECS.interface_clauses)
    for (trial, _), bad in zip(planned(spec.operator, product), refused, strict=True):
        item = record(trial, refused=bad)
        speakers.add(item, 0 if bad else None)
    judge = ClauseVerdicts(
        spec=spec,
        interface={item.at: item for item in SPECS.interface_clauses},
        speakers=speakers,
        sides={},
        products=frozenset([product]),
    )
    return {item.at: judge.of(item).verdict for item in spec.clauses}


EVERY = products_by_clauses(conditional)


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "product"), EVERY)
def test_refusing_what_a_clause_speaks_of_contradicts_that_clause_alone(operator: str, product: str) -> None:
    spec = SPECS[operator]
    calls = planned(operator, product)
    mine = conditional(spec, product)
    met = {item.at: tuple(meets(item, case) for _, case in calls) for item in mine}
    plain = held_to_values(operator, product)
    kept = verdicts(spec, product, [False] * len(calls))
    assert {kept[item.at] for item in mine} == {ClauseVerdict.MET}
    elsewhere = [item for item in spec.clauses if not item.applies_to(product)]
    assert {kept[item.at] for item in elsewhere} <= {ClauseVerdict.UNTESTED}
    assert ClauseVerdict.CONTRADICTED not in kept.values()
    for item in mine:
        refused = met[item.at]
        found = verdicts(spec, product, refused)
        contradicted = {at for at, verdict in found.items() if verdict == ClauseVerdict.CONTRADICTED}
        # Clauses that the same calls speak for cannot be told apart (`INSEPARABLE`).
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
    tested = {(operator, item.at) for operator, product in EVERY for item in conditional(SPECS[operator], product)}
    assert tested == {
        (operator, item.at) for operator, spec in SPECS.items() for item in spec.clauses if is_conditional(item)
    }
    assert len(tested) > 130


EVERY_CALL = "every valid call meets them"
ONE_BRANCH = "all that is said of one branch holds in the same calls"
ONE_DTYPE = "the document gives these tensors one dtype"
ONE_FORMAT_AND_DTYPE = "the document gives this tensor one dtype and one format"
WHERE_GIVEN = "both hold in the calls that give the tensor"
ONE_NUMBER = "the document gives these tensors one number of elements"
ONE_ORDER = "the calls with several layers or directions have all tensors in one order"
OF_GRU = ["input", "params", "hx", "dy", "dh", "r", "z", "n", "h_n", "h", "dxOut", "dhPrevOut", "dparamsOut"]
OF_DEFORMABLE = "input gradOutput offsetOut weight offset gradInput gradWeight gradOffset gradBias"
ONE_FORMAT = "ND and NCL in one call is open"
ONE_LAYOUT = "the rank of a call decides the format of all its tensors"
ONE_SHAPE = "the document gives these tensors one shape"
SAME_STATEMENT = "the document says it in two places"


def together(*columns: tuple[str, Iterable[int]], why: str) -> dict[str, str]:
    """One entry for each row of clauses that are told apart by nothing: addresses, and the number in each."""
    names = [name for name, _ in columns]
    rows = zip(*(numbers for _, numbers in columns), strict=True)
    return {" ".join(f"{name}.{number}" for name, number in zip(names, row, strict=True)): why for row in rows}


def of_dtypes(names: str, last: int) -> dict[str, str]:
    """The clauses on dtypes of tensors that have one, in the order of the document's lists."""
    return together(*((f"params.{name}", range(3, last + 1)) for name in names.split()), why=ONE_DTYPE)


def every_call(products: int, beside: str) -> dict[str, str]:
    """Each of the clauses on a supported product, with what is true of every valid call."""
    return {f"products.{number} {beside}": EVERY_CALL for number in range(1, products + 1)}


INSEPARABLE = {
    "aclnnAvgPool2dBackward": {
        **of_dtypes("gradOutput self gradInput", 15),
        **together(("params.gradOutput", (16, 17)), ("params.self", (16, 17)), why=ONE_LAYOUT),
    },
    "aclnnBatchNormBackward": {
        **of_dtypes("gradOut input", 13),
        "params.gradOut.25 params.input.18": ONE_SHAPE,
        "params.weight.19 params.runningMean.19 params.runningVar.21": ONE_SHAPE,
        "params.runningMean.19 params.runningVar.21 params.gradBias.20": ONE_SHAPE,
        "function.2 function.3 function.4": ONE_BRANCH,
        "function.5 function.6 params.eps.2": ONE_BRANCH,
    },
    "aclnnChamferDistanceBackward": {
        **of_dtypes("xyz1 xyz2 gradDist1 gradDist2 gradXyz1 gradXyz2", 4),
        **every_call(
            3,
            "params.xyz1.5 params.xyz2.5 params.idx1.3 params.idx1.4 params.idx2.3 params.idx2.4 params.gradDist1.5"
            " params.gradDist2.5 params.gradXyz1.5 params.gradXyz2.5",
        ),
    },
    "aclnnCdistBackward": {
        **every_call(3, "params.grad.6 params.x1.6 params.x2.6 params.cdist.6 params.out.3"),
        **of_dtypes("grad x1 x2 cdist", 5),
    },
    "aclnnConvTbcBackward": {
        "products.1 params.bias.8 params.gradInput.9 params.gradWeight.9 params.gradBias.9": EVERY_CALL,
        "products.2 params.bias.8 params.gradInput.9 params.gradWeight.9 params.gradBias.9": EVERY_CALL,
        "params.self.8 params.input.7 params.weight.8 params.bias.6 params.gradInput.6 params.gradWeight.6"
        " params.gradBias.6": ONE_DTYPE,
        "params.self.9 params.input.8 params.weight.9 params.bias.7 params.gradInput.7 params.gradWeight.7"
        " params.gradBias.7": ONE_DTYPE,
        "params.self.3 params.input.3 params.weight.3 params.bias.3 params.gradInput.8 params.gradWeight.8"
        " params.gradBias.8": ONE_DTYPE,
        "params.self.10 params.input.9 params.weight.10": ONE_FORMAT,
        "params.self.11 params.input.10 params.weight.11": ONE_FORMAT,
    },
    "aclnnDeformableConv2dBackward": {
        **of_dtypes(OF_DEFORMABLE, 5),
        **every_call(1, " ".join(f"params.{name}.6" for name in OF_DEFORMABLE.split())),
    },
    "aclnnDropoutBackward": every_call(4, "params.gradOutput.14 params.mask.3 params.mask.4 params.out.14"),
    "aclnnEluBackward": {
        **every_call(5, "params.gradOutput.16 params.selfOrResult.16 params.gradInput.16"),
        **of_dtypes("gradOutput selfOrResult", 15),
        "params.gradOutput.20 params.selfOrResult.22": ONE_SHAPE,
        **together(("function", (2, 3)), ("params.selfOrResult", (23, 24)), why=ONE_BRANCH),
    },
    "aclnnEmbeddingDenseBackward": {
        "params.grad.9 params.out.8": ONE_DTYPE,
        "params.grad.10 params.out.9": ONE_DTYPE,
        "params.grad.11 params.out.10": ONE_DTYPE,
        "params.grad.12 params.out.11": ONE_DTYPE,
        "params.grad.13 params.out.12": ONE_DTYPE,
        "params.scaleGradByFreq.1 params.scaleGradByFreq.2": SAME_STATEMENT,
    },
    "aclnnGeluBackwardV2": {
        **every_call(5, "params.gradOutput.16 params.self.16 params.gradInput.16"),
        **together(("function", (2, 3)), ("params.approximate", (2, 3)), why=SAME_STATEMENT),
    },
    "aclnnFlashAttentionUnpaddingScoreGrad": {
        **of_dtypes("query keyIn value dy attentionInOptional dqOut dkOut dvOut", 5),
        **every_call(
            1,
            "params.query.6 params.keyIn.6 params.value.6 params.dy.6 params.softmaxMaxOptional.3"
            " params.softmaxMaxOptional.4 params.softmaxSumOptional.3 params.softmaxSumOptional.4"
            " params.attentionInOptional.6 params.inputLayout.2 params.dqOut.6 params.dkOut.6 params.dvOut.6",
        ),
        "params.dropMaskOptional.3 params.dropMaskOptional.4": ONE_FORMAT_AND_DTYPE,
        "params.attenMaskOptional.5 params.attenMaskOptional.11": WHERE_GIVEN,
        "params.pseShiftOptional.6 params.pseShiftOptional.13": WHERE_GIVEN,
    },
    "aclnnGRUBackward": {
        **every_call(2, " ".join(["function.10", *(f"params.{name}.5" for name in OF_GRU)])),
        **together(*((f"params.{name}", (3, 4)) for name in OF_GRU), why=ONE_DTYPE),
        "params.batchSizesOptional.2 params.batchSizesOptional.3": ONE_FORMAT_AND_DTYPE,
        "params.batchSizesOptional.4 params.batchSizesOptional.8": SAME_STATEMENT,
        "params.hx.11 params.dh.10 params.r.12 params.z.12 params.n.12 params.h_n.12 params.h.12"
        " params.dhPrevOut.10": ONE_ORDER,
    },
    "aclnnGroupNormBackward": {
        **of_dtypes("gradOut input", 5),
        **of_dtypes("mean rstd", 5),
        **together(*((f"params.{name}", range(6, 14)) for name in ("gradOut", "input", "mean", "rstd")), why=ONE_DTYPE),
        "params.gradOut.18 params.input.19": ONE_NUMBER,
        "params.mean.18 params.rstd.19": ONE_NUMBER,
        **every_call(4, "params.gradOut.14 params.input.14 params.mean.14 params.rstd.14"),
    },
    "aclnnLayerNormBackward": {
        **every_call(5, "params.gradOut.16 params.input.16 params.mean.16 params.rstd.16"),
        **of_dtypes("gradOut input", 15),
        **of_dtypes("mean rstd", 15),
    },
    "aclnnLeakyReluBackward": {
        **every_call(5, "params.gradOutput.21 params.self.21 params.out.21"),
    },
    "aclnnLogSoftmaxBackward": {
        **every_call(5, "params.gradOutput.16 params.output.16 params.out.16"),
        **of_dtypes("gradOutput output", 15),
        "params.gradOutput.20 params.output.21": ONE_SHAPE,
    },
    "aclnnMaxPool2dWithIndicesBackward": {
        **of_dtypes("gradOutput self gradInput", 5),
        "products.2 params.gradOutput.6 params.self.6 params.indices.5 params.gradInput.6": EVERY_CALL,
        "products.3 params.gradOutput.7 params.self.7 params.indices.6 params.gradInput.7": EVERY_CALL,
    },
    "aclnnMaxPool3dWithArgmaxBackward": {
        **of_dtypes("gradOutput self gradInput", 5),
        "products.1 params.gradOutput.6 params.self.6 params.indices.7 params.gradInput.6": EVERY_CALL,
        "products.2 params.gradOutput.6 params.self.6 params.indices.5 params.indices.7 params.gradInput.6": EVERY_CALL,
        "products.3 params.gradOutput.6 params.self.6 params.indices.6 params.indices.7 params.gradInput.6": EVERY_CALL,
    },
    "aclnnMseLossBackward": {
        **every_call(4, "params.gradOutput.6 params.self.6 params.target.6 params.out.6"),
        **of_dtypes("gradOutput self target", 5),
    },
    "aclnnNLLLossBackward": {
        **every_call(
            4,
            "params.gradOutput.6 params.self.6 params.target.6 params.weight.6 params.totalWeight.5 params.out.3",
        ),
        **together(
            *((f"params.{name}", (3, 4, 5)) for name in ("gradOutput", "self", "weight")),
            ("params.totalWeight", (2, 3, 4)),
            why=ONE_DTYPE,
        ),
        "function.3 params.totalWeight.10": SAME_STATEMENT,
    },
    "aclnnReflectionPad1dBackward": {
        **every_call(5, "params.gradOutput.9 params.self.9 params.gradInput.9"),
        **of_dtypes("gradOutput self gradInput", 8),
    },
    "aclnnRmsNormGrad": {
        "products.1 params.rstd.3 params.dgammaOut.3 limits.3 example.15": EVERY_CALL,
        "products.2 params.rstd.3 params.dgammaOut.3 limits.3 example.15": EVERY_CALL,
        "params.dy.5 params.x.6 params.gamma.8 params.dxOut.6 limits.22 limits.20": ONE_DTYPE,
        "params.dy.6 params.x.7 params.gamma.9 params.dxOut.7 limits.23 limits.19": ONE_DTYPE,
        "params.dy.7 params.x.8 params.dxOut.8 limits.16": ONE_DTYPE,
        "params.dy.8 params.x.9 params.dxOut.9 limits.25": ONE_DTYPE,
        "params.dy.9 params.x.10 params.dxOut.10 limits.26": ONE_DTYPE,
        "params.gamma.10 limits.24": ONE_DTYPE,
        "params.gamma.11 limits.15": ONE_DTYPE,
        "params.gamma.12 limits.17": ONE_DTYPE,
    },
    "aclnnRoiPoolingGradWithArgMax": {
        **of_dtypes("gradOutput gradInputRef rois", 4),
        **every_call(1, "params.gradOutput.5 params.gradInputRef.5 params.rois.5 params.argmax.3 params.argmax.4"),
    },
    "aclnnRotaryPositionEmbeddingGrad": {
        "function.3 function.4": ONE_BRANCH,
        "function.5 function.6": ONE_BRANCH,
        "function.7 function.8": ONE_BRANCH,
        "function.9 function.10": ONE_BRANCH,
        "params.xOptional.7 params.xOptional.12": SAME_STATEMENT,
        **together(
            *((f"params.{name}", (3, 4, 5)) for name in ("dy", "cos", "sin")),
            *((f"params.{name}", (2, 3, 4)) for name in ("dxOut", "dcosOut", "dsinOut")),
            why=ONE_DTYPE,
        ),
        **every_call(2, "params.dy.6 params.cos.6 params.sin.6 params.dxOut.5 params.dcosOut.5 params.dsinOut.5"),
    },
    "aclnnSoftmaxBackward": {
        f"params.gradOutput.{number} params.output.{number - 1}": ONE_DTYPE for number in range(9, 16)
    },
    "aclnnSigmoidBackward": {
        **every_call(5, "params.gradOutput.31 params.output.31 params.gradInput.31"),
        **of_dtypes("gradOutput output", 30),
    },
    "aclnnTanhBackward": {
        **every_call(5, "params.gradOutput.21"),
        **of_dtypes("gradOutput output gradInput", 20),
    },
    "aclnnUpsampleBilinear2dBackwardV2": {
        **of_dtypes("gradOut out", 15),
    },
    "aclnnUpsampleNearestExact1dBackward": {
        "products.1 products.2 params.out.11": EVERY_CALL,
        "params.gradOutput.2 params.out.2": ONE_DTYPE,
        "params.gradOutput.3 params.out.3": ONE_DTYPE,
        "params.gradOutput.4 params.out.4": ONE_DTYPE,
    },
}
"""Clauses that are contradicted together, since no valid call can tell them apart, and why."""


@pytest.mark.slow
@pytest.mark.parametrize("operator", INSEPARABLE)
def test_no_other_clauses_are_contradicted_together(operator: str) -> None:
    spec = SPECS[operator]
    found = set()
    for product in spec.products:
        plain = held_to_values(operator, product)
        calls = [case for (_, case), counts in zip(planned(operator, product), plain, strict=True) if counts]
        alike: dict[tuple[bool, ...], list[str]] = {}
        for item in conditional(spec, product):
            alike.setdefault(tuple(meets(item, case) for case in calls), []).append(item.at)
        # Clauses that no call meets are contradicted by none.
        found |= {" ".join(addresses) for met, addresses in alike.items() if len(addresses) > 1 and any(met)}
    assert found == set(INSEPARABLE[operator])


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
