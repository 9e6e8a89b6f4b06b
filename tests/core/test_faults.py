from __future__ import annotations

import re
from itertools import chain

import msgspec
import pytest

from aclnn_cts.core.faults import Family, Fault, Severity, fault_words, severity


def test_a_fault_is_its_code_wherever_a_string_is_expected() -> None:
    for fault in Fault:
        assert fault == fault.value
        assert hash(fault) == hash(fault.value)
        assert f"{fault}" == str(fault) == fault.value
        assert msgspec.json.decode(msgspec.json.encode(fault)) == fault.value
        assert severity(fault.value) is fault.severity


def test_the_order_of_faults_follows_their_severity() -> None:
    grave = [fault.severity.order for fault in Fault]
    assert grave == sorted(grave)
    assert [fault.order for fault in Fault] == list(range(len(Fault)))
    assert list(Severity) == sorted(Severity, key=lambda item: item.order)


def test_each_fault_has_one_family() -> None:
    assert sorted(chain.from_iterable(Fault.of(family) for family in Family)) == sorted(Fault)
    assert Fault.of(Family.VALUES) == {Fault.VALUE, Fault.SPECIAL, Fault.MODEL}
    assert Fault.of(Family.ENDED, Family.LEAK) == {Fault.CRASH, Fault.HANG, Fault.READ, Fault.LEAK}
    assert Fault.of() == frozenset()


def test_each_fault_has_words_in_both_languages() -> None:
    words = fault_words()
    assert list(words) == [fault.value for fault in Fault]
    for entry in words.values():
        for english, chinese in entry:
            assert english.isascii()
            assert re.search("[\u4e00-\u9fff]", chinese)


@pytest.mark.parametrize(
    ("code", "expected"), [(Fault.HANG.value, "critical"), ("tolerance", "minor"), ("newer", "major")]
)
def test_a_code_of_a_later_version_counts_as_major(code: str, expected: str) -> None:
    assert severity(code).value == expected
