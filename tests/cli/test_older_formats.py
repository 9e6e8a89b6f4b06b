"""Version 1 of the files that people write is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from aclnn_cts.core.faults import Fault, current_code
from aclnn_cts.findings.waivers.file import read_waivers
from tests.cli.conftest import Called

Call = Callable[..., Called]


def test_a_waiver_of_version_1_names_check_and_fault_as_it_did(tmp_path: Path) -> None:
    path = tmp_path / "waivers.yaml"
    path.write_text(
        "subject: torch\nwaivers:\n  - {id: a, reason: r, owner: o, expiry: 2099-01-31,"
        " scope: {adapter: torch, promise: values, kind: [value, ruler]}}\n"
    )
    [waiver] = read_waivers([path])
    assert (waiver.scope.check, waiver.scope.kind) == (["values"], [Fault.VALUE, Fault.TOLERANCE])
    assert not {current_code(fault) for fault in Fault} - set(Fault)


def test_a_trial_of_version_1_names_its_check_as_it_did(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "trial.json"
    case = json.loads(call("cases", "softmax_backward", "--kind", "valid", "-n", "1").out)
    said = []
    for version, key in ((1, "promise"), (2, "check")):
        path.write_text(json.dumps({"format": f"aclnn-cts/trial/{version}", key: "memory", "case": case}))
        said.append(call("validate", str(path), "--json"))
    assert said[0].code == said[1].code == 0
    assert said[0].out == said[1].out
    assert json.loads(said[0].out.splitlines()[0])["check"] == "memory"


def test_a_trial_of_version_2_has_no_promise(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "trial.json"
    path.write_text(json.dumps({"format": "aclnn-cts/trial/2", "promise": "values", "case": {}}))
    called = call("validate", str(path))
    assert called.code == 2
    assert "$: unknown key 'promise'; expected format, check, case, parameters and after" in called.err
