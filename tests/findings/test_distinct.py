"""Which findings of a campaign are one fault, and which of them shows it."""

from __future__ import annotations

import msgspec
import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Fingerprint, Looks
from aclnn_cts.core.trial import Earlier, Trial
from aclnn_cts.findings.finding import Confirmed, Finding
from aclnn_cts.findings.fingerprint import distinct
from tests.support.build_records import SOFTMAX, make_record

CASE = make_record().trial.case


def finding(
    output: str, *, kind: str = Fault.VALUE, dtype: str = "", waiver: str = "", confirmed: str = Confirmed.ORDER
) -> Finding:
    fingerprint = Fingerprint(operator=SOFTMAX, check="values", fault=kind, output=output, dtype=dtype)
    if kind == Fault.VALUE:
        fingerprint = msgspec.structs.replace(fingerprint, looks=Looks.WRONG)
    return Finding(
        key=Fingerprint(operator=SOFTMAX, check="values", fault=kind, output=output, dtype=dtype),
        counts=(((waiver, fingerprint), 3),),
        confirmed=confirmed,
        failures=3,
        waiver=waiver,
    )


def test_what_calls_leave_behind_is_one_finding_in_every_output() -> None:
    one, two, crash, waived = finding("a"), finding("b"), finding("a", kind=Fault.CRASH), finding("c", waiver="known")
    told = distinct([one, two, crash, waived])
    assert [(item.key, item.failures) for item in told] == [
        (one.key, 6),
        (crash.key, 3),
        (waived.key, 3),
    ]
    assert one.failures == 3, "what is stored stays its own"
    # One whose calls are known shows it rather than those whose are not, and of these one that was made smaller.
    two.trial = Trial("values", CASE, after=(Earlier(CASE),))
    assert distinct([one, two])[0].key == two.key
    one.trial, one.shrunk = two.trial, True
    assert distinct([one, two])[0].key == one.key


def test_dtypes_of_one_fault_are_one_finding_shown_by_what_always_fails() -> None:
    flaky, always = finding("out", dtype="BF16", confirmed=Confirmed.FLAKY), finding("out", confirmed=Confirmed.ALWAYS)
    [told] = distinct([flaky, always])
    assert (told.key, told.failures) == (always.key, 6)


@pytest.mark.parametrize("looks", [Looks.WRONG, Looks.ROUNDING])
def test_what_is_kept_as_one_and_looks_like_two_faults_is_two(looks: Looks) -> None:
    both = finding("out", confirmed=Confirmed.ALWAYS)
    [((waiver, fingerprint), _)] = both.counts
    other = msgspec.structs.replace(fingerprint, looks=looks, dtype="BF16")
    both.counts = (((waiver, fingerprint), 50), ((waiver, other), 40))
    expected = [90] if looks == Looks.WRONG else [50, 40]
    assert [item.failures for item in distinct([both])] == expected
