from __future__ import annotations

import math

import numpy as np
import pytest

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.verdict import Result
from aclnn_cts.store.record_codec import (
    decode_record,
    encode_record,
    key_from_text,
    key_text,
)
from tests.support.build_records import make_record


def test_a_record_comes_back_whole() -> None:
    record = make_record(
        3, result=Result.FAILED, kind="value", error_ratio=math.inf, waiver="w", facts={"a": [1, "x", None]}
    )
    again = decode_record(encode_record(record), where="here")
    assert again.trial.case.arguments["scale"] is not None  # nan is no null pointer
    assert math.isnan(again.trial.case.arguments["scale"])  # type: ignore[arg-type]  # a number, as made above
    assert again.verdict.deviations[0].error_ratio == math.inf
    assert again.trial.id == record.trial_id
    assert repr(again) == repr(record)  # nan is not equal to itself


def test_numpy_scalars_in_facts_become_numbers() -> None:
    facts = {"a": np.float64(1.5), "b": np.int32(3), "c": np.bool_(True)}  # noqa: FBT003 - the value under test
    again = decode_record(encode_record(make_record(facts=facts)), where="here")
    assert again.verdict.facts == {"a": 1.5, "b": 3, "c": True}


@pytest.mark.parametrize("value", [np.zeros(2), object(), "\ud800"])
def test_what_is_no_plain_value_is_refused(value: object) -> None:
    with pytest.raises(HarnessError, match="cannot be stored"):
        encode_record(make_record(facts={"a": value}))


@pytest.mark.parametrize("content", [b"", b"x", encode_record(make_record())[:-20]])
def test_damage_is_named(content: bytes) -> None:
    with pytest.raises(HarnessError, match=r"results.sqlite \(record 7\)"):
        decode_record(content, where="results.sqlite (record 7)")


def test_key_texts_tell_fields_apart() -> None:
    one = Fingerprint("op", "values", "value", clause="x")
    other = Fingerprint("op", "values", "value", output="x")
    assert one.text() == other.text()
    assert key_text(one) != key_text(other)
    assert key_from_text(key_text(one)) == one
