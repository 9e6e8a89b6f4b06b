"""Numbers have one form, in both languages and everywhere on the page."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.reports.numbers import bytes_text, count_text, seconds_text, share_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00008, "8e-5"),
        (0.5, "0.5"),
        (0.096, "0.096"),
        (99.4, "99"),
        (99.6, "100"),
        (754, "750"),
        (-2345.0, "-2\u202f300"),
        (999_999, "1\u202f000\u202f000"),
        (2.6e8, "2.6e8"),
        (-1e16, "-1e16"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        ("inf", "∞"),
        (math.nan, "nan"),
    ],
)
def test_a_share_has_two_digits_and_no_more(value: float | str, text: str) -> None:
    assert share_text(value) == text


# Beyond 1.75e308 two digits round to a number that is no float any more.
@given(st.floats(-1.74e308, 1.74e308))
def test_a_share_says_what_it_is_to_two_digits(value: float) -> None:
    said = float(share_text(value).replace("\u202f", ""))
    assert said == pytest.approx(value, rel=0.051)


def test_counts_durations_and_sizes() -> None:
    assert count_text(1234567) == "1\u202f234\u202f567"
    assert [seconds_text(value) for value in (None, 3.21, 245, 7800)] == ["—", "3.2 s", "4 min 05 s", "2 h 10 min"]
    assert [bytes_text(value) for value in (812, 14541, 3 << 20)] == ["812", "14.2 KiB", "3.0 MiB"]
