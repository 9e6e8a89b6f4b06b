"""The JSON Schema that ships says of case and trial files what the reader says of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from aclnn_cts.core.case_schema import case_schema
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import trial_from_json, trial_to_json
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs, package_folder
from aclnn_cts.trials.checks.registry import CHECKS
from aclnn_cts.trials.plan import plan_parts, profile
from tests.support.targets import first_fast

SPECS = load_specs()
VALIDATOR = jsonschema.Draft202012Validator(case_schema())

CASE: dict[str, Any] = {
    "format": "aclnn-cts/case/1",
    "operator": "aclnnAny",
    "arguments": {
        "x": {"tensor": {"shape": [2], "dtype": "FLOAT", "data": {"values": [1, "nan"]}}},
        "sizes": {"int_array": [3, 4]},
        "scale": {"double": "-inf"},
        "alpha": {"scalar": {"dtype": "BF16", "value": 0.01}},
        "mode": {"string": "tanh"},
        "mask": {"bool_array": [True, False]},
        "factors": {"float_array": [0.5, "inf"]},
        "parameters": {"tensor_list": [{"shape": [2], "dtype": "FLOAT"}]},
        "none": None,
    },
    "target": {"soc": "Ascend910B3"},
    "call": {"phases": 1, "null": ["executor"]},
    "origin": {"kind": "mine"},
}
TRIAL: dict[str, Any] = {"format": "aclnn-cts/trial/2", "check": "values", "case": CASE, "parameters": {"times": 2}}


def test_what_ships_is_what_is_made() -> None:
    VALIDATOR.check_schema(case_schema())
    assert json.loads((package_folder() / "case.schema.json").read_text(encoding="utf-8")) == case_schema()


@pytest.mark.parametrize("operator", first_fast(SPECS, of=lambda name: name != "aclnnSoftmaxBackward"))
def test_every_trial_of_a_plan_conforms(operator: str) -> None:
    product = SPECS[operator].usual_product
    sampler = Sampler(SPECS[operator], Target(product=product))
    seen = set()
    for part in plan_parts([SPECS[operator]], product=product, chosen=profile("quick")):
        if part.check in CHECKS:
            for trial in CHECKS[part.check].trials(part, sampler, seed=0):
                VALIDATOR.validate(json.loads(json.dumps(trial_to_json(trial))))
                seen.add(part.check)
                break
    assert {"values", "status", "determinism", "life-cycle/two-streams"} <= seen


@pytest.mark.parametrize("document", [CASE, TRIAL], ids=["case", "trial"])
def test_files_written_by_hand_conform(document: dict[str, Any]) -> None:
    VALIDATOR.validate(document)
    trial_from_json(document, where="here")


def _tensor(case: dict[str, Any]) -> dict[str, Any]:
    tensor: dict[str, Any] = case["arguments"]["x"]["tensor"]
    return tensor


MISTAKES: dict[str, Callable[[dict[str, Any]], object]] = {
    "format": lambda case: case.update(format="aclnn-cts/case/2"),
    "no operator": lambda case: case.pop("operator"),
    "unknown key": lambda case: case.update(operators=[]),
    "two kinds": lambda case: case["arguments"]["scale"].update(int=3),
    "unknown kind": lambda case: case["arguments"].update(s={"scalar_list": []}),
    "a scalar without dtype": lambda case: case["arguments"]["alpha"]["scalar"].pop("dtype"),
    "a scalar of a dtype without numbers": lambda case: case["arguments"]["alpha"]["scalar"].update(dtype="STRING"),
    "a text that is none": lambda case: case["arguments"].update(s={"string": 1}),
    "a number for a bool": lambda case: case["arguments"]["mask"].update(bool_array=[1]),
    "a list of other things": lambda case: case["arguments"]["parameters"].update(tensor_list=[1]),
    "a bool for an int": lambda case: case["arguments"].update(s={"int": True}),
    "dtype": lambda case: _tensor(case).update(dtype="float32"),
    "tensor format": lambda case: _tensor(case).update(format="NLC"),
    "a size that is no integer": lambda case: _tensor(case).update(shape=[2.5]),
    "unknown key of a tensor": lambda case: _tensor(case).update(stride=[1]),
    "values and a recipe": lambda case: _tensor(case)["data"].update(recipe="normal"),
    "neither": lambda case: _tensor(case)["data"].pop("values"),
    "a word that is no number": lambda case: _tensor(case)["data"].update(values=[1, "infinity"]),
    "phases": lambda case: case["call"].update(phases=3),
    "null": lambda case: case["call"].update(null=["stream"]),
    "unknown key of the target": lambda case: case["target"].update(product="atlas-a2"),
    "unknown key of the origin": lambda case: case["origin"].update(author="me"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("document", [CASE, TRIAL], ids=["case", "trial"])
def test_reader_and_schema_refuse_the_same(document: dict[str, Any], mistake: str) -> None:
    wrong = copy.deepcopy(document)
    MISTAKES[mistake](wrong.get("case", wrong))
    assert not VALIDATOR.is_valid(wrong)
    with pytest.raises(UsageError):
        trial_from_json(wrong, where="here")
