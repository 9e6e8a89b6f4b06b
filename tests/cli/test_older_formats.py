"""What an earlier version wrote: files for people are read, run directories and bundles are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.adapters import protocol
from aclnn_cts.core.faults import Fault, current_code
from aclnn_cts.findings.waivers.file import read_waivers
from aclnn_cts.speclang.package import package_folder
from tests.cli.conftest import Called, named
from tests.support.hostile_runs import change_store, sound_run

Call = Callable[..., Called]
LAST = "The last release that reads it is 0.1.0: pip install aclnn-cts==0.1.0"


def older(path: Path) -> None:
    document = json.loads((path / "manifest.json").read_bytes())
    document["format"] = "aclnn-cts/manifest/1"
    document["settings"]["rulers"] = ["mixed"]
    (path / "manifest.json").write_text(json.dumps(document))


@named(
    "words",
    [
        ("report", ("report", "{run}", "-o", "r.html")),
        ("bundle", ("bundle", "{run}", "-o", "b.zip")),
        ("compare", ("compare", "{run}", "{run}")),
        ("replay", ("replay", "{run}", "--adapter", "reference")),
        ("shrink", ("shrink", "{run}")),
        ("fuzz", ("fuzz", "--adapter", "reference", "--resume", "-o", "{run}", "--chunks", "1")),
    ],
)
def test_a_run_directory_of_version_1_is_refused(call: Call, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = sound_run(tmp_path / "run")
    older(path)
    called = call(*(word.format(run=path) for word in words))
    assert called.code in (2, 3), str(called)
    [message] = called.err.splitlines()
    assert message == (
        f"error: {path}/manifest.json: written by an older version (format 'aclnn-cts/manifest/1'); this version reads"
        f" 'aclnn-cts/manifest/2'. {LAST}"
    )


def test_a_store_of_version_1_is_refused(call: Call, tmp_path: Path) -> None:
    path = sound_run(tmp_path / "run")
    change_store(path, "UPDATE schema SET version = 1")
    called = call("compare", str(path), str(path))
    assert called.code in (2, 3)
    assert (
        f"results.sqlite: written by an older version (format 'schema 1'); this version reads 'schema 2'. {LAST}"
        in (called.err)
    )


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


def test_a_spec_of_version_0_1_is_told_the_new_key(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "softmax_backward.yaml"
    path.write_text((package_folder() / path.name).read_text(encoding="utf-8").replace("check: call", "promise: call"))
    called = call("spec", "lint", str(path))
    assert called.code == 1
    assert "unknown key 'promise'" in str(called)
    assert "; it is now called check" in str(called)


def test_an_old_public_name_warns_and_is_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="Manner is now called CallMode"):
        assert protocol.Manner is protocol.CallMode
    with pytest.raises(AttributeError):
        protocol.Way  # noqa: B018 - what is asked for is the attribute
