from __future__ import annotations

from collections import Counter
from itertools import chain

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import Beside, Fingerprint, Looks
from aclnn_cts.findings.finding import Confirmed, Counts, Finding
from aclnn_cts.findings.fingerprint import distinct, findings_together, grouped_findings, indexed
from aclnn_cts.findings.group import BROAD, group

OP = "aclnnSoftmaxBackward"

fingerprints = st.builds(
    Fingerprint,
    operator=st.sampled_from([OP, "aclnnRmsNormGrad"]),
    check=st.sampled_from(["values", "status", "boundary", "law/linear", "life-cycle/cold-warm"]),
    fault=st.sampled_from([*(fault.value for fault in Fault), "newer"]),
    clause=st.sampled_from(["", "dim.range", "out.dtype", "out.shape", "self.format"]),
    answer=st.sampled_from(["", "ACLNN_SUCCESS", "signal 11"]),
    looks=st.sampled_from(list(Looks)),
    output=st.sampled_from(["", "out", "dx"]),
    mode=st.sampled_from(["", "USE_HF32"]),
    dtype=st.sampled_from(["FLOAT", "BF16"]),
    beside=st.lists(
        st.one_of(
            st.builds(Beside, st.sampled_from(["out", "dx"]), st.sampled_from([Looks.WRONG, Looks.ROUNDING])),
            st.just(Beside("x", Looks.NONE, Fault.INPUT)),
            st.just(Beside("", Looks.NONE, Fault.STATUS, "ACLNN_SUCCESS")),
        ),
        max_size=2,
    ).map(tuple),
)
runs = st.dictionaries(fingerprints, st.integers(1, 300), max_size=40)


@given(runs, st.randoms())
def test_each_fingerprint_is_in_one_finding_whatever_their_order(
    failures: dict[Fingerprint, int], random: object
) -> None:
    found = group(failures)
    assert Counter(chain.from_iterable(item.fingerprints for item in found)) == Counter(list(failures))
    shuffled = list(failures)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert group({item: failures[item] for item in shuffled}) == found
    sizes = [sum(failures[item] for item in members) for members, _ in found]
    assert sizes == sorted(sizes, reverse=True)
    for members, _ in found:
        assert len({item.operator for item in members}) == 1
        numbers = [failures[item] for item in members]
        assert numbers == sorted(numbers, reverse=True)


@given(runs)
def test_grouping_depends_on_each_operator_alone(failures: dict[Fingerprint, int]) -> None:
    found = set(group(failures))
    for operator in {item.operator for item in failures}:
        of_it = {item: number for item, number in failures.items() if item.operator == operator}
        assert set(group(of_it)) == {item for item in found if item.fingerprints[0].operator == operator}


@given(runs, runs, st.sampled_from([Confirmed.ORDER, Confirmed.ALWAYS]))
def test_findings_that_are_grouped_again_are_the_same(
    failures: dict[Fingerprint, int], waived: dict[Fingerprint, int], confirmed: str
) -> None:
    key = Fingerprint(operator=OP, check="values", fault=Fault.VALUE)
    kept = [
        Finding(key=key, counts=counted(failures), confirmed=confirmed),
        Finding(key=key, counts=counted(waived, waiver="accepted"), waiver="accepted"),
    ]
    found = grouped_findings(kept)
    assert findings_together([found, ()]) == found
    assert sum(item.failures for item in found) == sum(failures.values()) + sum(waived.values())


def counted(failures: dict[Fingerprint, int], *, waiver: str = "") -> Counts:
    return tuple(((waiver, item), number) for item, number in failures.items())


def value(**fields: object) -> Fingerprint:
    given = {"operator": OP, "check": "values", "fault": Fault.VALUE, "looks": Looks.WRONG, "output": "out", **fields}
    return msgspec.convert(given, Fingerprint)


def rule(clause: str, answer: str = "ACLNN_SUCCESS", fault: str = Fault.STATUS) -> Fingerprint:
    return Fingerprint(operator=OP, check="status", fault=fault, clause=clause, answer=answer)


