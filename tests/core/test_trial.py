"""Trial files hold the calls that are made before a trial's own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.case_json import canonical_json, case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import EarlierCall, Trial, trial_from_json, trial_to_json


def case(seed: int) -> Case:
    return Case("aclnnAny", {"x": Tensor((2,), "FLOAT", data=Data(recipe="normal", seed=seed))})


ALONE = Trial("values", case(1))
AFTER = msgspec.structs.replace(ALONE, after=(EarlierCall(case(2)), EarlierCall(case(3), times=40)))


def test_they_are_read_as_they_were_written() -> None:
    document = msgspec.json.decode(canonical_json(trial_to_json(AFTER)))
    assert trial_from_json(document, where="here") == AFTER
    assert [item.get("times", 1) for item in document["after"]] == [1, 40]


def test_they_are_part_of_what_a_trial_is() -> None:
    fewer = msgspec.structs.replace(AFTER, after=AFTER.after[:1])
    assert len({ALONE.id, AFTER.id, fewer.id}) == 3
    assert "after" not in trial_to_json(ALONE)
    assert AFTER.nbytes == 42 * ALONE.nbytes


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({}, r"here: \$\.after: \{\}; expected a list of calls"),
        ([1], r"here: \$\.after\[0\]: 1; expected an object with a case"),
        ([{"times": 2}], r"here: \$\.after\[0\]: .*; expected an object with a case"),
        ([{"case": {}, "often": 2}], r"here: \$\.after\[0\]: .*; expected an object with a case"),
        ([{"case": {}}], r"here \(\$\.after\[0\]\.case\): \$"),
        ([{"case": case_to_json(case(1)), "times": 0}], r"here: \$\.after\[0\]\.times: 0; expected a whole number"),
        ([{"case": case_to_json(case(1)), "times": True}], r"here: \$\.after\[0\]\.times: True; expected a whole"),
        ([{"case": case_to_json(case(1)), "times": 4000}] * 2, r"here: \$\.after: 8000 calls; expected at most 4096"),
    ],
)
def test_what_is_none_is_refused(after: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        trial_from_json({**trial_to_json(ALONE), "after": after}, where="here")
