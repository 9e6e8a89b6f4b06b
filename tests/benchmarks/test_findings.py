"""Two faults stay two where most of what each spoils alone is in a finding of its own."""

from __future__ import annotations

import pytest

from benchmarks.findings import CONDITIONS, FINDINGS, HIDDEN, PAIRS, findings_with_most, shown

NUMBERS = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 1}


@pytest.mark.parametrize(
    ("trials", "number"),
    [
        (("ab", "cd"), 2),
        (("ab", "abc"), 1),
        (("abc", "de"), 2),
        (("ab", ""), 1),
        (("ab", "x"), 1),
    ],
)
def test_findings_that_have_most_of_some_failures_are_counted(trials: tuple[str, ...], number: int) -> None:
    assert findings_with_most(NUMBERS, [set(each) for each in trials]) == number


def test_hidden_pairs_are_no_part_of_the_pairs_that_stay_two() -> None:
    rounds = {
        f"{FINDINGS}, a": (1.0,),
        f"{FINDINGS}, b": (2.0,),
        f"{PAIRS}, a and b": (2.0,),
        f"{PAIRS}, a and c": (1.0,),
        f"{HIDDEN}, b and c": (1.0,),
        f"{CONDITIONS}, a": (1.0,),
    }
    rows = list(shown(rounds))
    assert [row.figure for row in rows] == ["1.50", "50%", "1", "100%"]
    assert [row.missed for row in rows] == [True, True, False, False]
    assert "(of 2)" in rows[1].what