def test_failures_of_one_key_have_each_the_finding_of_their_own_waiver() -> None:
    key = Fingerprint(operator=OP, check="values", fault=Fault.VALUE)
    special = value(fault=Fault.SPECIAL, looks=Looks.STRAY)
    kept = Finding(key=key, counts=((("a", special), 1), (("b", value()), 2), (("", value()), 4)))
    found = grouped_findings([kept])
    assert [(item.waiver, item.failures) for item in found] == [("", 4), ("a", 1), ("b", 2)]
    assert [(item.waiver, item.failures) for item in distinct([kept])] == [("", 4), ("a", 1), ("b", 2)]
    place = indexed(found)
    assert [place("a", special), place("b", value()), place("", value())] == [1, 2, 0]
    with pytest.raises(HarnessError, match="lack one of its failures"):
        place("b", special)


def number(failures: dict[Fingerprint, int]) -> int:
    return len(group(failures))


def test_one_wrong_value_is_one_finding_in_every_dtype_mode_law_and_life_cycle() -> None:
    assert (
        number(
            {
                value(dtype="FLOAT"): 130,
                value(dtype="BF16", mode="USE_HF32"): 90,
                value(check="law/linear", fault=Fault.LAW): 8,
                value(check="life-cycle/cold-warm"): 3,
                value(looks=Looks.ROUNDING): 9,
                value(fault=Fault.SPECIAL, looks=Looks.STRAY): 12,
            }
        )
        == 1
    )


def test_rounding_and_a_wrong_formula_are_two_findings() -> None:
    wrong, rounding = value(), value(looks=Looks.ROUNDING)
    assert number({wrong: 100, rounding: 90}) == 2
    assert number({wrong: 100, rounding: 5}) == 1


def looking(**numbers: int) -> int:
    """Findings of so many failures of one output with each of these looks."""
    return number({value(looks=Looks(looks)): many for looks, many in numbers.items()})


def test_errors_of_any_size_are_one_wrong_term() -> None:
    assert looking(rounding=40, near=45, wrong=2) == 1
    assert looking(rounding=40, near=4, wrong=39) == 2
    assert looking(zero=60, wrong=40, near=20, special=3) == 1


def test_coarse_arithmetic_goes_out_of_range_and_is_seldom_wrong_otherwise() -> None:
    assert looking(rounding=40, stray=13, zero=6) == 1
    assert looking(rounding=400, wrong=8, near=3) == 1
    assert looking(rounding=400, wrong=30) == 2
    assert looking(rounding=300, special=6) == 2


def test_flushing_stays_apart_from_all_but_terms_that_are_missing() -> None:
    assert looking(flushed=15) == 1
    assert looking(flushed=15, rounding=300) == 2
    assert looking(flushed=15, wrong=200) == 2
    assert looking(flushed=4, zero=36, wrong=209) == 1


def test_values_that_are_clamped_stay_apart_from_wrong_ones() -> None:
    assert looking(clamped=28) == 1
    assert looking(clamped=28, wrong=64) == 2
    assert looking(clamped=1, wrong=277) == 1


def test_a_wrong_formula_is_told_apart_by_output_and_rounding_is_not() -> None:
    first, second = value(output="dx"), value(output="dgamma")
    assert number({first: 60, second: 50}) == 2
    assert number({first: 60, second: 4}) == 2
    coarse = [msgspec.structs.replace(item, looks=Looks.ROUNDING) for item in (first, second)]
    assert number(dict.fromkeys(coarse, 50)) == 1


def test_rules_that_are_not_enforced_are_findings_of_their_own_until_many_are() -> None:
    clauses = ["dim.range", "out.dtype", "out.shape", "self.format"][:BROAD]
    assert number({rule(name): 4 for name in clauses[:-1]}) == BROAD - 1
    assert number({rule(name): 4 for name in clauses}) == 1
    assert number({rule("out.dtype"): 3, rule("out.dtype", "signal 11", Fault.CRASH): 3}) == 1
    crashes = {rule(name, "signal 11", Fault.CRASH): 2 for name in clauses}
    assert number({**{rule(name): 4 for name in clauses}, **crashes}) == 1


def test_leaks_are_one_finding_whatever_the_calls_are_refused_for() -> None:
    assert number({rule(name, "", Fault.LEAK): 2 for name in ("dim.range", "out.dtype")}) == 1


