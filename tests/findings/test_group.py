from __future__ import annotations

from collections import Counter
from itertools import chain

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import Fingerprint, Symptom
from aclnn_cts.findings.group import group_failures

OP = "aclnnSoftmaxBackward"

fingerprints = st.builds(
    Fingerprint,
    operator=st.sampled_from([OP, "aclnnRmsNormGrad"]),
    check=st.sampled_from(["values", "status", "boundary", "determinism", "life-cycle/cold-warm"]),
    fault=st.sampled_from([*(fault.value for fault in Fault), "newer"]),
    clause=st.sampled_from(["", "dim.range", "out.dtype", "out.shape", "self.format"]),
    answer=st.sampled_from(["", "ACLNN_SUCCESS", "signal 11"]),
    output=st.sampled_from(["", "out", "dx"]),
    mode=st.sampled_from(["", "USE_HF32"]),
    dtype=st.sampled_from(["FLOAT", "BF16"]),
    also=st.lists(
        st.sampled_from(
            [
                Symptom(Fault.VALUE, "out"),
                Symptom(Fault.VALUE, "dx"),
                Symptom(Fault.INPUT, "x"),
                Symptom(Fault.STATUS, clause="dim.range", answer="ACLNN_SUCCESS"),
            ]
        ),
        max_size=2,
    ).map(tuple),
)
runs = st.dictionaries(fingerprints, st.integers(1, 300), max_size=40)


@given(runs, st.randoms())
def test_each_fingerprint_is_in_one_finding_whatever_their_order(
    failures: dict[Fingerprint, int], random: object
) -> None:
    found = group_failures(failures)
    assert Counter(chain.from_iterable(item.fingerprints for item in found)) == Counter(list(failures))
    shuffled = list(failures)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert group_failures({item: failures[item] for item in shuffled}) == found
    sizes = [sum(failures[item] for item in members) for _, members in found]
    assert sizes == sorted(sizes, reverse=True)
    for _, members in found:
        assert len({item.operator for item in members}) == 1
        numbers = [failures[item] for item in members]
        assert numbers == sorted(numbers, reverse=True)


@given(runs)
def test_grouping_depends_on_each_operator_alone(failures: dict[Fingerprint, int]) -> None:
    found = set(group_failures(failures))
    for operator in {item.operator for item in failures}:
        of_it = {item: number for item, number in failures.items() if item.operator == operator}
        assert set(group_failures(of_it)) == {item for item in found if item.fingerprints[0].operator == operator}


@given(runs)
def test_dtype_mode_and_kind_of_wrong_value_are_no_part_of_a_finding(failures: dict[Fingerprint, int]) -> None:
    for _, members in group_failures(failures):
        for item in members:
            kinds = Fault.of(Family.VALUES) if item.fault in Fault.of(Family.VALUES) else {item.fault}
            alike = [
                msgspec.structs.replace(item, dtype=dtype, mode=mode, fault=str(kind))
                for dtype in ("FLOAT", "BF16")
                for mode in ("", "USE_HF32")
                for kind in kinds
            ]
            assert set(alike) & set(failures) <= set(members)


def value(**fields: object) -> Fingerprint:
    given = {"operator": OP, "check": "values", "fault": Fault.VALUE, "output": "out", **fields}
    return msgspec.convert(given, Fingerprint)


def rule(clause: str, answer: str = "ACLNN_SUCCESS", fault: str = Fault.STATUS) -> Fingerprint:
    return Fingerprint(operator=OP, check="status", fault=fault, clause=clause, answer=answer)


def number(failures: dict[Fingerprint, int]) -> int:
    return len(group_failures(failures))


def test_one_wrong_value_is_one_finding_in_every_kind_check_and_call_mode() -> None:
    assert (
        number(
            {
                value(dtype="FLOAT"): 130,
                value(dtype="BF16", mode="USE_HF32"): 90,
                value(check="determinism", fault=Fault.NONDETERMINISTIC): 8,
                value(check="life-cycle/cold-warm"): 3,
                value(fault=Fault.MODEL): 9,
                value(fault=Fault.SPECIAL): 12,
                value(fault=Fault.TOLERANCE): 2,
            }
        )
        == 1
    )


def test_unequal_results_are_filed_under_what_fails_alone() -> None:
    unequal = value(check="determinism", fault=Fault.NONDETERMINISTIC)
    [alone] = group_failures({unequal: 8})
    assert alone.symptom.fault == Fault.NONDETERMINISTIC
    [both] = group_failures({unequal: 8, value(fault=Fault.SPECIAL): 1})
    assert both.symptom == Symptom(Fault.VALUE, "out")


