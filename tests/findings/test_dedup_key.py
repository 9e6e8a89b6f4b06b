"""Which failures a campaign puts together, and which it keeps apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.checks.life_cycle import LIFE_CYCLES
from aclnn_cts.checks.registry import CHECKS
from aclnn_cts.core.case import CallOptions, Case, Origin
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Ended, Outcome
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.findings.dedup_key import (
    VALUE_KINDS,
    calls_alone,
    dedup_key,
    is_milder,
    kind_of,
    same_finding,
    shown_by,
    with_root_cause,
)
from aclnn_cts.findings.fingerprint import fingerprinted
from aclnn_cts.speclang.load import load_specs
from tests.triage.test_shrink import softmax

SPECS = load_specs(())
VALID = softmax((3, 5)).case
BROKEN = msgspec.structs.replace(
    VALID,
    arguments={**VALID.arguments, "gradOutput": None},
    origin=Origin(kind="invalid", constraint="gradOutput.null"),
)
TWIN = {"twin": case_to_json(VALID, origin=False)}
Execute = Callable[[Trial], Record]


def failed(
    trial: Trial, kind: str, *, output: str = "out", constraint: str = "", dtype: str = "FLOAT16", outcome: Outcome
) -> Record:
    facts = {"output": output} if output else {}
    return fingerprinted(
        Record(
            trial_id=trial.id,
            trial=trial,
            attempts=((outcome,),),
            verdict=Verdict(result=Result.FAILED, kind=kind, facts=facts),
            fingerprint=Fingerprint(
                operator=trial.case.operator,
                check=trial.check,
                fault=kind,
                clause=constraint,
                output=output,
                dtype=dtype,
            ),
        )
    )


def wrong(trial: Trial, kind: str = Fault.VALUE, *, output: str = "out", constraint: str = "") -> Record:
    return failed(trial, kind, output=output, constraint=constraint, outcome=Outcome(phase_one=0, phase_two=0))


def died(trial: Trial, *, signal: int = 6, constraint: str = "") -> Record:
    outcome = Outcome(ended=Ended.SIGNAL, signal=signal)
    return failed(trial, Fault.CRASH, output="", constraint=constraint, outcome=outcome)


def passing(trial: Trial) -> Record:
    empty = Fingerprint(operator=trial.case.operator, check=trial.check, fault="")
    return Record(trial_id=trial.id, trial=trial, attempts=(), verdict=Verdict(result=Result.PASSED), fingerprint=empty)


def never(trial: Trial) -> Record:
    raise AssertionError(f"{trial.check} needs no execution")


def of(records: Mapping[str, Callable[[Trial], Record]]) -> Execute:
    """By check; everything else passes."""
    return lambda trial: records.get(trial.check, passing)(trial)


def test_wrong_values_of_one_output_mode_and_dtype_are_one_finding() -> None:
    records = [wrong(Trial(name, VALID), kind) for name in ("values", "example", "memory") for kind in VALUE_KINDS]
    [key] = {with_root_cause(record, SPECS, never).key for record in records}
    assert (key.check, key.fault, key.answer) == ("values", Fault.VALUE, "")
    # The record says what it was.
    assert {with_root_cause(record, SPECS, never).verdict.kind for record in records} == set(VALUE_KINDS)
    other = dedup_key(wrong(Trial("values", VALID), output="other").key)
    assert other != key
    assert dedup_key(wrong(Trial("values", VALID), Fault.GUARD).key) != key


WITH_ANOTHER = ("life-cycle/two-streams", "life-cycle/interleaved", "life-cycle/other-attributes")


@pytest.mark.parametrize("name", [name for name in LIFE_CYCLES if name != "life-cycle/repeated-failure"])
@pytest.mark.parametrize("kind", [*VALUE_KINDS, Fault.GUARD, Fault.INPUT, Fault.UNWRITTEN])
def test_a_life_cycle_whose_call_is_wrong_by_itself_has_its_finding(name: str, kind: str) -> None:
    other = {"other": case_to_json(softmax((2, 9)).case, origin=False)}
    trial = Trial(name, VALID, other if name in WITH_ANOTHER else {})
    record = wrong(trial, kind)
    alone = of({"values": lambda call: wrong(call, kind)})
    assert with_root_cause(record, SPECS, alone).key == dedup_key(wrong(Trial("values", VALID), kind).key)
    # What does not fail alone, or otherwise, is a fault of the life cycle.
    assert with_root_cause(record, SPECS, of({})).key.check == name
    elsewhere = of({"values": lambda call: wrong(call, kind, output="other")})
    assert with_root_cause(record, SPECS, elsewhere).key.check == name


def test_a_law_has_the_finding_of_a_call_that_fails() -> None:
    law = Trial("law/repeat", VALID)
    record = wrong(law, Fault.LAW)
    found = with_root_cause(record, SPECS, of({"values": lambda call: wrong(call, Fault.MODEL)}))
    assert (found.key.check, found.key.fault) == ("values", Fault.VALUE)
    # It is grouped by its own fault.
    assert (found.fingerprint.check, found.fingerprint.fault) == ("values", Fault.LAW)
    # A relation of outputs none of which is wrong by itself, whatever stands on its sides.
    for kind in (Fault.LAW, Fault.SPECIAL, Fault.MODEL):
        kept = with_root_cause(wrong(law, kind), SPECS, of({})).key
        assert (kept.check, kept.fault) == ("law/repeat", Fault.LAW)
        assert kind_of(kept, [kind]) == kind
    stray = with_root_cause(wrong(law, Fault.GUARD), SPECS, never).key
    assert (stray.check, stray.fault) == ("values", Fault.GUARD)


def test_a_leak_is_one_finding_whatever_call_was_taken() -> None:
    name = "life-cycle/repeated-failure"
    records = [
        failed(Trial(name, BROKEN), Fault.LEAK, output="", constraint=constraint, dtype=dtype, outcome=Outcome())
        for constraint, dtype in (("gradOutput.null", "FLOAT"), ("output.null", "BF16"), ("out.null", ""))
    ]
    keys = {with_root_cause(record, SPECS, of({"status": passing})).key for record in records}
    assert keys == {Fingerprint(operator=VALID.operator, check=name, fault=Fault.LEAK)}


def test_a_wrong_status_many_times_is_that_of_one_call() -> None:
    refused = Outcome(phase_one=561000)
    trial = Trial("life-cycle/repeated-failure", BROKEN)
    record = failed(trial, Fault.STATUS, output="", constraint="gradOutput.null", outcome=refused)

    def once(call: Trial) -> Record:
        return failed(call, Fault.STATUS, output="", constraint="gradOutput.null", outcome=refused)

    found = with_root_cause(record, SPECS, of({"status": once})).key
    assert (found.check, found.clause, found.dtype) == ("status", "gradOutput.null", "FLOAT16")
    # A status that changes on the way is a fault of many calls.
    alone = with_root_cause(record, SPECS, of({"status": passing})).key
    assert (alone.check, alone.clause, alone.dtype) == (trial.check, "", "")


def test_a_crash_of_many_calls_is_kept_apart_from_that_of_one() -> None:
    trial = Trial("life-cycle/repeated-failure", BROKEN)
    record = died(trial, constraint="gradOutput.null")
    many = with_root_cause(record, SPECS, of({"status": passing})).key
    assert (many.check, many.clause, many.answer) == (trial.check, "", "signal 6")
    one = with_root_cause(record, SPECS, of({"status": lambda call: died(call, constraint="gradOutput.null")})).key
    assert (one.check, one.clause) == ("status", "gradOutput.null")
    otherwise = of({"status": lambda call: died(call, signal=11, constraint="gradOutput.null")})
    assert with_root_cause(record, SPECS, otherwise).key.check == trial.check


@pytest.mark.parametrize("name", ["status", "boundary"])
def test_what_a_valid_twin_does_too_is_no_matter_of_the_constraint(name: str) -> None:
    trial = Trial(name, BROKEN, TWIN)
    record = wrong(trial, Fault.GUARD, constraint="gradOutput.null")
    twin = of({"values": lambda call: wrong(call, Fault.GUARD)})
    assert with_root_cause(record, SPECS, twin).key == dedup_key(wrong(Trial("values", VALID), Fault.GUARD).key)
    kept = with_root_cause(record, SPECS, of({})).key
    assert (kept.check, kept.clause) == ("status", "gradOutput.null")
    # The status of a broken call is no matter of the twin, which is not asked for it.
    refused = failed(trial, Fault.STATUS, constraint="gradOutput.null", outcome=Outcome(phase_one=561000))
    assert with_root_cause(refused, SPECS, never).key.clause == "gradOutput.null"


def test_a_twin_that_is_refused_has_the_status_that_it_got() -> None:
    trial = Trial("status", BROKEN, TWIN)
    record = failed(trial, Fault.REJECTED, constraint="gradOutput.null", outcome=Outcome(phase_one=561000))
    both = (Outcome(phase_one=561000), Outcome(phase_one=161001))
    record = msgspec.structs.replace(record, attempts=(both,))
    alone = failed(Trial("values", VALID), Fault.REJECTED, outcome=Outcome(phase_one=561000))
    assert with_root_cause(record, SPECS, of({"values": lambda _: alone})).key == dedup_key(alone.key)


def test_constraints_of_a_status_stay_apart() -> None:
    keys = {
        dedup_key(
            failed(Trial("status", BROKEN), Fault.STATUS, constraint=constraint, outcome=Outcome(phase_one=status)).key
        )
        for constraint in ("gradOutput.null", "output.null")
        for status in (561000, 161001)
    }
    assert len(keys) == 4


def test_calls_that_are_tried_alone() -> None:
    first = Case(VALID.operator, VALID.arguments, VALID.target, call=CallOptions(phases=1))
    alone = calls_alone(Trial("life-cycle/phase-one-alone", VALID), SPECS)
    assert [call.case.call for call in alone] == [VALID.call]
    assert first.call not in [call.case.call for call in alone]
    assert calls_alone(Trial("values", VALID), SPECS) == []
    assert calls_alone(Trial("status", BROKEN), SPECS) == []
    values = dedup_key(wrong(Trial("values", VALID)).key)
    trial = Trial("life-cycle/cold-warm", VALID)
    assert shown_by(trial, values, SPECS) == [Trial("values", VALID), trial]
    # A finding of the life cycle itself is shown by nothing plainer.
    assert shown_by(trial, msgspec.structs.replace(values, check=trial.check), SPECS) == [trial]


def test_the_kind_of_a_finding_is_the_gravest_of_its_failures() -> None:
    values = dedup_key(wrong(Trial("values", VALID)).key)
    assert kind_of(values, [Fault.MODEL]) == Fault.MODEL
    assert kind_of(values, [Fault.MODEL, Fault.SPECIAL, ""]) == Fault.SPECIAL
    assert kind_of(values, [Fault.MODEL, Fault.SPECIAL, Fault.VALUE]) == Fault.VALUE
    # A law that is not kept since a call is wrong says nothing of how wrong that is.
    assert kind_of(values, [Fault.LAW, Fault.MODEL]) == Fault.MODEL
    assert kind_of(values, []) == Fault.VALUE
    crash = dedup_key(died(Trial("values", VALID)).key)
    assert kind_of(crash, [Fault.VALUE]) == Fault.CRASH
    assert is_milder(Fault.MODEL, than=Fault.SPECIAL)
    assert not is_milder(Fault.MODEL, than=Fault.MODEL)
    assert not is_milder(Fault.SPECIAL, than=Fault.VALUE)


def test_what_met_a_fault_of_its_call_is_known_again() -> None:
    values = dedup_key(wrong(Trial("values", VALID)).key)
    assert same_finding(values, wrong(Trial("example", VALID), Fault.SPECIAL))
    assert same_finding(values, wrong(Trial("life-cycle/cold-warm", VALID), Fault.MODEL))
    assert same_finding(values, wrong(Trial("law/repeat", VALID), Fault.LAW))
    assert not same_finding(values, wrong(Trial("values", VALID), Fault.GUARD))
    assert not same_finding(values, wrong(Trial("life-cycle/cold-warm", VALID), Fault.GUARD))
    cold = msgspec.structs.replace(values, check="life-cycle/cold-warm")
    assert same_finding(cold, wrong(Trial("life-cycle/cold-warm", VALID)))
    assert not same_finding(cold, wrong(Trial("values", VALID)))


_KINDS = [fault.value for fault in Fault]


@given(
    st.builds(
        Fingerprint,
        operator=st.just(VALID.operator),
        check=st.sampled_from(sorted(CHECKS)),
        fault=st.sampled_from(_KINDS),
        clause=st.sampled_from(["", "gradOutput.null"]),
        output=st.sampled_from(["", "out"]),
        dtype=st.sampled_from(["", "FLOAT"]),
        answer=st.sampled_from(["", "inf", "-inf", "signal 6"]),
    )
)
def test_a_key_of_a_campaign_stays_as_it_is(key: Fingerprint) -> None:
    once = dedup_key(key)
    assert dedup_key(once) == once
    assert (once.operator, once.output, once.mode) == (key.operator, key.output, key.mode)