def test_one_mistake_is_wrong_in_the_same_calls_or_in_many_outputs() -> None:
    both = value(output="dx", beside=(Beside("dgamma", Looks.WRONG),))
    assert number({both: 90, value(output="dx"): 10, value(output="dgamma"): 5}) == 1
    assert number({both: 40, value(output="dx"): 60, value(output="dgamma"): 30}) == 2
    assert number({value(output=name): 50 for name in ("dx", "dgamma", "dbeta")}) == 1
    assert number({value(output="dx"): 50, value(output="dgamma"): 40, value(output="dbeta"): 2}) == 3


def test_wrong_values_behind_a_stray_write_are_a_finding_of_their_own() -> None:
    def stray(dtype: str, *, wrong: bool) -> Fingerprint:
        beside = (Beside("out", Looks.WRONG),) if wrong else ()
        return value(fault=Fault.GUARD, looks=Looks.NONE, dtype=dtype, beside=beside)

    behind = {stray("FLOAT", wrong=True): 40, stray("BF16", wrong=True): 30, stray("BF16", wrong=False): 5}
    first, second = group(behind)
    assert (first.hidden, second.hidden) == (None, Beside("out", Looks.WRONG))
    assert {item.fault for item in second.fingerprints} == {Fault.GUARD}
    assert number({stray("FLOAT", wrong=False): 40, stray("BF16", wrong=False): 30}) == 1


def test_what_else_a_call_does_to_memory_or_status_is_a_finding_of_its_own() -> None:
    changed = Beside("x", Looks.NONE, Fault.INPUT)
    stray = value(fault=Fault.GUARD, looks=Looks.NONE, beside=(changed,))
    assert [item.hidden for item in group({stray: 40, msgspec.structs.replace(stray, dtype="BF16"): 9})] == [
        None,
        changed,
    ]
    accepted = Beside("", Looks.NONE, Fault.STATUS, "ACLNN_SUCCESS")
    written = rule("bias.format", "", Fault.INPUT)
    both = msgspec.structs.replace(written, output="x", beside=(accepted,))
    assert [item.hidden for item in group({both: 3, value(fault=Fault.INPUT, output="x"): 90})] == [None, accepted]


def test_a_rule_that_is_not_enforced_stays_apart_from_wrong_codes_of_others() -> None:
    wrong_code = {rule(name, "ACLNN_ERR_INNER"): 9 for name in ("x.null", "out.null", "y.null")}
    assert number({**wrong_code, rule("out.dtype", "ACLNN_SUCCESS"): 2}) == 2
    assert number({**wrong_code, rule("out.dtype", "ACLNN_ERR_INVALID"): 2}) == 1


def test_what_is_not_written_stays_apart_from_wrong_values() -> None:
    unwritten = value(fault=Fault.UNWRITTEN, looks=Looks.NONE)
    assert number({value(): 300, unwritten: 10}) == 2
    assert number({unwritten: 300, value(check="law/linear", fault=Fault.LAW): 10}) == 1


def test_what_only_related_calls_leave_unwritten_stays_apart_from_wrong_values() -> None:
    unwritten = value(check="life-cycle/repeatable", fault=Fault.UNWRITTEN, looks=Looks.NONE)
    wrong = value(check="life-cycle/repeatable")
    assert number({value(): 60, wrong: 2, unwritten: 3}) == 2
    assert number({value(): 60, value(fault=Fault.UNWRITTEN, looks=Looks.NONE): 9, unwritten: 3}) == 2
    assert number({wrong: 2, unwritten: 3}) == 1


def test_what_shows_only_after_other_calls_is_one_finding() -> None:
    left = {value(output=name): 50 for name in ("dx", "dgamma")}
    assert len(group(left)) == 2
    assert len(group(left, order_dependent={*left})) == 1
    stray = value(fault=Fault.GUARD, looks=Looks.NONE)
    law = value(check="law/linear", fault=Fault.LAW)
    assert len(group({**left, stray: 4, law: 3}, order_dependent={*left, stray})) == 1


@pytest.mark.parametrize("fault", sorted(Fault.of(Family.ENDED, Family.MEMORY, Family.LEAK, Family.REJECTED)))
def test_what_no_wrong_value_explains_stays_apart(fault: str) -> None:
    other = Fingerprint(operator=OP, check="values", fault=fault, output="out")
    assert number({value(): 300, other: 2}) == 2


def test_nothing_failed() -> None:
    assert group({}) == ()