def test_constraints_that_are_not_enforced_stay_apart() -> None:
    clauses = ["dim.range", "out.dtype", "out.shape", "self.format"]
    assert number({rule(name): 4 for name in clauses}) == len(clauses)
    assert number({rule("out.dtype"): 3, rule("out.dtype", "signal 11", Fault.CRASH): 3}) == 1


def test_an_operator_that_enforces_no_constraint_has_one_finding_an_answer() -> None:
    clauses = ["dim.range", "out.dtype", "out.shape"]
    accepted = {rule(name): 4 for name in clauses}
    assert len(group_failures(accepted, unenforced={OP})) == 1
    assert len(group_failures({**accepted, rule("self.format", "ACLNN_ERR_INNER"): 4}, unenforced={OP})) == 2
    assert len(group_failures({rule(name): 4 for name in clauses[:2]}, unenforced={OP})) == 2


def test_calls_that_end_alike_are_one_finding_whether_valid_or_not() -> None:
    crash = rule("out.dtype", "signal 11", Fault.CRASH)
    valid = value(fault=Fault.CRASH, answer="signal 11", output="")
    assert number({crash: 3, rule("out.shape", "signal 11", Fault.CRASH): 2, valid: 9}) == 1
    assert number({crash: 3, rule("out.shape", "signal 11", Fault.CRASH): 2}) == 2


def test_leaks_are_one_finding_whatever_the_calls_are_refused_for() -> None:
    assert number({rule(name, "", Fault.LEAK): 2 for name in ("dim.range", "out.dtype")}) == 1


def test_outputs_that_are_wrong_in_the_same_calls_are_one_finding() -> None:
    both = value(output="dx", also=(Symptom(Fault.VALUE, "dgamma"),))
    assert number({both: 90, value(output="dx"): 10, value(output="dgamma"): 5}) == 1
    assert number({both: 10, value(output="dx"): 60, value(output="dgamma"): 30}) == 2
    assert number({value(output=name): 50 for name in ("dx", "dgamma", "dbeta")}) == 3


def test_a_call_that_shows_two_findings_counts_with_the_rarer() -> None:
    """A verdict names a stray write, or the first output, first: behind it a fault of its own must not hide."""
    stray = value(fault=Fault.GUARD, also=(Symptom(Fault.VALUE, "out"),))
    first, second = group_failures({stray: 5, value(fault=Fault.GUARD): 40})
    assert (first.symptom, second.symptom) == (Symptom(Fault.GUARD, "out"), Symptom(Fault.VALUE, "out"))
    assert second.fingerprints == (stray,)
    accepted = Symptom(Fault.STATUS, clause="bias.format", answer="ACLNN_SUCCESS")
    written = value(fault=Fault.INPUT, output="x", check="status", clause="bias.format", also=(accepted,))
    found = group_failures({written: 3, value(fault=Fault.INPUT, output="x"): 90})
    assert [item.symptom for item in found] == [Symptom(Fault.INPUT, "x"), accepted]


def test_what_is_written_elsewhere_is_missing_in_its_place() -> None:
    unwritten = value(fault=Fault.UNWRITTEN)
    assert number({value(): 300, unwritten: 10}) == 2
    assert number({unwritten: 10, value(fault=Fault.GUARD): 4, value(fault=Fault.SHAPE, output="dx"): 1}) == 1
    assert number({unwritten: 300, value(check="determinism", fault=Fault.NONDETERMINISTIC): 10}) == 1


def test_what_shows_only_after_other_calls_is_one_finding() -> None:
    left = {value(output=name): 50 for name in ("dx", "dgamma")}
    assert len(group_failures(left)) == 2
    assert len(group_failures(left, order_dependent={*left})) == 1
    stray = value(fault=Fault.GUARD)
    crash = value(fault=Fault.CRASH, output="")
    assert len(group_failures({**left, stray: 4, crash: 3}, order_dependent={*left, stray, crash})) == 2


@pytest.mark.parametrize("fault", sorted(Fault.of(Family.ENDED, Family.MEMORY, Family.LEAK, Family.REJECTED)))
def test_what_no_wrong_value_explains_stays_apart(fault: str) -> None:
    other = Fingerprint(operator=OP, check="values", fault=fault, output="out")
    assert number({value(): 300, other: 2}) == 2


def test_nothing_failed() -> None:
    assert group_failures({}) == ()
