"""Numbers have one form, in both languages and everywhere on the page."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.printable import number_text
from aclnn_cts.reports.text import bytes_text, count_text, error_ratio_text, seconds_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00008, "8e-05"),
        (0.5, "0.5"),
        (0.0956, "0.0956"),
        (754.4, "754"),
        (-2345.0, "-2.34e+03"),
        (2.6e8, "2.6e+08"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        ("inf", "∞"),
        (math.nan, "nan"),
    ],
)
def test_an_error_ratio_has_three_digits_and_no_more(value: float | str, text: str) -> None:
    assert error_ratio_text(value) == text


@given(st.floats())
def test_measured_numbers_look_as_they_do_in_recorded_messages(value: float) -> None:
    assert number_text(value) == f"{value:.3g}"


def test_counts_durations_and_sizes() -> None:
    assert count_text(1234567) == "1\u202f234\u202f567"
    assert [seconds_text(value) for value in (None, 3.21, 245, 7800)] == ["—", "3.2 s", "4 min 05 s", "2 h 10 min"]
    assert [bytes_text(value) for value in (812, 14541, 3 << 20)] == ["812", "14.2 KiB", "3.0 MiB"]
