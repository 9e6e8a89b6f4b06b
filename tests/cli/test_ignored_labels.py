"""A call that is open in its status is judged on its values where the document says them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.target import Target

Call = Callable[..., Any]


def labelled(ignored: int, *labels: int) -> Case:
    arguments: dict[str, Argument] = {
        "gradOutput": Tensor((2,), "FLOAT", data=Data(values=(1, 1))),
        "self": Tensor((2, 3), "FLOAT", data=Data(recipe="zeros")),
        "target": Tensor((2,), "INT64", data=Data(values=labels)),
        "weight": Tensor((3,), "FLOAT", data=Data(values=(1, 1, 1))),
        "reduction": 0,
        "ignoreIndex": ignored,
        "totalWeight": Tensor((1,), "FLOAT", data=Data(values=(1,))),
        "out": Tensor((2, 3), "FLOAT"),
    }
    return Case("aclnnNLLLossBackward", arguments, Target(product="atlas-a2"))


@pytest.mark.parametrize(
    ("case", "check", "reduced", "code"),
    [
        (labelled(4, 0, 4), "values", 1, 1),
        (labelled(4, 0, 4), "status", 1, 1),
        (labelled(-100, 0, -100), "status", 0, 0),
        (labelled(-100, 0, -9), "values", 0, 3),
    ],
    ids=["other-row", "other-row-of-a-status-trial", "usual-label", "no-label"],
)
def test_gradient_of_an_ignored_label_is_judged(
    call: Call, monkeypatch: pytest.MonkeyPatch, *, case: Case, check: str, reduced: int, code: int
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "support")
    trial = {"format": "aclnn-cts/trial/2", "check": check, "case": case_to_json(case), "parameters": {}}
    written = trial if check == "status" else case_to_json(case)
    Path("case.json").write_text(json.dumps(written), encoding="utf-8")
    adapter = f"labels_adapter:Labels,reduced={reduced}"
    assert call("run", "--cases", "case.json", "--adapter", adapter, "-o", "run").code == code
