from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from aclnn_cts.bundle.write import write_bundle
from aclnn_cts.core.target import Target
from aclnn_cts.store.manifest import adapter_facts
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory
from tests.cli.conftest import Called
from tests.cli.test_cli_compare import store
from tests.reports.synthetic import record, softmax_case, synthetic_run


def bundled() -> bytes:
    store("run", 1)
    write_bundle(RunDirectory(Path("run")), OutputFile(Path("run.bundle")))
    return Path("run.bundle").read_bytes()


def test_a_good_bundle(call: Callable[..., Called], snapshot: SnapshotAssertion) -> None:
    bundled()
    called = call("verify", "run.bundle", "--recompute", "3", "--seed", "1")
    assert called.code == 0
    assert "\n".join(line for line in called.out.splitlines() if " bytes: " not in line) == snapshot


def test_a_software_device_is_called_so(call: Callable[..., Called], tmp_path: Path) -> None:
    facts = {"description": "software device (loopback) standing in for Ascend910B3, atlas-a2; no hardware"}
    facts["device"] = "software device standing in for Ascend910B3"
    manifest = {"adapter": "cann", "target": Target(product="atlas-a2")}
    for name, environment in (("soft", adapter_facts(facts)), ("hard", adapter_facts({"device": "Ascend910B3"}))):
        run = synthetic_run(tmp_path / name, [record(softmax_case())], changes=manifest, environment=environment)
        write_bundle(RunDirectory(run), OutputFile(tmp_path / f"{name}.bundle"))
        shown = " ".join(call("verify", str(tmp_path / f"{name}.bundle")).out.split())
        [document] = call("verify", str(tmp_path / f"{name}.bundle"), "--json").lines
        with zipfile.ZipFile(tmp_path / f"{name}.bundle") as file:
            predicate = json.loads(file.read("MANIFEST.json"))["predicate"]
        assert document["says"]["product"] == predicate["product"]
        if name == "soft":
            assert "a run of cann on atlas-a2 (software device) at" in shown
            assert f"ran on: {facts['description']}" in shown
            assert (predicate["product"], predicate["ran_on"]) == ("atlas-a2 (software device)", facts["description"])
        else:
            assert "a run of cann on atlas-a2 at" in shown
            assert "software device" not in shown
            assert (predicate["product"], predicate["ran_on"]) == ("atlas-a2", "Ascend910B3")


def test_a_changed_byte(call: Callable[..., Called]) -> None:
    content = bytearray(bundled())
    content[-30] ^= 1
    Path("run.bundle").write_bytes(content)
    called = call("verify", "run.bundle", "--json")
    [document] = called.lines
    assert (called.code, document["good"]) == (1, False)
    assert document["problems"] == [
        {
            "where": "schemas/record.schema.json",
            "what": "its line in the directory at the end of the file has been changed",
        }
    ]
    shown = " ".join(call("verify", "run.bundle").out.split())
    assert "schemas/record.schema.json: its line in the directory" in shown
    assert "run.bundle: as the file claims, which is not to be trusted: a run of torch" in shown


def test_a_file_that_is_no_bundle(call: Callable[..., Called]) -> None:
    Path("README.md").write_text("# a page\n", encoding="utf-8")
    called = call("verify", "README.md")
    assert called.code == 1
    assert " ".join(called.out.split()) == (
        "README.md: is no bundle: it does not begin with the entry MANIFEST.json; expected a file that `bundle` wrote"
    )


def test_mistakes(call: Callable[..., Called]) -> None:
    bundled()
    for words, message in (
        (
            ("verify", "none"),
            "error: none: cannot be read: No such file or directory; expected a file that `bundle` wrote",
        ),
        (("bundle", "none", "-o", "x"), "error: none: holds no manifest.json; expected the directory that a run wrote"),
        (("bundle", "run", "-o", "no/x"), "error: -o no/x: no is no folder; make it first, or name another file"),
        (("bundle", "run", "-o", "run"), "error: -o run: is a folder; expected the name of a file"),
        (
            ("verify", "run.bundle", "--recompute", "-1"),
            "error: invalid value for '--recompute': '-1'; expected an integer",
        ),
    ):
        called = call(*words)
        assert (called.code, called.out) == (2, "")
        assert called.err.startswith(message)
