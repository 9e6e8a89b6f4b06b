"""A condition tests its sentence: calls that meet it contradict the clause when they are spoiled, and no others do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Judged, Record, Result, Verdict
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.reports.model.clause_evidence import ClauseEvidence, key_of
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict, ClauseVerdicts, JudgedClause, UntestedReason
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.load import load_specs, specs_from_texts
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.trials.checks.registry import CHECKS
from aclnn_cts.trials.plan import PROFILES, Profile, plan_parts
from tests.support.targets import products_by_clauses

SPECS = load_specs()
LEAST = 48
FEW = Profile("few", random=LEAST, breaks=0, memory=0, equal_calls=0, life_cycle=0)


def valid_calls(spec: Spec, product: str, profile: Profile) -> tuple[Case, ...]:
    """The first random valid calls of a profile: `LEAST`, and as many more as it takes to meet every condition."""
    sampler = Sampler(spec, Target(product=product))
    parts = plan_parts([spec], product=product, chosen=profile)
    unmet = list(conditional(spec, product))
    calls: list[Case] = []
    for part in parts:
        for trial in CHECKS[part.check].trials(part, sampler, seed=0) if part.check == "values" else ():
            if not unmet and len(calls) >= LEAST:
                break
            calls.append(trial.case)
            unmet = [clause for clause in unmet if not meets(clause, trial.case)]
    return tuple(calls)


def conditional(spec: Spec, product: str) -> Iterator[Clause]:
    """Clauses of a product that calls encode, of which some need not meet the condition."""
    for clause in spec.clauses:
        if clause.check and (clause.when is not None or clause.products) and clause.applies_to(product):
            yield clause


def meets(clause: Clause, case: Case) -> bool:
    try:
        return clause.when is None or bool(clause.when(case.arguments, case.target))
    except UNDEFINED:
        return False


def spoilt_by(clause: Clause, spec: Spec) -> tuple[str, str]:
    """A fault that contradicts a clause and its output: wrong values, or the status of a refused call."""
    if clause.faults:
        return clause.faults[0], ""
    output = key_of(clause, spec).output or spec.outputs[0]
    return Fault.NONDETERMINISTIC if clause.check == "determinism" else Fault.VALUE, output


def record(case: Case, check: str, fault: str, output: str) -> Record:
    trial = Trial(check, case)
    status = 161002 if fault == Fault.REJECTED else 0
    result, judged = (Result.FAILED, "") if fault else (Result.PASSED, Judged.VALUES)
    return Record(
        trial_id=trial.id,
        trial=trial,
        attempts=((Outcome(phase_one=status, phase_two=None if status else 0),),),
        verdict=Verdict(result=result, kind=fault, judged=judged),
        fingerprint=Fingerprint(case.operator, check, fault, output=output),
    )


def verdict_on(clause: Clause, spec: Spec, calls: Sequence[Case], spoilt: Sequence[bool]) -> JudgedClause:
    fault, output = spoilt_by(clause, spec)
    speakers = ClauseEvidence(spec, SPECS.interface_clauses)
    for case, is_spoilt in zip(calls, spoilt, strict=True):
        item = record(case, str(clause.check), fault if is_spoilt else "", output if is_spoilt else "")
        speakers.add(item, 0 if is_spoilt else None)
    judge = ClauseVerdicts(
        spec=spec,
        interface={item.at: item for item in SPECS.interface_clauses},
        speakers=speakers,
        sides={},
        corners={},
        products=frozenset({calls[0].product}),
    )
    return judge.of(clause)


def check_clauses(operator: str, product: str, profile: Profile) -> set[str]:
    """Hold every clause with a condition to what spoiled calls must say of it; those that no call meets."""
    spec = SPECS[operator]
    calls = valid_calls(spec, product, profile)
    done: set[tuple[object, ...]] = set()
    unmet = set()
    for clause in conditional(spec, product):
        met = tuple(meets(clause, case) for case in calls)
        # Clauses that the same calls speak for are heard alike.
        like = (met, clause.check, *spoilt_by(clause, spec), clause.faults, key_of(clause, spec).output)
        if not any(met):
            found = verdict_on(clause, spec, calls, met)
            assert (found.verdict, found.reason) == (ClauseVerdict.UNTESTED, UntestedReason.CONDITION), clause.at
            unmet.add(clause.at)
        elif like not in done:
            done.add(like)
            assert verdict_on(clause, spec, calls, met).verdict == ClauseVerdict.CONTRADICTED, (clause.at, sum(met))
            others = [not is_met for is_met in met]
            assert verdict_on(clause, spec, calls, others).verdict == ClauseVerdict.MET, (clause.at, sum(met))
    return unmet


@pytest.mark.mechanism
@pytest.mark.parametrize("operator", SPECS)
def test_spoiled_calls_contradict_the_clauses_whose_condition_they_meet(operator: str) -> None:
    check_clauses(operator, SPECS[operator].products[0], FEW)


NEVER_MET = {
    # Whether gradInput may have another dtype than self, which is FLOAT there, is not said: all such calls are open.
    "aclnnMaxPool2dWithIndicesBackward": {
        "atlas-a2": {"params.gradInput.4", "params.gradInput.5"},
        "atlas-a3": {"params.gradInput.4", "params.gradInput.5"},
    },
    # Of one tensor the document says that it may be empty, of those with its shape not: all such calls are open.
    "aclnnHardshrinkBackward": {"": {"params.gradInput.20"}},
    "aclnnHardswishBackward": {"": {"params.self.19"}},
    "aclnnHardswishBackwardV2": {"": {"params.self.20"}},
    "aclnnThresholdBackward": {"": {"params.gradOutput.36"}},
    # Integers of self are listed, and gradInput, which has the dtype of self, has none: all such calls are open.
    "aclnnSoftplusBackward": {
        "ascend-950": {f"params.self.{place}" for place in range(3, 9)},
        "atlas-a3": {f"params.self.{place}" for place in range(13, 19)},
        "atlas-a2": {f"params.self.{place}" for place in range(23, 29)},
    },
    # The format of five dimensions is listed for all products, and these do not support convolutions of three.
    "aclnnConvolutionBackward": {
        "atlas-inference": {"params.gradOutput.20"},
        "atlas-training": {"params.gradOutput.20"},
    },
    # BOOL is listed, and no arithmetic of it is told: no valid call has it.
    "aclnnMaxUnpool2dBackward": {"": {"params.gradOutput.10", "params.self.10", "params.out.10"}},
    # Which number of dy belongs to a key is not said: all that indices and lengths change is open.
    "aclnnLightningIndexerGrad": {
        "": {"params.spareIndices.4", "params.actucalSeqLengthsQuery.2", "params.actucalSeqLengthsKey.2"}
    },
    # The rotary parts are BF16 alone and have the dtype of the others, which are listed with more; modes need a mask.
    "aclnnFlashAttentionUnpaddingScoreGradV3": {
        "": {"params.attenMaskOptional.6"}
        | {
            f"params.{name}.{place}"
            for name in ("query", "keyIn", "value", "dy", "attentionInOptional", "dqOut", "dkOut", "dvOut")
            for place in (3, 5)
        }
    },
    # INT32 and INT64 are listed where the program has the other: calls of these dtypes are open.
    "aclnnSparseFlashAttentionGrad": {
        "": {
            "params.sparseIndices.3",
            "params.actualSeqLengthsQueryOptional.3",
            "params.actualSeqLengthskvOptional.3",
        }
    },
    # The format of four dimensions is listed for all products, and this one has three.
    "aclnnThreeInterpolateBackward": {"ascend-950": {"params.grad_x.5"}},
    # BF16 has limits of its own there, which draws cannot state: they read no dtypes.
    "aclnnUpsampleLinear1dBackward": {
        "atlas-a2": {"params.gradOut.11", "params.out.11"},
        "atlas-a3": {"params.gradOut.8", "params.out.8"},
    },
}
"""Clauses whose condition no valid call meets, by operator and product, or for all products."""


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "product"), products_by_clauses(conditional))
def test_calls_of_the_standard_profile_test_every_condition(operator: str, product: str) -> None:
    never_met = NEVER_MET.get(operator, {})
    expected = never_met.get(product, never_met.get("", set()))
    assert check_clauses(operator, product, PROFILES["standard"]) == expected


UNREACHABLE = """\
operator: aclnnPlainBackward
document: {title: aclnnPlainBackward, language: en}
products: [atlas-a2]
tables: {floats: {atlas-a2: [FLOAT]}}
parameters:
  - {name: self, type: const aclTensor *, dtypes: floats, shape: "[*A]", rank: [1, 4]}
  - {name: out, type: aclTensor *, same_dtype_as: self, same_shape_as: self}
draws: [{run: A, length: [1, 4], sizes: [1, 64]}]
clauses:
  function: [{en: It copies., zh: 复制。, check: values}]
  limits: [{en: Five dimensions are supported., zh: 支持 5 维。, check: values, when: rank(self) == 5}]
"""


def test_condition_that_no_call_meets_leaves_its_clause_untested() -> None:
    specs = specs_from_texts({"plain_backward": UNREACHABLE})
    spec = specs.find("plain_backward")
    calls = valid_calls(spec, "atlas-a2", FEW)
    [clause] = [item for item in conditional(spec, "atlas-a2") if item.at == "limits.1"]
    for spoilt in (False, True):
        found = verdict_on(clause, spec, calls, [spoilt] * len(calls))
        assert (found.verdict, found.reason) == (ClauseVerdict.UNTESTED, UntestedReason.CONDITION)
